/* conn.h - one connection of a client: a descriptor, perhaps TLS over it, and what was read ahead.
 *
 * Never blocks longer than its limits: every wait is a poll with a deadline. The read-ahead buffer exists only
 * while a request is being read or served; an idle connection is this struct and a descriptor. */
#ifndef COVE_SERVER_SERVE_CONN_H
#define COVE_SERVER_SERVE_CONN_H

#include "base/err.h"
#include "http/proxy.h"
#include "server/serve/tls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define CONN_BUFFER 17408 /* a head of the greatest size, and a bit of what follows */

/* Threads that wait for a client to read or to send, of all connections of a server. Up to `most` of them have
 * the patience that was asked for; while there are more, a client that stood still for a second is cut, and sooner
 * the more there are. */
struct conn_waits {
    atomic_size_t now, most;
    /* threads are needed elsewhere: none lingers with a client that may ask again */
    atomic_bool crowded;
};

struct conn {
    int fd;                   /* O_NONBLOCK */
    struct tls *tls;          /* NULL: plain */
    struct conn_waits *waits; /* borrowed from the server */
    bool loopback;
    bool admin;    /* came by the socket of administrators, and is one */
    bool preamble; /* who it is has yet to be told by the PROXY protocol */
    char peer[64];
    char *buf; /* NULL while idle */
    size_t have;
    uint64_t since_ms; /* idle since, or the head began at */
    uint64_t queued_ms;
    bool head_begun;
    /* what the last read and write wait for: TLS may want the other one */
    short read_wants, write_wants;
    bool busy;                /* with a worker: only shutdown() may be called by others */
    atomic_bool resumable;    /* its answer can be asked for again from where it ended */
    struct conn *prev, *next; /* of the waiter's list, of the queue, or of the list of busy ones */
};

/* from: the other end, as accept tells it. */
struct conn *conn_new(int fd, const struct sockaddr *from, struct tls_context *tls,
                      struct conn_waits *waits);
void conn_free(struct conn *conn);

/* Whether the other end of the socket is in a list of base/prefix.h. */
bool conn_peer_in(const struct conn *conn, const char *list);
/* Reads the PROXY preamble as far as it is there, and no byte more: 1 when it is whole (peer and loopback are the
 * real client's from then on), 0 when more is to come, -1 when it is invalid, or the client is gone. */
int conn_preamble(struct conn *conn, struct err *err);

/* What is there, without waiting: count, 0 at the end, -1 with errno (EAGAIN: nothing yet). */
ssize_t conn_recv(struct conn *conn, void *out, size_t size);

/* Stays a moment with a client that has been answered: most that ask again do so at once, and handing the connection to
 * the waiter and back costs more than the answer. True: there is something to read. */
bool conn_linger(struct conn *conn);
/* True: the client sent nothing within that moment. False: the connection is to be read from. With TLS always: bytes may be
 * decrypted already. */
bool conn_silent(struct conn *conn);

/* As much as there is room for, without waiting: count, -1 with errno (EAGAIN: none). */
ssize_t conn_send(struct conn *conn, const void *data, size_t len);
/* Nothing more will be sent; the other direction continues. */
void conn_end(struct conn *conn);

/* At least one byte, or 0 at the end; waits up to stall_ms. First from the read-ahead buffer. */
ssize_t conn_read(struct conn *conn, void *out, size_t size, uint64_t stall_ms, struct err *err);
/* The same, into a pipe that is empty, as pages instead of copies. Not with TLS, nor while something was read ahead. */
ssize_t conn_pipe(struct conn *conn, int pipe_fd, size_t most, uint64_t stall_ms, struct err *err);
/* All of it; waits up to stall_ms for each bit of room. 0: not at all. */
int conn_write(struct conn *conn, const void *data, size_t len, uint64_t stall_ms, struct err *err);
/* The same, of what is in a pipe; not with TLS. */
int conn_splice(struct conn *conn, int pipe_fd, size_t len, uint64_t stall_ms, struct err *err);

#endif
