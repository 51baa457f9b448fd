/* exchange.h - one request and its answer, in a thread of its own: blocking, straight-line.
 *
 * A handler reads what it needs of the request, then answers exactly once: with JSON, with an error, or
 * with a stream. It returns 0 when it has answered; or -1 with err, and the error is answered for it (or,
 * if the answer had begun, the connection is cut, so that a client sees that it is not whole).
 *
 * Owns:    the parsed head and what is left of the body. Texts given out live as long as the exchange. */
#ifndef COVE_SERVER_SERVE_EXCHANGE_H
#define COVE_SERVER_SERVE_EXCHANGE_H

#include "base/err.h"
#include "http/head.h"
#include "server/guard/caller.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct app;
struct conn;
struct exchange;

struct app *exchange_app(struct exchange *x);
/* Who asks: for operations, quota and audit. Filled by auth.c before a handler runs (SCOPE_NONE routes have none: tenant
 * is ""). Lives as long as the exchange. */
struct caller *exchange_caller(struct exchange *x);
const struct head *exchange_head(const struct exchange *x);
const char *exchange_id(const struct exchange *x); /* X-Request-Id: the client's, or made */

/* A ":name" segment of the route, decoded, or what a surface kept; "" if there is none. */
const char *exchange_param(const struct exchange *x, const char *name);
/* For surfaces, before a route is looked for. The value is copied; the name is not. */
int exchange_set_param(struct exchange *x, const char *name, const char *value);
/* Another value for a segment that the route has: the name is resolved. */
int exchange_change_param(struct exchange *x, const char *name, const char *value);
/* For surfaces that know who asks by something else than a key. */
void exchange_set_caller(struct exchange *x, const char *tenant, const char *key_id,
                         enum scope scope);
/* An unknown person asks a port that is public: counted apart from what its tenant does (quota.h, slots.h). */
void exchange_set_visitor(struct exchange *x);
/* Of the query, decoded; NULL if it is not there. */
const char *exchange_query(struct exchange *x, const char *name);
/* For what must not be overlooked: a value that cannot be read, or is there twice, is an error. *ret: NULL if it is not there. */
int exchange_query_strict(struct exchange *x, const char *name, const char **ret, struct err *err);
/* NUL-terminated copy of a header's value; NULL if it is not there. */
const char *exchange_header(struct exchange *x, const char *name);

/* The body, piece by piece: count, 0 at its end, -1. Sends 100 Continue when the client waits for it. More than
 * the route's limit is ERR_TOO_BIG. */
ssize_t exchange_read(struct exchange *x, void *out, size_t size, struct err *err);
/* Whether what is left of the body can go into a pipe as it is, by exchange_pipe: as exchange_read, into a pipe that is empty. */
bool exchange_can_pipe(const struct exchange *x);
ssize_t exchange_pipe(struct exchange *x, int pipe_fd, size_t most, struct err *err);
/* Before the first read, by a handler that wants the content and not its encoding: undoes the request's
 * Content-Encoding, which may be gzip (415 otherwise). The route's limit then counts decoded bytes; what does not
 * decode is ERR_INVALID, a bomb ERR_TOO_BIG. */
int exchange_accept_encoding(struct exchange *x, struct err *err);
/* The whole body, perhaps gzip; the caller's to free. Not NUL-terminated. */
int exchange_text(struct exchange *x, char **ret, size_t *ret_len, struct err *err);
/* The whole body as a JSON object, perhaps gzip; strict, duplicates refused. An empty body is an empty object. */
int exchange_json(struct exchange *x, json_t **ret, struct err *err);
/* The same of a text that was read already, which is not empty. */
int exchange_json_text(const char *text, size_t len, json_t **ret, struct err *err);

/* Before an answer that is made in memory as a whole, after the body was read: so many bytes may be in it. ERR_TOO_MANY, as bodies.h; what is
 * small is not counted. Given back at the end of the request. */
int exchange_take_room(struct exchange *x, uint64_t bytes, struct err *err);
/* Before `size` bytes of a body are in memory, for who reads one piece by piece: likewise. */
int exchange_body_room(struct exchange *x, uint64_t size, struct err *err);
/* Before the end of the request, by who has let go of all that. */
void exchange_give_room(struct exchange *x);

/* A sentence in the status line, for clients that show nothing else of a refusal. It must live until the answer has begun. */
void exchange_set_reason(struct exchange *x, const char *sentence);

/* Answers. Header lines first, if any; then one of reply_*, or begin, write …, end. */
int exchange_add_header(struct exchange *x, const char *name, const char *value, struct err *err);
/* The reference to body is taken. NULL: no content (204 with status 204). */
int exchange_reply_json(struct exchange *x, int status, json_t *body, struct err *err);
int exchange_reply_text(struct exchange *x, int status, const char *type, const char *text,
                        struct err *err);
/* {"error":{"code","message","field"?,"rule"?,"layer"?}} with the kind's status; field, rule and layer
 * may be NULL. */
int exchange_reply_error(struct exchange *x, const struct err *why, const char *field,
                         const char *rule, const char *layer);

/* As caller_blame, for the answer that is made of the error. */
int exchange_blame(struct exchange *x, const char *field, const char *rule, const char *layer);
/* A status that the error's kind does not say, for the answer that is made of it. Returns -1. */
int exchange_blame_status(struct exchange *x, int status);
/* The status that an answer made of this error has. */
int exchange_error_status(const struct exchange *x, const struct err *why);

/* length -1: not known, sent in chunks; each write is flushed. */
int exchange_begin(struct exchange *x, int status, const char *type, int64_t length,
                   struct err *err);
int exchange_write(struct exchange *x, const void *data, size_t len, struct err *err);
/* Whether bytes can go from a pipe to the client as they are, by exchange_splice. */
bool exchange_can_splice(const struct exchange *x);
int exchange_splice(struct exchange *x, int pipe_fd, size_t len, struct err *err);
int exchange_end(struct exchange *x, struct err *err);
bool exchange_begun(const struct exchange *x);

/* From here on the answer may be cut when the server is to end: its client can continue with the next one, and misses
 * nothing. For long answers about what continues by itself. */
void exchange_resumable(struct exchange *x);

/* To poll for the client's end while something else is awaited: readable means gone (or pipelining). */
int exchange_fd(const struct exchange *x);
bool exchange_gone(struct exchange *x);

/* 101 Switching Protocols to a WebSocket; from then on the frames are the caller's (http/ws.h), with
 * conn_read and conn_write on exchange_conn(). The connection closes when the handler returns. */
int exchange_upgrade(struct exchange *x, struct err *err);
/* Only whether the request asks for one, and well: for handlers that start something before they upgrade. */
int exchange_upgrade_check(struct exchange *x, struct err *err);
struct conn *exchange_conn(struct exchange *x);

#endif
