/* The head is complete before an exchange exists; the body is exchange_body.c. An answer has a known length, or is
 * sent in chunks (HTTP/1.0: until the end). */
#include "server/serve/exchange_own.h"

#include "base/own.h"
#include "http/response.h"
#include "http/url.h"
#include "http/ws.h"
#include "server/serve/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#define SMALL_CHUNK 4096
#define ID_BYTES    8 /* of a request's id */
#define SMALL_BODY  4096

struct app *exchange_app(struct exchange *x)
{
    return x->app;
}

struct caller *exchange_caller(struct exchange *x)
{
    return &x->caller;
}

const struct head *exchange_head(const struct exchange *x)
{
    return &x->head;
}

const char *exchange_id(const struct exchange *x)
{
    return x->id;
}

struct conn *exchange_conn(struct exchange *x)
{
    return x->conn;
}

bool exchange_begun(const struct exchange *x)
{
    return x->begun;
}

int exchange_fd(const struct exchange *x)
{
    return x->conn->fd;
}

bool exchange_gone(struct exchange *x)
{
    char byte;

    if (x->conn->tls)
        return false; /* a record may be anything; the next write will tell */
    return recv(x->conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* ---- the request ---- */

/* Texts that handlers keep: a small arena that ends with the exchange. */
static char *keep(struct exchange *x, size_t size)
{
    char *at = x->arena + x->arena_used;

    if (size > sizeof x->arena - x->arena_used)
        return NULL;
    x->arena_used += size;
    return at;
}

const char *exchange_param(const struct exchange *x, const char *name)
{
    for (size_t i = 0; i < x->param_count; i++)
        if (strcmp(x->params[i].name, name) == 0)
            return x->params[i].value;
    return "";
}

int exchange_set_param(struct exchange *x, const char *name, const char *value)
{
    char *copy = keep(x, strlen(value) + 1);

    if (!copy || x->param_count == EXCHANGE_PARAMS)
        return -1;
    (void) strcpy(copy, value);
    x->params[x->param_count].name = name;
    x->params[x->param_count++].value = copy;
    return 0;
}

int exchange_change_param(struct exchange *x, const char *name, const char *value)
{
    char *copy = keep(x, strlen(value) + 1);

    for (size_t i = 0; copy && i < x->param_count; i++)
        if (strcmp(x->params[i].name, name) == 0) {
            x->params[i].value = strcpy(copy, value);
            return 0;
        }
    return -1;
}

void exchange_set_caller(struct exchange *x, const char *tenant, const char *key_id,
                         enum scope scope)
{
    (void) snprintf(x->caller.tenant, sizeof x->caller.tenant, "%s", tenant);
    (void) snprintf(x->caller.key_id, sizeof x->caller.key_id, "%s", key_id);
    x->caller.scope = scope;
}

void exchange_set_visitor(struct exchange *x)
{
    x->caller.visitor = true;
}

int exchange_query_strict(struct exchange *x, const char *name, const char **ret, struct err *err)
{
    struct slice query = head_query(&x->head);
    size_t before = x->arena_used;
    char *out = keep(x, query.len + 1);
    int r;

    *ret = NULL;
    if (!out)
        return err_set(err, ERR_TOO_BIG, "the query is too long");
    r = query.at ? url_query_get(query, name, out, query.len + 1, err) : 0;
    if (r != 1) {
        x->arena_used = before;
        return r;
    }
    x->arena_used = before + strlen(out) + 1; /* a long query may be asked for many names */
    *ret = out;
    return 0;
}

const char *exchange_query(struct exchange *x, const char *name)
{
    const char *value;
    struct err ignored;

    (void) exchange_query_strict(x, name, &value, &ignored);
    return value;
}

const char *exchange_header(struct exchange *x, const char *name)
{
    struct slice value = head_get(&x->head, name);
    char *out;

    if (!value.at)
        return NULL;
    out = keep(x, value.len + 1);
    return out && slice_copy(value, out, value.len + 1) ? out : NULL;
}

/* ---- the answer ---- */

int exchange_add_header(struct exchange *x, const char *name, const char *value, struct err *err)
{
    int n = snprintf(x->extra + x->extra_len, sizeof x->extra - x->extra_len, "%s: %s\r\n", name,
                     value);

    if (strpbrk(value, "\r\n") || n < 0 || (size_t) n >= sizeof x->extra - x->extra_len)
        return err_set(err, ERR_INTERNAL, "a header does not fit");
    x->extra_len += (size_t) n;
    return 0;
}

void exchange_set_reason(struct exchange *x, const char *sentence)
{
    x->reason = sentence;
}

/* A body of up to SMALL_BODY bytes, or none (NULL), goes with the head: one packet. */
static int send_head(struct exchange *x, int status, const char *type, int64_t length,
                     const char *body, struct err *err)
{
    char buf[8192 + SMALL_BODY];
    struct response r;
    ssize_t len;

    response_begin_with(&r, buf, sizeof buf - SMALL_BODY - sizeof x->extra, (unsigned) status,
                        x->reason ? x->reason : status_reason((unsigned) status));
    response_date(&r, (int64_t) time(NULL));
    if (type)
        response_field(&r, "Content-Type", type);
    if (length >= 0 && status_has_body((unsigned) status))
        response_number(&r, "Content-Length", (uint64_t) length);
    x->chunked = length < 0 && x->head.minor >= 1;
    if (x->chunked)
        response_field(&r, "Transfer-Encoding", "chunked");
    if (length < 0 && !x->chunked)
        x->close = true;
    response_field(&r, "X-Request-Id", x->id);
    response_field(&r, "X-Content-Type-Options", "nosniff");
    if (x->caller.blame.retry_s > 0)
        response_number(&r, "Retry-After", x->caller.blame.retry_s);
    if (x->close)
        response_field(&r, "Connection", "close");
    else if (x->head.minor == 0)
        response_field(&r, "Connection", "keep-alive");
    len = response_end(&r, err);
    if (len < 0)
        return -1;
    /* The extra lines go before the empty one. */
    len -= 2;
    memcpy(buf + len, x->extra, x->extra_len);
    memcpy(buf + len + (ssize_t) x->extra_len, "\r\n", 2);
    len += (ssize_t) x->extra_len + 2;
    x->begun = true;
    x->status = status;
    if (body) {
        memcpy(buf + len, body, (size_t) length);
        len += (ssize_t) length;
        x->sent += (uint64_t) length;
    }
    return conn_write(x->conn, buf, (size_t) len, app_config(x->app)->body_stall_ms, err);
}

int exchange_begin(struct exchange *x, int status, const char *type, int64_t length,
                   struct err *err)
{
    if (!x->head.keep_alive)
        x->close = true;
    return send_head(x, status, type, length, NULL, err);
}

/* A small chunk leaves in one piece: three would be three packets, and wake the client three times. */
static int write_small(struct exchange *x, const void *data, size_t len, uint64_t stall,
                       struct err *err)
{
    char piece[CHUNK_HEAD_MAX + SMALL_CHUNK + sizeof CHUNK_TAIL];
    size_t at = chunk_head(piece, len);

    memcpy(piece + at, data, len);
    at += len;
    memcpy(piece + at, CHUNK_TAIL, sizeof CHUNK_TAIL - 1);
    return conn_write(x->conn, piece, at + sizeof CHUNK_TAIL - 1, stall, err);
}

int exchange_write(struct exchange *x, const void *data, size_t len, struct err *err)
{
    char piece[CHUNK_HEAD_MAX];
    uint64_t stall = app_config(x->app)->body_stall_ms;

    x->sent += len;
    if (x->head.method == METHOD_HEAD || len == 0)
        return 0;
    if (!x->chunked)
        return conn_write(x->conn, data, len, stall, err);
    if (len <= SMALL_CHUNK)
        return write_small(x, data, len, stall, err);
    if (conn_write(x->conn, piece, chunk_head(piece, len), stall, err) < 0 ||
        conn_write(x->conn, data, len, stall, err) < 0)
        return -1;
    return conn_write(x->conn, CHUNK_TAIL, sizeof CHUNK_TAIL - 1, stall, err);
}

bool exchange_can_splice(const struct exchange *x)
{
    return !x->chunked && !x->conn->tls && x->head.method != METHOD_HEAD;
}

int exchange_splice(struct exchange *x, int pipe_fd, size_t len, struct err *err)
{
    x->sent += len;
    return conn_splice(x->conn, pipe_fd, len, app_config(x->app)->body_stall_ms, err);
}

int exchange_end(struct exchange *x, struct err *err)
{
    x->ended = true;
    if (!x->chunked || x->head.method == METHOD_HEAD)
        return 0;
    return conn_write(x->conn, CHUNK_LAST, sizeof CHUNK_LAST - 1, app_config(x->app)->body_stall_ms,
                      err);
}

static int reply_bytes(struct exchange *x, int status, const char *type, const char *data,
                       size_t len, struct err *err)
{
    bool small = len > 0 && len <= SMALL_BODY && x->head.method != METHOD_HEAD &&
                 status_has_body((unsigned) status);

    if (!x->head.keep_alive)
        x->close = true;
    if (send_head(x, status, type, (int64_t) len, small ? data : NULL, err) < 0 ||
        (!small && exchange_write(x, data, len, err) < 0))
        return -1;
    return exchange_end(x, err);
}

int exchange_reply_text(struct exchange *x, int status, const char *type, const char *text,
                        struct err *err)
{
    return reply_bytes(x, status, type, text, strlen(text), err);
}

int exchange_reply_json(struct exchange *x, int status, json_t *body, struct err *err)
{
    struct dump dump;
    int r;

    if (!body)
        return reply_bytes(x, status, NULL, "", 0, err);
    r = dump_json(&dump, body);
    json_decref(body);
    if (r == 0)
        r = reply_bytes(x, status, "application/json", dump_text(&dump), dump.len, err);
    else
        r = err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    dump_done(&dump);
    return r;
}

void exchange_resumable(struct exchange *x)
{
    atomic_store(&x->conn->resumable, true);
}

int exchange_blame(struct exchange *x, const char *field, const char *rule, const char *layer)
{
    return caller_blame(&x->caller, field, rule, layer);
}

int exchange_blame_status(struct exchange *x, int status)
{
    x->refusal_status = status;
    return -1;
}

int exchange_error_status(const struct exchange *x, const struct err *why)
{
    return x->refusal_status ? x->refusal_status : err_kind_info(why->kind)->http_status;
}

/* What the caller says, or else what was blamed on the way. */
static void add_text(json_t *to, const char *key, const char *said, const char *blamed)
{
    const char *text = said ? said : blamed[0] ? blamed : NULL;

    if (text)
        (void) json_object_set_new(to, key, json_string(text));
}

int exchange_reply_error(struct exchange *x, const struct err *why, const char *field,
                         const char *rule, const char *layer)
{
    const struct err_kind_info *info = err_kind_info(why->kind);
    int status = exchange_error_status(x, why);
    json_t *error = json_pack("{s:s, s:s}", "code", info->name, "message", why->msg);
    struct err ignored;

    if (!error) /* a message that is no UTF-8 */
        error = json_pack("{s:s, s:s}", "code", info->name, "message", info->help);
    add_text(error, "field", field, x->caller.blame.field);
    add_text(error, "rule", rule, x->caller.blame.rule);
    add_text(error, "layer", layer, x->caller.blame.layer);
    return exchange_reply_json(x, status, json_pack("{s:o}", "error", error), &ignored);
}

/* ---- WebSocket ---- */

static int handshake(struct exchange *x, char accept[WS_ACCEPT_SIZE], struct err *err)
{
    unsigned status = 0;

    if (ws_handshake(&x->head, accept, &status, err) == 0)
        return 0;
    x->refusal_status = (int) status;
    if (status == 426)
        (void) exchange_add_header(x, "Sec-WebSocket-Version", "13", &(struct err){ 0 });
    return -1;
}

int exchange_upgrade_check(struct exchange *x, struct err *err)
{
    char accept[WS_ACCEPT_SIZE];

    return handshake(x, accept, err);
}

int exchange_upgrade(struct exchange *x, struct err *err)
{
    char accept[WS_ACCEPT_SIZE], buf[512];
    struct response r;
    ssize_t len;

    if (handshake(x, accept, err) < 0)
        return -1;
    response_begin(&r, buf, sizeof buf, 101);
    response_field(&r, "Upgrade", "websocket");
    response_field(&r, "Connection", "Upgrade");
    response_field(&r, "Sec-WebSocket-Accept", accept);
    response_field(&r, "X-Request-Id", x->id);
    len = response_end(&r, err);
    if (len < 0)
        return -1;
    x->begun = x->ended = x->close = true;
    x->status = 101;
    return conn_write(x->conn, buf, (size_t) len, app_config(x->app)->body_stall_ms, err);
}

/* ---- beginning ---- */

static bool id_text_ok(struct slice id)
{
    if (id.len < 1 || id.len >= 64)
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", id.at[i]))
            return false;
    return true;
}

/* 16 hex digits. The random bytes of many ids are one system call. */
static void make_id(char out[2 * ID_BYTES + 1])
{
    static _Thread_local unsigned char pool[32 * ID_BYTES];
    static _Thread_local size_t left;

    if (left == 0) {
        (void) !getrandom(pool, sizeof pool, GRND_NONBLOCK);
        left = sizeof pool;
    }
    left -= ID_BYTES;
    for (size_t i = 0; i < ID_BYTES; i++) {
        out[2 * i] = "0123456789abcdef"[pool[left + i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[pool[left + i] & 15];
    }
    out[2 * (size_t) ID_BYTES] = '\0';
}

void exchange_init(struct exchange *x, struct app *app, struct conn *conn)
{
    struct slice id = head_get(&x->head, "X-Request-Id");

    x->app = app;
    x->conn = conn;
    x->caller.app = app;
    x->caller.request = x->id;
    x->caller.peer = conn->peer;
    x->caller.fd = conn->fd;
    x->body_left = x->head.content_length;
    x->close = !x->head.keep_alive;
    if (id.at && id_text_ok(id)) {
        (void) slice_copy(id, x->id, sizeof x->id);
        return;
    }
    make_id(x->id);
}
