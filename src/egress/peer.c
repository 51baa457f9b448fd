/* Between sandboxes. Who is in a network with another sandbox has its name answered with a made-up address, and a
 * connection to that address and a port that the other one chose is dialed through the other one's agent:
 *
 *   accepted ── address of a member, port chosen ── DIAL: room over there? asked of config.dial ── RELAY
 *      │                                            one without a gateway may sleep, and is asked for at once
 *      └─ anything else in that range: barred. It is read a little, since who speaks HTTP gets a reason.
 *
 * The rules of egress do not count here, in neither direction: being members of one network, and the ports, are
 * the rule. The limits count for both sandboxes. */
#include "egress/peer.h"

#include "egress/egress_own.h"

#include "base/io.h"
#include "base/own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define DIAL_MS  30000 /* one that is asleep may have to wake up first */
#define TELL_MS  400   /* for the first bytes of one that is refused */
#define NAME_TTL 5     /* members come and go */
#define RULE     "private"

/* ---- who is where ---- */

struct peer {
    const struct egress_net *net;
    const struct egress_member *member;
};

static struct peer find_ip(const struct box *box, const struct ip *ip)
{
    for (size_t i = 0; i < box->link_count; i++) {
        const struct egress_net *net = box->links[i].net;

        for (size_t m = 0; m < net->count; m++)
            if (ip_same(&net->members[m].ip, ip))
                return (struct peer){ net, &net->members[m] };
    }
    return (struct peer){ NULL, NULL };
}

static const struct egress_member *find_alias(const struct egress_net *net, const char *alias,
                                              size_t len)
{
    for (size_t m = 0; m < net->count; m++)
        if (strlen(net->members[m].alias) == len && memcmp(net->members[m].alias, alias, len) == 0)
            return &net->members[m];
    return NULL;
}

static void print_name(const struct peer *peer, char out[REACH_NAME_MAX])
{
    (void) snprintf(out, REACH_NAME_MAX, "%s.%s." EGRESS_SUFFIX, peer->member->alias,
                    peer->net->name);
}

/* ---- names ---- */

/* How long the name's own part is before ".<network>.internal"; 0: not in that network. */
static size_t part_in(const struct egress_net *net, const char *name)
{
    char tail[EGRESS_LABEL_MAX + sizeof EGRESS_SUFFIX + 2];
    size_t len = strlen(name);
    size_t own = (size_t) snprintf(tail, sizeof tail, ".%s." EGRESS_SUFFIX, net->name);

    return len > own && strcmp(name + len - own, tail) == 0 ? len - own : 0;
}

bool peer_answer(const struct box *box, const struct dns_question *q, struct dns_answer *ret,
                 struct refusal *ret_refusal)
{
    bool single = !strchr(q->name, '.'), theirs = single && box->link_count > 0;
    const struct egress_member *member = NULL;

    for (size_t i = 0; i < box->link_count && !member; i++) {
        size_t len = single ? strlen(q->name) : part_in(box->links[i].net, q->name);

        theirs |= len > 0;
        if (len > 0)
            member = find_alias(box->links[i].net, q->name, len);
    }
    if (!theirs)
        return false;
    *ret = (struct dns_answer){ .code = member ? DNS_NO_ERROR : DNS_NO_NAME, .ttl = NAME_TTL };
    if (!member) {
        *ret_refusal =
            (struct refusal){ .rule = RULE, .reason = "no member of its networks has this name" };
    } else if (q->type == DNS_A) {
        ret->list[0] = member->ip;
        ret->count = 1;
    }
    return true;
}

/* ---- connections ---- */

/* Who speaks HTTP can be told why, so that is to be known first. */
static void bar(struct egress *e, struct flow *flow, const char *reason)
{
    peer_end(flow);
    (void) snprintf(flow->reason, sizeof flow->reason, "%s", reason);
    flow->barred = true;
    flow_enter(flow, FLOW_SNIFF, io_now_ms() + TELL_MS);
    if (source_arm(e, &flow->sides[CLIENT].source, EPOLLIN | EPOLLRDHUP) < 0)
        flow_end(e, flow, true);
}

void peer_refuse(struct egress *e, struct flow *flow)
{
    struct peer peer = find_ip(flow->box, &flow->ip);

    /* Not by the name that it brought along, which means nothing here. */
    flow->name[0] = '\0';
    if (peer.member)
        print_name(&peer, flow->name);
    flow_refuse(e, flow, RULE);
}

static void ask_for(struct egress *e, struct flow *flow, const char *sandbox)
{
    struct egress_dial ask = { .ticket = ++e->ticket, .port = flow->port };

    flow->dial_ticket = ask.ticket;
    (void) strcpy(ask.tenant, flow->box->peers->tenant);
    (void) strcpy(ask.from, flow->box->id);
    (void) strcpy(ask.to, sandbox);
    e->config.dial(e->config.context, &ask);
}

/* As soon as the other one takes another connection. */
static void dial(struct egress *e, struct flow *flow)
{
    if (bucket_take(&flow->far->connects, 1))
        ask_for(e, flow, flow->far->id);
}

/* The other one counts it from now on; false: it was refused. */
static bool go_with(struct egress *e, struct flow *flow, struct box *far)
{
    if (far->used[EGRESS_CONNECTIONS] + far->guests >= e->config.limits.connections) {
        bar(e, flow, "the other sandbox has as many connections as it may");
        return false;
    }
    flow->far = far;
    far->guests++;
    return true;
}

bool peer_take(struct egress *e, struct flow *flow)
{
    struct peer peer;
    struct box *far;

    if (!peer_ip_is(&flow->ip))
        return false;
    peer = find_ip(flow->box, &flow->ip);
    if (!peer.member || !egress_member_has(peer.member, flow->port)) {
        if (flow->port == DNS_PORT) /* the gateway is a name server at every address */
            return false;
        bar(e, flow, peer.member ? "not a port that it is open on" : "no member of its networks");
        return true;
    }
    print_name(&peer, flow->name);
    far = box_find(e, peer.member->sandbox);
    if (far && !go_with(e, flow, far))
        return true;
    flow_enter(flow, FLOW_DIAL, io_now_ms() + DIAL_MS);
    (void) strcpy(flow->rule, RULE);
    if (far)
        dial(e, flow);
    else
        ask_for(e, flow, peer.member->sandbox);
    return true;
}

/* One that had no gateway when it was asked for: it was woken, and much may have changed meanwhile. */
static bool find_far(struct egress *e, struct flow *flow, const char *sandbox)
{
    struct peer peer = find_ip(flow->box, &flow->ip);
    struct box *far = box_find(e, sandbox);

    if (far && peer.member && strcmp(peer.member->sandbox, sandbox) == 0 &&
        egress_member_has(peer.member, flow->port))
        return go_with(e, flow, far);
    bar(e, flow, "the other sandbox is not there");
    return false;
}

static void fail(struct egress *e, struct flow *flow, const char *why)
{
    (void) snprintf(flow->reason, sizeof flow->reason, "%s", why);
    flow_tell(e, flow, EGRESS_FAILED);
    flow_end(e, flow, true);
}

void peer_tick(struct egress *e, struct flow *flow, uint64_t now)
{
    if (now >= flow->deadline_ms)
        fail(e, flow, "the other sandbox does not answer");
    else if (flow->dial_ticket == 0)
        dial(e, flow);
}

void peer_end(struct flow *flow)
{
    if (flow->far)
        flow->far->guests--;
    flow->far = NULL;
    flow->dial_ticket = 0;
}

void peer_tell(struct egress *e, const struct flow *flow, struct egress_event *event)
{
    struct egress_event other;

    (void) strcpy(event->from, flow->box->id);
    (void) strcpy(event->to, flow->far->id);
    if (event->what == EGRESS_REFUSED || flow->far == flow->box)
        return;
    other = *event;
    other.sent = event->received;
    other.received = event->sent;
    tell(e, flow->far, &other);
}

static struct flow *find_ticket(struct egress *e, const struct egress_dial *ask)
{
    struct box *box = box_find(e, ask->from);

    for (struct flow *flow = box ? box->flows : NULL; flow; flow = flow->next)
        if (flow->state == FLOW_DIAL && flow->dial_ticket == ask->ticket)
            return flow;
    return NULL;
}

void egress_dialed(struct egress *e, const struct egress_dial *ask, int fd, const struct err *why)
{
    auto_close int own = fd;
    struct flow *flow;

    (void) pthread_mutex_lock(&e->lock);
    flow = find_ticket(e, ask);
    if (flow && own >= 0) {
        if (flow->far || find_far(e, flow, ask->to)) {
            e->counts.connects++;
            flow->sides[SERVER].source = (struct source){ .fd = take_fd(&own) };
            relay_begin(e, flow);
        }
    } else if (flow && why->kind == ERR_STATE) {
        bar(e, flow, why->msg);
    } else if (flow) {
        fail(e, flow, why->msg);
    }
    (void) pthread_mutex_unlock(&e->lock);
}

/* ---- limits ---- */

static uint64_t room(struct bucket *bytes)
{
    return bytes->rate == 0 ? UINT64_MAX : bucket_level(bytes);
}

uint64_t flow_room(struct flow *flow)
{
    uint64_t own = room(&flow->box->bytes), far = flow->far ? room(&flow->far->bytes) : own;

    return own < far ? own : far;
}

void flow_spend(struct flow *flow, uint64_t bytes)
{
    (void) bucket_take(&flow->box->bytes, bytes);
    if (flow->far && flow->far != flow->box)
        (void) bucket_take(&flow->far->bytes, bytes);
}
