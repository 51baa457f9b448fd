/* exchange_own.h - the inside of an exchange, for those who make it: exchange*.c, serve.c, auth.c. */
#ifndef COVE_API_EXCHANGE_OWN_H
#define COVE_API_EXCHANGE_OWN_H

#include "api/app.h"
#include "api/conn.h"
#include "api/exchange.h"
#include "api/surface.h"
#include "base/parse.h"
#include "http/chunk.h"

#define EXCHANGE_PARAMS 6

struct exchange {
    struct app *app;
    struct conn *conn;
    struct head head;
    char head_text[HEAD_MAX]; /* what the head's slices point into */
    const struct route *route;
    const struct surface *surface; /* NULL until one is found */
    struct caller caller;
    bool visitor; /* nobody we know: the caller is the owner of the public port that was asked for */
    char id[64];
    struct {
        const char *name;
        const char *value;
    } params[EXCHANGE_PARAMS];
    size_t param_count;
    char arena[32768]; /* decoded texts */
    size_t arena_used;

    uint64_t body_limit, body_left, body_read;
    bool continued;
    bool eager; /* a read of the body does not wait: ERR_TIMEOUT says that nothing is there yet */
    struct chunk chunk;
    char chunk_buf[8192];
    size_t chunk_at, chunk_have;
    struct exchange_decoder *decoder; /* NULL: the body is taken as it is */

    char extra[2048]; /* header lines of the handler's */
    size_t extra_len;
    char blame_field[64], blame_rule[64], blame_layer[16];
    char used[ID_LEN + 1]; /* the sandbox that this request is for, as use.h counts it; "" without */
    int refusal_status; /* a status that the error's kind does not say */
    int status;
    bool begun, ended, chunked, close;
    uint64_t sent;
};

/* After the head was parsed into x->head. */
void exchange_init(struct exchange *x, struct app *app, struct conn *conn);
/* Frees what the body's decoding held. */
void exchange_done(struct exchange *x);
/* Reads what the handler left of the body. -1: too much, or broken: the connection must close. */
int exchange_drain(struct exchange *x);

#endif
