/* conn.h - connections to callers: frames in, frames out, never waiting for anybody.
 *
 * Owns:    the descriptor, one incoming frame and the records queued to go out. Incoming memory
 * grows with the bytes that really came; outgoing memory holds a frame or two, because more is made
 *          only when it is empty (kind->fill) and output bytes go out straight from their ring.
 * Life:    conn_new .. conn_close. A closed conn stays readable until conns_sweep at the end of the
 * turn, so that callers up the stack can still see `closed`. Callers: door.c makes them; ops.c and
 * attach.c give them their kind. */
#ifndef COVE_AGENT_CORE_CONN_H
#define COVE_AGENT_CORE_CONN_H

#include "agent/core/loop.h"
#include "wire/agent.h"
#include "wire/frame.h"

#include <sys/types.h>
#include <sys/uio.h>

#define CONN_OUTSIDE_MAX 256
#define CONN_SUDO_MAX    32
#define CONN_PATIENCE_MS 30000
#define CONN_FDS         3
#define CONN_BODY_PARTS  2

struct agent;
struct conn;

enum conn_taken { CONN_BAD = -1, CONN_DONE, CONN_LATER, CONN_BEHIND };

/* What a connection is for. Any function may be NULL. */
struct conn_kind {
    /* A whole frame. CONN_LATER: it stays, and nothing more is read until conn_retry; in_left says how
     * much of it is still to be taken. CONN_BEHIND: likewise, and it waits for another connection whose
     * own time is limited. CONN_BAD: err is sent and the connection ends. NULL: no frames are taken. */
    enum conn_taken (*frame)(struct conn *conn, const struct frame_head *head, uint8_t *data,
                             struct err *err);
    /* Nothing is queued: queue something, or return false. */
    bool (*fill)(struct conn *conn);
    /* Bytes that follow what is queued, and how many of them went. */
    int (*body)(struct conn *conn, struct iovec iov[CONN_BODY_PARTS]);
    void (*sent)(struct conn *conn, size_t n);
    void (*closed)(struct conn *conn);
    /* The client is gone: from here on nothing is sent, and fill, body and sent are not called. */
    void (*left)(struct conn *conn);
    /* Whether what the client had sent is still wanted when the client is gone; NULL: no. It is read as
     * long as some of it is taken every CONN_PATIENCE_MS. */
    bool (*outlives)(const struct conn *conn);
};

struct conn {
    struct conn *prev, *next;
    struct agent *agent;
    struct watch watch;
    struct timer patience; /* armed while the caller owes us progress */
    struct timer retry;    /* conn_retry_soon */
    const struct conn_kind *kind;
    void *data;  /* the kind's */
    uint64_t id; /* never reused */
    bool sudo;   /* came from inside */
    bool closed, ending, in_end, in_whole, in_later;
    bool left;  /* the client is gone for good; what it had sent may be unread */
    pid_t peer; /* sudo: who asks */
    int fds[CONN_FDS];
    size_t fd_count;

    uint8_t head[FRAME_HEAD];
    uint32_t head_have;
    struct frame_head frame;
    uint8_t *in; /* owned */
    uint32_t in_have, in_room;
    uint32_t in_left; /* of a whole frame: what its kind has not yet taken */

    uint8_t *out; /* owned */
    uint32_t out_have, out_sent, out_room;
};

struct conns {
    struct conn *first;
    struct conn *dead;
    size_t outside, sudo;
    uint64_t last_id;
};

/* Takes the descriptor when it works; NULL: no memory. */
struct conn *conn_new(struct agent *agent, int fd, bool sudo, const struct conn_kind *kind);
void conn_close(struct conn *conn);
/* The client is gone. What it had sent is read first, as far as it is wanted; what was queued for it
 * is dropped. */
void conn_leave(struct conn *conn);
void conns_sweep(struct agent *agent);
struct conn *conn_by_id(struct agent *agent, uint64_t id);

/* Queues one frame with a record. -1: it did not fit or there is no memory; the conn is closed. */
int conn_reply(struct conn *conn, enum frame_type type, const struct agent_reply *reply);
/* Queues bytes as they are. */
int conn_queue(struct conn *conn, const void *data, uint32_t len);
/* ERROR, then the end. */
void conn_fail(struct conn *conn, const struct err *err);
/* The end, once everything queued is out. */
void conn_end(struct conn *conn);

/* Sends what can be sent now, and waits for the rest. Callers that queued something call this. */
void conn_flush(struct conn *conn);
/* The frame that was left for later may be taken now. */
void conn_retry(struct conn *conn);
/* The same, by a timer: for callers that are inside another operation on the connection. */
void conn_retry_soon(struct conn *conn);
/* From here on the caller may take its time. */
void conn_be_patient(struct conn *conn);

#endif
