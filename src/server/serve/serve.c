#include "server/serve/serve.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "http/response.h"
#include "http/url.h"
#include "server/life/use.h"
#include "server/serve/auth.h"
#include "server/serve/exchange_own.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define REFUSAL_STALL_MS 1000
#define REFUSAL_DROP_MAX 65536
#define LINGER_MS        5000
#define LINGER_IDLE_MS   1000

/* Unread bytes would make the close a reset, which can overtake the answer. */
static void drop_received(struct conn *conn)
{
    char scratch[4096];

    (void) shutdown(conn->fd, SHUT_WR);
    for (size_t n = 0; n < REFUSAL_DROP_MAX; n += sizeof scratch)
        if (recv(conn->fd, scratch, sizeof scratch, MSG_DONTWAIT) <= 0)
            return;
}

void serve_refusal(struct conn *conn, uint64_t stall_ms, int status, const char *code,
                   const char *sentence)
{
    char head[512], body[256];
    struct response r;
    struct err err;
    int len = snprintf(body, sizeof body, "{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}", code,
                       sentence);
    ssize_t n;

    response_begin(&r, head, sizeof head, (unsigned) status);
    response_field(&r, "Content-Type", "application/json");
    response_number(&r, "Content-Length", (uint64_t) len);
    response_field(&r, "Connection", "close");
    if (status == 503)
        response_field(&r, "Retry-After", "1");
    n = response_end(&r, &err);
    if (n > 0 && conn_write(conn, head, (size_t) n, stall_ms, &err) == 0)
        (void) conn_write(conn, body, (size_t) len, stall_ms, &err);
    drop_received(conn);
}

/* ---- routes ---- */

/* One segment of the pattern against one of the path. */
static bool segment_matches(struct exchange *x, struct slice want, struct slice got)
{
    struct err ignored;
    size_t room = sizeof x->arena - x->arena_used;
    char *out = x->arena + x->arena_used;
    ssize_t n;

    if (want.len == 0 || want.at[0] != ':')
        return want.len == got.len && memcmp(want.at, got.at, want.len) == 0;
    n = url_decode(got, URL_UTF8, out, room, &ignored);
    if (n < 1 || x->param_count == EXCHANGE_PARAMS)
        return false;
    x->arena_used += (size_t) n + 1;
    x->params[x->param_count].name = want.at + 1;
    x->params[x->param_count++].value = out;
    return true;
}

static bool path_matches(struct exchange *x, struct slice pattern, const struct url_path *path)
{
    struct slice rest = { pattern.at + 1, pattern.len - 1 };
    size_t used = x->arena_used, kept = x->param_count;
    unsigned i = 0;

    while (rest.len > 0) {
        struct slice want = rest;

        if (!slice_cut(&rest, '/', &want)) {
            want = rest;
            rest.len = 0;
        }
        if (i >= path->count || !segment_matches(x, want, path->segments[i++])) {
            x->arena_used = used;
            x->param_count = kept;
            return false;
        }
    }
    if (i == path->count)
        return true;
    x->arena_used = used;
    x->param_count = kept;
    return false;
}

/* A pattern with "*" behind its last slash: the segments before are matched as ever, the rest is not looked at. */
static bool start_matches(struct exchange *x, const char *pattern, struct slice raw)
{
    size_t len = strlen(pattern), slashes = 0, n = 0;
    struct slice rest = { raw.at, raw.len };
    char copy[HEAD_LINE_MAX + 1];
    struct url_path path;
    struct err ignored;

    for (const char *c = pattern; *c; c++)
        slashes += *c == '/';
    while (rest.len > 0 && (n += *rest.at == '/') < slashes) {
        rest.at++;
        rest.len--;
    }
    if (n + 1 < slashes ||
        url_path_split((struct slice){ raw.at, raw.len - rest.len }, &path, &ignored) < 0 ||
        path.dots || path.hidden || !path_matches(x, (struct slice){ pattern, len - 2 }, &path))
        return false;
    return slice_copy(rest.len > 0 ? rest : slice_of("/"), copy, sizeof copy) &&
           exchange_set_param(x, "*", copy) == 0;
}

/* Most routes begin with another letter than the path, and need no closer look. */
static bool may_match(const struct exchange *x, const char *pattern)
{
    struct slice raw = head_path(&x->head);

    return pattern[1] == ':' || pattern[1] == '*' || pattern[1] == (raw.len > 1 ? raw.at[1] : '\0');
}

static bool route_matches(struct exchange *x, const char *pattern, const struct url_path *path)
{
    size_t len;

    if (!may_match(x, pattern))
        return false;
    len = strlen(pattern);
    if (pattern[len - 1] == '*')
        return start_matches(x, pattern, head_path(&x->head));
    /* "DELETE /v1/pools/" lacks the name behind the slash: "all of them" was not asked for. */
    if (path && path->slash && x->head.method == METHOD_DELETE)
        return false;
    return path && path_matches(x, (struct slice){ pattern, len }, path);
}

/* The names of params end at the next slash of the pattern: copy them out, so that handlers can use strcmp. */
static void end_names(struct exchange *x, size_t from)
{
    for (size_t i = from; i < x->param_count; i++) {
        size_t len = strcspn(x->params[i].name, "/");
        char *out = x->arena + x->arena_used;

        memcpy(out, x->params[i].name, len);
        out[len] = '\0';
        x->arena_used += len + 1;
        x->params[i].name = out;
    }
}

/* Methods that a path takes, for 405. */
struct allowed {
    char text[128];
};

static void allow(struct allowed *allowed, enum method method)
{
    size_t len = strlen(allowed->text);

    if (len + 12 < sizeof allowed->text)
        (void) snprintf(allowed->text + len, sizeof allowed->text - len, "%s%s", len ? ", " : "",
                        method_name(method));
}

static bool take_route(struct exchange *x, const struct surface *surface,
                       const struct url_path *path, struct allowed *allowed)
{
    enum method method = x->head.method == METHOD_HEAD ? METHOD_GET : x->head.method;

    for (size_t i = 0; i < surface->route_count; i++) {
        const struct route *route = &surface->routes[i];
        size_t kept = x->param_count;

        if (!route_matches(x, route->path, path))
            continue;
        if (route->method == method || route->method == METHOD_ANY) {
            end_names(x, kept);
            x->surface = surface;
            x->route = route;
            return true;
        }
        x->param_count = kept;
        allow(allowed, route->method);
    }
    return false;
}

static const struct surface *find_claimer(struct exchange *x)
{
    for (size_t i = 0; i < surface_count; i++)
        if (surfaces[i]->claims && surfaces[i]->claims(x))
            return surfaces[i];
    return NULL;
}

/* An encoded slash is for surfaces that take one: to others such a path has no segments. */
static const struct url_path *path_for(const struct surface *surface, const struct url_path *path)
{
    return path && path->hidden && !surface->slashes ? NULL : path;
}

static bool search_routes(struct exchange *x, const struct url_path *path, struct allowed *allowed)
{
    if (x->surface)
        return take_route(x, x->surface, path_for(x->surface, path), allowed);
    for (size_t i = 0; i < surface_count; i++)
        if (!surfaces[i]->claims &&
            take_route(x, surfaces[i], path_for(surfaces[i], path), allowed))
            return true;
    return false;
}

/* No route has this path: the surface whose routes begin as the path does says so in its own form. */
static const struct surface *likely_surface(const struct url_path *path)
{
    if (path->count == 0)
        return NULL;
    for (size_t i = 0; i < surface_count; i++)
        for (size_t j = 0; !surfaces[i]->claims && j < surfaces[i]->route_count; j++) {
            struct slice rest = slice_of(surfaces[i]->routes[j].path + 1), word;

            if (!slice_cut(&rest, '/', &word))
                word = rest;
            if (word.len == path->segments[0].len &&
                memcmp(word.at, path->segments[0].at, word.len) == 0)
                return surfaces[i];
        }
    return NULL;
}

static int find_route(struct exchange *x, struct err *err)
{
    struct allowed allowed = { "" };
    struct url_path path;

    if (x->surface && x->surface->all) {
        x->route = x->surface->all;
        return 0;
    }
    if (url_path_split(head_path(&x->head), &path, err) < 0)
        return search_routes(x, NULL, &allowed) ? 0 : -1;
    if (search_routes(x, path.dots ? NULL : &path, &allowed))
        return 0;
    if (!x->surface)
        x->surface = likely_surface(&path);
    if (path.dots || path.hidden)
        return err_set(err, ERR_INVALID, "the path has '..' or an encoded slash in it");
    if (allowed.text[0]) {
        x->refusal_status = 405;
        if (exchange_add_header(x, "Allow", allowed.text, err) < 0)
            return -1;
        return err_set(err, ERR_INVALID, "this path takes %s", allowed.text);
    }
    x->refusal_status = 404;
    return err_set(err, ERR_NO_PATH, "unknown path");
}

/* ---- one request ---- */

static int handle(struct exchange *x, struct err *err)
{
    int r = 0;

    x->surface = find_claimer(x);
    if (x->surface && x->surface->greet)
        r = x->surface->greet(x, err);
    if (r != 0)
        return r < 0 ? -1 : 0;
    if (find_route(x, err) < 0)
        return -1;
    x->body_limit = x->route->body_limit;
    if (auth_check(x, err) < 0 || (x->surface->settle && x->surface->settle(x, err) < 0))
        return -1;
    return x->route->handler(x, err);
}

static void refuse(struct exchange *x, const struct err *why)
{
    if (x->surface && x->surface->refuse)
        (void) x->surface->refuse(x, why);
    else
        (void) exchange_reply_error(x, why, NULL, NULL, NULL);
}

/* The client is still sending what will not be read. Closing now would reset the connection, and the reset could
 * overtake the answer: so our side ends first, and the rest is dropped for a while. */
static void linger(struct exchange *x)
{
    uint64_t until = io_now_ms() + LINGER_MS;
    struct pollfd p = { .fd = x->conn->fd, .events = POLLIN };
    char scratch[16384];
    ssize_t n = 1;

    if (x->head.body == HEAD_NO_BODY || (x->head.body == HEAD_LENGTH && x->body_left == 0) ||
        (x->head.body == HEAD_CHUNKED && chunk_done(&x->chunk)))
        return;
    (void) shutdown(x->conn->fd, SHUT_WR);
    while (n > 0 && io_now_ms() < until && poll(&p, 1, LINGER_IDLE_MS) == 1)
        n = recv(x->conn->fd, scratch, sizeof scratch, MSG_DONTWAIT);
}

/* An answer that has begun and will not be whole: the client must see that, too. Chunks without a last one and bytes that are
 * missing say so; where the end of the connection is the end of the answer (HTTP/1.0), only a reset does. */
static void cut(struct exchange *x, const struct err *why)
{
    struct linger now = { .l_onoff = 1 };
    char quoted[2 * ERR_MSG_MAX];

    x->close = true;
    if (x->head.minor == 0 && !x->chunked)
        (void) setsockopt(x->conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    if (why->kind != ERR_UNAVAILABLE && why->kind != ERR_INTERNAL) /* not just gone; told below */
        log_line(LOG_INFO, "request=%s cut short: %s", x->id,
                 log_quote(quoted, sizeof quoted, why->msg));
}

/* true: the connection can take another request. */
static bool serve_exchange(struct exchange *x)
{
    uint64_t begin = io_now_us();
    char path[160], quoted[160];
    struct err err = { 0 };

    if (handle(x, &err) < 0) {
        if (!x->begun)
            refuse(x, &err);
        else if (!x->ended)
            cut(x, &err);
        atomic_fetch_add(&x->app->refused, 1);
        if (err.kind == ERR_INTERNAL)
            log_line(LOG_ERROR, "request=%s failed: %s", x->id, err.msg);
    }
    atomic_fetch_add(&x->app->requests, 1);
    (void) slice_copy((struct slice){ head_path(&x->head).at, head_path(&x->head).len < 150
                                                                  ? head_path(&x->head).len
                                                                  : 150 },
                      path, sizeof path);
    log_line(LOG_DEBUG,
             "request=%s tenant=%s method=%s path=%s status=%d bytes=%" PRIu64 " us=%" PRIu64,
             x->id, x->caller.tenant[0] ? x->caller.tenant : "-", method_name(x->head.method),
             log_quote(quoted, sizeof quoted, path), x->status, x->sent, io_now_us() - begin);
    use_switch(x->caller.used, "");
    live_end(&x->live);
    exchange_done(x);
    if (!x->close && x->ended && exchange_drain(x) == 0)
        return true;
    if (x->ended)
        linger(x);
    return false;
}

/* The connection cannot continue: it is unknown where the next request begins. */
static bool refuse_bytes(struct conn *conn, int status, const struct err *err)
{
    char sentence[ERR_MSG_MAX];

    /* What the parser says may quote the client: no quotes or controls into the JSON. */
    (void) snprintf(sentence, sizeof sentence, "%s", err->msg);
    for (char *c = sentence; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char) *c < 0x20 || (unsigned char) *c > 0x7e)
            *c = '?';
    serve_refusal(conn, REFUSAL_STALL_MS, status ? status : 400, "bad_request", sentence);
    return false;
}

/* Takes the head from the buffer into the exchange, whose slices point into its own copy. */
static void adopt_head(struct exchange *x, struct conn *conn)
{
    size_t len = x->head.len;

    memcpy(x->head_text, conn->buf, len);
    head_move(&x->head, x->head_text);
    conn->have -= len;
    memmove(conn->buf, conn->buf + len, conn->have);
}

_Static_assert(CONN_BUFFER >= PROXY_MAX, "a preamble fits into the buffer");

/* 1: who the client is is known, 0: not yet, -1: the connection must close. */
static int serve_preamble(struct conn *conn)
{
    struct err err;
    int rc = conn_preamble(conn, &err);

    if (!conn->head_begun)
        conn->since_ms = io_now_ms();
    conn->head_begun = rc == 0;
    /* A client that begins with TLS would not understand a plain answer. */
    if (rc < 0 && !conn->tls && err.kind == ERR_INVALID)
        (void) refuse_bytes(conn, 400, &err);
    return rc;
}

bool serve_connection(struct app *app, struct conn *conn)
{
    auto_free struct exchange *x = NULL;
    bool answered = false;

    if (!conn->buf && !(conn->buf = malloc(CONN_BUFFER)))
        return false;
    if (conn->preamble) {
        int rc = serve_preamble(conn);

        if (rc <= 0)
            return rc == 0;
    }
    for (;;) {
        ssize_t n = 0;
        int rc;
        struct err err;

        if (!x && !(x = malloc(sizeof *x)))
            return false;
        memset(x, 0, offsetof(struct exchange, head_text));
        head_init(&x->head);
        rc = conn->have > 0 ? head_feed(&x->head, conn->buf, conn->have, &err) : 0;
        if (rc == 0) {
            n = conn->have < CONN_BUFFER
                    ? conn_recv(conn, conn->buf + conn->have, CONN_BUFFER - conn->have)
                    : 0;
            if (n < 0 && errno == EAGAIN) {
                if (answered && conn->have == 0 && conn_linger(conn))
                    continue;
                break;
            }
            if (n <= 0)
                return false;
            if (!conn->head_begun)
                conn->since_ms = io_now_ms();
            conn->head_begun = true;
            conn->have += (size_t) n;
            continue;
        }
        if (rc < 0)
            return refuse_bytes(conn, x->head.status, &err);
        conn->head_begun = false;
        adopt_head(x, conn);
        exchange_init(x, app, conn);
        if (!serve_exchange(x))
            return false;
        conn->since_ms = io_now_ms();
        answered = true;
        /* As a rule the next request is not there yet: a read before it comes would be in vain. */
        if (conn->have == 0 && conn_silent(conn))
            break;
    }
    if (conn->have == 0) { /* idle: no buffer */
        free(conn->buf);
        conn->buf = NULL;
    }
    return true;
}
