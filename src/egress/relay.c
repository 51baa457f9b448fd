/* Bytes between the two sides of a connection. What was read from one side is written to the other at once, from one
 * buffer that all connections share; only what the other side does not take is kept, and then no more is read.
 * So an idle connection has no memory but its struct, and a slow reader stops its own writer and nobody else. */
#include "egress/egress_own.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define READS_AT_ONCE 4

static struct side *other(struct side *side)
{
    return &side->flow->sides[side == &side->flow->sides[CLIENT] ? SERVER : CLIENT];
}

void relay_arm(struct egress *e, struct flow *flow)
{
    bool tokens = flow->box->bytes.rate == 0 || bucket_level(&flow->box->bytes) > 0;

    for (int s = CLIENT; s <= SERVER; s++) {
        struct side *side = &flow->sides[s];
        uint32_t events = 0;

        if (!side->ended && other(side)->held_len == 0 && tokens)
            events |= EPOLLIN;
        if (side->held_len > 0)
            events |= EPOLLOUT;
        if (source_arm(e, &side->source, events) < 0) {
            flow_end(e, flow, true);
            return;
        }
    }
}

/* All of it, now or held; false: the connection is of no use any more. */
static bool put(struct side *to, const uint8_t *data, size_t len)
{
    ssize_t n = send(to->source.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN)
        return false;
    if (n < 0)
        n = 0;
    if ((size_t) n == len)
        return true;
    to->held = malloc(len - (size_t) n);
    if (!to->held)
        return false;
    to->held_len = len - (size_t) n;
    to->held_at = 0;
    memcpy(to->held, data + n, to->held_len);
    return true;
}

static bool put_held(struct side *to)
{
    ssize_t n =
        send(to->source.fd, to->held + to->held_at, to->held_len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN;
    to->held_at += (size_t) n;
    to->held_len -= (size_t) n;
    if (to->held_len == 0) {
        free(to->held);
        to->held = NULL;
    }
    return true;
}

/* What the client says under a watch: only what was understood goes. */
static bool put_watched(struct flow *flow, const uint8_t *data, size_t len)
{
    struct err ignored;
    ssize_t n;

    if (flow->first_len + len > SNIFF_MAX) {
        uint8_t *more = realloc(flow->first, flow->first_len + len);

        if (!more)
            return false;
        flow->first = more;
    }
    if (len > 0)
        memcpy(flow->first + flow->first_len, data, len);
    flow->first_len += len;
    n = http_watch_feed(flow->watch, flow->first, flow->first_len, &ignored);
    if (n < 0 || !put(&flow->sides[SERVER], flow->first, (size_t) n))
        return false;
    flow->first_len -= (size_t) n;
    memmove(flow->first, flow->first + n, flow->first_len);
    return true;
}

static bool pass(struct flow *flow, struct side *from, const uint8_t *data, size_t len)
{
    if (from == &flow->sides[CLIENT]) {
        flow->sent += len;
        if (flow->watch)
            return put_watched(flow, data, len);
    } else {
        flow->received += len;
    }
    return put(other(from), data, len);
}

/* The end of one direction is passed on when all of it is. */
static void pass_end(struct side *from)
{
    struct side *to = other(from);

    if (from->ended && to->held_len == 0 && !to->shut) {
        (void) shutdown(to->source.fd, SHUT_WR);
        to->shut = true;
    }
}

static bool copy(struct egress *e, struct side *from)
{
    struct flow *flow = from->flow;

    for (int i = 0; i < READS_AT_ONCE && !from->ended && other(from)->held_len == 0; i++) {
        size_t most = sizeof e->copy;
        ssize_t n;

        if (flow->box->bytes.rate > 0) {
            uint64_t level = bucket_level(&flow->box->bytes);

            if (level == 0)
                return true;
            most = level < most ? (size_t) level : most;
        }
        n = recv(from->source.fd, e->copy, most, MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN;
        if (n == 0) {
            from->ended = true;
            break;
        }
        (void) bucket_take(&flow->box->bytes, (uint64_t) n);
        e->counts.bytes += (uint64_t) n;
        if (!pass(flow, from, e->copy, (size_t) n))
            return false;
        if ((size_t) n < most)
            break; /* that was all, most likely: the others have waited long enough */
    }
    return true;
}

void relay_ready(struct egress *e, struct source *source, uint32_t events)
{
    struct side *side = (struct side *) (void *) ((char *) source - offsetof(struct side, source));
    struct flow *flow = side->flow;
    bool fine = !(events & EPOLLERR);

    flow->deadline_ms = io_now_ms() + e->config.limits.idle_ms;
    if (fine && (events & EPOLLOUT) && side->held_len > 0)
        fine = put_held(side);
    if (fine && (events & (EPOLLIN | EPOLLHUP)))
        fine = copy(e, side);
    pass_end(side);
    pass_end(other(side));
    if (fine && !(flow->sides[CLIENT].shut && flow->sides[SERVER].shut)) {
        relay_arm(e, flow);
        return;
    }
    flow_tell(e, flow, EGRESS_CONNECT);
    flow_end(e, flow, !fine);
}

/* Connected: what the client said so far goes first. */
void relay_begin(struct egress *e, struct flow *flow)
{
    bool fine = true;

    flow->state = FLOW_RELAY;
    flow->deadline_ms = io_now_ms() + e->config.limits.idle_ms;
    flow->sides[CLIENT].source.ready = flow->sides[SERVER].source.ready = relay_ready;
    if (flow->watch) {
        fine = put_watched(flow, NULL, 0);
    } else if (flow->first_len > 0) {
        fine = put(&flow->sides[SERVER], flow->first, flow->first_len);
        flow->sent += flow->first_len;
        free(flow->first);
        flow->first = NULL;
        flow->first_len = 0;
    }
    if (fine) {
        relay_arm(e, flow);
        return;
    }
    flow_tell(e, flow, EGRESS_FAILED);
    flow_end(e, flow, true);
}
