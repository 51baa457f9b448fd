/* Templates that were built. What a create needs of one is in two records: a snapshot, and the settings of the build that has
 * the tag. The snapshot is as good as any: the sandbox is loaded from it, by the way of ops_snapshot.c. */
#include "server/ops/ops_template.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "server/guard/audit.h"
#include "server/guard/quota.h"
#include "server/life/sleep_own.h"
#include "server/ops/ops_own.h"
#include "server/ops/ops_pull.h"
#include "store/template.h"
#include "wire/pull.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define DROP_MS 10000

_Static_assert(OPS_BUILD_ID_MAX == STORE_BUILD_ID_MAX && OPS_TAG_MAX == STORE_TAG_MAX,
               "the store has room for them");

/* ---- names ---- */

int ops_template_ref_read(const char *text, struct ops_template_ref *ret, struct err *err)
{
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t) (colon - text) : strlen(text);

    if (len >= sizeof ret->name || (colon && strlen(colon + 1) >= sizeof ret->tag))
        return err_set(err, ERR_INVALID, "a template's name and tag have at most %d bytes each",
                       OPS_NAME_MAX - 1);
    memcpy(ret->name, text, len);
    ret->name[len] = '\0';
    (void) strcpy(ret->tag, colon ? colon + 1 : STORE_DEFAULT_TAG);
    if (!name_ok(ret->name) || !name_ok(ret->tag))
        return err_set(err, ERR_INVALID,
                       "a template is NAME or NAME:TAG, each 1 to 63 of a-z, 0-9, '-', '_', '.'");
    return 0;
}

bool ops_template_ref_ok(const char *text)
{
    struct ops_template_ref ref;
    struct err ignored;

    return ops_template_ref_read(text, &ref, &ignored) == 0;
}

static void view(struct ops *ops, const struct store_template *t, struct ops_template *ret)
{
    *ret = (struct ops_template){ .own = strcmp(t->tenant, ops->caller->tenant) == 0,
                                  .is_public = t->is_public,
                                  .created_ms = t->created_ms,
                                  .updated_ms = t->updated_ms };
    memcpy(ret->id, t->id, sizeof ret->id);
    memcpy(ret->name, t->name, sizeof ret->name);
}

static int find(struct ops *ops, const char *name, bool own, struct store_template *ret,
                struct err *err)
{
    return store_template_find(ops->app->store, ops->caller->tenant, name, own, ret, err);
}

int ops_template_get(struct ops *ops, const char *name, struct ops_template *ret, struct err *err)
{
    struct store_template template;

    if (find(ops, name, false, &template, err) < 0)
        return -1;
    view(ops, &template, ret);
    return 0;
}

int ops_template_make(struct ops *ops, const char *name, struct ops_template *ret, struct err *err)
{
    struct store_template template = { .created_ms = store_now_ms() };

    if (!name_ok(name) || id_ok(name) || pull_name_is(name))
        return err_set(err, ERR_INVALID,
                       "name: 1 to 63 of a-z, 0-9, '-', '_', '.', and not like an id");
    if (find(ops, name, true, &template, err) < 0) {
        if (err->kind != ERR_NO_TEMPLATE || sandbox_new_id(template.id, err) < 0)
            return -1;
        template.updated_ms = template.created_ms;
        (void) snprintf(template.tenant, sizeof template.tenant, "%s", ops->caller->tenant);
        (void) snprintf(template.name, sizeof template.name, "%s", name);
        if (store_template_add(ops->app->store, &template, err) < 0 &&
            (err->kind != ERR_EXISTS || find(ops, name, true, &template, err) < 0))
            return -1;
    }
    view(ops, &template, ret);
    return 0;
}

struct listing {
    struct ops *ops;
    ops_template_each *each;
    void *arg;
};

static int list_one(void *arg, const struct store_template *template, struct err *err)
{
    struct listing *l = arg;
    struct ops_template item;

    view(l->ops, template, &item);
    return l->each(l->arg, &item, err);
}

int ops_template_list(struct ops *ops, ops_template_each *each, void *arg, struct err *err)
{
    struct listing l = { ops, each, arg };

    return store_template_list(ops->app->store, ops->caller->tenant, list_one, &l, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

int ops_template_installed(struct ops *ops, char (**ret)[KEEPER_NAME_MAX], size_t *ret_count,
                           char ret_default[KEEPER_NAME_MAX], struct err *err)
{
    struct keeper_hello hello;
    struct link link;
    int r;

    if (app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = keeper_hello(&link, &hello, err);
    if (r == 0)
        r = keeper_templates(&link, ret, ret_count, err);
    ops_box_close(ops, &link, r, err);
    if (r < 0)
        return -1;
    for (size_t i = 0; i < *ret_count;) /* a tenant's image is no template to name */
        if (pull_name_is((*ret)[i]))
            memcpy((*ret)[i], (*ret)[--*ret_count], sizeof **ret);
        else
            i++;
    qsort(*ret, *ret_count, sizeof **ret, by_name);
    (void) snprintf(ret_default, KEEPER_NAME_MAX, "%s", hello.default_template);
    return 0;
}

int ops_template_about(struct ops *ops, const char *name, struct keeper_template *ret,
                       struct err *err)
{
    struct link link;
    int r;

    if (app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = keeper_template(&link, name, ret, err);
    ops_box_close(ops, &link, r, err);
    return r;
}

/* ---- changes ---- */

/* One record on disk of what was done, or of why it was not. */
static int noted(struct ops *ops, const char *action, const char *detail, int r, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;

    facts.detail = detail;
    facts.refusal = r < 0 ? err : NULL;
    if (r == 0)
        return audit_durable(ops->caller, action, "", &facts, err);
    audit_note(ops->caller, action, "", &facts);
    return -1;
}

struct images {
    char (*ids)[ID_LEN + 1];
    size_t count;
};

static int keep_image(void *arg, const struct store_build *build, struct err *err)
{
    struct images *images = arg;
    void *more;

    if (!build->snapshot[0])
        return 0;
    more = realloc(images->ids, (images->count + 1) * sizeof *images->ids);
    if (!more)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list of builds");
    images->ids = more;
    memcpy(images->ids[images->count++], build->snapshot, sizeof *images->ids);
    return 0;
}

static int delete (struct ops *ops, const char *name, struct err *err)
{
    struct images images = { .ids = NULL };
    struct store_template template;
    int r;

    if (find(ops, name, true, &template, err) < 0)
        return -1;
    r = store_build_list(ops->app->store, template.tenant, template.id, INT64_MAX, keep_image,
                         &images, err);
    if (r == 0)
        r = store_template_remove(ops->app->store, template.id, err);
    for (size_t i = 0; r == 0 && i < images.count; i++)
        ops_template_drop(ops->app, images.ids[i]);
    if (r == 0)
        ops_pull_settle(ops->app, template.tenant);
    free(images.ids);
    return r;
}

int ops_template_delete(struct ops *ops, const char *name, struct err *err)
{
    return noted(ops, "template.delete", name, delete (ops, name, err), err);
}

int ops_template_publish(struct ops *ops, const char *name, bool is_public, struct err *err)
{
    struct store_template template;
    int r;

    if (ops->caller->scope != SCOPE_ADMIN || strcmp(ops->caller->tenant, STORE_LOCAL_TENANT) != 0)
        r = err_set(err, ERR_DENIED, "only administrators of '%s' publish templates",
                    STORE_LOCAL_TENANT);
    else
        r = find(ops, name, true, &template, err) < 0
                ? -1
                : store_template_publish(ops->app->store, template.id, is_public, err);
    return noted(ops, is_public ? "template.publish" : "template.unpublish", name, r, err);
}

/* ---- tags ---- */

struct tags {
    ops_tag_each *each;
    void *arg;
};

static int tag_one(void *arg, const struct store_tag *tag, struct err *err)
{
    struct ops_tag item = { .created_ms = tag->created_ms, .bytes = tag->bytes };
    struct tags *tags = arg;

    (void) snprintf(item.tag, sizeof item.tag, "%s", tag->tag);
    (void) snprintf(item.build, sizeof item.build, "%s", tag->build);
    (void) snprintf(item.from, sizeof item.from, "%s", tag->from);
    return tags->each(tags->arg, &item, err);
}

int ops_template_tags(struct ops *ops, const char *name, ops_tag_each *each, void *arg,
                      struct err *err)
{
    struct tags tags = { each, arg };
    struct store_template template;

    if (find(ops, name, false, &template, err) < 0)
        return -1;
    return store_tag_list(ops->app->store, template.id, tag_one, &tags, err);
}

static int set_tags(struct ops *ops, const struct ops_template_ref *ref, const char *const *tags,
                    size_t count, char ret_build[OPS_BUILD_ID_MAX], struct err *err)
{
    auto_free struct store_build *build = malloc(sizeof *build);
    struct store_template template;

    if (!build)
        return err_set(err, ERR_NO_MEMORY, "no memory for a build");
    for (size_t i = 0; i < count; i++)
        if (!name_ok(tags[i])) {
            err_set(err, ERR_INVALID, "tags: each 1 to 63 of a-z, 0-9, '-', '_', '.'");
            return caller_blame(ops->caller, "tags", NULL, NULL);
        }
    if (find(ops, ref->name, true, &template, err) < 0 ||
        store_tag_get(ops->app->store, template.id, ref->tag, build, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (store_tag_set(ops->app->store, template.id, tags[i], build->id, err) < 0)
            return -1;
    memcpy(ret_build, build->id, sizeof build->id);
    return 0;
}

int ops_template_tag(struct ops *ops, const struct ops_template_ref *ref, const char *const *tags,
                     size_t count, char ret_build[OPS_BUILD_ID_MAX], struct err *err)
{
    return noted(ops, "template.tag", ref->name, set_tags(ops, ref, tags, count, ret_build, err),
                 err);
}

static int untag(struct ops *ops, const char *name, const char *tag, struct err *err)
{
    struct store_template template;

    if (find(ops, name, true, &template, err) < 0)
        return -1;
    if (strcmp(tag, STORE_DEFAULT_TAG) == 0) {
        err_set(err, ERR_INVALID, "tag: '%s' cannot be removed", STORE_DEFAULT_TAG);
        return caller_blame(ops->caller, "tag", NULL, NULL);
    }
    return store_tag_remove(ops->app->store, template.id, tag, err);
}

int ops_template_untag(struct ops *ops, const char *name, const char *tag, struct err *err)
{
    return noted(ops, "template.untag", name, untag(ops, name, tag, err), err);
}

/* ---- a create ---- */

static int read_settings(struct ops *ops, const char *build, json_t **ret, struct err *err)
{
    auto_free char *text = NULL;

    if (store_build_settings(ops->app->store, build, &text, err) < 0)
        return -1;
    *ret = json_loads(text, 0, NULL);
    return *ret ? 0 : err_set(err, ERR_INTERNAL, "the settings of a template cannot be read");
}

int ops_template_settings(struct ops *ops, const struct ops_template_ref *ref, json_t **ret,
                          struct err *err)
{
    auto_free struct store_build *build = malloc(sizeof *build);
    struct store_template template;

    if (!build)
        return err_set(err, ERR_NO_MEMORY, "no memory for a build");
    return find(ops, ref->name, false, &template, err) < 0 ||
                   store_tag_get(ops->app->store, template.id, ref->tag, build, err) < 0
               ? -1
               : read_settings(ops, build->id, ret, err);
}

/* The environment as a snapshot keeps it: what commands get by default first, then assignments. */
static char *kept_env(const json_t *said)
{
    json_t *list = json_deep_copy(json_object_get(said, "env")), *defaults;
    char *text;

    if (!list)
        list = json_array();
    defaults = json_pack("{s:O*, s:O*}", "user", json_object_get(said, "user"), "workdir",
                         json_object_get(said, "workdir"));
    if (defaults && json_object_size(defaults) > 0)
        (void) json_array_insert(list, 0, defaults);
    json_decref(defaults);
    text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return text;
}

/* Processes of the image that would have another isolation than is wanted stay there: the start command runs again. */
static int choose_processes(struct ops *ops, struct ops_create *create, struct err *err)
{
    uint32_t wanted;

    if (!create->fixed)
        return 0;
    if (ops_wanted_isolation(ops, create, &wanted, err) < 0)
        return -1;
    if (wanted != create->chosen) {
        create->files_only = true;
        create->fixed = false;
    }
    return 0;
}

static int apply(struct ops *ops, struct ops_create *create, const struct ops_template_ref *ref,
                 const struct store_build *build, struct ops_source *source, struct err *err)
{
    auto_free char *env = NULL;
    struct store_snapshot record;

    if (read_settings(ops, build->id, &source->settings, err) < 0 ||
        store_snapshot_get(ops->app->store, NULL, build->snapshot, &record, err) < 0)
        return -1;
    env = kept_env(source->settings);
    if (!env)
        return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    if (create->limits.cpu_milli < build->cpu_milli)
        create->limits.cpu_milli = build->cpu_milli;
    if (create->limits.memory_bytes < build->memory_bytes)
        create->limits.memory_bytes = build->memory_bytes;
    if (create->limits.disk_bytes < build->disk_bytes)
        create->limits.disk_bytes = build->disk_bytes;
    create->wish = json_string_value(
        json_object_get(json_object_get(source->settings, "labels"), OPS_LABEL_ISOLATION));
    if (ops_source_from(ops, create, &record, env, NULL, source, err) < 0 ||
        choose_processes(ops, create, err) < 0)
        return -1;
    source->cold =
        (!record.memory || create->files_only) && json_object_get(source->settings, "start");
    memcpy(source->owner, record.tenant, sizeof source->owner);
    (void) snprintf(source->name, sizeof source->name, "%s%s%s", ref->name,
                    strcmp(ref->tag, STORE_DEFAULT_TAG) == 0 ? "" : ":",
                    strcmp(ref->tag, STORE_DEFAULT_TAG) == 0 ? "" : ref->tag);
    create->image_owner = source->owner;
    create->base = source->template;
    create->template = source->name;
    return 0;
}

/* A build continues from what it, or one before it, has so far. */
static int apply_step(struct ops *ops, struct ops_create *create, struct ops_source *source,
                      struct err *err)
{
    uint64_t disk = create->limits.disk_bytes;
    struct store_snapshot record;

    create->limits.disk_bytes = 0; /* at least that of the snapshot, whose files may be as many */
    if (store_snapshot_get(ops->app->store, ops->caller->tenant, create->build_image, &record,
                           err) < 0 ||
        ops_source_from(ops, create, &record, NULL, NULL, source, err) < 0)
        return -1;
    if (create->limits.disk_bytes < disk)
        create->limits.disk_bytes = disk;
    create->base = source->template;
    return 0;
}

/* A name without a template of that name is the host's: the keeper knows. */
int ops_template_apply(struct ops *ops, struct ops_create *create, struct ops_source *source,
                       struct err *err)
{
    auto_free struct store_build *build = malloc(sizeof *build);
    struct store_template template;
    struct ops_template_ref ref;
    int r;

    if (create->build_image)
        return apply_step(ops, create, source, err);
    if (!create->template)
        return 0;
    if (!build)
        return err_set(err, ERR_NO_MEMORY, "no memory for a build");
    if (ops_template_ref_read(create->template, &ref, err) < 0)
        return -1;
    r = find(ops, ref.name, false, &template, err);
    if (r == 0)
        r = store_tag_get(ops->app->store, template.id, ref.tag, build, err);
    if (r == 0)
        r = apply(ops, create, &ref, build, source, err);
    else if (err->kind == ERR_NO_TEMPLATE && strcmp(ref.tag, STORE_DEFAULT_TAG) == 0 &&
             (create->pulled || !pull_name_is(ref.name))) {
        (void) snprintf(source->name, sizeof source->name, "%s", ref.name);
        create->template = source->name;
        return 0;
    }
    if (r == 0 || err->kind != ERR_NO_TEMPLATE)
        return r;
    err_set(err, ERR_NO_TEMPLATE, "there is no template '%s:%s'", ref.name, ref.tag);
    return caller_blame(ops->caller, "template", NULL, NULL);
}

int ops_template_started(struct ops *ops, const struct ops_source *source, const char *sandbox,
                         struct err *err)
{
    struct ops_command command = {
        .command = json_string_value(json_object_get(source->settings, "start")),
        .flags = AGENT_DETACH,
    };
    struct ops_run run;

    if (!command.command || ops_run_start(ops, sandbox, &command, &run, err) < 0)
        return command.command ? -1 : 0;
    ops_run_close(&run);
    return 0;
}

/* ---- for builds ---- */

void ops_template_drop(struct app *app, const char *snapshot)
{
    uint64_t until = io_now_ms() + DROP_MS;
    struct err err;
    int r;

    if (!snapshot[0] || store_template_image_used(app->store, snapshot, &err) != 0)
        return;
    /* A keeper that was killed is back in a moment. What is left after that goes at the next start. */
    while ((r = sleep_drop(app, snapshot, &err)) < 0 && err.kind == ERR_UNAVAILABLE &&
           io_now_ms() < until)
        (void) poll(NULL, 0, 200);
    if (r < 0 && !sleep_no_image(&err))
        log_line(LOG_WARNING, "snapshot=%s of a template not dropped: %s", snapshot, err.msg);
}

static int is_to_seal(struct ops *ops, const char *sandbox, const struct ops_save_template *save,
                      bool *ret, struct err *err)
{
    struct keeper_stats stats;
    struct link link;
    int r;

    *ret = !save->memory && save->seal_from == 0;
    if (save->memory || save->seal_from == 0 || save->seal_from == UINT64_MAX)
        return 0;
    if (app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = sandbox_stats(&link, sandbox, &stats, err);
    ops_box_close(ops, &link, r, err);
    *ret = r == 0 && stats.disk_bytes >= save->seal_from;
    return r;
}

int ops_template_save(struct ops *ops, const char *sandbox, struct ops_save_template *save,
                      struct err *err)
{
    struct store_snapshot snapshot = { .memory = save->memory };
    struct store_sandbox record;
    struct keeper_image image;

    if (quota_store(ops->caller, err) < 0 || ops_find(ops, sandbox, &record, err) < 0 ||
        is_to_seal(ops, sandbox, save, &save->sealed, err) < 0 ||
        ops_save_recorded(ops, &record, &snapshot, STORE_SNAPSHOT_TEMPLATE, save->sealed, &image,
                          err) < 0)
        return -1;
    memcpy(save->id, snapshot.id, sizeof save->id);
    save->bytes = image.bytes;
    return 0;
}
