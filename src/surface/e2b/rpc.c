/* Connect's protocol: what must hold is that a client always learns how a call ended. An answer that began ends with an
 * end frame, or is cut; it is cut only when the client or the sandbox is gone. */
#include "surface/e2b/rpc.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "http/value.h"
#include "server/form/form.h"
#include "server/guard/quota.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define TYPE_UNARY  "application/json"
#define TYPE_STREAM "application/connect+json"

#define READ_PIECE           16384
#define KEEPALIVE_DEFAULT_S  90
#define KEEPALIVE_MOST_S     3600
#define TIMEOUT_DIGITS       10 /* as the protocol says */
#define FAREWELL_PATIENCE_MS 3000
#define FAREWELL_STEP_MS     50

/* ---- codes ---- */

enum code {
    UNKNOWN,
    INVALID_ARGUMENT,
    DEADLINE_EXCEEDED,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
    INTERNAL,
    UNAVAILABLE,
    UNAUTHENTICATED
};

/* clang-format off */
static const struct rpc_code codes[] = {
    [UNKNOWN]             = { "unknown",             500 },
    [INVALID_ARGUMENT]    = { "invalid_argument",    400 },
    [DEADLINE_EXCEEDED]   = { "deadline_exceeded",   504 },
    [NOT_FOUND]           = { "not_found",           404 },
    [ALREADY_EXISTS]      = { "already_exists",      409 },
    [PERMISSION_DENIED]   = { "permission_denied",   403 },
    [RESOURCE_EXHAUSTED]  = { "resource_exhausted",  429 },
    [FAILED_PRECONDITION] = { "failed_precondition", 400 },
    [OUT_OF_RANGE]        = { "out_of_range",        400 },
    [UNIMPLEMENTED]       = { "unimplemented",       501 },
    [INTERNAL]            = { "internal",            500 },
    [UNAVAILABLE]         = { "unavailable",         503 },
    [UNAUTHENTICATED]     = { "unauthenticated",     401 },
};

/* SDKs take resource_exhausted for a rate limit: a full disk is none. */
static const unsigned char by_kind[] = {
    [ERR_NONE]        = UNKNOWN,
    [ERR_INTERNAL]    = INTERNAL,
    [ERR_USAGE]       = INVALID_ARGUMENT,
    [ERR_INVALID]     = INVALID_ARGUMENT,
    [ERR_LIMIT]       = INVALID_ARGUMENT,
    [ERR_LIMIT_HOST]  = OUT_OF_RANGE,
    [ERR_NO_TEMPLATE] = NOT_FOUND,
    [ERR_NO_USER]     = UNAUTHENTICATED,
    [ERR_NAME_TAKEN]  = ALREADY_EXISTS,
    [ERR_NO_SANDBOX]  = NOT_FOUND,
    [ERR_NO_PROCESS]  = NOT_FOUND,
    [ERR_NO_PATH]     = NOT_FOUND,
    [ERR_EXISTS]      = ALREADY_EXISTS,
    [ERR_NOT_DIR]     = INVALID_ARGUMENT,
    [ERR_IS_DIR]      = INVALID_ARGUMENT,
    [ERR_NOT_FILE]    = INVALID_ARGUMENT,
    [ERR_NOT_EMPTY]   = FAILED_PRECONDITION,
    [ERR_DENIED]      = PERMISSION_DENIED,
    [ERR_NO_ROOT]     = PERMISSION_DENIED,
    [ERR_DISK_FULL]   = INTERNAL,
    [ERR_NO_MEMORY]   = RESOURCE_EXHAUSTED,
    [ERR_NO_IDS]      = RESOURCE_EXHAUSTED,
    [ERR_TOO_MANY]    = RESOURCE_EXHAUSTED,
    [ERR_TOO_BIG]     = RESOURCE_EXHAUSTED,
    [ERR_STATE]       = FAILED_PRECONDITION,
    [ERR_TIMEOUT]     = DEADLINE_EXCEEDED,
    [ERR_OOM]         = RESOURCE_EXHAUSTED,
    [ERR_UNAVAILABLE] = UNAVAILABLE,
    [ERR_PROTOCOL]    = INTERNAL,
    [ERR_UNSUPPORTED] = UNIMPLEMENTED,
    [ERR_NO_PORT]     = UNAVAILABLE,
    [ERR_NO_IMAGE]    = NOT_FOUND,
    [ERR_NO_VOLUME]   = NOT_FOUND,
    [ERR_VOLUME_BUSY] = FAILED_PRECONDITION,
};
/* clang-format on */
_Static_assert(ARRAY_LEN(by_kind) == ERR_KIND_COUNT, "every kind has a row");

const struct rpc_code *rpc_code_of(uint32_t err_kind)
{
    return &codes[err_kind < ARRAY_LEN(by_kind) ? by_kind[err_kind] : UNKNOWN];
}

/* {"code","message"}, in the words of SDKs where they look for some. */
static json_t *error_json(struct exchange *x, const struct err *why)
{
    const char *rule = caller_blamed_rule(exchange_caller(x), "policy"), *user = NULL;
    struct err said = *why, ignored;

    if (why->kind == ERR_NO_USER && rpc_user(x, &user, &ignored) == 0 && user)
        (void) err_set(&said, ERR_NO_USER, "invalid username: '%s'", user);
    else if (rule && !strstr(why->msg, rule))
        (void) err_set(&said, why->kind, "%s (rule %s)", why->msg, rule);
    if (why->kind == ERR_INTERNAL)
        log_line(LOG_ERROR, "request=%s failed: %s", exchange_id(x), why->msg);
    return json_pack("{s:s, s:o}", "code", rpc_code_of(why->kind)->name, "message",
                     form_text(said.msg, strlen(said.msg)));
}

/* ---- what both kinds of call look at first ---- */

static int check_type(struct exchange *x, const char *wanted, struct err *err)
{
    struct slice type = head_get(exchange_head(x), "Content-Type");

    if (type.at && slice_is_nocase(value_main(type), wanted))
        return 0;
    (void) exchange_blame_status(x, 415);
    return err_set(err, ERR_INVALID, "Content-Type: this method takes %s", wanted);
}

static int check_version(struct exchange *x, struct err *err)
{
    struct slice version = head_get(exchange_head(x), "Connect-Protocol-Version");

    if (!version.at || slice_is(version, "1"))
        return 0;
    return err_set(err, ERR_INVALID, "Connect-Protocol-Version: only 1 is supported");
}

static int check_encoding(struct exchange *x, const char *header, struct err *err)
{
    struct slice encoding = head_get(exchange_head(x), header);

    if (!encoding.at || encoding.len == 0 || slice_is_nocase(encoding, "identity"))
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "%s: messages are not compressed here", header);
}

/* ---- unary ---- */

static int fail_unary(struct exchange *x, const struct err *why, struct err *err)
{
    if (why->kind == ERR_NO_SANDBOX) {
        *err = *why;
        return exchange_blame_status(x, 502);
    }
    return exchange_reply_json(x, rpc_code_of(why->kind)->http_status, error_json(x, why), err);
}

int rpc_serve_unary(struct exchange *x, rpc_unary *method, struct err *err)
{
    json_t *in = NULL, *out = NULL;
    struct err why;
    int r;

    if (check_type(x, TYPE_UNARY, err) < 0)
        return -1;
    r = check_version(x, &why);
    if (r == 0)
        r = check_encoding(x, "Content-Encoding", &why);
    if (r == 0)
        r = exchange_json(x, &in, &why);
    if (r == 0)
        r = method(x, in, &out, &why);
    json_decref(in);
    if (exchange_begun(x)) { /* by the method itself */
        if (r < 0)
            *err = why;
        return r;
    }
    if (r == 0)
        return exchange_reply_json(x, 200, out ? out : json_object(), err);
    json_decref(out);
    return fail_unary(x, &why, err);
}

/* ---- streams: in ---- */

static int take_piece(char **message, const struct envelope_piece *piece, size_t *have,
                      struct err *err)
{
    if (piece->first && !(*message = malloc((size_t) piece->size + 1)))
        return err_set(err, ERR_NO_MEMORY, "no memory for a message");
    if (piece->data.len > 0)
        memcpy(*message + *have, piece->data.at, piece->data.len);
    *have += piece->data.len;
    return 0;
}

static int parse_message(const char *message, size_t len, json_t **ret, struct err *err)
{
    if (len == 0) {
        *ret = json_object();
        return *ret ? 1 : err_set(err, ERR_NO_MEMORY, "no memory for a message");
    }
    return exchange_json_text(message, len, ret, err) < 0 ? -1 : 1;
}

int rpc_next(struct rpc *rpc, json_t **ret, struct err *err)
{
    auto_free char *message = NULL;
    size_t have = 0;

    for (;;) {
        struct envelope_piece piece;
        size_t used = 0;
        ssize_t n;
        int r = envelope_read(&rpc->envelope, rpc->in + rpc->at, rpc->have - rpc->at, &used, &piece,
                              err);

        rpc->at += used;
        if (r < 0 || (r == 1 && take_piece(&message, &piece, &have, err) < 0))
            return -1;
        if (r == 1 && piece.last)
            return parse_message(message, have, ret, err);
        if (r == 1)
            continue;
        n = exchange_read(rpc->x, rpc->in, READ_PIECE, err);
        if (n < 0)
            return -1;
        if (n == 0 && !envelope_between(&rpc->envelope))
            return err_set(err, ERR_INVALID, "the body ended inside a message");
        if (n == 0)
            return 0;
        rpc->at = 0;
        rpc->have = (size_t) n;
    }
}

static int only_message(struct rpc *rpc, json_t **ret, struct err *err)
{
    json_t *second = NULL;
    int r = rpc_next(rpc, ret, err);

    if (r <= 0)
        return r < 0 ? -1 : err_set(err, ERR_INVALID, "the body has no message");
    r = rpc_next(rpc, &second, err);
    json_decref(second);
    return r == 1 ? err_set(err, ERR_INVALID, "the body has more than one message") : r;
}

/* ---- streams: out ---- */

static int begin(struct rpc *rpc, struct err *err)
{
    if (exchange_begun(rpc->x))
        return 0;
    /* A proxy that collects an answer before it passes it on would make a stream useless. */
    if (exchange_add_header(rpc->x, "Cache-Control", "no-cache", err) < 0 ||
        exchange_add_header(rpc->x, "X-Accel-Buffering", "no", err) < 0)
        return -1;
    return exchange_begin(rpc->x, 200, TYPE_STREAM, -1, err);
}

static int send_envelope(struct rpc *rpc, uint8_t flags, char *room, size_t len, struct err *err)
{
    envelope_put(room, flags, (uint32_t) len);
    if (begin(rpc, err) < 0 || exchange_write(rpc->x, room, ENVELOPE_HEAD + len, err) < 0) {
        rpc->gone = true;
        return -1;
    }
    rpc->sent_ms = io_now_ms();
    return 0;
}

static int send_text(struct rpc *rpc, uint8_t flags, const char *text, struct err *err)
{
    size_t len = text ? strlen(text) : 0;
    auto_free char *room = text ? malloc(ENVELOPE_HEAD + len) : NULL;

    if (!room)
        return err_set(err, ERR_NO_MEMORY, "no memory for a message");
    memcpy(room + ENVELOPE_HEAD, text, len);
    return send_envelope(rpc, flags, room, len, err);
}

static int send_json(struct rpc *rpc, uint8_t flags, json_t *message, struct err *err)
{
    auto_free char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

    json_decref(message);
    return send_text(rpc, flags, text, err);
}

int rpc_send(struct rpc *rpc, json_t *message, struct err *err)
{
    return send_json(rpc, ENVELOPE_MESSAGE, message, err);
}

int rpc_send_room(struct rpc *rpc, char *room, size_t len, struct err *err)
{
    return send_envelope(rpc, ENVELOPE_MESSAGE, room, len, err);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int rpc_wait(struct rpc *rpc, int fd, short events, struct err *err)
{
    for (;;) {
        struct pollfd fds[] = { { .fd = fd, .events = events },
                                { .fd = exchange_fd(rpc->x), .events = POLLRDHUP } };
        uint64_t now = io_now_ms(), next = now + OPS_TICK_MS;

        if (rpc->deadline_ms > 0 && now >= rpc->deadline_ms)
            return err_set(err, ERR_TIMEOUT, "the time that the client allowed is over");
        if (rpc->keepalive && now >= rpc->sent_ms + rpc->keepalive_ms &&
            send_text(rpc, ENVELOPE_MESSAGE, rpc->keepalive, err) < 0)
            return -1;
        if (rpc->keepalive)
            next = sooner(next, rpc->sent_ms + rpc->keepalive_ms);
        if (rpc->deadline_ms > 0)
            next = sooner(next, rpc->deadline_ms);
        if (poll(fds, ARRAY_LEN(fds), next > now ? (int) (next - now) : 0) < 0 && errno != EINTR)
            return err_sys(err, errno, "wait for a stream");
        if (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) {
            rpc->gone = true;
            return err_set(err, ERR_UNAVAILABLE, "the client went away");
        }
        if (fds[0].revents)
            return 1;
    }
}

/* ---- streams: the whole call ---- */

/* Whether an agent that hung up did so because its sandbox ended. Who ends a sandbox stops it before its record goes,
 * so this may take a moment to show; SDKs ask /health as soon as they see the cut, and it must say so by then. */
static bool sandbox_left(struct rpc *rpc)
{
    uint64_t until = io_now_ms() + FAREWELL_PATIENCE_MS;

    do {
        struct ops_sandbox sandbox;
        struct err err;

        if (ops_sandbox_get(&rpc->ops, exchange_param(rpc->x, "sandbox"), &sandbox, &err) < 0) {
            if (err.kind == ERR_NO_SANDBOX)
                return true;
        } else if (sandbox.life != LIFE_RUNNING) {
            return true;
        }
        (void) poll(NULL, 0, FAREWELL_STEP_MS);
    } while (io_now_ms() < until);
    return false;
}

static int fail_stream(struct rpc *rpc, const struct err *why, struct err *err)
{
    bool lost = why->kind == ERR_UNAVAILABLE || why->kind == ERR_PROTOCOL;

    *err = *why;
    if (rpc->gone)
        return -1;
    if (why->kind == ERR_NO_SANDBOX || (lost && sandbox_left(rpc))) {
        err->kind = ERR_NO_SANDBOX;
        return exchange_blame_status(rpc->x, 502);
    }
    if (send_json(rpc, ENVELOPE_END, json_pack("{s:o}", "error", error_json(rpc->x, why)), err) < 0)
        return -1;
    return exchange_end(rpc->x, err);
}

static int read_settings(struct rpc *rpc, struct err *err)
{
    struct slice ping = head_get(exchange_head(rpc->x), "Keepalive-Ping-Interval");
    struct slice timeout = head_get(exchange_head(rpc->x), "Connect-Timeout-Ms");
    uint64_t seconds = KEEPALIVE_DEFAULT_S;

    if (ping.at && (!slice_number(ping, &seconds) || seconds == 0))
        return err_set(err, ERR_INVALID, "Keepalive-Ping-Interval: a number of seconds is needed");
    rpc->keepalive_ms = 1000 * sooner(seconds, KEEPALIVE_MOST_S);
    if (timeout.at && (timeout.len > TIMEOUT_DIGITS || !slice_number(timeout, &rpc->timeout_ms)))
        return err_set(err, ERR_INVALID, "Connect-Timeout-Ms: up to %d digits are needed",
                       TIMEOUT_DIGITS);
    rpc->sent_ms = io_now_ms();
    rpc->deadline_ms = rpc->timeout_ms > 0 ? rpc->sent_ms + rpc->timeout_ms : 0;
    return 0;
}

static int call(struct rpc *rpc, rpc_stream *method, bool one, struct err *err)
{
    json_t *in = NULL;
    int r = check_version(rpc->x, err);

    if (r == 0)
        r = check_encoding(rpc->x, "Connect-Content-Encoding", err);
    if (r == 0)
        r = read_settings(rpc, err);
    if (r == 0 && one)
        r = only_message(rpc, &in, err);
    if (r == 0)
        r = method(rpc, in, err);
    json_decref(in);
    return r;
}

static int serve(struct exchange *x, rpc_stream *method, bool one, struct err *err)
{
    auto_free char *in = malloc(READ_PIECE);
    struct rpc rpc = { .x = x,
                       .ops = ops_of(exchange_caller(x)),
                       .in = in,
                       .envelope = { .limit = RPC_MESSAGE_MAX } };
    struct err why;
    int r;

    if (check_type(x, TYPE_STREAM, err) < 0)
        return -1;
    if (!in)
        return err_set(err, ERR_NO_MEMORY, "no memory for a stream");
    r = quota_stream_begin(exchange_caller(x), &why);
    if (r == 0) {
        r = call(&rpc, method, one, &why);
        quota_stream_end(exchange_caller(x));
    }
    if (r < 0)
        return fail_stream(&rpc, &why, err);
    if (send_text(&rpc, ENVELOPE_END, "{}", err) < 0)
        return -1;
    return exchange_end(x, err);
}

int rpc_serve_stream(struct exchange *x, rpc_stream *method, struct err *err)
{
    return serve(x, method, true, err);
}

int rpc_serve_input(struct exchange *x, rpc_stream *method, struct err *err)
{
    return serve(x, method, false, err);
}
