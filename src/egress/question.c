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

static void refuse_name(struct egress *e, struct box *box, const char *name, const char *rule)
{
    struct egress_event event = { .what = EGRESS_NAME };

    (void) snprintf(event.host, sizeof event.host, "%s", name);
    (void) snprintf(event.rule, sizeof event.rule, "%s", rule);
    e->counts.refused++;
    tell(e, box, &event);
}

/* Takes out what must not be given; remembers the rest. */
static void check_addresses(struct egress *e, struct box *box, const char *name,
                            struct dns_answer *answer)
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
        refuse_name(e, box, name, rule);
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

static void answered(struct egress *e, struct lookup *lookup, const struct dns_answer *upstream)
{
    struct dns_answer answer = *upstream;
    struct dns_question question = lookup->question;
    struct flow *flow = lookup->flow;
    uint8_t message[DNS_MESSAGE_MAX];
    size_t len;

    if (answer.code == DNS_NO_ERROR)
        check_addresses(e, lookup->box, lookup->name, &answer);
    len = dns_write_answer(&question, &answer, message);
    if (!flow) {
        send_udp(lookup->box->dns.fd, lookup, message, len);
        return;
    }
    send_tcp(e, flow, message, len);
    if (flow->sides[CLIENT].source.ready) /* or it was cut */
        question_tcp(e, flow);
}

/* ---- questions ---- */

/* What can be said at once: true, and the answer. */
static bool answer_now(struct egress *e, struct box *box, const struct dns_question *q,
                       struct dns_answer *ret)
{
    struct reach_verdict verdict = reach_name(box->rules, q->name);

    *ret = (struct dns_answer){ .code = DNS_NO_ERROR };
    if (peer_answer(e, box, q, ret))
        return true;
    if (!verdict.allowed) {
        ret->code = DNS_REFUSED;
        refuse_name(e, box, q->name, verdict.rule);
        return true;
    }
    if (q->type == DNS_AAAA && !e->has6)
        return true;
    return q->type != DNS_A && q->type != DNS_AAAA;
}

/* One message: 0 and *ret_len of an answer (0: none yet, or none at all). The lookup that was started, if any. */
static struct lookup *take_question(struct egress *e, struct box *box, const uint8_t *message,
                                    size_t len, uint8_t out[DNS_MESSAGE_MAX], size_t *ret_len)
{
    struct dns_answer answer;
    struct dns_question question;
    struct lookup *lookup = NULL;
    struct err ignored;

    e->counts.questions++;
    *ret_len = 0;
    if (dns_read_question(message, len, &question, &ignored) < 0) {
        *ret_len = dns_write_error(message, len, DNS_FORMAT_ERROR, out);
        return NULL;
    }
    if (!answer_now(e, box, &question, &answer)) {
        lookup = lookup_start(e, box, question.name, (enum dns_type) question.type, answered);
        if (lookup) {
            lookup->question = question;
            return lookup;
        }
        answer.code = DNS_SERVER_FAILURE;
    }
    *ret_len = dns_write_answer(&question, &answer, out);
    return NULL;
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
    uint8_t message[DNS_MESSAGE_MAX], out[DNS_MESSAGE_MAX];

    (void) events;
    for (int i = 0; i < QUESTIONS_AT_ONCE; i++) {
        struct lookup from = { .box = box }, *lookup;
        size_t len, answer_len;

        if (!receive(source->fd, &from, message, sizeof message, &len))
            return;
        if (!bucket_take(&box->questions, 1))
            continue; /* as if it had been lost on the way */
        lookup = take_question(e, box, message, len, out, &answer_len);
        if (lookup) {
            lookup->from = from.from;
            lookup->from_len = from.from_len;
            lookup->asked = from.asked;
        } else if (answer_len > 0) {
            send_udp(source->fd, &from, out, answer_len);
        }
    }
}

/* One question at a time: the next is looked at when this one was answered. */
void question_tcp(struct egress *e, struct flow *flow)
{
    uint8_t out[DNS_MESSAGE_MAX];
    size_t len, answer_len;

    while (flow->first_len >= TCP_HEAD && !flow->lookup) {
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
        flow->lookup = take_question(e, flow->box, flow->first + TCP_HEAD, len, out, &answer_len);
        if (flow->lookup)
            flow->lookup->flow = flow;
        flow->first_len -= TCP_HEAD + len;
        memmove(flow->first, flow->first + TCP_HEAD + len, flow->first_len);
        if (answer_len > 0)
            send_tcp(e, flow, out, answer_len);
        if (!flow->sides[CLIENT].source.ready)
            return; /* it was cut */
    }
}
