/* What sandboxes use, as points of time. */
#include "surface/e2b/control.h"

#include "base/own.h"

#include <string.h>

#define MANY_MOST 100 /* sandboxes in one question */

/* E2B's percent is of all cores that the sandbox has. */
static json_t *point_json(const struct history_point *p)
{
    double percent = p->cpu_limit ? 100.0 * (double) p->cpu_milli / (double) p->cpu_limit : 0;

    return json_pack("{s:o, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "timestamp",
                     form_time(p->time_ms), "timestampUnix", (json_int_t) (p->time_ms / 1000),
                     "cpuCount", (json_int_t) ((p->cpu_limit + 999) / 1000), "cpuUsedPct", percent,
                     "memUsed", (json_int_t) p->memory_bytes, "memTotal",
                     (json_int_t) p->memory_limit_bytes, "memCache",
                     (json_int_t) p->memory_cache_bytes, "diskUsed", (json_int_t) p->disk_bytes,
                     "diskTotal", (json_int_t) p->disk_limit_bytes);
}

int control_metrics(struct exchange *x, struct err *err)
{
    auto_free struct history_point *points = NULL;
    uint64_t start = 0, end = 0;
    struct ops ops = ops_of(exchange_caller(x));
    char buffer[ID_LEN + 1];
    size_t count;
    json_t *array;

    if (query_count(x, "start", 0, INT32_MAX * 1000ull, &start, err) < 0 ||
        query_count(x, "end", 0, INT32_MAX * 1000ull, &end, err) < 0)
        return -1;
    if (end && end < start)
        return form_bad(exchange_caller(x), err, "start", "is later than the end");
    /* The end's second is still part of it. */
    if (ops_sandbox_history(&ops, control_id(x, buffer), start * 1000, end ? end * 1000 + 999 : 0,
                            &points, &count, err) < 0)
        return -1;
    array = json_array();
    for (size_t i = 0; i < count; i++)
        (void) json_array_append_new(array, point_json(&points[i]));
    return exchange_reply_json(x, 200, array, err);
}

/* The last point of one; nothing of one that is not the caller's, or has none yet. */
static int add_last(struct ops *ops, struct slice name, json_t *to, struct err *err)
{
    auto_free struct history_point *points = NULL;
    char id[2 * ID_LEN];
    size_t count;

    name.len = name.len < sizeof id ? name.len : sizeof id - 1;
    if (!slice_copy(name, id, sizeof id))
        return 0;
    id[strcspn(id, "-")] = '\0';
    if (ops_sandbox_history(ops, id, 0, 0, &points, &count, err) < 0)
        return err->kind == ERR_NO_SANDBOX ? 0 : -1;
    if (count > 0)
        (void) json_object_set_new(to, id, point_json(&points[count - 1]));
    return 0;
}

int control_metrics_many(struct exchange *x, struct err *err)
{
    const char *ids = exchange_query(x, "sandbox_ids");
    struct slice rest = slice_of(ids), one;
    struct ops ops = ops_of(exchange_caller(x));
    json_t *found;
    size_t count = 0;
    int r = 0;

    if (!ids || !ids[0])
        return form_bad(exchange_caller(x), err, "sandbox_ids",
                        "ids with commas between them are needed");
    found = json_object();
    for (bool more = true; more && r == 0;) {
        more = slice_cut(&rest, ',', &one);
        if (++count > MANY_MOST)
            r = form_bad(exchange_caller(x), err, "sandbox_ids", "more than %d", MANY_MOST);
        else
            r = add_last(&ops, more ? one : rest, found, err);
    }
    if (r < 0) {
        json_decref(found);
        return -1;
    }
    return exchange_reply_json(x, 200, json_pack("{s:o}", "sandboxes", found), err);
}
