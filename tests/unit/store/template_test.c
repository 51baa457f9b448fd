/* Templates that tenants build: names, tags, builds, steps. */
#include "store/template.h"

#include "base/own.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#define IMAGE "ibbbbbbbbbbbbbbbbbbbb"

static char state[64];
static struct store *store;
static struct err err;

static void begin(void)
{
    struct store_quotas quotas = { .sandboxes = 1 };

    (void) strcpy(state, "/tmp/cove-store.XXXXXX");
    if (!mkdtemp(state) || store_open(state, &store, &err) < 0)
        exit(1);
    CHECK(store_tenant_add(store, "mine", &quotas, &err) == 0);
    CHECK(store_tenant_add(store, "other", &quotas, &err) == 0);
}

static void end(void)
{
    char command[128];

    store_close(store);
    store = NULL;
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    IGNORE(system(command));
}

static struct store_template add(const char *tenant, int number, const char *name)
{
    struct store_template t = { .created_ms = 1 };

    (void) snprintf(t.id, sizeof t.id, "i%020d", number);
    (void) snprintf(t.tenant, sizeof t.tenant, "%s", tenant);
    (void) snprintf(t.name, sizeof t.name, "%s", name);
    (void) store_template_add(store, &t, &err);
    return t;
}

static struct store_build built(const struct store_template *t, const char *id, const char *tags)
{
    struct store_build b = { .state = STORE_BUILD_NEW, .created_ms = 1 };

    (void) snprintf(b.id, sizeof b.id, "%s", id);
    memcpy(b.template, t->id, sizeof b.template);
    memcpy(b.tenant, t->tenant, sizeof b.tenant);
    (void) snprintf(b.tags, sizeof b.tags, "%s", tags);
    CHECK(store_build_add(store, &b, &err) == 0);
    b.state = STORE_BUILD_READY;
    b.ended_ms = 2;
    (void) strcpy(b.snapshot, IMAGE);
    CHECK(store_build_ready(store, &b, "{}", &err) == 0);
    return b;
}

static void a_tenants_own_name_comes_before_a_public_one(void)
{
    struct store_template one, got;

    begin();
    one = add("other", 1, "env");
    CHECK(store_template_find(store, "mine", "env", false, &got, &err) < 0);
    CHECK_INT(err.kind, ERR_NO_TEMPLATE);
    CHECK(store_template_publish(store, one.id, true, &err) == 0);
    CHECK(store_template_find(store, "mine", "env", false, &got, &err) == 0);
    CHECK_STR(got.tenant, "other");
    CHECK(store_template_find(store, "mine", "env", true, &got, &err) < 0);
    (void) add("mine", 2, "env");
    CHECK(store_template_find(store, "mine", "env", false, &got, &err) == 0);
    CHECK_STR(got.tenant, "mine");
    end();
}

static void a_tenant_has_so_many_templates_at_most(void)
{
    struct store_template t;
    char name[16];

    begin();
    for (int i = 0; i < STORE_TEMPLATES_MAX; i++) {
        (void) snprintf(name, sizeof name, "t%d", i);
        t = add("mine", i, name);
    }
    (void) snprintf(t.id, sizeof t.id, "i%020d", 999);
    CHECK(store_template_add(store, &t, &err) < 0);
    CHECK_INT(err.kind, ERR_EXISTS);
    (void) strcpy(t.name, "more");
    CHECK(store_template_add(store, &t, &err) < 0);
    CHECK_INT(err.kind, ERR_TOO_MANY);
    end();
}

static void tags_name_the_build_that_got_them_last(void)
{
    struct store_template t;
    struct store_build got;
    char tag[16];
    int r = 0;

    begin();
    t = add("mine", 1, "env");
    (void) built(&t, "a", "[\"default\",\"v1\"]");
    (void) built(&t, "b", "[\"default\"]");
    CHECK(store_tag_get(store, t.id, "default", &got, &err) == 0);
    CHECK_STR(got.id, "b");
    CHECK(store_tag_get(store, t.id, "v1", &got, &err) == 0);
    CHECK_STR(got.id, "a");
    CHECK(store_tag_remove(store, t.id, "v1", &err) == 0);
    CHECK(store_tag_remove(store, t.id, "v1", &err) < 0);
    for (int i = 0; i < STORE_TAGS_OF_ONE_MAX && r == 0; i++) {
        (void) snprintf(tag, sizeof tag, "n%d", i);
        r = store_tag_set(store, t.id, tag, "b", &err);
    }
    CHECK_INT(r, -1);
    CHECK_INT(err.kind, ERR_TOO_MANY);
    end();
}

static int count_build(void *arg, const struct store_build *b, struct err *why)
{
    (void) b, (void) why;
    ++*(int *) arg;
    return 0;
}

static void a_snapshot_is_used_until_nothing_speaks_of_it(void)
{
    struct store_snapshot s = { .tenant = "mine",
                                .created_ms = 1,
                                .state = STORE_SNAPSHOT_TEMPLATE };
    struct store_template t;
    struct store_build b;
    char found[ID_LEN + 1];
    int old = 0;

    begin();
    (void) strcpy(s.id, IMAGE);
    CHECK(store_snapshot_add(store, &s, &err) == 0);
    CHECK_INT(store_template_image_used(store, IMAGE, &err), 0);
    t = add("mine", 1, "env");
    b = built(&t, "a", "[\"default\"]");
    CHECK(store_step_add(store, "mine", "key", IMAGE, 7, &err) == 0);
    CHECK_INT(store_step_get(store, "other", "key", found, &err), 0);
    CHECK_INT(store_step_get(store, "mine", "key", found, &err), 1);
    CHECK_STR(found, IMAGE);
    CHECK(store_build_old(store, t.id, 0, count_build, &old, &err) == 0);
    CHECK_INT(old, 0); /* it has a tag */
    CHECK(store_template_remove(store, t.id, &err) == 0);
    CHECK(store_build_get(store, "mine", b.id, &b, &err) < 0);
    CHECK_INT(store_template_image_used(store, IMAGE, &err), 1);
    CHECK(store_step_remove(store, "mine", "key", &err) == 0);
    CHECK_INT(store_template_image_used(store, IMAGE, &err), 0);
    CHECK(store_build_ready(store, &b, "{}", &err) < 0); /* its template is gone */
    CHECK_INT(err.kind, ERR_NO_TEMPLATE);
    end();
}

CHECK_MAIN(T(a_tenants_own_name_comes_before_a_public_one),
           T(a_tenant_has_so_many_templates_at_most), T(tags_name_the_build_that_got_them_last),
           T(a_snapshot_is_used_until_nothing_speaks_of_it))
