#include "api/v1.h"

#include "api/network_rules.h"
#include "api/preview.h"
#include "base/own.h"
#include "store/private.h"

#include <inttypes.h>
#include <string.h>

#define AT(type, field) offsetof(struct type, field)
#define PAGE_PRESET     50
#define LEAST_MS        1000
#define MOST_MS         31536000000ull /* the configuration may say less */

static int reply_sandbox(struct exchange *x, int status, const struct ops_sandbox *sandbox,
                         struct err *err)
{
    return exchange_reply_json(x, status, v1_sandbox_json(sandbox), err);
}

/* ---- create ---- */

struct create_body {
    const char *template, *snapshot, *name, *on_timeout, *idempotency_key;
    json_t *limits, *env, *metadata, *network, *preview, *volumes;
    uint64_t timeout_ms, idle_pause_ms, idle_disk_ms; /* idle: NOT_SAID without */
    bool root, auto_resume, memory;
};
#define NOT_SAID UINT64_MAX

static const struct v1_field create_fields[] = {
    { "template", V1_TEXT, AT(create_body, template), 0, 0 },
    { "snapshot", V1_TEXT, AT(create_body, snapshot), 0, 0 },
    { "memory", V1_BOOL, AT(create_body, memory), 0, 0 },
    { "auto_resume", V1_BOOL, AT(create_body, auto_resume), 0, 0 },
    { "idle_pause_seconds", V1_SECONDS, AT(create_body, idle_pause_ms), 0, MOST_MS },
    { "idle_disk_seconds", V1_SECONDS, AT(create_body, idle_disk_ms), 0, MOST_MS },
    { "name", V1_TEXT, AT(create_body, name), 0, 0 },
    { "on_timeout", V1_TEXT, AT(create_body, on_timeout), 0, 0 },
    { "idempotency_key", V1_TEXT, AT(create_body, idempotency_key), 0, 0 },
    { "limits", V1_OBJECT, AT(create_body, limits), 0, 0 },
    { "env", V1_OBJECT, AT(create_body, env), 0, 0 },
    { "metadata", V1_OBJECT, AT(create_body, metadata), 0, 0 },
    { "network", V1_OBJECT, AT(create_body, network), 0, 0 },
    { "preview", V1_OBJECT, AT(create_body, preview), 0, 0 },
    { "volumes", V1_ARRAY, AT(create_body, volumes), 0, 0 },
    { "timeout", V1_SECONDS, AT(create_body, timeout_ms), LEAST_MS, MOST_MS },
    { "root", V1_BOOL, AT(create_body, root), 0, 0 },
};

/* Of a snapshot's own limits, 0 would be the one that is meant. */
static bool is_none(const struct limits *limits, const char *key, struct err *err)
{
    for (size_t i = 0; i < limit_count; i++)
        if (strcmp(limit_table[i].name, key) == 0 && limit_value(limits, &limit_table[i]) == 0) {
            err_set(err, ERR_LIMIT, "limit '%.40s': 0 is too little", key);
            return true;
        }
    return false;
}

/* Numbers, or texts such as "512m", by the rows of limit_table. */
static int read_limits(struct exchange *x, json_t *object, struct limits *limits, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        char number[64], field[64];
        const char *text = json_string_value(value);

        if (json_is_integer(value))
            (void) snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
                            json_integer_value(value));
        else if (json_is_real(value))
            (void) snprintf(number, sizeof number, "%g", json_real_value(value));
        else if (!text)
            return v1_bad(x, err, "limits", "'%.40s' is not a number or a text", key);
        if (limits_parse(limits, key, text ? text : number, err) < 0 || is_none(limits, key, err)) {
            (void) snprintf(field, sizeof field, "limits.%.40s", key);
            return exchange_blame(x, field, NULL, NULL);
        }
    }
    return 0;
}

static int check_metadata(struct exchange *x, json_t *metadata, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return v1_bad(x, err, "metadata", "'%.40s' is not a text", key);
        if (strncmp(key, "cove.", 5) == 0)
            return v1_bad(x, err, "metadata", "names that begin with 'cove.' are taken");
    }
    return 0;
}

static int read_key(struct exchange *x, const char **key, struct err *err)
{
    const char *header = exchange_header(x, "Idempotency-Key");

    if (header && *key && strcmp(header, *key) != 0)
        return v1_bad(x, err, "idempotency_key", "differs from the header Idempotency-Key");
    if (header)
        *key = header;
    return 0;
}

/* What a snapshot says for itself cannot be said beside it. */
static int check_snapshot(struct exchange *x, const struct create_body *body, struct err *err)
{
    const struct {
        const char *field;
        bool said;
    } own[] = { { "template", body->template },
                { "root", body->root },
                { "volumes", body->volumes } };

    for (size_t i = 0; body->snapshot && i < ARRAY_LEN(own); i++)
        if (own[i].said)
            return v1_bad(x, err, own[i].field, "a snapshot has its own");
    if (!body->snapshot && !body->memory)
        return v1_bad(x, err, "memory", "only a snapshot's processes can be left out");
    return 0;
}

static int translate(struct exchange *x, const struct create_body *body, struct ops_create *create,
                     struct err *err)
{
    *create = (struct ops_create){ .template = body->template,
                                   .name = body->name,
                                   .idempotency_key = body->idempotency_key,
                                   .timeout_ms = body->timeout_ms,
                                   .root = body->root,
                                   .snapshot = body->snapshot,
                                   .files_only = !body->memory,
                                   .auto_resume = body->auto_resume };
    if (body->idle_pause_ms != NOT_SAID)
        create->idle_pause_ms = &body->idle_pause_ms;
    if (body->idle_disk_ms != NOT_SAID)
        create->idle_disk_ms = &body->idle_disk_ms;
    if (!body->snapshot)
        limits_preset(&create->limits);
    if (body->on_timeout) {
        if (strcmp(body->on_timeout, "pause") == 0)
            create->on_timeout = ON_TIMEOUT_PAUSE;
        else if (strcmp(body->on_timeout, "kill") != 0)
            return v1_bad(x, err, "on_timeout", "'kill' or 'pause' is needed");
    }
    return check_snapshot(x, body, err) < 0 || read_key(x, &create->idempotency_key, err) < 0 ||
                   read_limits(x, body->limits, &create->limits, err) < 0 ||
                   check_metadata(x, body->metadata, err) < 0
               ? -1
               : 0;
}

/* Out of "network", which says nothing else if that was all: then it reaches its peers only. */
static int take_joins(struct exchange *x, struct create_body *body, struct private_member *joins,
                      struct ops_create *create, struct err *err)
{
    json_t *list = json_object_get(body->network, "join");

    if (!list)
        return 0;
    if (!json_is_array(list))
        return v1_bad(x, err, "network.join", "is a list of objects");
    if (v1_joins_read(x, list, joins, &create->join_count, err) < 0)
        return -1;
    create->joins = joins;
    (void) json_object_del(body->network, "join");
    if (json_object_size(body->network) == 0)
        body->network = NULL;
    return 0;
}

/* Likewise: they allow nothing by themselves. The list moves up in the request, and so lives as long as that. */
static int take_secrets(struct exchange *x, json_t *json, struct create_body *body,
                        struct ops_create *create, struct err *err)
{
    json_t *list = json_object_get(body->network, "secrets");

    if (!list)
        return 0;
    if (!json_is_array(list))
        return v1_bad(x, err, "network.secrets", "is a list of names");
    if (json_object_set(json, "secrets", list) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for names");
    create->secrets.names = list;
    (void) json_object_del(body->network, "secrets");
    if (json_object_size(body->network) == 0)
        body->network = NULL;
    return 0;
}

static int create(struct exchange *x, json_t *json, struct err *err)
{
    struct create_body body = { .idle_pause_ms = NOT_SAID, .idle_disk_ms = NOT_SAID, .memory = true };
    auto_free char *metadata = NULL;
    auto_free const char **env = NULL;
    auto_free struct reach *network = NULL;
    struct preview_rules preview = { .is_public = false };
    struct ops_mount volumes[VOLUMES_MAX];
    struct private_member joins[PRIVATE_JOINS];
    struct ops ops = ops_of(x);
    struct ops_create wanted;
    struct ops_sandbox made;

    if (v1_read(x, json, create_fields, ARRAY_LEN(create_fields), &body, err) < 0 ||
        translate(x, &body, &wanted, err) < 0 ||
        v1_assignments(x, "env", body.env, &env, &wanted.env_count, err) < 0)
        return -1;
    wanted.env = env;
    if (take_joins(x, &body, joins, &wanted, err) < 0 ||
        take_secrets(x, json, &body, &wanted, err) < 0)
        return -1;
    if (body.network) {
        network = malloc(sizeof *network);
        if (!network)
            return err_set(err, ERR_NO_MEMORY, "no memory for rules");
        if (network_read(x, "network", body.network, network, err) < 0)
            return -1;
        wanted.network = network;
    }
    if (v1_volumes_read(x, "volumes", body.volumes, volumes, &wanted.volume_count, err) < 0)
        return -1;
    wanted.volumes = volumes;
    if (body.preview) {
        if (preview_rules_read(x, body.preview, &preview, err) < 0)
            return err_wrap(err, "preview");
        wanted.preview = &preview;
    }
    if (body.metadata) {
        metadata = json_dumps(body.metadata, JSON_COMPACT);
        wanted.metadata = metadata;
    }
    if (ops_sandbox_create(&ops, &wanted, &made, err) < 0)
        return -1;
    if (made.replayed && exchange_add_header(x, "Idempotent-Replayed", "true", err) < 0)
        return -1;
    return reply_sandbox(x, made.replayed ? 200 : 201, &made, err);
}

int v1_sandbox_create(struct exchange *x, struct err *err)
{
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = create(x, json, err);
    json_decref(json);
    return r;
}

/* ---- list ---- */

static int read_state(struct exchange *x, uint32_t *ret, struct err *err)
{
    const char *state = exchange_query(x, "state");

    *ret = 0;
    if (!state)
        return 0;
    for (uint32_t life = 0; life < LIFE_GONE; life++)
        if (strcmp(keeper_life_name(life), state) == 0)
            *ret = 1u << life;
    if (strcmp(state, "lost") == 0)
        *ret = 1u << LIFE_GONE;
    return *ret ? 0 : v1_bad(x, err, "state", "'running', 'paused' or 'lost' is needed");
}

/* ?metadata=key:value; several are divided by commas. The text is changed. */
static int read_metadata(struct exchange *x, char *text, struct ops_filter *filter, struct err *err)
{
    char *save = NULL;

    for (char *pair = text ? strtok_r(text, ",", &save) : NULL; pair;
         pair = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(pair, ':');

        if (!colon || filter->meta_count == ARRAY_LEN(filter->meta_keys))
            return v1_bad(x, err, "metadata", "key:value is needed, %zu of them at most",
                          ARRAY_LEN(filter->meta_keys));
        *colon = '\0';
        filter->meta_keys[filter->meta_count] = pair;
        filter->meta_values[filter->meta_count++] = colon + 1;
    }
    return 0;
}

static int reply_list(struct exchange *x, const struct ops_page *page, struct err *err)
{
    json_t *array = json_array();
    char cursor[24];

    for (size_t i = 0; i < page->count; i++)
        (void) json_array_append_new(array, v1_sandbox_json(&page->list[i]));
    (void) snprintf(cursor, sizeof cursor, "%" PRIu64, page->next);
    return exchange_reply_json(x, 200,
                               json_pack("{s:o, s:o}", "sandboxes", array, "next",
                                         page->next ? json_string(cursor) : json_null()),
                               err);
}

int v1_sandbox_list(struct exchange *x, struct err *err)
{
    const char *metadata = exchange_query(x, "metadata");
    auto_free char *own = metadata ? strdup(metadata) : NULL;
    struct ops_filter filter = { .name = exchange_query(x, "name") };
    struct ops ops = ops_of(x);
    uint64_t limit = PAGE_PRESET;
    struct ops_page page;
    int r;

    if (read_state(x, &filter.lives, err) < 0 || read_metadata(x, own, &filter, err) < 0 ||
        v1_query_count(x, "limit", 1, OPS_PAGE_MAX, &limit, err) < 0 ||
        v1_query_count(x, "cursor", 0, INT64_MAX, &filter.after, err) < 0)
        return -1;
    filter.limit = (size_t) limit;
    if (ops_sandbox_list(&ops, &filter, &page, err) < 0)
        return -1;
    r = reply_list(x, &page, err);
    free(page.list);
    return r;
}

/* ---- one ---- */

int v1_sandbox_get(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(x);
    struct ops_sandbox sandbox;

    if (ops_sandbox_get(&ops, exchange_param(x, "id"), &sandbox, err) < 0)
        return -1;
    return reply_sandbox(x, 200, &sandbox, err);
}

int v1_sandbox_kill(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(x);

    if (ops_sandbox_kill(&ops, exchange_param(x, "id"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* {"timeout": seconds}; *ret stays 0 without one. */
static int read_timeout(struct exchange *x, uint64_t *ret, struct err *err)
{
    static const struct v1_field fields[] = { { "timeout", V1_SECONDS, 0, LEAST_MS, MOST_MS } };
    json_t *json;
    int r;

    *ret = 0;
    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = v1_read(x, json, fields, ARRAY_LEN(fields), ret, err);
    json_decref(json);
    return r;
}

int v1_sandbox_extend(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(x);
    struct ops_sandbox sandbox;
    uint64_t timeout_ms;

    if (read_timeout(x, &timeout_ms, err) < 0)
        return -1;
    if (timeout_ms == 0)
        return v1_bad(x, err, "timeout", "a number of seconds is needed");
    if (ops_sandbox_extend(&ops, exchange_param(x, "id"), timeout_ms, &sandbox, err) < 0)
        return -1;
    return reply_sandbox(x, 200, &sandbox, err);
}

int v1_sandbox_resume(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(x);
    uint64_t timeout_ms;

    if (read_timeout(x, &timeout_ms, err) < 0 ||
        ops_sandbox_resume(&ops, exchange_param(x, "id"), timeout_ms, err) < 0)
        return -1;
    return v1_sandbox_get(x, err);
}

int v1_sandbox_stats(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(x);
    struct ops_stats s;

    if (ops_sandbox_stats(&ops, exchange_param(x, "id"), &s, err) < 0)
        return -1;
    return exchange_reply_json(
        x, 200,
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cpu_ms",
                  (json_int_t) (s.keeper.cpu_us / 1000), "memory_bytes",
                  (json_int_t) s.keeper.memory_bytes, "memory_peak_bytes",
                  (json_int_t) s.keeper.memory_peak_bytes, "memory_limit_bytes",
                  (json_int_t) s.limits.memory_bytes, "oom_kills", (json_int_t) s.keeper.oom_kills,
                  "processes", (json_int_t) s.keeper.processes, "disk_bytes",
                  (json_int_t) s.keeper.disk_bytes, "disk_inodes",
                  (json_int_t) s.keeper.disk_inodes, "disk_limit_bytes",
                  (json_int_t) s.limits.disk_bytes, "layer_bytes",
                  (json_int_t) s.keeper.layer_bytes, "uptime_ms", (json_int_t) s.uptime_ms,
                  "refused_calls", (json_int_t) s.refusals),
        err);
}
