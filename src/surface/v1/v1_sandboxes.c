#include "surface/v1/v1.h"

#include "base/own.h"
#include "server/net/network_rules.h"
#include "server/net/private.h"
#include "server/ops/ops_tie.h"
#include "server/preview/preview.h"

#include <inttypes.h>
#include <string.h>

#define AT(field)    offsetof(struct create_body, field)
#define PAGE_DEFAULT 50
#define LEAST_MS     1000
#define MOST_MS      31536000000ull /* the configuration may say less */

static int reply_sandbox(struct exchange *x, int status, const struct ops_sandbox *sandbox,
                         struct err *err)
{
    return exchange_reply_json(x, status, v1_sandbox_json(sandbox), err);
}

/* ---- create ---- */

struct create_body {
    const char *template, *snapshot, *name, *on_timeout, *idempotency_key, *isolation;
    json_t *limits, *env, *metadata, *network, *preview, *volumes;
    uint64_t timeout_ms, idle_pause_ms, idle_disk_ms; /* idle: NOT_SAID without */
    bool root, auto_resume, memory;
};
#define NOT_SAID UINT64_MAX

static const char *const ends[] = { "kill", "pause", NULL };

/* clang-format off */
static const struct form_field create_fields[] = {
    { "template", FORM_TEXT, .at = AT(template), .help = "NAME or NAME:TAG" },
    { "name", FORM_TEXT, .at = AT(name), .help = "unique in the tenant", .schema = V1_NAME_PATTERN },
    { "limits", FORM_OBJECT, .at = AT(limits), .help = V1_LIMITS_HELP, .describe = v1_limits_schema },
    { "env", FORM_OBJECT, .at = AT(env), .help = "variables of every command in it" },
    { "metadata", FORM_OBJECT, .at = AT(metadata), .help = "kept and shown; lists can be filtered by it" },
    { "timeout", FORM_SECONDS, .at = AT(timeout_ms), 0, MOST_MS,
      "seconds until on_timeout; 0: no deadline, for administrators of the tenant local", .schema = "{\"default\": 300}" },
    { "network", FORM_OBJECT, .at = AT(network), .help = "what it may reach; docs/network.md", .items = &network_create_form },
    { "preview", FORM_OBJECT, .at = AT(preview), .help = "who may look at its ports; docs/previews.md", .items = &preview_form },
    { "volumes", FORM_ARRAY, .at = AT(volumes), 0, VOLUMES_MAX, "volumes that it has from the start", .items = &ops_mount_form },
    { "on_timeout", FORM_TEXT, .at = AT(on_timeout), .help = "what happens at the deadline", .choices = ends, .fallback = "kill" },
    { "snapshot", FORM_TEXT, .at = AT(snapshot),
      .help = "id or name of what it is made of; template, root and volumes are then the snapshot's, and so is each limit that "
              "is not said. 400 `limit_invalid` where its processes or files do not fit into the limits" },
    { "memory", FORM_BOOL, .at = AT(memory), .help = "false, with `snapshot`: its files only, it starts again", .fallback = "true" },
    { "auto_resume", FORM_BOOL, .at = AT(auto_resume), .help = "a request to it wakes it when it is paused", .fallback = "false" },
    { "idle_pause_seconds", FORM_SECONDS, .at = AT(idle_pause_ms), 0, MOST_MS, "pause it when it was idle for so long; 0: never" },
    { "idle_disk_seconds", FORM_SECONDS, .at = AT(idle_disk_ms), 0, MOST_MS,
      "move it to disk when it was idle for so long; 0: never" },
    { "root", FORM_BOOL, .at = AT(root), .help = "whether root inside may be used", .fallback = "false" },
    { "isolation", FORM_TEXT, .at = AT(isolation),
      .help = "what isolates it from the host: `jail`, `gvisor`, `vm` or `vm-emulated`. Default: the server's setting `isolation`, or the "
              "tenant's least level. 501 `unsupported` for one that this host does not have, 403 `denied` for one below the tenant's least level" },
    { "idempotency_key", FORM_TEXT, .at = AT(idempotency_key), .help = "a create with the same key again answers with the same sandbox",
      .schema = "{\"maxLength\": 127}" },
};
/* clang-format on */
#undef AT
const struct form v1_create_form = FORM_OF(create_fields);

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

int v1_limits_read(struct exchange *x, json_t *object, struct limits *limits, struct err *err)
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
            return form_bad(exchange_caller(x), err, "limits",
                            "'%.40s' must be a number or a string", key);
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
            return form_bad(exchange_caller(x), err, "metadata", "'%.40s' must be a string", key);
        if (strncmp(key, "cove.", 5) == 0)
            return form_bad(exchange_caller(x), err, "metadata",
                            "names that begin with 'cove.' are reserved");
    }
    return 0;
}

static int read_key(struct exchange *x, const char **key, struct err *err)
{
    const char *header = exchange_header(x, "Idempotency-Key");

    if (header && *key && strcmp(header, *key) != 0)
        return form_bad(exchange_caller(x), err, "idempotency_key",
                        "differs from the header Idempotency-Key");
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
            return form_bad(exchange_caller(x), err, own[i].field, "a snapshot has its own");
    if (!body->snapshot && !body->memory)
        return form_bad(exchange_caller(x), err, "memory",
                        "only a snapshot's processes can be left out");
    return 0;
}

static int translate(struct exchange *x, const struct create_body *body, struct ops_create *create,
                     struct err *err)
{
    *create = (struct ops_create){ .template = body->template,
                                   .name = body->name,
                                   .idempotency_key = body->idempotency_key,
                                   .timeout_ms = body->timeout_ms == NOT_SAID ? 0
                                                 : body->timeout_ms == 0      ? OPS_NEVER_MS
                                                                              : body->timeout_ms,
                                   .root = body->root,
                                   .isolation = body->isolation,
                                   .snapshot = body->snapshot,
                                   .files_only = !body->memory,
                                   .auto_resume = body->auto_resume };
    if (body->idle_pause_ms != NOT_SAID)
        create->idle_pause_ms = &body->idle_pause_ms;
    if (body->idle_disk_ms != NOT_SAID)
        create->idle_disk_ms = &body->idle_disk_ms;
    if (!body->snapshot)
        limits_default(&create->limits);
    if (strcmp(body->on_timeout, "pause") == 0)
        create->on_timeout = ON_TIMEOUT_PAUSE;
    return check_snapshot(x, body, err) < 0 || read_key(x, &create->idempotency_key, err) < 0 ||
                   v1_limits_read(x, body->limits, &create->limits, err) < 0 ||
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
        return form_bad(exchange_caller(x), err, "network.join", "must be an array");
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
        return form_bad(exchange_caller(x), err, "network.secrets", "must be an array");
    if (json_object_set(json, "secrets", list) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for names");
    create->secrets.names = list;
    (void) json_object_del(body->network, "secrets");
    if (json_object_size(body->network) == 0)
        body->network = NULL;
    return 0;
}

int v1_create(struct exchange *x, json_t *json, bool tied, struct ops_sandbox *ret, struct err *err)
{
    struct create_body body = { .idle_pause_ms = NOT_SAID,
                                .idle_disk_ms = NOT_SAID,
                                .timeout_ms = NOT_SAID };
    auto_free char *metadata = NULL;
    auto_free const char **env = NULL;
    auto_free struct reach *network = NULL;
    struct preview_rules preview = { .is_public = false };
    struct ops_mount volumes[VOLUMES_MAX];
    struct private_member joins[PRIVATE_JOINS];
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_create wanted;

    if (form_read(exchange_caller(x), json, &v1_create_form, &body, err) < 0 ||
        translate(x, &body, &wanted, err) < 0 ||
        form_assignments(exchange_caller(x), "env", body.env, &env, &wanted.env_count, err) < 0)
        return -1;
    wanted.env = env;
    if (tied && body.timeout_ms != NOT_SAID)
        return form_bad(exchange_caller(x), err, "timeout",
                        "a sandbox that ends with its maker has none");
    if (tied)
        wanted.timeout_ms = OPS_TIE_MS;
    if (take_joins(x, &body, joins, &wanted, err) < 0 ||
        take_secrets(x, json, &body, &wanted, err) < 0)
        return -1;
    if (body.network) {
        network = malloc(sizeof *network);
        if (!network)
            return err_set(err, ERR_NO_MEMORY, "no memory for rules");
        if (network_read(exchange_caller(x), "network", body.network, network, err) < 0)
            return -1;
        wanted.network = network;
    }
    if (ops_mounts_read(exchange_caller(x), "volumes", body.volumes, volumes, &wanted.volume_count,
                        err) < 0)
        return -1;
    wanted.volumes = volumes;
    if (body.preview) {
        if (preview_rules_read(exchange_caller(x), "preview.", body.preview, &preview, err) < 0)
            return -1;
        wanted.preview = &preview;
    }
    if (body.metadata) {
        metadata = json_dumps(body.metadata, JSON_COMPACT);
        wanted.metadata = metadata;
    }
    return ops_sandbox_create(&ops, &wanted, ret, err);
}

static int create(struct exchange *x, json_t *json, struct err *err)
{
    struct ops_sandbox made;

    if (v1_create(x, json, false, &made, err) < 0)
        return -1;
    if (made.replayed && exchange_add_header(x, "Idempotent-Replayed", "true", err) < 0)
        return -1;
    return reply_sandbox(x, made.replayed ? 200 : 201, &made, err);
}

static bool is_v1(struct slice path)
{
    return path.len > 4 && memcmp(path.at, "/v1/", 4) == 0;
}

int v1_settle(struct exchange *x, struct err *err)
{
    static const char *const names[] = { "id", "sandbox" };
    struct ops ops = ops_of(exchange_caller(x));
    char id[ID_LEN + 1];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *given = exchange_param(x, names[i]);

        if (!given[0] || id_ok(given) || !is_v1(head_path(exchange_head(x))))
            continue;
        if (ops_sandbox_resolve(&ops, given, id, err) < 0)
            return -1;
        if (exchange_change_param(x, names[i], id) < 0)
            return err_set(err, ERR_NO_MEMORY, "no memory for an id");
    }
    return 0;
}

int v1_sandbox_create(struct exchange *x, struct err *err)
{
    return v1_body(x, create, err);
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
    return *ret ? 0
                : form_bad(exchange_caller(x), err, "state",
                           "'running', 'paused' or 'lost' is needed");
}

/* ?metadata=key:value; several are divided by commas. The text is changed. */
static int read_metadata(struct exchange *x, char *text, struct ops_filter *filter, struct err *err)
{
    char *save = NULL;

    for (char *pair = text ? strtok_r(text, ",", &save) : NULL; pair;
         pair = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(pair, ':');

        if (!colon || filter->meta_count == ARRAY_LEN(filter->meta_keys))
            return form_bad(exchange_caller(x), err, "metadata",
                            "key:value is needed, %zu of them at most",
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
    struct ops ops = ops_of(exchange_caller(x));
    uint64_t limit = PAGE_DEFAULT;
    struct ops_page page;
    int r;

    if (read_state(x, &filter.lives, err) < 0 || read_metadata(x, own, &filter, err) < 0 ||
        query_count(x, "limit", 1, OPS_PAGE_MAX, &limit, err) < 0 ||
        query_count(x, "cursor", 0, INT64_MAX, &filter.after, err) < 0)
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
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;

    if (ops_sandbox_get(&ops, exchange_param(x, "id"), &sandbox, err) < 0)
        return -1;
    return reply_sandbox(x, 200, &sandbox, err);
}

int v1_sandbox_kill(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_sandbox_kill(&ops, exchange_param(x, "id"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* {"timeout": seconds} */
static const struct form_field extend_fields[] = {
    { "timeout", FORM_SECONDS, 0, LEAST_MS, MOST_MS, "seconds from now", .needed = true },
};
const struct form v1_extend_form = FORM_OF(extend_fields);

static const struct form_field resume_fields[] = {
    { "timeout", FORM_SECONDS, 0, LEAST_MS, MOST_MS,
      "seconds from now until its deadline; without it the old deadline stays, or, where that is "
      "over, it has the time of its "
      "create" },
};
const struct form v1_resume_form = FORM_OF(resume_fields);

/* *ret stays 0 without one. */
static int read_timeout(struct exchange *x, const struct form *form, uint64_t *ret, struct err *err)
{
    *ret = 0;
    return v1_numbers(x, form, ret, err);
}

int v1_sandbox_extend(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    uint64_t timeout_ms;

    if (read_timeout(x, &v1_extend_form, &timeout_ms, err) < 0 ||
        ops_sandbox_extend(&ops, exchange_param(x, "id"), timeout_ms, &sandbox, err) < 0)
        return -1;
    return reply_sandbox(x, 200, &sandbox, err);
}

int v1_sandbox_resume(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    uint64_t timeout_ms;

    if (read_timeout(x, &v1_resume_form, &timeout_ms, err) < 0 ||
        ops_sandbox_resume(&ops, exchange_param(x, "id"), timeout_ms, err) < 0)
        return -1;
    return v1_sandbox_get(x, err);
}

int v1_sandbox_stats(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
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
