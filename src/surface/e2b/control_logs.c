/* What happened to a sandbox, as lines of a log: its records in the audit, which hold no output and no commands. */
#include "surface/e2b/control.h"

#include "base/own.h"

#include <inttypes.h>
#include <string.h>

#define LINES_DEFAULT 1000
#define LINES_MOST    1000
#define WALK_MOST     20000 /* records that one question looks at */

/* In the order of their weight. */
static const char *const levels[] = { "debug", "info", "warn", "error" };

struct search {
    size_t least; /* of levels */
    const char *text;
    uint64_t limit;
    json_t *entries;
    bool full;
};

static size_t level_of(const struct audit_record *r)
{
    if (strcmp(r->outcome, "ok") != 0)
        return 3;
    return r->exit_code != AUDIT_NO_EXIT && r->exit_code != 0 ? 2 : 1;
}

static void message_of(const struct audit_record *r, char *out, size_t size)
{
    int n = snprintf(out, size, "%s %s", r->action, r->outcome);

    if (n > 0 && (size_t) n < size && r->exit_code != AUDIT_NO_EXIT)
        n += snprintf(out + n, size - (size_t) n, " exit=%" PRId64, r->exit_code);
    if (n > 0 && (size_t) n < size && r->duration_ms >= 0)
        n += snprintf(out + n, size - (size_t) n, " ms=%" PRId64, r->duration_ms);
    if (n > 0 && (size_t) n < size && r->detail[0])
        (void) snprintf(out + n, size - (size_t) n, " %s", r->detail);
}

static int add_entry(void *arg, const struct audit_record *r, struct err *err)
{
    struct search *search = arg;
    size_t level = level_of(r);
    char message[512];

    message_of(r, message, sizeof message);
    if (level < search->least || (search->text && !strstr(message, search->text)))
        return 0;
    if (json_array_size(search->entries) == search->limit) {
        search->full = true;
        return err_set(err, ERR_NONE, "enough");
    }
    return json_array_append_new(search->entries,
                                 json_pack("{s:o, s:s, s:o, s:{s:s, s:s, s:o}}", "timestamp",
                                           form_time(r->time_ms), "level", levels[level], "message",
                                           form_text(message, strlen(message)), "fields", "action",
                                           r->action, "outcome", r->outcome, "request",
                                           form_text(r->request_id, strlen(r->request_id))));
}

static int read_level(struct exchange *x, size_t *ret, struct err *err)
{
    const char *text = exchange_query(x, "level");

    if (!text || !text[0])
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (strcmp(levels[i], text) == 0) {
            *ret = i;
            return 0;
        }
    return form_bad(exchange_caller(x), err, "level",
                    "'debug', 'info', 'warn' or 'error' is needed");
}

/* Oldest first, or newest first. A sandbox without any note is not there. */
static int collect(struct exchange *x, struct audit_filter *filter, struct search *search,
                   struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    char buffer[ID_LEN + 1];
    const char *id = control_id(x, buffer);
    int r;

    search->limit = LINES_DEFAULT;
    if (query_count(x, "limit", 0, LINES_MOST, &search->limit, err) < 0)
        return -1;
    filter->limit = WALK_MOST;
    search->entries = json_array();
    r = ops_sandbox_records(&ops, id, filter, add_entry, search, err);
    if (r < 0 && search->full)
        r = 0;
    if (r == 0 && json_array_size(search->entries) == 0)
        r = ops_sandbox_check(&ops, id, err);
    if (r < 0)
        json_decref(search->entries);
    return r;
}

int control_logs_v1(struct exchange *x, struct err *err)
{
    struct audit_filter filter = { .oldest_first = true };
    struct search search = { .least = 0 };
    json_t *lines, *entry;
    size_t i;

    if (query_count(x, "start", 0, INT64_MAX, &filter.since_ms, err) < 0 ||
        collect(x, &filter, &search, err) < 0)
        return -1;
    lines = json_array();
    json_array_foreach(search.entries, i, entry)
    {
        (void) json_array_append_new(lines, json_pack("{s:O, s:O}", "timestamp",
                                                      json_object_get(entry, "timestamp"), "line",
                                                      json_object_get(entry, "message")));
    }
    return exchange_reply_json(
        x, 200, json_pack("{s:o, s:o}", "logs", lines, "logEntries", search.entries), err);
}

int control_logs_v2(struct exchange *x, struct err *err)
{
    const char *direction = exchange_query(x, "direction");
    bool backward = direction && strcmp(direction, "backward") == 0;
    struct audit_filter filter = { .oldest_first = !backward };
    struct search search = { .text = exchange_query(x, "search") };
    uint64_t cursor = 0;

    if (direction && !backward && strcmp(direction, "forward") != 0)
        return form_bad(exchange_caller(x), err, "direction", "'forward' or 'backward' is needed");
    if (read_level(x, &search.least, err) < 0 ||
        query_count(x, "cursor", 0, INT64_MAX - 1, &cursor, err) < 0)
        return -1;
    if (backward && cursor)
        filter.until_ms = cursor + 1;
    else
        filter.since_ms = cursor;
    if (collect(x, &filter, &search, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:o}", "logs", search.entries), err);
}
