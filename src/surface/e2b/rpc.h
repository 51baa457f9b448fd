/* rpc.h - Connect RPC over HTTP/1.1 with JSON, as E2B's SDKs speak it to envd.
 *
 * A method is a function on JSON messages; a handler of the routes table is one line that hands it to rpc_serve_*. What
 * a method returns -1 with becomes the error that an SDK expects: of unary calls the HTTP status and {"code","message"};
 * of streams an end frame behind a 200. A sandbox that is gone is not one of these: 502 before the answer began,
 * and a cut answer afterwards, since that is what SDKs take for the end of a sandbox's life.
 *
 * Callers: handlers of envd.c, one thread per exchange. */
#ifndef COVE_SURFACE_E2B_RPC_H
#define COVE_SURFACE_E2B_RPC_H

#include "http/envelope.h"
#include "server/ops/ops.h"
#include "server/serve/exchange.h"

#define RPC_MESSAGE_MAX (4u * 1024 * 1024) /* of one message of a client */

/* ---- unary ---- */

/* *ret: the answer, taken; left NULL it is {}. One that is too large to be held is sent by the method itself. */
typedef int rpc_unary(struct exchange *x, json_t *in, json_t **ret, struct err *err);
int rpc_serve_unary(struct exchange *x, rpc_unary *method, struct err *err);

/* ---- streams ---- */

struct rpc {
    struct exchange *x;
    struct ops ops;
    const char *keepalive; /* set by the method: the JSON message for long silences; NULL: none */
    uint64_t keepalive_ms; /* what the client asked for */
    uint64_t timeout_ms;   /* what the client allows for the whole call; 0: any time */
    uint64_t deadline_ms;  /* of rpc_wait, as io_now_ms counts; 0: none */
    uint64_t sent_ms;      /* the last message */
    bool gone;             /* the client is gone */
    /* what was read and is not used yet */
    struct envelope envelope;
    char *in;
    size_t at, have;
};

/* `in` is borrowed. 0: the stream ends well. */
typedef int rpc_stream(struct rpc *rpc, json_t *in, struct err *err);

/* The server streams: exactly one message comes in, any number goes out by rpc_send. */
int rpc_serve_stream(struct exchange *x, rpc_stream *method, struct err *err);
/* The client streams: `in` is NULL, messages come by rpc_next, one goes out by rpc_send. */
int rpc_serve_input(struct exchange *x, rpc_stream *method, struct err *err);

/* 1 with a message, for the caller to json_decref; 0 behind the last. */
int rpc_next(struct rpc *rpc, json_t **ret, struct err *err);

/* Sent at once. The reference is taken. */
int rpc_send(struct rpc *rpc, json_t *message, struct err *err);
/* A message that is JSON already: `len` bytes behind ENVELOPE_HEAD bytes of room, which are written here. */
int rpc_send_room(struct rpc *rpc, char *room, size_t len, struct err *err);

/* Until fd has one of `events` (1), sending keepalives meanwhile. -1: ERR_TIMEOUT at the deadline, ERR_UNAVAILABLE
 * when the client went away. */
int rpc_wait(struct rpc *rpc, int fd, short events, struct err *err);

/* ---- errors ---- */

struct rpc_code {
    const char *name;
    int http_status;
};
/* Never NULL. */
const struct rpc_code *rpc_code_of(uint32_t err_kind);

/* ---- rpc_json.c: messages ---- */

/* The user of `Authorization: Basic`; *ret NULL without one: the sandbox's own. Whether there is such a user, the
 * sandbox says: ERR_NO_USER is then unauthenticated, "invalid username: 'x'". */
int rpc_user(struct exchange *x, const char **ret, struct err *err);

/* A field by its lowerCamelCase name, or in snake_case; NULL if it is absent or null. */
json_t *rpc_field(json_t *message, const char *name);

/* Absent: untouched. A value of another type is ERR_INVALID, by the field's name. Texts and JSON are borrowed. */
int rpc_text(json_t *message, const char *name, const char **ret, struct err *err);
int rpc_bool(json_t *message, const char *name, bool *ret, struct err *err);
/* A number, or one in a text. */
int rpc_int(json_t *message, const char *name, int64_t least, int64_t most, int64_t *ret,
            struct err *err);
int rpc_object(json_t *message, const char *name, json_t **ret, struct err *err);
int rpc_array(json_t *message, const char *name, json_t **ret, struct err *err);
/* Base64 of either alphabet, padded or not. *ret is the caller's to free; absent: untouched. */
int rpc_bytes(json_t *message, const char *name, uint8_t **ret, size_t *ret_len, struct err *err);

struct rpc_name {
    const char *name;
    int number;
};
/* By name or by number. */
int rpc_enum(json_t *message, const char *name, const struct rpc_name *rows, size_t count, int *ret,
             struct err *err);

/* int64 as JSON has it: a text. */
json_t *rpc_int64(int64_t value);

#endif
