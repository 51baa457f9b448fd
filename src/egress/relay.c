/* Bytes between the two sides of a connection. What was read from one side is written to the other at once, from one
 * buffer that all connections share; only what the other side does not take is kept, and then no more is read.
 * So an idle connection has no memory but its struct, and a slow reader stops its own writer and no other. */
#include "egress/egress_own.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define READS_AT_ONCE 4
#define HELD_MOST     (8 * 1024 * 1024)
#define LEAST         16384

static struct side *other(struct side *side)
{
    return &side->flow->sides[side == &side->flow->sides[CLIENT] ? SERVER : CLIENT];
}

void relay_arm(struct egress *e, struct flow *flow)
{
    bool tokens = flow_room(flow) > 0;

    if (flow->opened) {
        open_arm(e, flow);
        return;
    }
    for (int s = CLIENT; s <= SERVER; s++) {
        struct side *side = &flow->sides[s];
        uint32_t events = 0;

        if (!side->ended && other(side)->held_len == 0 && tokens)
            events |= EPOLLIN | EPOLLRDHUP;
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

bool relay_keep(struct flow *flow, const uint8_t *data, size_t len)
{
    size_t size = flow->first_len + len < SNIFF_MAX ? SNIFF_MAX : flow->first_len + len;
    uint8_t *more = realloc(flow->first, size);

    if (!more)
        return false;
    flow->first = more;
    memcpy(flow->first + flow->first_len, data, len);
    flow->first_len += len;
    return true;
}

/* What is kept does not grow for ever: of a head it is that at most, of anything else nothing. */
static bool put_kept(struct flow *flow, size_t len)
{
    struct side *server = &flow->sides[SERVER];

    if (len > 0 && (server->held_len > 0 || !put(server, flow->first, len)))
        return false;
    flow->sent += len;
    flow->first_len -= len;
    memmove(flow->first, flow->first + len, flow->first_len);
    if (flow->first_len == 0) {
        free(flow->first);
        flow->first = NULL;
    }
    return flow->first_len <= SNIFF_MAX;
}

/* Cut for what it said, not for what happened to it. */
static bool cut(struct flow *flow, const char *why)
{
    (void) snprintf(flow->rule, sizeof flow->rule, "%s", why);
    flow->refused = true;
    return false;
}

static bool put_rewritten(struct flow *flow)
{
    auto_free uint8_t *out = NULL;
    size_t len = 0;

    if (!transform(flow, &out, &len))
        return false;
    flow->sent += len;
    if (flow->first_len == 0) {
        free(flow->first);
        flow->first = NULL;
    }
    return len == 0 || (flow->sides[SERVER].held_len == 0 && put(&flow->sides[SERVER], out, len));
}

/* What the client says under a watch: only what was understood goes. */
static bool put_watched(struct flow *flow)
{
    struct err why = { .msg = "" };
    ssize_t n;

    if (flow->box->secrets)
        return put_rewritten(flow);
    n = http_watch_feed(flow->watch, flow->first, flow->first_len, &why);

    return n < 0 ? cut(flow, why.msg) : put_kept(flow, (size_t) n);
}

static bool put_late(struct egress *e, struct flow *flow)
{
    char why[REACH_TEXT_MAX];
    const char *reason;
    bool more;

    reason = flow_look_late(e, flow, &more);
    if (reason) {
        (void) snprintf(why, sizeof why, "%s", reason);
        return cut(flow, why);
    }
    if (more || flow->again)
        return true;
    return flow->watch ? put_watched(flow) : put_kept(flow, flow->first_len);
}

static bool pass(struct egress *e, struct flow *flow, struct side *from, const uint8_t *data,
                 size_t len)
{
    if (from == &flow->sides[SERVER]) {
        flow->received += len;
        if (!put(other(from), data, len))
            return false;
        return flow->watch && http_watch_answer(flow->watch, data, len) && flow->first_len > 0
                   ? put_watched(flow)
                   : true;
    }
    if (flow->late || flow->watch) {
        if (!relay_keep(flow, data, len))
            return false;
        return flow->late ? put_late(e, flow) : put_watched(flow);
    }
    flow->sent += len;
    return put(other(from), data, len);
}

/* The end of one direction is passed on when all of it is; that of the last one by closing, which comes next. */
static void pass_end(struct side *from)
{
    struct side *to = other(from);

    if (from->ended && to->held_len == 0 && !to->shut) {
        if (!to->ended || !from->shut)
            (void) shutdown(to->source.fd, SHUT_WR);
        to->shut = true;
    }
}

/* `ends`: the last of it is here. */
static bool copy(struct egress *e, struct side *from, bool ends)
{
    struct flow *flow = from->flow;

    /* What comes behind bytes that are to be judged again waits, until they are. */
    for (int i = 0; i < READS_AT_ONCE && !from->ended && !flow->again && other(from)->held_len == 0;
         i++) {
        /* What one sandbox makes us hold is bounded, however many connections it has. */
        size_t share = HELD_MOST / flow->box->used[EGRESS_CONNECTIONS];
        size_t most = share > sizeof e->copy ? sizeof e->copy : share < LEAST ? LEAST : share;
        uint64_t room = flow_room(flow);
        ssize_t n;

        if (room == 0)
            return true;
        most = room < most ? (size_t) room : most;
        n = recv(from->source.fd, e->copy, most, MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN;
        if (n == 0) {
            from->ended = true;
            break;
        }
        flow_spend(flow, (uint64_t) n);
        e->counts.bytes += (uint64_t) n;
        if (!pass(e, flow, from, e->copy, (size_t) n))
            return false;
        if ((size_t) n < most && !ends)
            break; /* that was all, most likely: the others have waited long enough */
    }
    return true;
}

void relay_finish(struct egress *e, struct flow *flow, enum egress_what what, bool reset)
{
    if (flow->refused) {
        flow_cut(e, flow);
        return;
    }
    flow_tell(e, flow, what);
    if (flow->answers)
        flow_answer(e, flow);
    else
        flow_end(e, flow, reset);
}

void relay_ready(struct egress *e, struct source *source, uint32_t events)
{
    struct side *side = (struct side *) (void *) ((char *) source - offsetof(struct side, source));
    struct flow *flow = side->flow;
    bool fine = !(events & EPOLLERR);

    if (flow->state != FLOW_RELAY)
        return; /* refused by what the other side said in the same batch of events */
    flow->deadline_ms = io_now_ms() + e->config.limits.idle_ms;
    if (fine && (events & EPOLLOUT) && side->held_len > 0)
        fine = put_held(side);
    if (fine && (events & (EPOLLIN | EPOLLHUP)))
        fine = copy(e, side, events & (EPOLLRDHUP | EPOLLHUP));
    if (fine && flow->again) {
        flow_again(e, flow);
        return;
    }
    pass_end(side);
    pass_end(other(side));
    if (fine && !(flow->sides[CLIENT].shut && flow->sides[SERVER].shut)) {
        relay_arm(e, flow);
        return;
    }
    relay_finish(e, flow, EGRESS_CONNECT, !fine);
}

/* Connected: what the client said so far goes first. */
void relay_begin(struct egress *e, struct flow *flow)
{
    bool fine = true;

    flow_enter(flow, FLOW_RELAY, io_now_ms() + e->config.limits.idle_ms);
    if (flow->opens) {
        open_begin(e, flow);
        return;
    }
    flow->sides[CLIENT].source.ready = flow->sides[SERVER].source.ready = relay_ready;
    if (flow->first_len > 0)
        fine = flow->watch ? put_watched(flow) : put_kept(flow, flow->first_len);
    if (fine)
        relay_arm(e, flow);
    else
        relay_finish(e, flow, EGRESS_FAILED, true);
}
