/* call.h - one request to a server and its answer, over a connection of its own.
 *
 *   call_open(&call, remote, &request, &err);     the head, and the body if it is short
 *   call_send(&call, data, len, &err) …           a long body, in chunks; then call_sent
 *   call_answer(&call, &err);                     call.status
 *   call_read(&call, out, size, &err) …           the body, decoded
 *   call_close(&call);
 *
 * Owns:    the connection and its buffer.
 * Callers: remote/ask.c, verbs that stream.
 * Never:   trusts the server: heads and chunks are parsed strictly (http/reply.h, http/chunk.h), and bounded. */
#ifndef COVE_REMOTE_CALL_H
#define COVE_REMOTE_CALL_H

#include "http/chunk.h"
#include "http/reply.h"
#include "remote/remote.h"

#include <stddef.h>
#include <sys/types.h>

#define CALL_BUFFER 65536

struct call_request {
    const char *method, *path; /* path: with its query, encoded, without the prefix */
    const char *accept;        /* NULL: application/json */
    const char *type;          /* of the body; NULL: application/json */
    const char *extra;         /* header lines with CRLF each; NULL: none */
    const void *body;
    size_t body_len;
    bool streams; /* the body comes by call_send */
};

struct call {
    int fd;
    struct reply reply;
    int status;
    char *buf; /* CALL_BUFFER */
    size_t at, have;
    struct chunk chunk;
    uint64_t left; /* of a body with a length */
    bool done;     /* the body's end was read */
    bool dead;     /* the server takes no more of the request: its answer says why */
};
#define CALL_NONE ((struct call){ .fd = -1 })

int call_open(struct call *call, const struct remote *remote, const struct call_request *request,
              struct err *err);
int call_send(struct call *call, const void *data, size_t len, struct err *err);
int call_sent(struct call *call, struct err *err);
int call_answer(struct call *call, struct err *err);
/* Of the answer's head; false: it is not there, or does not fit. */
bool call_header(const struct call *call, const char *name, char *out, size_t size);
/* Count, 0 at the end, -1. */
ssize_t call_read(struct call *call, void *out, size_t size, struct err *err);
void call_close(struct call *call);

/* All of the body, NUL-terminated; the caller's to free. More than `most` is ERR_TOO_BIG. */
int call_text(struct call *call, size_t most, char **ret, size_t *ret_len, struct err *err);

/* The request's head into a buffer; its length, or 0: it does not fit. For sessions, which continue otherwise. */
size_t call_head(const struct remote *remote, const struct call_request *request, char *out,
                 size_t size);
/* More bytes into the buffer: 1, 0 at the end, -1. */
int call_fill(struct call *call, struct err *err);

#endif
