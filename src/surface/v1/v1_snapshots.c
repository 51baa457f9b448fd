/* Pauses with their tiers, snapshots and forks. */
#include "surface/v1/v1.h"

#include "base/own.h"
#include "server/life/sleep.h"

#include <inttypes.h>
#include <string.h>

#define PAGE_DEFAULT 50
#define LEAST_MS     1000
#define MOST_MS      31536000000ull /* the configuration may say less */

/* ---- pause ---- */

struct pause_body {
    const char *tier;
    bool memory;
};

/* clang-format off */
static const struct form_field pause_fields[] = {
    { "tier", FORM_TEXT, .at = offsetof(struct pause_body, tier), .help = "where its memory is kept; docs/pause.md",
      .choices = sleep_tier_names, .fallback = "auto" },
    { "memory", FORM_BOOL, .at = offsetof(struct pause_body, memory),
      .help = "false keeps its files only, on disk; a resume then starts it again", .fallback = "true" },
};
/* clang-format on */
const struct form v1_pause_form = FORM_OF(pause_fields);

static int read_pause(struct exchange *x, struct ops_pause *ret, struct err *err)
{
    struct pause_body body = { .tier = NULL };
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &v1_pause_form, &body, err);
    *ret = (struct ops_pause){ .files_only = !body.memory };
    if (r == 0)
        (void) sleep_tier_parse(body.tier, &ret->tier);
    if (r == 0 && ret->files_only && (ret->tier == STORE_HOT || ret->tier == STORE_WARM))
        r = form_bad(exchange_caller(x), err, "memory", "only on disk a sandbox can be without it");
    json_decref(json);
    return r;
}

int v1_sandbox_pause(struct exchange *x, struct err *err)
{
    const char *id = exchange_param(x, "id");
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    struct ops_paused paused;
    struct ops_pause how;
    json_t *json;

    if (read_pause(x, &how, err) < 0 || ops_sandbox_pause(&ops, id, &how, &paused, err) < 0 ||
        ops_sandbox_get(&ops, id, &sandbox, err) < 0)
        return -1;
    json = v1_sandbox_json(&sandbox);
    (void) json_object_set_new(json, "fallback_reason",
                               paused.fallback[0] ? json_string(paused.fallback) : json_null());
    return exchange_reply_json(x, 200, json, err);
}

/* ---- snapshots ---- */

static json_t *snapshot_json(const struct ops_snapshot *s)
{
    return json_pack("{s:s, s:o, s:s, s:s, s:b, s:I, s:o}", "id", s->id, "name",
                     s->name[0] ? json_string(s->name) : json_null(), "sandbox", s->sandbox,
                     "template", s->template, "memory", s->memory, "bytes", (json_int_t) s->bytes,
                     "created_at", form_time(s->created_ms));
}

struct save_body {
    const char *name;
    bool memory;
};

/* clang-format off */
static const struct form_field save_fields[] = {
    { "name", FORM_TEXT, .at = offsetof(struct save_body, name), .help = "unique in its tenant", .schema = "{\"maxLength\": 63}" },
    { "memory", FORM_BOOL, .at = offsetof(struct save_body, memory), .help = "with its processes, or only its files",
      .fallback = "true" },
};
/* clang-format on */
const struct form v1_save_form = FORM_OF(save_fields);

static int create(struct exchange *x, json_t *json, struct err *err)
{
    struct save_body body = { .name = NULL };
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_snapshot made;
    struct ops_save save;
    json_t *answer;

    if (form_read(exchange_caller(x), json, &v1_save_form, &body, err) < 0)
        return -1;
    save = (struct ops_save){ .name = body.name, .files_only = !body.memory };
    if (ops_snapshot_create(&ops, exchange_param(x, "id"), &save, &made, err) < 0)
        return -1;
    answer = snapshot_json(&made);
    (void) json_object_set_new(answer, "frozen_ms", json_real((double) made.frozen_us / 1000));
    return exchange_reply_json(x, 201, answer, err);
}

int v1_snapshot_create(struct exchange *x, struct err *err)
{
    return v1_body(x, create, err);
}

int v1_snapshot_list(struct exchange *x, struct err *err)
{
    uint64_t limit = PAGE_DEFAULT, after = 0;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_snapshots page;
    json_t *array;
    char cursor[24];

    if (query_count(x, "limit", 1, OPS_PAGE_MAX, &limit, err) < 0 ||
        query_count(x, "cursor", 0, INT64_MAX, &after, err) < 0 ||
        ops_snapshot_list(&ops, exchange_query(x, "sandbox"), exchange_query(x, "name"), after,
                          (size_t) limit, &page, err) < 0)
        return -1;
    array = json_array();
    for (size_t i = 0; i < page.count; i++)
        (void) json_array_append_new(array, snapshot_json(&page.list[i]));
    free(page.list);
    (void) snprintf(cursor, sizeof cursor, "%" PRIu64, page.next);
    return exchange_reply_json(x, 200,
                               json_pack("{s:o, s:o}", "snapshots", array, "next",
                                         page.next ? json_string(cursor) : json_null()),
                               err);
}

int v1_snapshot_get(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_snapshot snapshot;

    if (ops_snapshot_get(&ops, exchange_param(x, "snapshot"), &snapshot, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, snapshot_json(&snapshot), err);
}

int v1_snapshot_delete(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_snapshot_delete(&ops, exchange_param(x, "snapshot"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* ---- forks ---- */

struct fork_body {
    uint64_t count, timeout_ms;
};

/* clang-format off */
static const struct form_field fork_fields[] = {
    { "count", FORM_COUNT, .at = offsetof(struct fork_body, count), 1, OPS_FORK_MOST, "how many copies", .fallback = "1" },
    { "timeout", FORM_SECONDS, .at = offsetof(struct fork_body, timeout_ms), LEAST_MS, MOST_MS,
      "seconds until each copy's deadline; default: that of the sandbox" },
};
/* clang-format on */
const struct form v1_fork_form = FORM_OF(fork_fields);

static json_t *fork_json(const struct ops_fork *fork)
{
    if (fork->err.kind == ERR_NONE)
        return json_pack("{s:o, s:n}", "sandbox", v1_sandbox_json(&fork->sandbox), "error");
    return json_pack("{s:n, s:{s:s, s:s}}", "sandbox", "error", "code",
                     err_kind_info(fork->err.kind)->name, "message", fork->err.msg);
}

static int reply_forks(struct exchange *x, const struct fork_body *body, struct ops_fork *forks,
                       struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *array;

    if (ops_sandbox_fork(&ops, exchange_param(x, "id"), body->count, body->timeout_ms, forks, err) <
        0)
        return -1;
    array = json_array();
    for (size_t i = 0; i < body->count; i++)
        (void) json_array_append_new(array, fork_json(&forks[i]));
    return exchange_reply_json(x, 201, json_pack("{s:o}", "forks", array), err);
}

int v1_sandbox_fork(struct exchange *x, struct err *err)
{
    struct fork_body body = { .count = 0 };
    struct ops_fork *forks;
    int r;

    if (v1_numbers(x, &v1_fork_form, &body, err) < 0)
        return -1;
    forks = calloc(body.count, sizeof *forks);
    if (!forks)
        return err_set(err, ERR_NO_MEMORY, "no memory for forks");
    r = reply_forks(x, &body, forks, err);
    free(forks);
    return r;
}
