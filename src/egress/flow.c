/* A connection until it is let out, or not:
 *
 *   accepted ── address allowed as such ──────────────────────────────┐
 *      └─ SNIFF: which name do its first bytes have? ── given out ────┤
 *                     └─ LOOKUP: which addresses has that name? ──────┴─ CONNECT ── RELAY
 *                                                                   (through a proxy: via.c)
 *
 * A program that waits for the other side to speak first is not made to wait for ever: after SNIFF_MS it is judged by
 * the names that its address was given out for. */
#include "egress/egress_own.h"
#include "egress/peer.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define ACCEPTS_AT_ONCE 32
#define SNIFF_MS        400
#define HALF_MS         10000 /* for the rest of a hello or a head whose beginning came */
#define CONNECT_MS      10000
#define NAMES_MS        30000
#define UNREADABLE      "what it says cannot be read"

/* ---- out ---- */

static void try_next(struct egress *e, struct flow *flow);

static void on_connected(struct egress *e, struct source *source, uint32_t events)
{
    struct side *side = (struct side *) (void *) ((char *) source - offsetof(struct side, source));
    socklen_t len = sizeof(int);
    int failure = 0;

    if ((events & (EPOLLERR | EPOLLHUP)) &&
        (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &failure, &len) < 0 || failure != 0))
        try_next(e, side->flow);
    else
        relay_begin(e, side->flow);
}

static void try_next(struct egress *e, struct flow *flow)
{
    while (flow->target_next < flow->targets.count) {
        /* What is told, and judged again, is where it really goes. */
        flow->ip = flow->targets.list[flow->target_next++];
        flow_enter(flow, FLOW_CONNECT, io_now_ms() + CONNECT_MS);
        if (source_connect(e, &flow->sides[SERVER].source, &flow->ip, flow->port, on_connected) ==
            0)
            return;
    }
    flow_tell(e, flow, EGRESS_FAILED);
    flow_end(e, flow, true);
}

static void let_out(struct egress *e, struct flow *flow, const char *rule)
{
    (void) snprintf(flow->rule, sizeof flow->rule, "%s", rule);
    e->counts.connects++;
    flow->target_next = 0;
    if (flow->box->rules->upstream.kind != UPSTREAM_NONE)
        via_begin(e, flow);
    else
        try_next(e, flow);
}

static void let_out_to(struct egress *e, struct flow *flow, const struct ip *ip, const char *rule)
{
    flow->targets.count = 1;
    flow->targets.list[0] = *ip;
    let_out(e, flow, rule);
}

/* ---- by name ---- */

/* The addresses of a name that the client brought along: those that may be, its own choice first. */
static void resolved(struct egress *e, struct lookup *lookup, const struct dns_answer *answer)
{
    struct flow *flow = lookup->flow;
    char rule[REACH_TEXT_MAX] = "the name has no address", taken[REACH_TEXT_MAX] = "";

    flow->targets.count = 0;
    for (size_t i = 0; i < answer->count; i++) {
        struct ip ip = answer->list[i];

        if (!box_takes(e, flow->box, &ip, flow->port, flow->name, rule))
            continue;
        (void) strcpy(taken, rule);
        box_give(flow->box, &ip, flow->name, answer->ttl);
        if (ip_same(&ip, &flow->ip) && flow->targets.count > 0) {
            flow->targets.list[flow->targets.count++] = flow->targets.list[0];
            flow->targets.list[0] = ip;
        } else {
            flow->targets.list[flow->targets.count++] = ip;
        }
    }
    flow->by_name = true;
    if (flow->targets.count == 0)
        flow_refuse(e, flow, rule);
    else
        let_out(e, flow, taken);
}

static void ask_for_name(struct egress *e, struct flow *flow)
{
    flow_enter(flow, FLOW_LOOKUP, UINT64_MAX); /* the lookup has its own deadline */
    (void) source_arm(e, &flow->sides[CLIENT].source, 0);
    flow->lookup = lookup_start(e, flow->box, flow->name, ip_is4(&flow->ip) ? DNS_A : DNS_AAAA,
                                resolved, flow->reason);
    if (!flow->lookup)
        flow_refuse(e, flow, flow->reason[0] ? LIMIT_RULE : "no name server answers");
    else
        flow->lookup->flow = flow;
}

/* ---- judging ---- */

/* Requests behind the first are read where names count, whatever let the connection out. */
static bool watch(struct flow *flow, const char *name)
{
    flow->watch = malloc(sizeof *flow->watch);
    if (flow->watch)
        http_watch_init(flow->watch, name);
    return flow->watch;
}

/* No name in it: one of those that the address was given out for may do. */
static void judge_unnamed(struct egress *e, struct flow *flow)
{
    const char *kind = kind_here(e, &flow->ip), *name;
    struct reach_verdict verdict = box_judge(e, flow->box, &flow->ip, flow->port, NULL, kind);
    size_t at = 0;

    while (!verdict.allowed && (name = box_name_of(flow->box, &flow->ip, &at))) {
        struct reach_verdict named = box_judge(e, flow->box, &flow->ip, flow->port, name, kind);

        if (named.allowed) {
            (void) strcpy(flow->name, name);
            verdict = named;
        }
    }
    flow->by_name = verdict.by_name;
    if (!verdict.allowed)
        flow_refuse(e, flow, verdict.rule);
    else if (flow->plain_http && !watch(flow, ""))
        flow_refuse(e, flow, "no memory");
    else
        let_out_to(e, flow, &flow->ip, verdict.rule);
}

static void judge_named(struct egress *e, struct flow *flow)
{
    struct reach_verdict verdict =
        box_judge(e, flow->box, &flow->ip, flow->port, flow->name, kind_here(e, &flow->ip));
    const char *reason = verdict.allowed ? open_judge(e, flow, !flow->plain_http) : verdict.rule;

    if (reason) {
        flow_refuse(e, flow, reason);
        return;
    }
    if (flow->plain_http && !watch(flow, flow->name)) {
        flow_refuse(e, flow, "no memory");
        return;
    }
    /* What is put into requests goes to addresses that we found for the name, also where any address may be reached. */
    flow->by_name = verdict.by_name || flow->bound;
    if (!flow->by_name || box_gave(flow->box, &flow->ip, flow->name))
        let_out_to(e, flow, &flow->ip, verdict.rule);
    else
        ask_for_name(e, flow);
}

static void judge_first(struct egress *e, struct flow *flow, bool patient)
{
    enum sniff kind = sniff_first(flow->first, flow->first_len, flow->name);

    flow->plain_http =
        kind == SNIFF_HTTP || (kind == SNIFF_BAD && flow->first[0] != SNIFF_TLS_BYTE);
    if (kind == SNIFF_MORE && patient)
        return;
    if (flow->barred) {
        peer_refuse(e, flow);
        return;
    }
    flow->late = flow->first_len == 0;
    if (kind == SNIFF_BAD || (kind == SNIFF_MORE && flow->first_len > 0))
        flow_refuse(e, flow, UNREADABLE);
    else if (flow->name[0])
        judge_named(e, flow);
    else
        judge_unnamed(e, flow);
}

/* It is connected already: a name must be one of the address that it is connected to. */
const char *flow_look_late(struct egress *e, struct flow *flow, bool *ret_more)
{
    size_t len = flow->first_len < SNIFF_MAX ? flow->first_len : SNIFF_MAX;
    struct reach_verdict verdict;
    char name[REACH_NAME_MAX];
    enum sniff kind = sniff_first(flow->first, len, name);

    *ret_more = kind == SNIFF_MORE;
    if (*ret_more)
        return NULL;
    flow->late = false;
    if (kind == SNIFF_BAD)
        return UNREADABLE;
    if (open_concerns(flow, name, kind == SNIFF_TLS)) {
        flow->again = flow->received == 0;
        return flow->again ? NULL : UNREADABLE;
    }
    if (kind == SNIFF_HTTP && !watch(flow, name))
        return "no memory";
    if (!name[0])
        return NULL;
    (void) strcpy(flow->name, name);
    verdict = box_judge(e, flow->box, &flow->ip, flow->port, name, kind_here(e, &flow->ip));
    (void) strcpy(flow->rule, verdict.rule);
    if (!verdict.allowed)
        return flow->rule;
    return !verdict.by_name || box_gave(flow->box, &flow->ip, name)
               ? NULL
               : "its address was not given out for this name";
}

/* ---- the client's first bytes ---- */

static void on_first(struct egress *e, struct source *source, uint32_t events)
{
    struct side *side = (struct side *) (void *) ((char *) source - offsetof(struct side, source));
    struct flow *flow = side->flow;
    ssize_t n;

    (void) events;
    if (flow->state == FLOW_CONNECT) {
        /* What it says now can wait; that it left is seen when there is a listener. Most say nothing. */
        (void) source_arm(e, source, 0);
        return;
    }
    if (!flow->first && !(flow->first = malloc(SNIFF_MAX))) {
        flow_end(e, flow, true);
        return;
    }
    n = recv(source->fd, flow->first + flow->first_len, SNIFF_MAX - flow->first_len, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) { /* it left, or says nothing and never will */
        flow_end(e, flow, n < 0);
        return;
    }
    if (flow->first_len == 0)
        flow->deadline_ms = io_now_ms() + HALF_MS;
    flow->first_len += (size_t) n;
    if (flow->state == FLOW_NAMES)
        question_tcp(e, flow);
    else
        judge_first(e, flow, true);
}

void flow_again(struct egress *e, struct flow *flow)
{
    flow->again = flow->late = false;
    source_close(e, &flow->sides[SERVER].source);
    flow->sides[CLIENT].ended = flow->sides[SERVER].ended = false;
    flow->sides[CLIENT].source.ready = on_first;
    flow_enter(flow, FLOW_SNIFF, flow->deadline_ms);
    judge_first(e, flow, true);
}

static void judge(struct egress *e, struct flow *flow)
{
    const struct reach *rules = flow->box->rules;
    const char *kind = kind_here(e, &flow->ip);
    struct reach_verdict verdict = box_judge(e, flow->box, &flow->ip, flow->port, NULL, kind);
    bool names_count = reach_need_name(rules);

    if (peer_take(e, flow))
        return;
    if (flow->port == DNS_PORT && (!(verdict.allowed && kind) || peer_ip_is(&flow->ip))) {
        flow_enter(flow, FLOW_NAMES, flow->begun_ms + NAMES_MS);
    } else if (verdict.allowed && (!names_count || rules->deny_count == 0) && !flow->box->secrets) {
        let_out_to(e, flow, &flow->ip, verdict.rule);
        return;
    } else {
        /* Also what will be refused is looked at: who speaks HTTP gets a reason. */
        flow_enter(flow, FLOW_SNIFF, flow->begun_ms + SNIFF_MS);
    }
    if (source_arm(e, &flow->sides[CLIENT].source, EPOLLIN | EPOLLRDHUP) < 0)
        flow_end(e, flow, true);
}

/* The caller has taken a share for it. */
static struct flow *flow_new(struct box *box, int fd)
{
    struct flow *flow = calloc(1, sizeof *flow);

    if (!flow)
        return NULL;
    flow->box = box;
    flow->begun_ms = io_now_ms();
    for (int s = CLIENT; s <= SERVER; s++) {
        flow->sides[s].flow = flow;
        flow->sides[s].source.fd = -1;
    }
    flow->sides[CLIENT].source = (struct source){ .fd = fd, .alone = true, .ready = on_first };
    flow->next = box->flows;
    if (box->flows)
        box->flows->prev = flow;
    box->flows = flow;
    return flow;
}

/* There is no room to ask what it would have said: it is cut, and the event says why. */
static void turn_away(struct egress *e, struct box *box, int fd, const char *why)
{
    struct egress_event event = { .what = EGRESS_REFUSED, .rule = LIMIT_RULE };
    struct source refused = { .fd = fd };
    struct sockaddr_storage at;
    socklen_t len = sizeof at;

    e->counts.refused++;
    if (getsockname(fd, (struct sockaddr *) &at, &len) == 0)
        (void) ip_of_sockaddr((const struct sockaddr *) &at, &event.ip, &event.port);
    (void) snprintf(event.reason, sizeof event.reason, "%s", why);
    tell(e, box, &event);
    source_reset(e, &refused);
}

void flow_accept(struct egress *e, struct source *listener, uint32_t events)
{
    struct box *box = (struct box *) (void *) ((char *) listener - offsetof(struct box, tcp));

    (void) events;
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        int fd;
        struct sockaddr_storage at;
        socklen_t len = sizeof at;
        struct flow *flow = NULL;
        char why[EGRESS_REASON_MAX] = "no memory";

        if (box->connects.rate > 0 && bucket_level(&box->connects) == 0) {
            (void) source_arm(e, listener, 0); /* they wait in the kernel until the next tick */
            return;
        }
        fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) /* or it would wake us all the time */
                (void) source_arm(e, listener, 0);
            return;
        }
        (void) bucket_take(&box->connects, 1);
        if (share_take(e, box, EGRESS_CONNECTIONS, why) && !(flow = flow_new(box, fd)))
            share_give(e, box, EGRESS_CONNECTIONS);
        if (!flow) {
            turn_away(e, box, fd, why);
            continue;
        }
        if (getsockname(fd, (struct sockaddr *) &at, &len) < 0 ||
            !ip_of_sockaddr((const struct sockaddr *) &at, &flow->ip, &flow->port))
            flow_end(e, flow, true);
        else
            judge(e, flow);
    }
}

/* ---- time and change ---- */

void flow_tick(struct egress *e, struct flow *flow, uint64_t now)
{
    if (flow->state == FLOW_RELAY && flow->box->bytes.rate > 0)
        relay_arm(e, flow); /* what stood still for want of tokens */
    if (flow->state == FLOW_DIAL) {
        peer_tick(e, flow, now);
        return;
    }
    if (now < flow->deadline_ms)
        return;
    if (flow->state == FLOW_SNIFF)
        judge_first(e, flow, false);
    else if (flow->state == FLOW_CONNECT && flow->via)
        via_late(e, flow);
    else if (flow->state == FLOW_CONNECT)
        try_next(e, flow);
    else if (flow->state == FLOW_OWNER)
        flow_owner(e, flow, NULL);
    else if (flow->state == FLOW_WHY)
        flow_say_why(e, flow);
    else {
        if (flow->state == FLOW_RELAY)
            flow_tell(e, flow, EGRESS_CONNECT);
        flow_end(e, flow, true);
    }
}

void flow_judge_again(struct egress *e, struct flow *flow, bool moved)
{
    struct reach_verdict verdict;

    if (flow->far || (flow->state != FLOW_RELAY && flow->state != FLOW_CONNECT))
        return; /* not by these rules, or it will be judged by the new ones */
    if (moved) {
        flow_tell(e, flow, flow->state == FLOW_RELAY ? EGRESS_CONNECT : EGRESS_FAILED);
        flow_end(e, flow, true);
        return;
    }
    verdict = box_judge(e, flow->box, &flow->ip, flow->port, flow->name[0] ? flow->name : NULL,
                        kind_here(e, &flow->ip));
    if (!verdict.allowed) {
        (void) strcpy(flow->rule, verdict.rule);
        flow_tell(e, flow, EGRESS_REFUSED);
        flow_end(e, flow, true);
    }
}
