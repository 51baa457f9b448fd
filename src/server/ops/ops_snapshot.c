/* Snapshots. A record is written before the image is made, and says that it is being made: what a server that was
 * killed leaves half done is found by it, and dropped (idle.c). A removal drops the image first. */
#include "server/guard/audit.h"
#include "server/guard/quota.h"
#include "server/life/sleep_own.h"
#include "server/net/network.h"
#include "server/net/network_rules.h"
#include "server/net/secrets.h"
#include "server/ops/ops_own.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "store/seal.h"

#include <string.h>

/* ---- saving ---- */

static int save_image(struct ops *ops, const struct store_sandbox *record, const char *image,
                      uint32_t flags, struct keeper_image *ret, struct err *err)
{
    bool memory = flags & KEEPER_SAVE_MEMORY;
    uint64_t begun = io_now_ms();
    struct turn turn;
    struct link link;
    struct err ignored;
    int r;

    turn_take(&turn, record->id);
    if (app_link_take(ops->app, &link, err) < 0) {
        turn_give(&turn);
        return -1;
    }
    r = sleep_room(ops->app, &link, record, memory, true, err);
    if (r == 0) {
        /* Reset before the image is made: no copy may think that it has them. */
        if (memory)
            network_ended(ops->app, record->id);
        r = image_save(&link, record->id, image, record->tenant, flags, ret, err);
        if (memory && sleep_network(ops->app, record->id, &ignored) < 0)
            log_line(LOG_WARNING, "sandbox=%s lost its network: %s", record->id, ignored.msg);
    }
    sleep_close(ops->app, &link, r, err);
    /* While it is our turn: no other thread finds a record without a sandbox, and calls that lost. */
    if (r == 0 && flags & KEEPER_SAVE_SEAL &&
        ops_sandbox_ended(ops, record->id, begun, &ignored) < 0)
        log_line(LOG_WARNING, "sandbox=%s was sealed: %s", record->id, ignored.msg);
    turn_give(&turn);
    if (r == 0)
        quota_add_stored(ops->app, record->tenant, ret->bytes);
    else if (err->kind == ERR_TOO_MANY)
        (void) caller_blame(ops->caller, NULL, quota_named(err), "quota");
    return r;
}

static int save_recorded(struct ops *ops, const struct store_sandbox *record,
                         struct store_snapshot *snapshot, int state, bool seal,
                         struct keeper_image *ret, struct err *err)
{
    uint32_t flags = (snapshot->memory ? KEEPER_SAVE_MEMORY : 0) | (seal ? KEEPER_SAVE_SEAL : 0);
    char name[STORE_NAME_MAX];
    struct err ignored;

    memcpy(name, snapshot->name, sizeof name);
    memcpy(snapshot->tenant, record->tenant, sizeof snapshot->tenant);
    memcpy(snapshot->sandbox, record->id, sizeof snapshot->sandbox);
    memcpy(snapshot->metadata, record->metadata, sizeof snapshot->metadata);
    snapshot->created_ms = store_now_ms();
    snapshot->state = STORE_SNAPSHOT_MAKING;
    snapshot->name[0] = '\0'; /* it has its name when it is whole */
    if (store_snapshot_add(ops->app->store, snapshot, err) < 0)
        return -1;
    memcpy(snapshot->name, name, sizeof name);
    if (save_image(ops, record, snapshot->id, flags, ret, err) < 0) {
        (void) store_snapshot_remove(ops->app->store, snapshot->id, &ignored);
        return -1;
    }
    snapshot->state = state;
    snapshot->bytes = ret->bytes;
    if (store_snapshot_ready(ops->app->store, snapshot, err) == 0)
        return 0;
    (void) sleep_drop(ops->app, snapshot->id, &ignored);
    return -1;
}

int ops_save_recorded(struct ops *ops, const struct store_sandbox *record,
                      struct store_snapshot *snapshot, int state, bool seal,
                      struct keeper_image *ret, struct err *err)
{
    auto_free char *env = NULL, *network = NULL;
    struct ops_sandbox box;
    struct ops_uses uses;
    char *hidden = NULL;
    int r;

    if (sandbox_new_id(snapshot->id, err) < 0 || ops_look(ops, record, &box, err) < 0 ||
        store_sandbox_env(ops->app->store, record->id, &env, err) < 0 ||
        store_network_get(ops->app->store, record->id, &network, err) < 0 ||
        ops_volumes_of(ops, record->id, &uses, err) < 0 ||
        secrets_kept(ops->app, record->id, &hidden, err) < 0)
        return -1;
    memcpy(snapshot->template, box.template, sizeof snapshot->template);
    snapshot->env = env;
    snapshot->network = network;
    snapshot->hidden = hidden;
    snapshot->volumes = uses.list;
    snapshot->volume_count = uses.count;
    r = save_recorded(ops, record, snapshot, state, seal, ret, err);
    seal_wipe(hidden, hidden ? strlen(hidden) : 0);
    snapshot->env = snapshot->network = snapshot->hidden = NULL;
    snapshot->volumes = NULL;
    snapshot->volume_count = 0;
    return r;
}

static void view(const struct store_snapshot *s, struct ops_snapshot *ret)
{
    *ret = (struct ops_snapshot){ .created_ms = s->created_ms,
                                  .bytes = s->bytes,
                                  .memory = s->memory };
    memcpy(ret->id, s->id, sizeof ret->id);
    memcpy(ret->name, s->name, sizeof ret->name);
    memcpy(ret->sandbox, s->sandbox, sizeof ret->sandbox);
    memcpy(ret->template, s->template, sizeof ret->template);
}

/* A name that is taken is refused before anything stands still; with `replace`, who has it is told. */
static int check_name(struct ops *ops, const struct ops_save *save, struct store_snapshot *ret_old,
                      struct err *err)
{
    struct err why;

    ret_old->id[0] = '\0';
    if (!save->name)
        return 0;
    if (!name_ok(save->name) || id_ok(save->name))
        err_set(err, ERR_INVALID, "name: 1 to 63 of a-z, 0-9, '-', '_', '.', and not like an id");
    else if (store_snapshot_get(ops->app->store, ops->caller->tenant, save->name, ret_old, &why) <
             0)
        return why.kind == ERR_NO_IMAGE ? 0 : (*err = why, -1);
    else if (save->replace)
        return 0;
    else
        err_set(err, ERR_NAME_TAKEN, "a snapshot has the name '%s' already", save->name);
    return caller_blame(ops->caller, "name", NULL, NULL);
}

static int save_named(struct ops *ops, const char *sandbox, const struct ops_save *save,
                      struct ops_snapshot *ret, struct err *err)
{
    struct store_snapshot snapshot = { .memory = !save->files_only }, old;
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t begun = io_now_ms();
    struct store_sandbox record;
    struct keeper_image image;
    struct err ignored;

    if (check_name(ops, save, &old, err) < 0 || ops_wake(ops, sandbox, err) < 0 ||
        quota_store(ops->caller, err) < 0 || ops_find(ops, sandbox, &record, err) < 0)
        return -1;
    (void) snprintf(snapshot.name, sizeof snapshot.name, "%s", save->name ? save->name : "");
    if (ops_save_recorded(ops, &record, &snapshot, STORE_SNAPSHOT_READY, false, &image, err) < 0)
        return -1;
    if (old.id[0] && sleep_drop(ops->app, old.id, &ignored) < 0)
        log_line(LOG_WARNING, "snapshot=%s not dropped: %s", old.id, ignored.msg);
    view(&snapshot, ret);
    ret->frozen_us = image.frozen_us;
    facts.detail = snapshot.id;
    facts.file_bytes = image.bytes;
    facts.duration_ms = (int64_t) (io_now_ms() - begun);
    return audit_durable(ops->caller, "snapshot.create", sandbox, &facts, err);
}

int ops_snapshot_create(struct ops *ops, const char *sandbox, const struct ops_save *save,
                        struct ops_snapshot *ret, struct err *err)
{
    if (ops_sandbox_check(ops, sandbox, err) < 0)
        return -1;
    if (save_named(ops, sandbox, save, ret, err) == 0)
        return 0;
    ops_audit(ops, "snapshot.create", sandbox, err);
    return -1;
}

/* ---- what there is ---- */

static int find(struct ops *ops, const char *text, struct store_snapshot *ret, struct err *err)
{
    if (store_snapshot_get(ops->app->store, ops->caller->tenant, text, ret, err) < 0)
        return -1;
    return ret->state == STORE_SNAPSHOT_READY
               ? 0
               : err_set(err, ERR_NO_IMAGE, "there is no snapshot '%.63s'", text);
}

int ops_snapshot_get(struct ops *ops, const char *snapshot, struct ops_snapshot *ret,
                     struct err *err)
{
    struct store_snapshot record;

    if (find(ops, snapshot, &record, err) < 0)
        return -1;
    view(&record, ret);
    return 0;
}

int ops_snapshot_delete(struct ops *ops, const char *snapshot, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct store_snapshot record;

    if (find(ops, snapshot, &record, err) < 0)
        return -1;
    facts.detail = record.id;
    if (sleep_drop(ops->app, record.id, err) < 0) {
        facts.refusal = err;
        audit_note(ops->caller, "snapshot.delete", "", &facts);
        return -1;
    }
    return audit_durable(ops->caller, "snapshot.delete", "", &facts, err);
}

struct listing {
    const char *sandbox, *name;
    size_t limit;
    struct ops_snapshots *page;
    uint64_t last;
};

static int add(void *arg, const struct store_snapshot *record, struct err *err)
{
    struct listing *l = arg;

    (void) err;
    if (record->state != STORE_SNAPSHOT_READY ||
        (l->sandbox && strcmp(l->sandbox, record->sandbox) != 0) ||
        (l->name && strcmp(l->name, record->name) != 0))
        return 0;
    if (l->page->count == l->limit) {
        l->page->next = l->last;
        return 0;
    }
    view(record, &l->page->list[l->page->count++]);
    l->last = record->seq;
    return 0;
}

int ops_snapshot_list(struct ops *ops, const char *sandbox, const char *name, uint64_t after,
                      size_t limit, struct ops_snapshots *ret, struct err *err)
{
    struct ops_snapshots page = { .list = calloc(limit, sizeof *page.list) };
    struct listing l = { sandbox, name, limit, &page, 0 };

    if (!page.list)
        return err_set(err, ERR_NO_MEMORY, "no memory for the list");
    if (store_snapshot_list(ops->app->store, ops->caller->tenant, after, 0, add, &l, err) < 0) {
        free(page.list);
        return -1;
    }
    *ret = page;
    return 0;
}

/* ---- made of one ---- */

static bool same_key(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");

    return strncmp(a, b, len) == 0 && b[len] == '=';
}

/* The snapshot's, where the create does not say otherwise; what was the old sandbox's id there is the new one's. */
static int merge_env(struct ops_create *create, const char *old_id, struct ops_source *source,
                     struct err *err)
{
    size_t count = 0, i;
    json_t *item;

    source->env =
        calloc(json_array_size(source->kept) + create->env_count + 1, sizeof *source->env);
    if (!source->env)
        return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    ops_env_rename(source->kept, old_id, source->id);
    json_array_foreach(source->kept, i, item)
    {
        const char *text = json_string_value(item);
        bool said = !text;

        if (json_is_object(item))
            create->defaults = item;

        for (size_t n = 0; n < create->env_count && !said; n++)
            said = same_key(text, create->env[n]);
        if (!said)
            source->env[count++] = text;
    }
    for (size_t n = 0; n < create->env_count; n++)
        source->env[count++] = create->env[n];
    create->env = source->env;
    create->env_count = count;
    return 0;
}

static int take_image(struct ops *ops, struct ops_create *create, const struct store_snapshot *s,
                      struct err *err)
{
    struct keeper_image image;
    struct link link;
    int r;

    if (app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = image_get(&link, s->id, &image, err);
    ops_box_close(ops, &link, r, err);
    if (r < 0)
        return sleep_no_image(err) ? err_set(err, ERR_NO_IMAGE, "the snapshot '%s' is lost", s->id)
                                   : -1;
    create->fixed = image.flags & KEEPER_IMAGE_MEMORY && !create->files_only;
    create->chosen = image.sandbox.isolation;
    limits_complete(&create->limits, &image.sandbox.limits);
    create->root = image.sandbox.flags & KEEPER_FLAG_ROOT;
    return 0;
}

int ops_source_from(struct ops *ops, struct ops_create *create, const struct store_snapshot *record,
                    const char *env, const char *network, struct ops_source *source,
                    struct err *err)
{
    if (take_image(ops, create, record, err) < 0)
        return -1;
    if (create->id)
        memcpy(source->id, create->id, sizeof source->id);
    else if (sandbox_new_id(source->id, err) < 0)
        return -1;
    memcpy(source->image, record->id, sizeof source->image);
    memcpy(source->template, record->template, sizeof source->template);
    create->id = source->id;
    create->image = source->image;
    create->template = source->template[0] ? source->template : NULL;
    source->kept = env ? json_loads(env, 0, NULL) : NULL;
    if (merge_env(create, record->sandbox, source, err) < 0)
        return -1;
    if (create->network || !network)
        return 0;
    source->network = malloc(sizeof *source->network);
    if (!source->network)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    create->network = source->network;
    return network_from_text(ops->app->store, network, source->network, err);
}

static int apply(struct ops *ops, struct ops_create *create, struct ops_source *source,
                 struct err *err)
{
    auto_free char *env = NULL, *network = NULL;
    struct store_snapshot record;

    if (find(ops, create->snapshot, &record, err) < 0 ||
        store_snapshot_kept(ops->app->store, record.id, &env, &network, err) < 0 ||
        ops_volumes_of(ops, record.id, &source->uses, err) < 0 ||
        secrets_kept(ops->app, record.id, &source->hidden, err) < 0)
        return -1;
    create->kept_volumes = source->uses.list;
    create->kept_volume_count = source->uses.count;
    return ops_source_from(ops, create, &record, env, network, source, err);
}

int ops_source_apply(struct ops *ops, struct ops_create *create, struct ops_source *ret,
                     struct err *err)
{
    if (apply(ops, create, ret, err) == 0)
        return 0;
    return err->kind == ERR_NO_IMAGE ? caller_blame(ops->caller, "snapshot", NULL, NULL) : -1;
}

void ops_source_done(struct ops_source *source)
{
    json_decref(source->kept);
    json_decref(source->settings);
    free(source->env);
    free(source->network);
    seal_wipe(source->hidden, source->hidden ? strlen(source->hidden) : 0);
}
