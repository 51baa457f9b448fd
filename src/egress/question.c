/* Questions of programs inside. Only names that the rules know are asked of anybody, and only addresses that the rules
 * take are given out: a name that leads to a private address leads nowhere. */
#include "egress/egress_own.h"

#include "base/io.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define QUESTIONS_AT_ONCE 16
#define TCP_HEAD          2

/* Takes out what must not be given; remembers the rest. */
static void check_addresses(struct egress *e, struct box *box, const char *name,
                            struct dns_answer *answer, struct refusal *ret)
{
    char rule[REACH_TEXT_MAX] = "";
    size_t kept = 0;

    for (size_t i = 0; i < answer->count; i++) {
        if (!box_takes(e, box, &answer->list[i], 0, name, rule))
            continue;
        box_give(box, &answer->list[i], name, answer->ttl);
        answer->list[kept++] = answer->list[i];
    }
    if (kept == 0 && answer->count > 0) {
        answer->code = DNS_REFUSED;
        (void) strcpy(ret->rule, rule);
    }
    answer->count = kept;
}

/* ---- answers ---- */

static void send_udp(int fd, const struct lookup *to, const uint8_t *message, size_t len)
{
    char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = { 0 };
    struct iovec iov = { (void *) (uintptr_t) message, len };
    struct msghdr msg = { .msg_name = (void *) (uintptr_t) &to->from,
                          .msg_namelen = to->from_len,
                          .msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control,
                          .msg_controllen = sizeof control };
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    struct in6_pktinfo *info = (struct in6_pktinfo *) (void *) CMSG_DATA(c);

    /* From the address that was asked, or the program does not take it. */
    c->cmsg_level = IPPROTO_IPV6;
    c->cmsg_type = IPV6_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof *info);
    memcpy(&info->ipi6_addr, to->asked.bytes, sizeof to->asked.bytes);
    (void) sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A program that does not read its answers is cut. */
static void send_tcp(struct egress *e, struct flow *flow, const uint8_t *message, size_t len)
{
    uint8_t framed[TCP_HEAD + DNS_MESSAGE_MAX];

    framed[0] = (uint8_t) (len >> 8);
    framed[1] = (uint8_t) len;
    memcpy(framed + TCP_HEAD, message, len);
    if (send(flow->sides[CLIENT].source.fd, framed, len + TCP_HEAD, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t) (len + TCP_HEAD))
        flow_end(e, flow, true);
}

static void reply(struct egress *e, const struct lookup *asker, const struct dns_answer *answer)
{
    uint8_t message[DNS_MESSAGE_MAX];
    size_t len = dns_write_answer(&asker->question, answer, message);

    if (asker->flow)
        send_tcp(e, asker->flow, message, len);
    else
        send_udp(asker->box->dns.fd, asker, message, len);
}

/* ---- refusals ---- */

static void tell_name(struct egress *e, const struct lookup *asker, const struct refusal *refusal,
                      const struct egress_process *process)
{
    struct egress_event event = { .what = EGRESS_NAME, .port = DNS_PORT };

    (void) strcpy(event.host, asker->question.name);
    (void) strcpy(event.rule, refusal->rule);
    (void) strcpy(event.reason, refusal->reason);
    if (process)
        event.process = *process;
    tell(e, asker->box, &event);
}

static bool ends_of(const struct lookup *asker, struct egress_ask *ret)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof at;

    if (!asker->flow) {
        *ret = (struct egress_ask){ .datagram = true, .to = asker->asked, .to_port = DNS_PORT };
        return ip_of_sockaddr((const struct sockaddr *) &asker->from, &ret->from, &ret->from_port);
    }
    *ret = (struct egress_ask){ .to = asker->flow->ip, .to_port = asker->flow->port };
    return getpeername(asker->flow->sides[CLIENT].source.fd, (struct sockaddr *) &at, &len) == 0 &&
           ip_of_sockaddr((const struct sockaddr *) &at, &ret->from, &ret->from_port);
}

/* Its answer waits until it is known whose it is: who has it may close its socket. */
static bool hold(struct egress *e, const struct lookup *asker, const struct dns_answer *answer,
                 const struct refusal *refusal)
{
    char ignored[EGRESS_REASON_MAX];
    struct lookup *held = lookup_new(e, asker->box, asker->question.name, ignored);
    struct egress_ask ask;

    if (!held)
        return false;
    held->question = asker->question;
    held->from = asker->from;
    held->from_len = asker->from_len;
    held->asked = asker->asked;
    held->answer = *answer;
    held->refusal = *refusal;
    held->deadline_ms = io_now_ms() + OWNER_MS;
    if (!ends_of(asker, &ask) || !owner_ask(e, asker->box, &ask)) {
        lookup_free(e, held);
        return false;
    }
    held->ticket = ask.ticket;
    held->flow = asker->flow;
    if (held->flow)
        held->flow->lookup = held;
    return true;
}

void question_forget(struct egress *e, struct lookup *lookup)
{
    owner_done(lookup->box, &lookup->ticket, true);
    tell_name(e, lookup, &lookup->refusal, NULL);
}

void question_owner(struct egress *e, struct lookup *lookup, const struct egress_process *process)
{
    struct flow *flow = lookup->flow;

    owner_done(lookup->box, &lookup->ticket, process != NULL);
    tell_name(e, lookup, &lookup->refusal, process);
    if (flow)
        flow->lookup = NULL;
    reply(e, lookup, &lookup->answer);
    lookup->flow = NULL;
    lookup_free(e, lookup);
    if (flow && flow->sides[CLIENT].source.ready) /* or it was cut */
        question_tcp(e, flow);
}

static void settle(struct egress *e, const struct lookup *asker, const struct dns_answer *answer,
                   const struct refusal *refusal)
{
    if (refusal->rule[0]) {
        e->counts.refused++;
        if (strcmp(refusal->rule, LIMIT_RULE) != 0 && hold(e, asker, answer, refusal))
            return;
        tell_name(e, asker, refusal, NULL);
    }
    reply(e, asker, answer);
}

static void answered(struct egress *e, struct lookup *lookup, const struct dns_answer *upstream)
{
    struct refusal refusal = { .rule = "" };
    struct dns_answer answer = *upstream;
    struct flow *flow = lookup->flow;

    if (answer.code == DNS_NO_ERROR)
        check_addresses(e, lookup->box, lookup->name, &answer, &refusal);
    settle(e, lookup, &answer, &refusal);
    if (flow && flow->sides[CLIENT].source.ready) /* or it was cut */
        question_tcp(e, flow);
}

/* ---- questions ---- */

/* What can be said at once: true, and the answer. */
static bool answer_now(const struct egress *e, const struct box *box, const struct dns_question *q,
                       struct dns_answer *ret, struct refusal *ret_refusal)
{
    struct reach_verdict verdict = reach_name(box->rules, q->name);

    *ret = (struct dns_answer){ .code = DNS_NO_ERROR };
    if (peer_answer(box, q, ret, ret_refusal))
        return true;
    if (!verdict.allowed) {
        ret->code = DNS_REFUSED;
        (void) strcpy(ret_refusal->rule, verdict.rule);
        return true;
    }
    if (q->type == DNS_AAAA && !e->has6)
        return true;
    return q->type != DNS_A && q->type != DNS_AAAA;
}

/* One message of `asker`, who has an answer then, or flow->lookup, or gets it later, or never. */
static void take_question(struct egress *e, struct lookup *asker, const uint8_t *message,
                          size_t len)
{
    struct refusal refusal = { .rule = "" };
    uint8_t out[DNS_MESSAGE_MAX];
    struct dns_answer answer;
    struct lookup *lookup;
    struct err ignored;
    size_t out_len;

    e->counts.questions++;
    if (dns_read_question(message, len, &asker->question, &ignored) < 0) {
        out_len = dns_write_error(message, len, DNS_FORMAT_ERROR, out);
        if (out_len > 0 && asker->flow)
            send_tcp(e, asker->flow, out, out_len);
        else if (out_len > 0)
            send_udp(asker->box->dns.fd, asker, out, out_len);
        return;
    }
    if (!answer_now(e, asker->box, &asker->question, &answer, &refusal)) {
        lookup = lookup_start(e, asker->box, asker->question.name,
                              (enum dns_type) asker->question.type, answered, refusal.reason);
        if (lookup) {
            lookup->question = asker->question;
            lookup->from = asker->from;
            lookup->from_len = asker->from_len;
            lookup->asked = asker->asked;
            lookup->flow = asker->flow;
            if (lookup->flow)
                lookup->flow->lookup = lookup;
            return;
        }
        answer.code = DNS_SERVER_FAILURE;
        if (refusal.reason[0])
            (void) strcpy(refusal.rule, LIMIT_RULE);
    }
    settle(e, asker, &answer, &refusal);
}

static bool receive(int fd, struct lookup *from, uint8_t *message, size_t size, size_t *ret_len)
{
    char control[256];
    struct iovec iov = { message, size };
    struct msghdr msg = { .msg_name = &from->from,
                          .msg_namelen = sizeof from->from,
                          .msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control,
                          .msg_controllen = sizeof control };
    ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);

    if (n < 0)
        return false;
    *ret_len = (size_t) n;
    from->from_len = msg.msg_namelen;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO)
            memcpy(from->asked.bytes,
                   &((const struct in6_pktinfo *) (const void *) CMSG_DATA(c))->ipi6_addr,
                   sizeof from->asked.bytes);
    return true;
}

void question_udp(struct egress *e, struct source *source, uint32_t events)
{
    struct box *box = (struct box *) (void *) ((char *) source - offsetof(struct box, dns));
    uint8_t message[DNS_MESSAGE_MAX];

    (void) events;
    for (int i = 0; i < QUESTIONS_AT_ONCE; i++) {
        struct lookup asker = { .box = box };
        size_t len;

        if (!receive(source->fd, &asker, message, sizeof message, &len))
            return;
        if (bucket_take(&box->questions, 1)) /* else as if it had been lost on the way */
            take_question(e, &asker, message, len);
    }
}

/* One question at a time: the next is looked at when this one was answered. */
void question_tcp(struct egress *e, struct flow *flow)
{
    uint8_t message[DNS_MESSAGE_MAX];
    size_t len;

    while (flow->first_len >= TCP_HEAD && !flow->lookup) {
        struct lookup asker = { .box = flow->box, .flow = flow };

        len = (size_t) flow->first[0] << 8 | flow->first[1];
        if (len > DNS_MESSAGE_MAX) {
            flow_end(e, flow, true);
            return;
        }
        if (flow->first_len < TCP_HEAD + len)
            return;
        if (!bucket_take(&flow->box->questions, 1)) {
            flow_end(e, flow, true);
            return;
        }
        memcpy(message, flow->first + TCP_HEAD, len);
        flow->first_len -= TCP_HEAD + len;
        memmove(flow->first, flow->first + TCP_HEAD + len, flow->first_len);
        take_question(e, &asker, message, len);
        if (!flow->sides[CLIENT].source.ready)
            return; /* it was cut */
    }
}
