/* relay_own.h - the inside of a relay, for relay.c (the loop), relay_head.c (heads) and relay_pipe.c (upgrades). */
#ifndef COVE_SERVER_PREVIEW_RELAY_OWN_H
#define COVE_SERVER_PREVIEW_RELAY_OWN_H

#include "http/reply.h"
#include "server/preview/relay.h"
#include "server/serve/exchange_own.h"

#define RELAY_PIECE 65536 /* of an answer, at once */
#define RELAY_UP    32768 /* of a request, at once; its head fits with what is added */
#define RELAY_TAIL  8     /* CHUNK_TAIL and CHUNK_LAST */

struct relay {
    struct exchange *x;
    const struct relay_ask *ask;
    int fd; /* the port; MSG_DONTWAIT */

    /* To the sandbox: what is in `up` is on its way. */
    size_t up_at, up_len;
    bool body_over; /* the client has sent all */
    bool up_over;   /* no more is wanted: all sent, or the server does not read on */

    /* To the client: first what is left of `head`, then of `out`, a part of `in`. */
    size_t head_at, head_len;
    const char *out;
    size_t out_len;
    size_t in_len;  /* of a head that is not complete */
    bool in_unread; /* some of it was not looked at */
    bool answered;  /* the final head is there */
    bool down_over; /* all of the answer was read */
    bool switched;  /* 101: from now on a pipe */
    bool told_go;   /* 100 Continue was passed on */
    bool deaf;      /* the client has ended its side and something is unread: no poll for its end */
    unsigned interim; /* 1xx so far */
    uint64_t left;    /* of REPLY_LENGTH */
    struct chunk chunk;
    uint64_t moved_ms, head_ms; /* the last byte either way; the first one of a head */
    struct reply reply;

    char up[RELAY_UP];
    char head[REPLY_MAX + 8192];
    char in[CHUNK_HEAD_MAX + RELAY_PIECE + RELAY_TAIL];
};

/* What is read from the port goes here: room for a chunk's head before it, and for its tail behind. */
static inline char *relay_base(struct relay *r)
{
    return r->in + CHUNK_HEAD_MAX;
}

/* The request's head, into r->up. */
int relay_request_head(struct relay *r, struct err *err);
/* The answer's head, into r->head; x->chunked and x->close say how the body goes. */
int relay_answer_head(struct relay *r, struct err *err);
/* The same for 1xx and 101: no body, and for 101 the upgrade. */
int relay_interim_head(struct relay *r, struct err *err);

/* One step of writing: 1 something moved, 0 nothing, -1. */
int relay_send_down(struct relay *r, struct err *err);
int relay_send_up(struct relay *r);
/* Nothing moved: waits for what each side wants. */
int relay_wait(struct relay *r, short port_events, short client_events, struct err *err);

/* After 101: raw bytes both ways, until both sides have ended or one is gone. */
int relay_pipe(struct relay *r, struct err *err);

#endif
