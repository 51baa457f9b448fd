#include "mux/hub.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define BATCH        32
#define DATAGRAM_MAX 4096u

/* The local end of one stream. */
struct hub_line {
    struct hub_watch watch;    /* fd -1: there is none */
    struct mux_stream *stream; /* NULL: gone */
    bool datagrams;
    bool shut; /* the local end was told that no more comes */
    bool hung; /* the local end is gone: without anything to wait for, its epoll would not rest */
    void *owner;
    struct hub_line *next_dead;
};

/* ---- epoll ---- */

int hub_watch(struct hub *p, struct hub_watch *w, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = w };

    if (w->added && w->events == events)
        return 0;
    if (epoll_ctl(p->epoll, w->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w->fd, &event) < 0)
        return -1;
    if (!w->added) {
        w->prev = NULL;
        w->next = p->watches;
        if (w->next)
            w->next->prev = w;
        p->watches = w;
    }
    w->added = true;
    w->events = events;
    return 0;
}

void hub_unwatch(struct hub *p, struct hub_watch *w)
{
    if (!w->added)
        return;
    (void) epoll_ctl(p->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    w->added = false;
    *(w->prev ? &w->prev->next : &p->watches) = w->next;
    if (w->next)
        w->next->prev = w->prev;
}

void hub_renew(struct hub *p)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0)
        return;
    for (struct hub_watch *w = p->watches; w; w = w->next) {
        struct epoll_event event = { .events = w->events, .data.ptr = w };

        if (epoll_ctl(epoll, EPOLL_CTL_ADD, w->fd, &event) < 0) {
            (void) close(epoll);
            return;
        }
    }
    (void) dup3(epoll, p->epoll, O_CLOEXEC);
    (void) close(epoll);
}

/* ---- local ends ---- */

static void line_wait(struct hub *p, struct hub_line *line)
{
    struct mux_stream *s = line->stream;
    uint32_t events = 0;

    if (!s || line->watch.fd < 0)
        return;
    if (mux_room(&p->mux, s) > 0)
        events |= EPOLLIN;
    else if (!s->out_ended && s->credit > 0)
        p->stalled = true;
    if (s->in_len > 0)
        events |= EPOLLOUT;
    if (line->hung && !events)
        hub_unwatch(p, &line->watch);
    else if (hub_watch(p, &line->watch, events) < 0)
        mux_reset(&p->mux, s);
}

static bool is_client(const struct hub *p, const struct mux_stream *s)
{
    return p->mux.host && s->kind == MUX_AGENT;
}

/* What came on the stream goes to the local end, as far as that takes it. The stream may be gone behind this. */
static void line_flush(struct hub *p, struct hub_line *line)
{
    while (line->stream && line->stream->in_len > 0) {
        struct mux_stream *s = line->stream;
        ssize_t n = send(line->watch.fd, s->in, s->in_len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && !line->datagrams)
            return;
        /* A client that is gone may have written what is not sent yet: the stream is needed for that. */
        if (n < 0 && !line->datagrams && !(is_client(p, s) && s->left && !s->out_ended)) {
            mux_reset(&p->mux, s);
            return;
        }
        mux_take(&p->mux, s,
                 n < 0 || line->datagrams ? s->in_len : (size_t) n); /* what is lost is lost */
    }
    if (line->stream && line->stream->in_ended && !line->shut) {
        line->shut = true;
        (void) shutdown(line->watch.fd, SHUT_WR);
    }
}

/* A client that went without reading its answer has said all that was read here: the end goes before the reset, and so nothing of it is
 * dropped. */
static void line_broken(struct hub *p, struct hub_line *line)
{
    if (is_client(p, line->stream))
        mux_end(&p->mux, line->stream);
    if (line->stream)
        mux_reset(&p->mux, line->stream);
}

/* One read: the others have their turn. */
static void line_read(struct hub *p, struct hub_line *line)
{
    struct mux_stream *s = line->stream;
    size_t room = mux_room(&p->mux, s);
    uint8_t data[MUX_DATA_MAX];
    ssize_t n;

    if (room == 0 || (line->datagrams && room < DATAGRAM_MAX))
        return;
    n = recv(line->watch.fd, data, room, MSG_DONTWAIT);
    if (n > 0)
        mux_send(&p->mux, s, data, (size_t) n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        line_broken(p, line);
    else if (n == 0 && !line->datagrams)
        mux_end(&p->mux, s);
}

static void line_ready(struct hub *p, struct hub_watch *w, uint32_t events)
{
    struct hub_line *line = (struct hub_line *) (void *) w; /* its first member */

    line->hung = events & (EPOLLHUP | EPOLLERR);
    if (line->hung && line->stream && is_client(p, line->stream) && !line->stream->out_ended)
        mux_leave(&p->mux, line->stream);
    if (line->stream && (events & EPOLLOUT))
        line_flush(p, line);
    if (line->stream && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !line->stream->out_ended)
        line_read(p, line);
    else if (line->stream && (events & (EPOLLHUP | EPOLLERR)))
        mux_reset(&p->mux, line->stream); /* no program reads what would still come */
    line_wait(p, line);
}

int hub_join(struct hub *p, struct mux_stream *s, int fd, bool datagrams, void *owner)
{
    struct hub_line *line = calloc(1, sizeof *line);

    if (!line)
        return -1;
    line->watch = (struct hub_watch){ .fd = -1, .ready = line_ready };
    line->datagrams = datagrams;
    line->owner = owner;
    if (fd >= 0) {
        line->watch.fd = fd;
        if (hub_watch(p, &line->watch, EPOLLIN) < 0) {
            free(line);
            return -1;
        }
    }
    line->stream = s;
    s->owner = line;
    return 0;
}

void *hub_owner(const struct mux_stream *s)
{
    const struct hub_line *line = s->owner;

    return line->owner;
}

int hub_open(struct hub *p, const struct mux_open *open, int fd)
{
    struct mux_stream *s = mux_open(&p->mux, open, NULL);

    if (!s)
        return -1;
    if (hub_join(p, s, fd, false, NULL) == 0)
        return 0;
    mux_reset(&p->mux, s);
    return -1;
}

/* ---- what the mux tells ---- */

static struct hub *of(struct mux *m)
{
    return m->owner;
}

static void on_hello(struct mux *m, const struct mux_hello *hello)
{
    of(m)->calls->hello(of(m), hello);
}

static void on_state(struct mux *m, const struct mux_state *state)
{
    of(m)->calls->state(of(m), state);
}

static void on_welcome(struct mux *m)
{
    of(m)->calls->welcome(of(m));
}

static int on_opened(struct mux *m, struct mux_stream *s, const struct mux_open *open)
{
    return of(m)->calls->opened(of(m), s, open);
}

static void on_data(struct mux *m, struct mux_stream *s)
{
    struct hub_line *line = s->owner;

    if (line->watch.fd >= 0) {
        line_flush(of(m), line);
        line_wait(of(m), line);
        return;
    }
    if (s->in_len > 0)
        of(m)->calls->datagram(of(m), s, s->in, s->in_len);
    if (line->stream)
        mux_take(m, s, s->in_len);
}

static void on_left(struct mux *m, struct mux_stream *s)
{
    const struct hub_line *line = s->owner;

    if (of(m)->calls->left)
        of(m)->calls->left(of(m), line->owner);
}

static void on_credit(struct mux *m, struct mux_stream *s)
{
    line_wait(of(m), s->owner);
}

/* The peer of a line sees a reset: a connection that was refused or cut must not look like one that ended. */
static void cut(const struct hub_line *line)
{
    static const struct linger at_once = { .l_onoff = 1 };

    if (line->watch.fd >= 0)
        (void) setsockopt(line->watch.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void on_gone(struct mux *m, struct mux_stream *s)
{
    struct hub_line *line = s->owner;

    if (!line) /* it was refused */
        return;
    hub_unwatch(of(m), &line->watch);
    if (line->watch.fd < 0 && of(m)->calls->gone)
        of(m)->calls->gone(of(m), line->owner);
    if (!s->in_ended)
        cut(line);
    own_close(&line->watch.fd);
    line->stream = NULL;
    line->next_dead = of(m)->dead;
    of(m)->dead = line;
}

static const struct mux_calls mux_calls = {
    .hello = on_hello,
    .state = on_state,
    .welcome = on_welcome,
    .opened = on_opened,
    .data = on_data,
    .left = on_left,
    .credit = on_credit,
    .gone = on_gone,
};

void hub_reset_ours(struct hub *p)
{
    for (struct mux_stream *s = p->mux.first, *next; s; s = next) {
        const struct hub_line *line = s->owner;

        next = s->next;
        if (!s->ours)
            continue;
        if (line)
            cut(line);
        mux_reset(&p->mux, s);
    }
}

/* ---- the trunk ---- */

int hub_flush(struct hub *p, struct err *err)
{
    const uint8_t *data;
    size_t len;

    while ((len = mux_out(&p->mux, &data)) > 0) {
        ssize_t n = write(p->trunk.fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return err_sys(err, errno, "write to the trunk");
        mux_sent(&p->mux, (size_t) n);
    }
    if (p->stalled && len < MUX_OUT_CALM) {
        p->stalled = false;
        for (struct mux_stream *s = p->mux.first, *next; s; s = next) {
            next = s->next;
            line_wait(p, s->owner);
        }
    }
    if (hub_watch(p, &p->trunk, (mux_reads(&p->mux) ? EPOLLIN : 0u) | (len > 0 ? EPOLLOUT : 0u)) <
        0)
        return err_sys(err, errno, "wait for the trunk");
    return 0;
}

static int trunk_read(struct hub *p, struct err *err)
{
    uint8_t data[MUX_FRAME_MAX];
    ssize_t n;

    if (!mux_reads(&p->mux))
        return 0;
    n = read(p->trunk.fd, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return err_sys(err, errno, "read the trunk");
    if (n == 0)
        return err_set(err, ERR_UNAVAILABLE, "the trunk has ended");
    return mux_feed(&p->mux, data, (size_t) n, err);
}

/* ---- life ---- */

int hub_init(struct hub *p, int trunk, bool host, const struct hub_calls *calls, void *owner,
             struct err *err)
{
    int flags = fcntl(trunk, F_GETFL);

    *p = (struct hub){ .epoll = epoll_create1(EPOLL_CLOEXEC),
                       .trunk = { .fd = trunk },
                       .calls = calls,
                       .owner = owner };
    mux_init(&p->mux, host, &mux_calls, p);
    if (p->epoll < 0)
        return err_sys(err, errno, "epoll");
    if (flags < 0 || fcntl(trunk, F_SETFL, flags | O_NONBLOCK) < 0)
        return err_sys(err, errno, "the trunk");
    return hub_flush(p, err);
}

static void free_dead(struct hub *p)
{
    for (struct hub_line *line; (line = p->dead);) {
        p->dead = line->next_dead;
        free(line);
    }
}

void hub_done(struct hub *p)
{
    mux_done(&p->mux);
    free_dead(p);
    own_close(&p->epoll);
}

int hub_turn(struct hub *p, int wait_ms, struct err *err)
{
    struct epoll_event events[BATCH];
    int n = epoll_wait(p->epoll, events, BATCH, wait_ms);
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        struct hub_watch *w = events[i].data.ptr;

        if (w != &p->trunk)
            w->ready(p, w, events[i].events);
        else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            rc = trunk_read(p, err);
    }
    if (rc == 0)
        rc = hub_flush(p, err);
    free_dead(p); /* lines that went in this turn may have been in this batch */
    return rc;
}
