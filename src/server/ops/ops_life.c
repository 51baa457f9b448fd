/* What is to be known of sandboxes after they were made, and their ends. */
#include "server/guard/audit.h"
#include "server/life/sleep.h"
#include "server/net/network.h"
#include "server/ops/ops_own.h"

#include "base/io.h"
#include "base/own.h"

#include <string.h>

/* ---- lists ----
 *
 * First every record of the tenant that the filter lets through, as little of it as is needed; then the keeper's
 * list, once, for their states; then the records of one page, whole. What is made between the first two is in
 * neither or in both. */

struct match {
    uint64_t seq;
    char id[ID_LEN + 1];
    const struct keeper_sandbox *kept; /* NULL: lost */
    bool saved;
};

struct listing {
    const struct ops_filter *filter;
    struct match *matches; /* newest first */
    size_t count, room;
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

static bool passes(const struct ops_filter *filter, const struct store_sandbox *record)
{
    return (!filter->name || strcmp(filter->name, record->name) == 0) &&
           (!filter->asked || strcmp(filter->asked, record->template) == 0) &&
           record->created_ms >= filter->since_ms && metadata_matches(filter, record->metadata);
}

static int add_match(void *arg, const struct store_sandbox *record, struct err *err)
{
    struct listing *l = arg;
    struct match *match;

    if (!passes(l->filter, record))
        return 0;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        struct match *more = realloc(l->matches, room * sizeof *more);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for the list");
        l->matches = more;
        l->room = room;
    }
    match = &l->matches[l->count++];
    *match = (struct match){ .seq = record->seq };
    memcpy(match->id, record->id, sizeof match->id);
    return 0;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct keeper_sandbox *) a)->id, ((const struct keeper_sandbox *) b)->id);
}

static void find_kept(struct listing *l, struct keeper_sandbox *kept, size_t count)
{
    struct keeper_sandbox key = { .life = 0 };

    if (count == 0)
        return;
    qsort(kept, count, sizeof *kept, by_id);
    for (size_t i = 0; i < l->count; i++) {
        memcpy(key.id, l->matches[i].id, sizeof l->matches[i].id);
        l->matches[i].kept = bsearch(&key, kept, count, sizeof *kept, by_id);
    }
}

static int image_by_id(const void *a, const void *b)
{
    return strcmp(((const struct keeper_image *) a)->id, ((const struct keeper_image *) b)->id);
}

/* What is paused to disk is an image. */
static void find_saved(struct listing *l, struct keeper_image *images, size_t count)
{
    struct keeper_image key = { .flags = 0 };

    if (count == 0)
        return;
    qsort(images, count, sizeof *images, image_by_id);
    for (size_t i = 0; i < l->count; i++) {
        const struct keeper_image *image;

        if (l->matches[i].kept)
            continue;
        memcpy(key.id, l->matches[i].id, sizeof l->matches[i].id);
        image = bsearch(&key, images, count, sizeof *images, image_by_id);
        if (image && (image->flags & KEEPER_IMAGE_PAUSED)) {
            l->matches[i].kept = &image->sandbox;
            l->matches[i].saved = true;
        }
    }
}

static int fill_page(struct ops *ops, const struct listing *l, struct ops_page *page,
                     struct err *err)
{
    const struct ops_filter *filter = l->filter;
    uint64_t last = 0;

    for (size_t i = 0; i < l->count; i++) {
        const struct match *m = &l->matches[filter->oldest_first ? l->count - 1 - i : i];
        uint32_t life = !m->kept ? LIFE_GONE : m->saved ? LIFE_PAUSED : m->kept->life;
        struct store_sandbox record;

        if (filter->lives && !(filter->lives & (1u << life)))
            continue;
        page->running += life == LIFE_RUNNING;
        if (filter->after &&
            (filter->oldest_first ? m->seq <= filter->after : m->seq >= filter->after))
            continue;
        if (page->count == filter->limit) { /* the rest is only counted */
            page->next = last;
            continue;
        }
        if (store_sandbox_get(ops->app->store, ops->caller->tenant, m->id, &record, err) < 0) {
            if (err->kind != ERR_NO_SANDBOX)
                return -1;
            continue; /* ended since */
        }
        ops_view(&record, m->kept, m->saved, &page->list[page->count]);
        if (record.has_volumes && ops_volumes_show(ops, &page->list[page->count], err) < 0)
            return -1;
        page->count++;
        last = m->seq;
    }
    return 0;
}

int ops_sandbox_list(struct ops *ops, const struct ops_filter *filter, struct ops_page *ret,
                     struct err *err)
{
    struct ops_page page = { .list = calloc(filter->limit, sizeof *page.list) };
    struct listing l = { .filter = filter };
    auto_free struct keeper_sandbox *kept = NULL;
    auto_free struct keeper_image *images = NULL;
    size_t kept_count = 0, image_count = 0;
    struct link link;
    int r = -1;

    if (!page.list)
        return err_set(err, ERR_NO_MEMORY, "no memory for the list");
    if (store_sandbox_list(ops->app->store, ops->caller->tenant, 0, 0, add_match, &l, err) == 0 &&
        app_link_take(ops->app, &link, err) == 0) {
        r = sleep_list(&link, &kept, &kept_count, &images, &image_count, err);
        ops_box_close(ops, &link, r, err);
    }
    if (r == 0) {
        find_kept(&l, kept, kept_count);
        find_saved(&l, images, image_count);
        r = fill_page(ops, &l, &page, err);
    }
    free(l.matches);
    if (r < 0)
        free(page.list);
    else
        *ret = page;
    return r;
}

/* ---- ends and notes ---- */

int ops_sandbox_ended(struct ops *ops, const char *sandbox, uint64_t begun, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;

    facts.duration_ms = (int64_t) (io_now_ms() - begun);
    if (audit_written(ops->caller, "sandbox.kill", sandbox, &facts, err) < 0)
        return -1;
    atomic_fetch_add(&ops->app->metrics.killed, 1);
    network_ended(ops->app, sandbox);
    return store_sandbox_remove(ops->app->store, sandbox, err);
}

int ops_sandbox_kill(struct ops *ops, const char *sandbox, struct err *err)
{
    uint64_t begun = io_now_ms();
    struct store_sandbox record;

    if (ops_find(ops, sandbox, &record, err) < 0)
        return -1;
    if (sleep_end(ops->app, sandbox, SLEEP_AT_ONCE, err) < 0) {
        ops_audit(ops, "sandbox.kill", sandbox, err);
        return -1;
    }
    if (ops_sandbox_ended(ops, sandbox, begun, err) < 0)
        return -1;
    /* What slept on disk would be back after a power cut. */
    return record.sleep.tier == STORE_DISK ? store_audit_flush(ops->app->store, err) : 0;
}

int ops_sandbox_set_notes(struct ops *ops, const char *sandbox, const char *notes, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct store_sandbox record;
    auto_free char *text = NULL;
    json_t *metadata;

    if (ops_find(ops, sandbox, &record, err) < 0)
        return -1;
    metadata = json_loads(record.metadata[0] ? record.metadata : "{}", 0, NULL);
    if (metadata && json_object_set_new(metadata, OPS_NOTES_KEY, json_string(notes)) == 0)
        text = json_dumps(metadata, JSON_COMPACT);
    json_decref(metadata);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for the options");
    if (strlen(notes) >= OPS_NOTES_MAX || strlen(text) >= STORE_METADATA_MAX)
        return err_set(err, ERR_TOO_BIG, "the options to be kept are too long");
    if (store_sandbox_set_metadata(ops->app->store, sandbox, text, err) < 0)
        return -1;
    return audit_durable(ops->caller, "sandbox.options", sandbox, &facts, err);
}

int ops_sandbox_history(struct ops *ops, const char *sandbox, uint64_t from_ms, uint64_t until_ms,
                        struct history_point **ret, size_t *ret_count, struct err *err)
{
    if (ops_sandbox_check(ops, sandbox, err) < 0)
        return -1;
    return history_read(sandbox, from_ms, until_ms, ret, ret_count, err);
}

int ops_sandbox_records(struct ops *ops, const char *sandbox, const struct audit_filter *filter,
                        int (*each)(void *, const struct audit_record *, struct err *), void *arg,
                        struct err *err)
{
    struct audit_filter own = *filter;

    if (!id_ok(sandbox))
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.40s'", sandbox);
    own.tenant = ops->caller->tenant;
    own.sandbox_id = sandbox;
    /* What was noted just now is to be seen. */
    return store_audit_flush(ops->app->store, err) < 0
               ? -1
               : store_audit_list(ops->app->store, &own, each, arg, err);
}

int ops_sandbox_stats(struct ops *ops, const char *sandbox, struct ops_stats *ret, struct err *err)
{
    struct sleep_kept kept;
    struct link link;
    struct exec_info info = { 0 };
    int r;

    *ret = (struct ops_stats){ .uptime_ms = 0 };
    if (ops_box_look(ops, sandbox, &link, err) < 0)
        return -1;
    r = sleep_look(ops->app, &link, sandbox, &kept, err);
    if (r == 0 && !kept.there && !kept.saved)
        r = err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%s'", sandbox);
    if (r == 0 && kept.there)
        r = sandbox_stats(&link, sandbox, &ret->keeper, err);
    if (r == 0) {
        ret->limits = kept.sandbox.limits;
        if (kept.there && kept.sandbox.life == LIFE_RUNNING)
            r = exec_info(&link, sandbox, &info, err);
        ret->uptime_ms = info.uptime_ms;
        ret->refusals = info.refusals;
        ret->keeper.oom_kills += info.oom_kills;
        /* One that was made ahead ran before anybody had it. */
        if (r == 0 && ret->uptime_ms > store_now_ms() - kept.sandbox.created_ms)
            ret->uptime_ms = store_now_ms() - kept.sandbox.created_ms;
    }
    ops_box_close(ops, &link, r, err);
    return r;
}
