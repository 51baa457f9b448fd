/* Snapshots, and sandboxes that sleep. */
#include "base/own.h"
#include "store/store.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

#define BOX   "iaaaaaaaaaaaaaaaaaaaa"
#define FIRST "ibbbbbbbbbbbbbbbbbbbb"
#define NEXT  "icccccccccccccccccccc"

static char state[64];
static struct store *store;

static void begin(void)
{
    struct store_quotas quotas = { .sandboxes = 1 };
    struct err err;

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

static struct store_snapshot snapshot(const char *id, const char *name)
{
    struct store_snapshot s = { .tenant = "mine", .created_ms = 1, .memory = true };

    (void) strcpy(s.id, id);
    (void) strcpy(s.name, name);
    return s;
}

static int count_one(void *arg, const struct store_snapshot *s, struct err *err)
{
    (void) s, (void) err;
    ++*(int *) arg;
    return 0;
}

static void a_foreign_snapshot_is_as_unknown_as_none(void)
{
    struct store_snapshot s = snapshot(FIRST, "one"), got;
    struct err err;

    begin();
    CHECK(store_snapshot_add(store, &s, &err) == 0);
    CHECK(store_snapshot_get(store, "mine", FIRST, &got, &err) == 0);
    CHECK(store_snapshot_get(store, "mine", "one", &got, &err) == 0);
    CHECK_STR(got.id, FIRST);
    CHECK(store_snapshot_get(store, "other", FIRST, &got, &err) == -1);
    CHECK(err.kind == ERR_NO_IMAGE);
    CHECK_STR(err.msg, "there is no snapshot '" FIRST "'");
    CHECK(store_snapshot_get(store, "other", "one", &got, &err) == -1);
    CHECK(store_snapshot_get(store, NULL, "one", &got, &err) == -1);
    end();
}

static void a_name_is_unique_until_another_takes_it(void)
{
    struct store_snapshot s = snapshot(FIRST, "one"), next = snapshot(NEXT, "one"), got;
    struct err err;
    int count = 0;

    begin();
    CHECK(store_snapshot_add(store, &s, &err) == 0);
    CHECK(store_snapshot_add(store, &next, &err) == -1);
    CHECK(err.kind == ERR_NAME_TAKEN);
    next.name[0] = '\0';
    CHECK(store_snapshot_add(store, &next, &err) == 0);
    (void) strcpy(next.name, "one");
    next.state = STORE_SNAPSHOT_READY;
    next.bytes = 7;
    CHECK(store_snapshot_ready(store, &next, &err) == 0);
    CHECK(store_snapshot_get(store, "mine", "one", &got, &err) == 0);
    CHECK_STR(got.id, NEXT);
    CHECK(got.state == STORE_SNAPSHOT_READY && got.bytes == 7);
    CHECK(store_snapshot_list(store, "mine", 0, 0, count_one, &count, &err) == 0);
    CHECK(count == 2);
    end();
}

static void what_is_long_goes_with_it(void)
{
    struct store_snapshot s = snapshot(FIRST, "");
    char *env = NULL, *network = NULL;
    struct err err;

    begin();
    s.env = "[\"A=1\"]";
    CHECK(store_snapshot_add(store, &s, &err) == 0);
    CHECK(store_snapshot_kept(store, FIRST, &env, &network, &err) == 0);
    CHECK_STR(env, "[\"A=1\"]");
    CHECK(network == NULL);
    free(env);
    CHECK(store_tenant_remove(store, "mine", &err) == -1);
    CHECK_STR(err.msg, "tenant 'mine' has 1 snapshots: delete them first");
    CHECK(store_snapshot_remove(store, FIRST, &err) == 0);
    CHECK(store_snapshot_kept(store, FIRST, &env, &network, &err) == 0);
    CHECK(env == NULL);
    CHECK(store_tenant_remove(store, "mine", &err) == 0);
    end();
}

static void what_is_on_disk_counts_for_its_bytes_only(void)
{
    struct store_sandbox box = { .tenant = "mine", .timeout_ms = 5, .auto_resume = true }, got;
    struct store_sleep sleep = { .tier = STORE_DISK, .since_ms = 3, .bytes = 100, .memory = true };
    struct store_snapshot s = snapshot(FIRST, "");
    struct store_usage usage;
    struct err err;

    begin();
    (void) strcpy(box.id, BOX);
    CHECK(store_sandbox_add(store, &box, &err) == 0);
    CHECK(store_sandbox_set_sleep(store, BOX, &sleep, &err) == 0);
    CHECK(store_usage(store, "mine", &usage, &err) == 0 && usage.sandboxes == 0);
    CHECK(store_snapshot_add(store, &s, &err) == 0);
    s.bytes = 50;
    CHECK(store_snapshot_ready(store, &s, &err) == 0);
    CHECK(store_sandbox_get(store, "mine", BOX, &got, &err) == 0);
    CHECK(got.sleep.tier == STORE_DISK && got.sleep.since_ms == 3 && got.auto_resume);
    (void) strcpy(box.id, NEXT);
    CHECK(store_sandbox_add(store, &box, &err) == 0);    /* the place is free … */
    CHECK(store_sandbox_claim(store, &got, &err) == -1); /* … and now it is not */
    CHECK(err.kind == ERR_TOO_MANY);
    CHECK(store_sandbox_remove(store, NEXT, &err) == 0);
    CHECK(store_sandbox_claim(store, &got, &err) == 0);
    CHECK(store_usage(store, "mine", &usage, &err) == 0 && usage.sandboxes == 1);
    end();
}

CHECK_MAIN(T(a_foreign_snapshot_is_as_unknown_as_none), T(a_name_is_unique_until_another_takes_it),
           T(what_is_long_goes_with_it), T(what_is_on_disk_counts_for_its_bytes_only))
