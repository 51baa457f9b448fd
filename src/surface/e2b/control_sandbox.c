/* One sandbox: what it is, how long it lives, its pauses, its end. */
#include "surface/e2b/control.h"

#include "base/own.h"

#include <inttypes.h>
#include <string.h>

#define V1_DEFAULT_MS 15000  /* of the older paths */
#define V2_DEFAULT_MS 300000 /* of /v2 */
#define REFRESH_MOST  3600   /* seconds */
#define REFRESH_MS    60000

const char *control_id(struct exchange *x, char buffer[ID_LEN + 1])
{
    const char *id = exchange_param(x, "id");
    size_t len = strcspn(id, "-");

    if (id[len] == '\0' || len > ID_LEN)
        return id;
    memcpy(buffer, id, len);
    buffer[len] = '\0';
    return buffer;
}

int control_settle(struct exchange *x, struct err *err)
{
    const char *given = exchange_param(x, "id");
    struct ops ops = ops_of(exchange_caller(x));
    char id[ID_LEN + 1], buffer[ID_LEN + 1];

    if (!given[0] || id_ok(control_id(x, buffer)))
        return 0;
    if (ops_sandbox_resolve(&ops, given, id, err) < 0)
        return err->kind == ERR_NO_SANDBOX ? 0 : -1;
    return exchange_change_param(x, "id", id) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for an id")
               : 0;
}

int control_timeout(struct exchange *x, const json_t *value, uint64_t least_s, uint64_t default_ms,
                    uint64_t *ret_ms, struct err *err)
{
    uint64_t most_s = app_config(exchange_app(x))->sandbox_timeout_most_ms / 1000;
    json_int_t seconds = json_integer_value(value);

    if (!value || json_is_null(value)) {
        *ret_ms = default_ms < most_s * 1000 ? default_ms : most_s * 1000;
        return 0;
    }
    if (!json_is_integer(value))
        return form_bad(exchange_caller(x), err, "timeout", "a whole number of seconds is needed");
    if (seconds < (json_int_t) least_s)
        return err_set(err, ERR_INVALID, "Timeout must be greater than 0");
    if ((uint64_t) seconds > most_s)
        return most_s % 3600 == 0
                   ? err_set(err, ERR_INVALID, "Timeout cannot be greater than %" PRIu64 " hours",
                             most_s / 3600)
                   : err_set(err, ERR_INVALID, "Timeout cannot be greater than %" PRIu64 " seconds",
                             most_s);
    *ret_ms = (uint64_t) seconds * 1000;
    return 0;
}

/* Those that the keeper lost are no more, whatever their record says. */
static int get_living(struct ops *ops, const char *id, struct ops_sandbox *ret, struct err *err)
{
    if (ops_sandbox_get(ops, id, ret, err) < 0)
        return -1;
    return ret->life == LIFE_GONE ? err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%s'", id)
                                  : 0;
}

int control_get(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    char buffer[ID_LEN + 1];

    if (get_living(&ops, control_id(x, buffer), &sandbox, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, control_sandbox_json(x, &sandbox, true), err);
}

int control_kill(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    char buffer[ID_LEN + 1];

    if (ops_sandbox_kill(&ops, control_id(x, buffer), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* ---- how long ---- */

/* A paused one has no time to set: to SDKs it is not there, as it is not with E2B. */
static int check_running(struct ops *ops, const char *id, struct ops_sandbox *ret, struct err *err)
{
    if (get_living(ops, id, ret, err) < 0)
        return -1;
    return ret->life == LIFE_PAUSED && !ret->idle_paused
               ? err_set(err, ERR_NO_SANDBOX, "sandbox '%s' is paused: connect to it first", id)
               : 0;
}

/* 0: it ends now. */
static int set_end(struct exchange *x, uint64_t timeout_ms, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    char buffer[ID_LEN + 1];
    const char *id = control_id(x, buffer);

    if (check_running(&ops, id, &sandbox, err) < 0 ||
        ops_sandbox_extend(&ops, id, timeout_ms ? timeout_ms : 1, &sandbox, err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

int control_set_timeout(struct exchange *x, struct err *err)
{
    uint64_t timeout_ms;
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    if (!json_object_get(json, "timeout"))
        r = form_bad(exchange_caller(x), err, "timeout", "a whole number of seconds is needed");
    else
        r = control_timeout(x, json_object_get(json, "timeout"), 0, V1_DEFAULT_MS, &timeout_ms,
                            err);
    json_decref(json);
    return r < 0 ? -1 : set_end(x, timeout_ms, err);
}

/* Only ever later. */
int control_refresh(struct exchange *x, struct err *err)
{
    static const struct form_field rows[] = { { "duration", FORM_COUNT, 0, 0, REFRESH_MOST } };
    static const struct form form = FORM_OF(rows, .open = true);
    uint64_t seconds = REFRESH_MS / 1000;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    char buffer[ID_LEN + 1];
    const char *id = control_id(x, buffer);
    bool resumed;
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &form, &seconds, err);
    json_decref(json);
    if (r < 0 || check_running(&ops, id, &sandbox, err) < 0)
        return -1;
    if (seconds > 0 && ops_sandbox_connect(&ops, id, seconds * 1000, &resumed, &sandbox, err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* ---- pauses ---- */

struct life_body {
    json_t *timeout, *auto_pause;
    bool memory;
};

static const struct form_field life_fields[] = {
    { "timeout", FORM_ANY, offsetof(struct life_body, timeout) },
    { "memory", FORM_BOOL, offsetof(struct life_body, memory), .fallback = "true" },
    { "autoPause", FORM_ANY, offsetof(struct life_body, auto_pause) },
};
static const struct form life_form = FORM_OF(life_fields, .open = true);

/* *ret_ms: how long it lives from now on. `memory` of a resume says nothing: what was saved is what there is. */
static int read_life(struct exchange *x, uint64_t default_ms, uint64_t *ret_ms, bool *ret_memory,
                     struct err *err)
{
    struct life_body body = { .timeout = NULL };
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &life_form, &body, err);
    *ret_memory = body.memory;
    if (r == 0 && body.auto_pause)
        r = err_set(err, ERR_UNSUPPORTED, "autoPause: can only be said at the create");
    if (r == 0)
        r = control_timeout(x, body.timeout, 1, default_ms, ret_ms, err);
    json_decref(json);
    return r;
}

static int reply_connect(struct exchange *x, uint64_t default_ms, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    char buffer[ID_LEN + 1];
    uint64_t timeout_ms;
    bool resumed, memory;

    if (read_life(x, default_ms, &timeout_ms, &memory, err) < 0 ||
        ops_sandbox_connect(&ops, control_id(x, buffer), timeout_ms, &resumed, &sandbox, err) < 0)
        return -1;
    return control_reply_sandbox(x, resumed ? 201 : 200, &sandbox, err);
}

int control_connect_v1(struct exchange *x, struct err *err)
{
    return reply_connect(x, V1_DEFAULT_MS, err);
}

int control_connect_v2(struct exchange *x, struct err *err)
{
    return reply_connect(x, V2_DEFAULT_MS, err);
}

int control_pause(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    char buffer[ID_LEN + 1];
    const char *id = control_id(x, buffer);
    struct ops_pause how = { .tier = STORE_AWAKE };
    struct ops_paused paused;
    uint64_t ignored;
    bool memory;

    if (read_life(x, V1_DEFAULT_MS, &ignored, &memory, err) < 0 ||
        get_living(&ops, id, &sandbox, err) < 0)
        return -1;
    /* One that fell asleep by itself still has its time: to its owner it runs. */
    if (sandbox.life == LIFE_PAUSED && !sandbox.idle_paused)
        return err_set(err, ERR_STATE, "sandbox '%s' is already paused", id);
    how.files_only = !memory;
    if (ops_sandbox_pause(&ops, id, &how, &paused, err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* The way of old SDKs: one that runs is refused. */
int control_resume(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    char buffer[ID_LEN + 1];
    const char *id = control_id(x, buffer);
    uint64_t timeout_ms;
    bool memory;

    if (read_life(x, V1_DEFAULT_MS, &timeout_ms, &memory, err) < 0 ||
        get_living(&ops, id, &sandbox, err) < 0)
        return -1;
    if (sandbox.life == LIFE_RUNNING)
        return err_set(err, ERR_STATE, "sandbox '%s' is running", id);
    if (ops_sandbox_resume(&ops, id, timeout_ms, err) < 0 ||
        ops_sandbox_get(&ops, id, &sandbox, err) < 0)
        return -1;
    return control_reply_sandbox(x, 201, &sandbox, err);
}
