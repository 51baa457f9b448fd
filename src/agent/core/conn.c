#include "agent/core/conn.h"

#include "agent/core/agent.h"
#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IN_FIRST        4096u
#define OUT_FIRST       256u
#define OUT_MOST        (FRAME_DATA_MAX + 2 * FRAME_HEAD)
#define FRAMES_PER_TURN 16
#define SENDS_PER_TURN  8

static void on_ready(struct watch *watch, uint32_t events);
static void on_patience(struct timer *timer);

static void limit_time(struct conn *conn)
{
    loop_arm(&conn->agent->loop, &conn->patience, CONN_PATIENCE_MS, on_patience);
}

static void on_patience(struct timer *timer)
{
    struct conn *conn = CONTAINER(timer, struct conn, patience);
    struct err err;

    if (conn->ending || conn->left || conn->out_have > conn->out_sent) {
        conn_close(conn);
        return;
    }
    if (conn->in_later)
        err_set(&err, ERR_TOO_MANY, "busy with others for %d s", CONN_PATIENCE_MS / 1000);
    else
        err_set(&err, ERR_TIMEOUT, "no whole %s in %d s",
                conn->kind && conn->kind->frame ? "request" : "answer", CONN_PATIENCE_MS / 1000);
    conn_fail(conn, &err);
}

struct conn *conn_new(struct agent *agent, int fd, bool sudo, const struct conn_kind *kind)
{
    struct conn *conn = calloc(1, sizeof *conn);
    struct conns *conns = &agent->conns;

    if (!conn)
        return NULL;
    conn->agent = agent;
    conn->kind = kind;
    conn->sudo = sudo;
    conn->watch = (struct watch){ .fd = fd, .ready = on_ready };
    if (loop_watch(&agent->loop, &conn->watch, EPOLLIN) < 0) {
        free(conn);
        return NULL;
    }
    conn->id = ++conns->last_id;
    conn->next = conns->first;
    if (conn->next)
        conn->next->prev = conn;
    conns->first = conn;
    (*(sudo ? &conns->sudo : &conns->outside))++;
    limit_time(conn);
    return conn;
}

void conn_close(struct conn *conn)
{
    struct conns *conns = &conn->agent->conns;

    if (conn->closed)
        return;
    conn->closed = true;
    if (conn->kind && conn->kind->closed)
        conn->kind->closed(conn);
    loop_pause(&conn->agent->loop, &conn->watch);
    loop_disarm(&conn->agent->loop, &conn->patience);
    loop_disarm(&conn->agent->loop, &conn->retry);
    (void) close(conn->watch.fd);
    for (size_t i = 0; i < conn->fd_count; i++)
        (void) close(conn->fds[i]);
    conn->fd_count = 0;
    *(conn->prev ? &conn->prev->next : &conns->first) = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    (*(conn->sudo ? &conns->sudo : &conns->outside))--;
    conn->next = conns->dead;
    conns->dead = conn;
}

void conns_sweep(struct agent *agent)
{
    for (struct conn *conn; (conn = agent->conns.dead);) {
        agent->conns.dead = conn->next;
        free(conn->in);
        free(conn->out);
        free(conn);
    }
}

struct conn *conn_by_id(struct agent *agent, uint64_t id)
{
    for (struct conn *conn = agent->conns.first; conn; conn = conn->next)
        if (conn->id == id)
            return conn;
    return NULL;
}

void conn_be_patient(struct conn *conn)
{
    loop_disarm(&conn->agent->loop, &conn->patience);
}

/* Room for len more bytes behind what is queued. */
static uint8_t *out_room(struct conn *conn, uint32_t len)
{
    uint32_t need = conn->out_have + len;
    uint32_t room = conn->out_room ? conn->out_room : OUT_FIRST;

    if (need > OUT_MOST)
        return NULL;
    while (room < need)
        room = room * 2 < OUT_MOST ? room * 2 : OUT_MOST;
    if (room > conn->out_room) {
        uint8_t *out = realloc(conn->out, room);

        if (!out)
            return NULL;
        conn->out = out;
        conn->out_room = room;
    }
    return conn->out + conn->out_have;
}

int conn_queue(struct conn *conn, const void *data, uint32_t len)
{
    uint8_t *at = conn->closed ? NULL : out_room(conn, len);

    if (!at) {
        conn_close(conn);
        return -1;
    }
    memcpy(at, data, len);
    conn->out_have += len;
    return 0;
}

int conn_reply(struct conn *conn, enum frame_type type, const struct agent_reply *reply)
{
    struct err err;
    int64_t most = frame_limit(type);

    for (uint32_t size = OUT_FIRST; !conn->closed; size *= 4) {
        uint8_t *at;
        ssize_t len;

        if (size > (uint64_t) most)
            size = (uint32_t) most;
        at = out_room(conn, FRAME_HEAD + size);
        if (!at)
            break;
        len = agent_reply_encode(reply, at + FRAME_HEAD, size, &err);
        if (len >= 0) {
            frame_head_put(at, type, (uint32_t) len);
            conn->out_have += FRAME_HEAD + (uint32_t) len;
            return 0;
        }
        if (size == (uint64_t) most)
            break;
    }
    conn_close(conn);
    return -1;
}

void conn_end(struct conn *conn)
{
    if (conn->closed)
        return;
    conn->ending = true;
    limit_time(conn);
}

void conn_fail(struct conn *conn, const struct err *err)
{
    struct agent_reply reply = { .kind = err->kind ? err->kind : ERR_INTERNAL,
                                 .message = err->msg };

    if (conn->closed || conn_reply(conn, FRAME_ERROR, &reply) < 0)
        return;
    conn_end(conn);
    conn_flush(conn);
}

static bool outlives(const struct conn *conn)
{
    return conn->kind && conn->kind->outlives && conn->kind->outlives(conn);
}

/* Of a client that is gone nothing is left to read, or nothing that is still wanted. */
static bool is_over(const struct conn *conn)
{
    return conn->in_end || conn->ending || (conn->in_later && !outlives(conn));
}

void conn_leave(struct conn *conn)
{
    if (conn->closed || conn->left)
        return;
    conn->left = true;
    conn->out_have = conn->out_sent = 0;
    limit_time(conn);
    if (conn->kind && conn->kind->left)
        conn->kind->left(conn);
    if (is_over(conn))
        conn_close(conn);
}

/* One send of what is queued and of the body behind it. 1: some went; 0: no room; -1: closed or left. */
static int send_some(struct conn *conn)
{
    struct iovec iov[1 + CONN_BODY_PARTS];
    struct msghdr msg = { .msg_iov = iov };
    size_t queued = conn->out_have - conn->out_sent;
    ssize_t n;

    if (queued > 0)
        iov[msg.msg_iovlen++] = (struct iovec){ conn->out + conn->out_sent, queued };
    if (conn->kind && conn->kind->body)
        msg.msg_iovlen += (size_t) conn->kind->body(conn, iov + msg.msg_iovlen);
    do {
        n = sendmsg(conn->watch.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0) {
        /* The client closed, and its hang-up has not come up yet: what it had sent may be unread. */
        if ((errno == EPIPE || errno == ECONNRESET) && outlives(conn))
            conn_leave(conn);
        else
            conn_close(conn);
        return -1;
    }
    if ((size_t) n < queued) {
        conn->out_sent += (uint32_t) n;
        return 1;
    }
    conn->out_have = conn->out_sent = 0;
    if ((size_t) n > queued)
        conn->kind->sent(conn, (size_t) n - queued);
    return 1;
}

static bool has_output(struct conn *conn)
{
    struct iovec iov[CONN_BODY_PARTS];

    return conn->out_have > conn->out_sent ||
           (conn->kind && conn->kind->body && conn->kind->body(conn, iov) > 0);
}

static void wait_for(struct conn *conn, bool output)
{
    uint32_t events = output ? EPOLLOUT : 0;

    if (!conn->in_end && !conn->in_later && !conn->ending)
        events |= EPOLLIN;
    if (conn->left && !events) /* its hang-up would not let the loop rest; conn_retry comes back */
        loop_pause(&conn->agent->loop, &conn->watch);
    else if (loop_watch(&conn->agent->loop, &conn->watch, events) < 0)
        conn_close(conn);
}

/* To a client that is gone nothing is sent; what it had sent may still be waited for. */
static void flush_left(struct conn *conn)
{
    conn->out_have = conn->out_sent = 0;
    if (is_over(conn))
        conn_close(conn);
    else
        wait_for(conn, false);
}

void conn_flush(struct conn *conn)
{
    for (int i = 0; i < SENDS_PER_TURN && !conn->closed && !conn->left; i++) {
        if (!has_output(conn)) {
            if (!conn->ending && conn->kind && conn->kind->fill && conn->kind->fill(conn))
                continue;
            if (conn->closed)
                return;
            if (conn->ending) {
                conn_close(conn);
                return;
            }
            wait_for(conn, false);
            return;
        }
        if (send_some(conn) <= 0)
            break;
        if (conn->patience.at_ms) /* progress */
            limit_time(conn);
    }
    if (conn->closed)
        return;
    if (conn->left)
        flush_left(conn);
    else
        wait_for(conn, true);
}

/* Descriptors come with the first bytes of a request, from sudo or the keeper. A socket among
 * them that lingers would make its last close wait. */
static ssize_t receive(struct conn *conn, void *data, size_t size)
{
    static const struct linger none = { .l_onoff = 0 };
    size_t count;
    int fds[CONN_FDS];
    ssize_t n;

    if (!conn->sudo && conn->head_have > 0)
        return recv(conn->watch.fd, data, size, MSG_DONTWAIT);
    n = io_recv_fds(conn->watch.fd, data, size, fds, CONN_FDS, &count);
    for (size_t i = 0; i < count; i++) {
        (void) setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &none, sizeof none);
        if (conn->fd_count < CONN_FDS)
            conn->fds[conn->fd_count++] = fds[i];
        else
            (void) close(fds[i]);
    }
    return n;
}

/* Where the next bytes go, and how many are wanted: the head, then what the head says. */
static uint8_t *next_bytes(struct conn *conn, size_t *ret_want)
{
    uint32_t left;

    if (conn->head_have < FRAME_HEAD) {
        *ret_want = FRAME_HEAD - conn->head_have;
        return conn->head + conn->head_have;
    }
    if (conn->in_have == conn->in_room) {
        uint32_t room = conn->in_room ? conn->in_room * 2 : IN_FIRST;
        uint8_t *in = realloc(conn->in, room < conn->frame.len ? room : conn->frame.len);

        if (!in)
            return NULL;
        conn->in = in;
        conn->in_room = room < conn->frame.len ? room : conn->frame.len;
    }
    left = conn->in_room - conn->in_have;
    *ret_want = left;
    return conn->in + conn->in_have;
}

/* 1: some came; 0: nothing now; -1: the end or worse, already dealt with. */
static int read_some(struct conn *conn)
{
    size_t want = 0;
    uint8_t *at = next_bytes(conn, &want);
    struct err err;
    ssize_t n;

    if (!at) {
        err_set(&err, ERR_NO_MEMORY, "no memory for a frame of %u bytes", conn->frame.len);
        conn_fail(conn, &err);
        return -1;
    }
    n = receive(conn, at, want);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        /* Half a frame can never become whole; between frames the caller may still be listening. */
        conn->in_end = true;
        if (n < 0 || conn->head_have > 0 || (conn->kind && !conn->kind->fill))
            conn_close(conn);
        return -1;
    }
    if (conn->head_have < FRAME_HEAD) {
        conn->head_have += (uint32_t) n;
        if (conn->head_have == FRAME_HEAD && frame_head_get(conn->head, &conn->frame, &err) < 0) {
            conn_fail(conn, &err);
            return -1;
        }
    } else {
        conn->in_have += (uint32_t) n;
    }
    conn->in_whole = conn->head_have == FRAME_HEAD && conn->in_have == conn->frame.len;
    conn->in_left = conn->in_have;
    return 1;
}

/* The time of a client that is gone starts again with each byte that is taken. */
static void limit_left(struct conn *conn, enum conn_taken taken, uint32_t in_left)
{
    if (taken == CONN_BEHIND)
        conn_be_patient(conn);
    else if (taken == CONN_DONE || conn->in_left < in_left || !conn->patience.at_ms)
        limit_time(conn);
}

static void deliver(struct conn *conn)
{
    enum conn_taken taken = CONN_BAD;
    uint32_t in_left = conn->in_left;
    struct err err;

    if (conn->kind && conn->kind->frame)
        taken = conn->kind->frame(conn, &conn->frame, conn->in, &err);
    else
        err_set(&err, ERR_PROTOCOL, "frame '%s' is not allowed now", frame_name(conn->frame.type));
    if (conn->closed)
        return;
    if (conn->left)
        limit_left(conn, taken, in_left);
    conn->in_later = taken == CONN_LATER || taken == CONN_BEHIND;
    if (conn->in_later)
        return;
    free(conn->in);
    conn->in = NULL;
    conn->in_have = conn->in_room = conn->head_have = 0;
    conn->in_whole = false;
    if (taken == CONN_BAD)
        conn_fail(conn, &err);
}

static void read_frames(struct conn *conn)
{
    int frames = 0;

    while (!conn->closed && !conn->ending && !conn->in_end && !conn->in_later &&
           frames < FRAMES_PER_TURN) {
        if (!conn->in_whole && read_some(conn) <= 0)
            break;
        if (conn->closed || !conn->in_whole)
            continue;
        deliver(conn);
        frames++;
    }
}

void conn_retry(struct conn *conn)
{
    if (conn->closed || !conn->in_later)
        return;
    deliver(conn);
    if (!conn->closed)
        conn_flush(conn);
}

static void on_retry(struct timer *timer)
{
    conn_retry(CONTAINER(timer, struct conn, retry));
}

void conn_retry_soon(struct conn *conn)
{
    if (conn->in_later && !conn->ending)
        loop_arm(&conn->agent->loop, &conn->retry, 0, on_retry);
}

static void on_ready(struct watch *watch, uint32_t events)
{
    struct conn *conn = CONTAINER(watch, struct conn, watch);

    if (events & EPOLLIN)
        read_frames(conn);
    if (events & (EPOLLHUP | EPOLLERR)) {
        conn_leave(conn);
        if (!(events & EPOLLIN) && !conn->in_later)
            conn_close(conn);
    }
    if (!conn->closed)
        conn_flush(conn);
}
