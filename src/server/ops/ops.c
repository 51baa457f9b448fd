/* Sandboxes: what the store means and what the keeper has. */
#include "server/guard/audit.h"
#include "server/guard/policy_gate.h"
#include "server/life/sleep.h"
#include "server/life/use.h"
#include "server/ops/ops_own.h"

#include "base/io.h"
#include "base/own.h"

/* In the record's metadata; keys of ours begin with "cove.". */
#define OLD_ENV_KEY "cove.env" /* of records that a version before this one made */

struct ops ops_of(struct caller *caller)
{
    return (struct ops){ .app = caller->app, .caller = caller };
}

void ops_audit(struct ops *ops, const char *action, const char *sandbox, const struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;

    facts.refusal = err;
    audit_note(ops->caller, action, sandbox, &facts);
}

/* ---- records ---- */

int ops_find(struct ops *ops, const char *sandbox, struct store_sandbox *ret, struct err *err)
{
    if (!id_ok(sandbox))
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.40s'", sandbox);
    return store_sandbox_get(ops->app->store, ops->caller->tenant, sandbox, ret, err);
}

struct prefix {
    const char *text;
    size_t len, count;
    char id[ID_LEN + 1];
};

static int match_prefix(void *arg, const struct store_sandbox *record, struct err *err)
{
    struct prefix *prefix = arg;

    (void) err;
    if (strncmp(record->id, prefix->text, prefix->len) == 0) {
        memcpy(prefix->id, record->id, sizeof prefix->id);
        prefix->count++;
    }
    return 0;
}

/* Ids begin with 'i' and are of one length; a name may look like that, too, and goes before. */
static bool may_be_prefix(const char *text, size_t len)
{
    return text[0] == 'i' && len >= OPS_PREFIX_LEAST && len < ID_LEN &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == len;
}

int ops_sandbox_resolve(struct ops *ops, const char *sandbox, char ret[ID_LEN + 1], struct err *err)
{
    struct prefix prefix = { .text = sandbox, .len = strlen(sandbox) };
    struct store_sandbox record;

    if (id_ok(sandbox)) {
        memcpy(ret, sandbox, ID_LEN + 1);
        return 0;
    }
    if (!name_ok(sandbox))
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.40s'", sandbox);
    if (store_sandbox_find_name(ops->app->store, ops->caller->tenant, sandbox, &record, err) == 0) {
        memcpy(ret, record.id, sizeof record.id);
        return 0;
    }
    if (err->kind != ERR_NO_SANDBOX || !may_be_prefix(sandbox, prefix.len))
        return -1;
    if (store_sandbox_list(ops->app->store, ops->caller->tenant, 0, 0, match_prefix, &prefix, err) <
        0)
        return -1;
    if (prefix.count > 1)
        return err_set(err, ERR_INVALID,
                       "the ids of %zu sandboxes begin with '%s': type more of it", prefix.count,
                       sandbox);
    if (prefix.count == 0)
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.40s'", sandbox);
    memcpy(ret, prefix.id, sizeof prefix.id);
    return 0;
}

int ops_sandbox_check(struct ops *ops, const char *sandbox, struct err *err)
{
    struct store_sandbox record;

    return ops_find(ops, sandbox, &record, err);
}

static int read_env(struct ops *ops, const struct store_sandbox *record, json_t **ret,
                    struct err *err)
{
    auto_free char *text = NULL;

    if (store_sandbox_env(ops->app->store, record->id, &text, err) < 0)
        return -1;
    if (text) {
        *ret = json_loads(text, 0, NULL);
    } else {
        json_t *metadata = json_loads(record->metadata, 0, NULL);

        *ret = json_incref(json_object_get(metadata, OLD_ENV_KEY));
        json_decref(metadata);
    }
    return 0;
}

int ops_sandbox_env(struct ops *ops, const char *sandbox, json_t **ret, struct err *err)
{
    json_t *list = NULL, *object, *item;
    struct store_sandbox record;
    size_t i;

    if (ops_find(ops, sandbox, &record, err) < 0 || read_env(ops, &record, &list, err) < 0)
        return -1;
    object = json_object();
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item), *value = text ? strchr(text, '=') : NULL;

        if (value)
            (void) json_object_setn_new(object, text, (size_t) (value - text),
                                        json_string(value + 1));
    }
    json_decref(list);
    *ret = object;
    return object ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for the environment");
}

int ops_box_look(struct ops *ops, const char *sandbox, struct link *ret_link, struct err *err)
{
    struct store_sandbox record;

    return ops_find(ops, sandbox, &record, err) < 0 ? -1 : app_link_take(ops->app, ret_link, err);
}

/* Counted in before the record is read: sleep.c says why. */
static int find_awake(struct ops *ops, const char *sandbox, struct store_sandbox *ret,
                      struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t begun = io_now_ms();
    bool woken;

    if (id_ok(sandbox))
        use_switch(ops->caller->used, sandbox);
    if (ops_find(ops, sandbox, ret, err) < 0 || sleep_answer(ops->app, ret, &woken, err) < 0)
        return -1;
    if (!woken)
        return 0;
    facts.detail = "by a request";
    facts.duration_ms = (int64_t) (io_now_ms() - begun);
    audit_note(ops->caller, "sandbox.resume", sandbox, &facts);
    return 0;
}

int ops_wake(struct ops *ops, const char *sandbox, struct err *err)
{
    struct store_sandbox record;

    return find_awake(ops, sandbox, &record, err);
}

int ops_box_open(struct ops *ops, const char *sandbox, struct link *ret_link, json_t **ret_env,
                 struct err *err)
{
    struct store_sandbox record;

    if (find_awake(ops, sandbox, &record, err) < 0)
        return -1;
    if (ret_env && read_env(ops, &record, ret_env, err) < 0)
        return -1;
    if (app_link_take(ops->app, ret_link, err) == 0)
        return 0;
    if (ret_env) {
        json_decref(*ret_env);
        *ret_env = NULL;
    }
    return -1;
}

void ops_box_close(struct ops *ops, struct link *link, int result, const struct err *err)
{
    bool broken = result < 0 && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_PROTOCOL ||
                                 err->kind == ERR_TIMEOUT);

    app_link_give(ops->app, link, !broken);
}

bool ops_metadata_marked(const char *text)
{
    return strstr(text, "\"cove.") || strchr(text, '\\'); /* which may hide one */
}

/* The user's own metadata: what is stored, without the notes, which go to ret->notes. */
static void split_metadata(const char *stored, struct ops_sandbox *ret)
{
    auto_free char *text = NULL;
    json_t *metadata;
    const char *notes;

    if (!ops_metadata_marked(stored)) {
        (void) snprintf(ret->metadata, sizeof ret->metadata, "%s", stored[0] ? stored : "{}");
        return;
    }
    metadata = json_loads(stored, 0, NULL);
    notes = json_string_value(json_object_get(metadata, OPS_NOTES_KEY));
    (void) snprintf(ret->notes, sizeof ret->notes, "%s", notes ? notes : "");
    (void) json_object_del(metadata, OPS_NOTES_KEY);
    (void) json_object_del(metadata, OLD_ENV_KEY);
    (void) json_object_del(metadata, GATE_E2B);
    (void) json_object_del(metadata, GATE_ROOT);
    text = metadata ? json_dumps(metadata, JSON_COMPACT) : NULL;
    json_decref(metadata);
    (void) snprintf(ret->metadata, sizeof ret->metadata, "%s", text ? text : "{}");
}

static void view_sleep(const struct store_sandbox *record, bool saved, struct ops_sandbox *ret)
{
    const struct store_sleep *sleep = &record->sleep;

    if (saved) {
        ret->life = LIFE_PAUSED;
        ret->tier = STORE_DISK;
        ret->image_bytes = sleep->bytes;
    } else if (ret->life == LIFE_PAUSED || (ret->life == LIFE_PAUSING && sleep->tier)) {
        ret->life = LIFE_PAUSED; /* also on its way from memory to disk */
        ret->tier = sleep->tier == STORE_WARM ? STORE_WARM : STORE_HOT;
    }
    if (!ret->tier)
        return;
    ret->paused_ms = sleep->since_ms;
    ret->idle_paused = sleep->by == STORE_BY_IDLENESS;
}

void ops_view(const struct store_sandbox *record, const struct keeper_sandbox *kept, bool saved,
              struct ops_sandbox *ret)
{
    bool held = record->on_timeout & STORE_TIMEOUT_HELD;

    *ret = (struct ops_sandbox){ .created_ms = record->created_ms,
                                 .deadline_ms = held ? 0 : record->deadline_ms,
                                 .held_ms = held ? record->deadline_ms : 0,
                                 .on_timeout = (record->on_timeout & STORE_TIMEOUT_PAUSE)
                                                   ? ON_TIMEOUT_PAUSE
                                                   : ON_TIMEOUT_KILL,
                                 .life = LIFE_GONE,
                                 .idle_pause_ms = record->idle_pause_ms,
                                 .idle_disk_ms = record->idle_disk_ms,
                                 .auto_resume = record->auto_resume };
    memcpy(ret->id, record->id, sizeof ret->id);
    memcpy(ret->name, record->name, sizeof ret->name);
    memcpy(ret->template, record->template, sizeof ret->template);
    memcpy(ret->asked, record->template, sizeof ret->asked);
    split_metadata(record->metadata, ret);
    ret->limits.memory_bytes = record->memory_bytes;
    ret->limits.disk_bytes = record->disk_bytes;
    ret->limits.cpu_milli = record->cpu_milli;
    if (!kept)
        return;
    memcpy(ret->template, kept->template, sizeof ret->template);
    ret->life = kept->life;
    ret->root = kept->flags & KEEPER_FLAG_ROOT;
    ret->isolation = isolation_name(kept->isolation);
    ret->limits = kept->limits;
    view_sleep(record, saved, ret);
}

/* The keeper's side of a record. One that it does not have is lost, which is an answer, too. */
int ops_look(struct ops *ops, const struct store_sandbox *record, struct ops_sandbox *ret,
             struct err *err)
{
    struct sleep_kept kept;
    struct link link;
    int r;

    if (app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = sleep_look(ops->app, &link, record->id, &kept, err);
    ops_box_close(ops, &link, r, err);
    if (r < 0)
        return -1;
    ops_view(record, kept.there || kept.saved ? &kept.sandbox : NULL, kept.saved, ret);
    return record->has_volumes ? ops_volumes_show(ops, ret, err) : 0;
}

int ops_sandbox_recorded(struct ops *ops, const char *sandbox, struct ops_sandbox *ret,
                         struct err *err)
{
    struct store_sandbox record;

    if (ops_find(ops, sandbox, &record, err) < 0)
        return -1;
    ops_view(&record, NULL, false, ret);
    return 0;
}

int ops_sandbox_get(struct ops *ops, const char *sandbox, struct ops_sandbox *ret, struct err *err)
{
    struct store_sandbox record;

    return ops_find(ops, sandbox, &record, err) < 0 ? -1 : ops_look(ops, &record, ret, err);
}
