/* How a connection ends that was not let out. It is kept for a moment (FLOW_OWNER), until it is known whose it was. */
#include "egress/egress_own.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define LINGER_MS 2000
#define WHY_MS    1000
#define BY_PROXY  "proxy"

void flow_tell(struct egress *e, const struct flow *flow, enum egress_what what)
{
    struct egress_event event = { .what = what,
                                  .ip = flow->ip,
                                  .port = flow->port,
                                  .sent = flow->sent,
                                  .received = flow->received,
                                  .ms = io_now_ms() - flow->begun_ms };

    (void) strcpy(event.host, flow->name);
    (void) strcpy(event.rule, flow->rule);
    (void) strcpy(event.reason, flow->reason);
    event.process = flow->process;
    if (flow->far)
        peer_tell(e, flow, &event);
    tell(e, flow->box, &event);
}

void source_reset(struct egress *e, struct source *source)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };

    if (source->fd >= 0)
        (void) setsockopt(source->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    source_close(e, source);
}

void flow_end(struct egress *e, struct flow *flow, bool reset)
{
    flow_enter(flow, FLOW_ENDED, UINT64_MAX);
    if (flow->lookup) {
        flow->lookup->flow = NULL;
        lookup_free(e, flow->lookup);
    }
    for (int s = CLIENT; s <= SERVER; s++) {
        if (reset)
            source_reset(e, &flow->sides[s].source);
        else
            source_close(e, &flow->sides[s].source);
        free(flow->sides[s].held);
        flow->sides[s].held = NULL;
    }
    free(flow->first);
    flow->first = NULL;
    free(flow->watch);
    flow->watch = NULL;
    open_end(flow);
    via_free(flow);
    peer_end(flow);
    owner_done(flow->box, &flow->ticket, true);
    if (flow->prev)
        flow->prev->next = flow->next;
    else
        flow->box->flows = flow->next;
    if (flow->next)
        flow->next->prev = flow->prev;
    share_give(e, flow->box, EGRESS_CONNECTIONS);
    free_later(e, &flow->deferred);
}

/* Closing at once would reset the connection if there is more of the client's, and the reset could overtake the answer:
 * what still comes is dropped for a while. */
static void on_linger(struct egress *e, struct source *source, uint32_t events)
{
    struct side *side = (struct side *) (void *) ((char *) source - offsetof(struct side, source));
    ssize_t n = recv(source->fd, e->copy, sizeof e->copy, MSG_DONTWAIT);

    (void) events;
    if (n == 0 || (n < 0 && errno != EAGAIN))
        flow_end(e, side->flow, false);
}

static void linger(struct egress *e, struct flow *flow)
{
    struct source *client = &flow->sides[CLIENT].source;

    flow_enter(flow, FLOW_LINGER, io_now_ms() + LINGER_MS);
    client->ready = on_linger;
    if (shutdown(client->fd, SHUT_WR) < 0 || source_arm(e, client, EPOLLIN) < 0)
        flow_end(e, flow, false);
}

/* Who speaks HTTP can be told why, also in TLS that is ended here; all others see the connection cut. */
static void answer(struct egress *e, struct flow *flow, const char *status, const char *body)
{
    char answer[1400];
    int len =
        snprintf(answer, sizeof answer,
                 "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                 "Content-Length: %zu\r\nX-Cove-Refused: network\r\nConnection: close\r\n\r\n%s",
                 status, strlen(body), body);

    source_close(e, &flow->sides[SERVER].source);
    if (!flow->opened) {
        (void) send(flow->sides[CLIENT].source.fd, answer, (size_t) len,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (!open_answer(flow, answer, (size_t) len)) {
        flow_end(e, flow, true);
        return;
    }
    linger(e, flow);
}

static void print_host(const struct flow *flow, char out[REACH_NAME_MAX])
{
    if (flow->name[0])
        (void) strcpy(out, flow->name);
    else
        ip_print(&flow->ip, out);
}

void flow_answer(struct egress *e, struct flow *flow)
{
    char host[REACH_NAME_MAX], body[900];

    print_host(flow, host);
    (void) snprintf(body, sizeof body, "This request to %s port %u was not sent: %s.\n", host,
                    flow->port, flow->reason);
    answer(e, flow, flow->refused ? "403 Forbidden" : "502 Bad Gateway", body);
}

static void refuse_now(struct egress *e, struct flow *flow)
{
    const char *means = flow->reason[0] ? flow->reason : egress_rule_means(flow->rule);
    char host[REACH_NAME_MAX], body[900];

    flow_tell(e, flow, EGRESS_REFUSED);
    if (flow->answers) {
        flow_answer(e, flow);
        return;
    }
    if (!flow->plain_http || flow->refused) {
        flow_end(e, flow, true);
        return;
    }
    print_host(flow, host);
    (void) snprintf(body, sizeof body,
                    "This sandbox may not reach %s port %u: %s%s%s.\n"
                    "The owner of the sandbox can allow it in its network policy.\n",
                    host, flow->port, flow->rule, means[0] ? ": " : "", means);
    answer(e, flow, "403 Forbidden", body);
}

/* ---- whose it is ---- */

static bool ask_owner(struct egress *e, struct flow *flow)
{
    struct egress_ask ask = { .datagram = false };
    int fd = flow->sides[CLIENT].source.fd;
    struct sockaddr_storage at;
    socklen_t len = sizeof at, peer_len = sizeof at;

    if (getsockname(fd, (struct sockaddr *) &at, &len) < 0 ||
        !ip_of_sockaddr((const struct sockaddr *) &at, &ask.to, &ask.to_port) ||
        getpeername(fd, (struct sockaddr *) &at, &peer_len) < 0 ||
        !ip_of_sockaddr((const struct sockaddr *) &at, &ask.from, &ask.from_port) ||
        !owner_ask(e, flow->box, &ask))
        return false;
    flow->ticket = ask.ticket;
    return true;
}

void flow_owner(struct egress *e, struct flow *flow, const struct egress_process *process)
{
    if (process)
        flow->process = *process;
    owner_done(flow->box, &flow->ticket, process != NULL);
    refuse_now(e, flow);
}

static void wait_for_owner(struct egress *e, struct flow *flow)
{
    e->counts.refused++;
    for (int s = CLIENT; s <= SERVER; s++)
        if (flow->sides[s].source.fd >= 0)
            (void) source_arm(e, &flow->sides[s].source, 0);
    if (!ask_owner(e, flow)) {
        refuse_now(e, flow);
        return;
    }
    flow_enter(flow, FLOW_OWNER, io_now_ms() + OWNER_MS);
}

/* ---- ways to end it ---- */

void flow_refuse(struct egress *e, struct flow *flow, const char *rule)
{
    (void) snprintf(flow->rule, sizeof flow->rule, "%s", rule);
    wait_for_owner(e, flow);
}

void flow_cut(struct egress *e, struct flow *flow)
{
    flow->refused = true;
    wait_for_owner(e, flow);
}

void flow_say_why(struct egress *e, struct flow *flow)
{
    char body[900], name[REACH_NAME_MAX];
    ssize_t n;

    if (!flow->plain_http && flow->first_len == 0) {
        n = recv(flow->sides[CLIENT].source.fd, e->copy, SNIFF_MAX, MSG_DONTWAIT | MSG_PEEK);
        flow->plain_http = n > 0 && sniff_first(e->copy, (size_t) n, name) == SNIFF_HTTP;
    }
    if (!flow->plain_http) {
        flow_end(e, flow, true);
        return;
    }
    (void) snprintf(body, sizeof body,
                    "Connections of this sandbox go through a proxy, which did not let this one "
                    "through: %s.\n"
                    "The owner of the sandbox can name another proxy in its network policy.\n",
                    flow->reason);
    answer(e, flow, "502 Bad Gateway", body);
}

static void on_word(struct egress *e, struct source *source, uint32_t events)
{
    struct side *side = (struct side *) (void *) ((char *) source - offsetof(struct side, source));

    (void) events;
    flow_say_why(e, side->flow);
}

/* Not every connection was looked at before it was let out; now it matters how it can be told, and so what it says. */
void flow_no_proxy(struct egress *e, struct flow *flow, const char *reason)
{
    struct source *client = &flow->sides[CLIENT].source;

    (void) strcpy(flow->rule, BY_PROXY);
    (void) snprintf(flow->reason, sizeof flow->reason, "%s", reason);
    flow_tell(e, flow, EGRESS_FAILED);
    source_close(e, &flow->sides[SERVER].source);
    flow_enter(flow, FLOW_WHY, io_now_ms() + WHY_MS);
    client->ready = on_word;
    if (flow->first_len > 0)
        flow_say_why(e, flow);
    else if (source_arm(e, client, EPOLLIN | EPOLLRDHUP) < 0)
        flow_end(e, flow, true);
}
