/* exchange_own.h - the inside of an exchange, for those who make it: exchange*.c, serve.c, auth.c. */
#ifndef COVE_SERVER_SERVE_EXCHANGE_OWN_H
#define COVE_SERVER_SERVE_EXCHANGE_OWN_H

#include "base/parse.h"
#include "http/chunk.h"
#include "server/app/app.h"
#include "server/guard/live.h"
#include "server/serve/conn.h"
#include "server/serve/exchange.h"
#include "server/serve/surface.h"

#define EXCHANGE_PARAMS 6

struct exchange {
    struct app *app;
    struct conn *conn;
    struct head head;
    const struct route *route;
    const struct surface *surface; /* NULL until one is found */
    struct caller caller;
    struct live live; /* of the key that the request was made with */
    char id[64];
    struct {
        const char *name;
        const char *value;
    } params[EXCHANGE_PARAMS];
    size_t param_count;
    size_t arena_used;

    uint64_t body_limit, body_left, body_read;
    uint64_t body_room; /* of bodies.h, for a large one, and for a large answer */
    bool continued;
    bool eager; /* a read of the body does not wait: ERR_TIMEOUT says that nothing is there yet */
    struct chunk chunk;
    size_t chunk_at, chunk_have;
    struct exchange_decoder *decoder; /* NULL: the body is taken as it is */

    size_t extra_len;
    int refusal_status; /* a status that the error's kind does not say */
    const char *reason; /* of the status line; NULL: the status's own */
    int status;
    bool begun, ended, chunked, close;
    uint64_t sent;

    /* Room: what is in it is said above, and it is not cleared between requests. */
    char head_text[HEAD_MAX]; /* what the head's slices point into */
    char arena[32768];        /* decoded texts */
    char chunk_buf[8192];
    char extra[2048]; /* header lines of the handler's */
};

/* After the head was parsed into x->head. */
void exchange_init(struct exchange *x, struct app *app, struct conn *conn);
/* Frees what the body's decoding held, and gives back the room of a large one. */
void exchange_done(struct exchange *x);
/* Reads what the handler left of the body. -1: too much, or broken: the connection must close. */
int exchange_drain(struct exchange *x);

#endif
