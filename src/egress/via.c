/* A connection that is let out through a proxy:
 *
 *   the proxy's name asked (A, then AAAA) → its addresses checked → connected → agreed (socks5.h, connect.h) → RELAY
 *
 * The flow is in FLOW_CONNECT all the time, with one deadline for everything: a proxy that sends a byte now and then gets
 * no more time than one that sends none. No byte behind the proxy's answer is taken: those are the other side's.
 * Whatever goes wrong, the connection is not made another way. */
#include "egress/egress_own.h"

#include "base/io.h"
#include "base/own.h"
#include "egress/connect.h"
#include "egress/may_name.h"
#include "egress/socks5.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define VIA_MS  10000
#define SAY_MAX CONNECT_SAY_MAX
_Static_assert(SOCKS5_SAY_MAX <= SAY_MAX, "there is room for either");

struct via {
    struct upstream upstream; /* as it was then */
    struct dns_answer targets;
    size_t target_next;
    /* Takes the answer that is awaited, and says what comes next: 1: agreed; 0: more of it, or of the next; -1. */
    int (*hear)(struct via *via, struct flow *flow, const uint8_t *data, size_t len,
                size_t *ret_used, struct err *err);
    uint8_t say[SAY_MAX];
    size_t say_len, said;
    uint8_t heard[CONNECT_REPLY_MAX];
    size_t heard_len;
    struct reply reply;
};

void via_free(struct flow *flow)
{
    if (flow->via)
        explicit_bzero(flow->via, sizeof *flow->via); /* a login is in it */
    free(flow->via);
    flow->via = NULL;
}

static void fail(struct egress *e, struct flow *flow, const char *reason)
{
    char text[EGRESS_REASON_MAX]; /* `reason` may be in what is freed now */

    (void) snprintf(text, sizeof text, "%s", reason);
    via_free(flow);
    if (flow->lookup) {
        flow->lookup->flow = NULL;
        lookup_free(e, flow->lookup);
        flow->lookup = NULL;
    }
    flow_no_proxy(e, flow, text);
}

void via_late(struct egress *e, struct flow *flow)
{
    fail(e, flow, flow->via->hear ? "it does not answer in time" : "it cannot be reached in time");
}

/* ---- what is said ---- */

static const char *name_of(const struct flow *flow)
{
    return flow->by_name && flow->name[0] ? flow->name : NULL;
}

static int hear_connect(struct via *via, struct flow *flow, const uint8_t *data, size_t len,
                        size_t *ret_used, struct err *err)
{
    (void) flow;
    return connect_reply(&via->reply, data, len, ret_used, err);
}

static int hear_reply(struct via *via, struct flow *flow, const uint8_t *data, size_t len,
                      size_t *ret_used, struct err *err)
{
    (void) via;
    (void) flow;
    return socks5_reply(data, len, ret_used, err);
}

static void say_request(struct via *via, const struct flow *flow)
{
    via->say_len = socks5_request(name_of(flow), &flow->ip, flow->port, via->say);
    via->said = 0;
    via->hear = hear_reply;
}

static int hear_verdict(struct via *via, struct flow *flow, const uint8_t *data, size_t len,
                        size_t *ret_used, struct err *err)
{
    int r = socks5_verdict(data, len, ret_used, err);

    if (r > 0)
        say_request(via, flow);
    return r < 0 ? -1 : 0;
}

static int hear_method(struct via *via, struct flow *flow, const uint8_t *data, size_t len,
                       size_t *ret_used, struct err *err)
{
    bool login;
    int r = socks5_method(data, len, via->upstream.user[0], &login, ret_used, err);

    if (r <= 0)
        return r;
    if (login) {
        via->say_len = socks5_login(&via->upstream, via->say);
        via->said = 0;
        via->hear = hear_verdict;
    } else {
        say_request(via, flow);
    }
    return 0;
}

static void say_first(struct via *via, const struct flow *flow)
{
    if (via->upstream.kind == UPSTREAM_HTTP) {
        reply_init(&via->reply);
        via->say_len = connect_request(&via->upstream, name_of(flow), &flow->ip, flow->port,
                                       (char *) via->say);
        via->hear = hear_connect;
    } else {
        via->say_len = socks5_greeting(&via->upstream, via->say);
        via->hear = hear_method;
    }
}

/* ---- bytes ---- */

static void on_proxy(struct egress *e, struct source *source, uint32_t events);

/* False: it is gone. */
static bool speak(struct egress *e, struct flow *flow)
{
    struct source *proxy = &flow->sides[SERVER].source;
    struct via *via = flow->via;

    if (via->said < via->say_len) {
        ssize_t n = send(proxy->fd, via->say + via->said, via->say_len - via->said,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno != EAGAIN)
            return false;
        via->said += n < 0 ? 0 : (size_t) n;
    }
    return source_arm(e, proxy, EPOLLIN | (via->said < via->say_len ? (uint32_t) EPOLLOUT : 0)) ==
           0;
}

/* Looks at what is there, takes what belongs to the answer. 1: agreed; 0: not yet; -1: why. */
static int listen_to(struct flow *flow, struct err *err)
{
    struct via *via = flow->via;
    int fd = flow->sides[SERVER].source.fd, r;
    size_t used = 0, before = via->heard_len, take;
    ssize_t n = recv(fd, via->heard + before, sizeof via->heard - before, MSG_DONTWAIT | MSG_PEEK);

    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return err_set(err, ERR_UNAVAILABLE, "it ended the connection");
    r = via->hear(via, flow, via->heard, before + (size_t) n, &used, err);
    if (r < 0)
        return -1;
    take = used > 0 ? used - before : (size_t) n;
    if (recv(fd, via->heard + before, take, MSG_DONTWAIT) != (ssize_t) take)
        return err_set(err, ERR_UNAVAILABLE, "it ended the connection");
    via->heard_len = used > 0 ? 0 : before + take;
    return r;
}

static void on_proxy(struct egress *e, struct source *source, uint32_t events)
{
    struct side *side = (struct side *) (void *) ((char *) source - offsetof(struct side, source));
    struct flow *flow = side->flow;
    struct err why = { .msg = "" };
    int r = 0;

    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        r = listen_to(flow, &why);
    if (r < 0) {
        fail(e, flow, why.msg);
    } else if (r > 0) {
        via_free(flow);
        relay_begin(e, flow);
    } else if (!speak(e, flow)) {
        fail(e, flow, "it ended the connection");
    }
}

/* ---- there ---- */

static void try_next(struct egress *e, struct flow *flow);

static void on_connected(struct egress *e, struct source *source, uint32_t events)
{
    struct side *side = (struct side *) (void *) ((char *) source - offsetof(struct side, source));
    struct flow *flow = side->flow;
    socklen_t len = sizeof(int);
    int failure = 0;

    if ((events & (EPOLLERR | EPOLLHUP)) &&
        (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &failure, &len) < 0 || failure != 0)) {
        try_next(e, flow);
        return;
    }
    source->ready = on_proxy;
    say_first(flow->via, flow);
    if (!speak(e, flow))
        fail(e, flow, "it ended the connection");
}

/* What a tenant names is public, or where the operator lets it be. */
static bool may_be_there(struct egress *e, const struct upstream *upstream, const struct ip *ip)
{
    return upstream->trusted || may_reach(ip, kind_here(e, ip), e->config.proxy_ranges);
}

static void try_next(struct egress *e, struct flow *flow)
{
    struct via *via = flow->via;
    bool forbidden = false;

    while (via->target_next < via->targets.count) {
        const struct ip *ip = &via->targets.list[via->target_next++];

        if (!may_be_there(e, &via->upstream, ip))
            forbidden = true;
        else if (source_connect(e, &flow->sides[SERVER].source, ip, via->upstream.port,
                                on_connected) == 0)
            return;
    }
    fail(e, flow, forbidden ? "it is not at a public address" : "it cannot be reached");
}

static void resolved(struct egress *e, struct lookup *lookup, const struct dns_answer *answer);

static void ask(struct egress *e, struct flow *flow, enum dns_type type)
{
    char why[EGRESS_REASON_MAX];

    flow->lookup = lookup_start(e, flow->box, flow->via->upstream.host, type, resolved, why);
    if (flow->lookup)
        flow->lookup->flow = flow;
    else
        fail(e, flow, why[0] ? why : "no name server answers for its name");
}

static void resolved(struct egress *e, struct lookup *lookup, const struct dns_answer *answer)
{
    struct flow *flow = lookup->flow;

    if (answer->count == 0 && lookup->type == DNS_A && e->has6) {
        ask(e, flow, DNS_AAAA);
    } else if (answer->count == 0) {
        fail(e, flow, "its name has no address");
    } else {
        flow->via->targets = *answer;
        try_next(e, flow);
    }
}

void via_begin(struct egress *e, struct flow *flow)
{
    struct via *via = calloc(1, sizeof *via);

    flow_enter(flow, FLOW_CONNECT, io_now_ms() + VIA_MS);
    flow->ip = flow->targets.list[0]; /* what is told of, and judged again */
    (void) source_arm(e, &flow->sides[CLIENT].source, 0);
    if (!via) {
        flow_no_proxy(e, flow, "no memory");
        return;
    }
    flow->via = via;
    via->upstream = flow->box->rules->upstream;
    if (ip_parse(via->upstream.host, &via->targets.list[0])) {
        via->targets.count = 1;
        try_next(e, flow);
    } else {
        ask(e, flow, DNS_A);
    }
}
