/* What happens to sandboxes after they were made: lists, deadlines, pauses, ends. */
#include "api/audit.h"
#include "api/deadline.h"
#include "api/ops_own.h"

#include "base/io.h"
#include "base/own.h"

#include <inttypes.h>
#include <string.h>

/* ---- lists ---- */

struct listing {
    struct ops *ops;
    const struct ops_filter *filter;
    struct ops_sandbox *list;
    size_t count;
    uint64_t last; /* cursor of the last one taken */
    bool full;
    struct link link;
};

static bool metadata_matches(const struct ops_filter *filter, const char *text)
{
    json_t *metadata;
    bool matches = true;

    if (filter->meta_count == 0)
        return true;
    metadata = json_loads(text, 0, NULL);
    for (size_t i = 0; i < filter->meta_count && matches; i++) {
        const char *value = json_string_value(json_object_get(metadata, filter->meta_keys[i]));

        matches = value && strcmp(value, filter->meta_values[i]) == 0;
    }
    json_decref(metadata);
    return matches;
}

static int list_one(void *arg, const struct store_sandbox *record, struct err *err)
{
    struct listing *l = arg;
    struct ops_sandbox *to = &l->list[l->count];
    struct keeper_sandbox kept;
    int r;

    if (l->count == l->filter->limit) { /* one more is there: a next page is worth asking for */
        l->full = true;
        return err_set(err, ERR_NONE, "enough");
    }
    if (l->filter->name && strcmp(l->filter->name, record->name) != 0)
        return 0;
    if (!metadata_matches(l->filter, record->metadata))
        return 0;
    r = sandbox_get(&l->link, record->id, &kept, err);
    if (r < 0 && err->kind != ERR_NO_SANDBOX)
        return -1;
    ops_view(record, r == 0 ? &kept : NULL, to);
    if (l->filter->life >= 0 && to->life != (uint32_t) l->filter->life)
        return 0;
    l->count++;
    l->last = record->seq;
    return 0;
}

int ops_sandbox_list(struct ops *ops, const struct ops_filter *filter,
                     struct ops_sandbox **ret_list, size_t *ret_count, uint64_t *ret_next,
                     struct err *err)
{
    struct listing l = { .ops = ops, .filter = filter };
    int r;

    /* One more: a slot to look at what may not be wanted. */
    l.list = calloc(filter->limit + 1, sizeof *l.list);
    if (!l.list)
        return err_set(err, ERR_NO_MEMORY, "no memory for the list");
    if (app_link_take(ops->app, &l.link, err) < 0) {
        free(l.list);
        return -1;
    }
    r = store_sandbox_list(ops->app->store, ops->caller->tenant, filter->after, 0, list_one, &l,
                           err);
    if (r < 0 && l.full)
        r = 0;
    ops_box_close(ops, &l.link, r, err);
    if (r < 0) {
        free(l.list);
        return -1;
    }
    *ret_list = l.list;
    *ret_count = l.count;
    *ret_next = l.full ? l.last : 0;
    return 0;
}

/* ---- changes ---- */

/* Done at the keeper, then noted on disk. A failure is noted, too. */
static int change(struct ops *ops, const char *sandbox, const char *action,
                  int (*call)(struct link *, const char *, struct err *), struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t begun = io_now_ms();
    struct link link;
    int r;

    if (ops_box_open(ops, sandbox, &link, NULL, err) < 0)
        return -1;
    r = call(&link, sandbox, err);
    ops_box_close(ops, &link, r, err);
    if (r < 0) {
        ops_audit(ops, action, sandbox, err);
        return -1;
    }
    facts.duration_ms = (int64_t) (io_now_ms() - begun);
    return audit_durable(ops->x, action, sandbox, &facts, err);
}

static int destroy_or_gone(struct link *link, const char *sandbox, struct err *err)
{
    int r = sandbox_destroy(link, sandbox, err);

    return r < 0 && err->kind == ERR_NO_SANDBOX ? 0 : r; /* lost: only its record is left */
}

int ops_sandbox_kill(struct ops *ops, const char *sandbox, struct err *err)
{
    if (change(ops, sandbox, "sandbox.kill", destroy_or_gone, err) < 0)
        return -1;
    atomic_fetch_add(&ops->app->metrics.killed, 1);
    return store_sandbox_remove(ops->app->store, sandbox, err);
}

int ops_sandbox_pause(struct ops *ops, const char *sandbox, struct err *err)
{
    return change(ops, sandbox, "sandbox.pause", sandbox_freeze, err);
}

static int check_timeout(struct ops *ops, uint64_t timeout_ms, struct err *err)
{
    uint64_t most = app_config(ops->app)->sandbox_timeout_most_ms;

    if (timeout_ms >= 1000 && timeout_ms <= most)
        return 0;
    err_set(err, ERR_INVALID, "timeout: 1 to %" PRIu64 " seconds", most / 1000);
    return exchange_blame(ops->x, "timeout", NULL, NULL);
}

int ops_sandbox_resume(struct ops *ops, const char *sandbox, uint64_t timeout_ms, struct err *err)
{
    struct store_sandbox record;
    uint64_t now = store_now_ms();

    if (timeout_ms > 0 && check_timeout(ops, timeout_ms, err) < 0)
        return -1;
    if (ops_find(ops, sandbox, &record, err) < 0)
        return -1;
    /* The deadline first: one that has passed would pause it again at once. */
    if (timeout_ms > 0 || record.deadline_ms <= now) {
        uint64_t more = timeout_ms > 0 ? timeout_ms : app_config(ops->app)->sandbox_timeout_ms;

        if (store_sandbox_set_deadline(ops->app->store, sandbox, now + more, record.on_timeout,
                                       err) < 0)
            return -1;
        deadline_changed(ops->app);
    }
    return change(ops, sandbox, "sandbox.resume", sandbox_thaw, err);
}

int ops_sandbox_extend(struct ops *ops, const char *sandbox, uint64_t timeout_ms,
                       struct ops_sandbox *ret, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct store_sandbox record;

    if (check_timeout(ops, timeout_ms, err) < 0 || ops_find(ops, sandbox, &record, err) < 0 ||
        store_sandbox_set_deadline(ops->app->store, sandbox, store_now_ms() + timeout_ms,
                                   record.on_timeout, err) < 0)
        return -1;
    deadline_changed(ops->app);
    if (audit_durable(ops->x, "sandbox.extend", sandbox, &facts, err) < 0)
        return -1;
    return ops_sandbox_get(ops, sandbox, ret, err);
}

int ops_sandbox_stats(struct ops *ops, const char *sandbox, struct ops_stats *ret, struct err *err)
{
    struct keeper_sandbox kept;
    struct link link;
    uint64_t processes;
    int r;

    *ret = (struct ops_stats){ .uptime_ms = 0 };
    if (ops_box_open(ops, sandbox, &link, NULL, err) < 0)
        return -1;
    r = sandbox_get(&link, sandbox, &kept, err);
    if (r == 0)
        r = sandbox_stats(&link, sandbox, &ret->keeper, err);
    if (r == 0) {
        ret->limits = kept.limits;
        if (kept.life == LIFE_RUNNING)
            r = exec_info(&link, sandbox, &ret->uptime_ms, &processes, &ret->refusals, err);
    }
    ops_box_close(ops, &link, r, err);
    return r;
}
