/* caller.h - asks an HTTP server over one connection that stays open, as a client library would.
 *
 * Only what the measured servers send: answers with a Content-Length. One thread at a time. */
#ifndef COVE_BENCH_CALLER_H
#define COVE_BENCH_CALLER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define CALLER_ROOM 65536 /* longest answer, head included */

struct caller {
    int fd;
    uint16_t port;
    char *room; /* the last answer; its body is NUL-terminated */
    const char *body;
    size_t body_len;
};

/* Connects to 127.0.0.1. */
int caller_open(struct caller *caller, uint16_t port, struct err *err);
void caller_close(struct caller *caller);

/* One request and its answer. `body` NULL: none, else JSON. Any other status than the wanted one is an error that says
 * what was answered. */
int caller_ask(struct caller *caller, const char *method, const char *path, const char *body,
               int status, struct err *err);

/* The text of a member of the answer's body, found by its name: enough for ids. */
int caller_text(const struct caller *caller, const char *name, char *out, size_t size,
                struct err *err);

#endif
