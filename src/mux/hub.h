/* hub.h - the mux at work: one epoll over the trunk, the local end of every stream, and what else its program waits for.
 *
 * A stream's local end is a descriptor: bytes go both ways between the two, ends and failures too. Nothing here blocks. The descriptor of
 * the epoll is itself readable when there is something to do, so that a program with a loop of its own can wait for it.
 *
 * Owns:    the epoll and the streams' descriptors; the trunk and those of watches are the caller's.
 * Callers: cove-bridge (its whole loop), the agent (agent/trunk.c). */
#ifndef COVE_MUX_HUB_H
#define COVE_MUX_HUB_H

#include "mux/mux.h"

struct hub;

struct hub_watch {
    int fd; /* borrowed */
    uint32_t events;
    bool added;
    void (*ready)(struct hub *hub, struct hub_watch *watch, uint32_t events);
    struct hub_watch *prev, *next; /* of those that the epoll knows */
};

struct hub_calls {
    void (*hello)(struct hub *hub, const struct mux_hello *hello); /* guest */
    void (*state)(struct hub *hub, const struct mux_state *state); /* guest */
    void (*welcome)(struct hub *hub);                              /* host */
    /* The other side's stream: gives it a local end by hub_join; -1: it is reset. */
    int (*opened)(struct hub *hub, struct mux_stream *stream, const struct mux_open *open);
    /* Guest: the client of an operation is gone; `owner` is what hub_join was given. What it had sent still comes to the local end. */
    void (*left)(struct hub *hub, void *owner);
    /* A datagram came on a stream that has no local end of its own (hub_join with -1). The stream may be reset. */
    void (*datagram)(struct hub *hub, struct mux_stream *stream, const uint8_t *data, size_t len);
    /* A stream without a local end is gone. */
    void (*gone)(struct hub *hub, void *owner);
};

struct hub_line;

struct hub {
    struct mux mux;
    int epoll;
    struct hub_watch *watches;
    struct hub_watch trunk;
    bool stalled; /* a stream was not read because too much is unsent */
    const struct hub_calls *calls;
    struct hub_line *dead; /* freed at the end of the turn */
    void *owner;
};

/* The trunk is a descriptor that can be read, written and waited for; it is made non-blocking. */
int hub_init(struct hub *hub, int trunk, bool host, const struct hub_calls *calls, void *owner,
             struct err *err);
void hub_done(struct hub *hub);

int hub_watch(struct hub *hub, struct hub_watch *watch, uint32_t events);
void hub_unwatch(struct hub *hub, struct hub_watch *watch);
/* A new epoll with the number of the old one: for a guest of gVisor that was loaded (agent/core/loop.h says why). */
void hub_renew(struct hub *hub);

/* Opens a stream with that local end. Takes the descriptor when it works; -1: not now. */
int hub_open(struct hub *hub, const struct mux_open *open, int fd);
/* The local end of a stream; takes the descriptor when it works. -1: there is none, datagrams go to calls->datagram, and `owner` to
 * calls->gone. datagrams: each DATA is one message of the descriptor. */
int hub_join(struct hub *hub, struct mux_stream *stream, int fd, bool datagrams, void *owner);

/* Every stream that this side opened is reset, and so is the connection that is its local end. */
void hub_reset_ours(struct hub *hub);

/* What hub_join was given. */
void *hub_owner(const struct mux_stream *stream);

/* Sends what waits, as far as the trunk takes it. Every turn does. */
int hub_flush(struct hub *hub, struct err *err);
/* One turn: waits so many ms (-1: for ever), does what is ready. -1: the trunk has ended, or the guest broke the protocol. */
int hub_turn(struct hub *hub, int wait_ms, struct err *err);

#endif
