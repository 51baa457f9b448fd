#include "agent/egress.h"

#include "agent/egress_rules.h"
#include "agent/worker/port.h"
#include "base/io.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define BACKLOG       256
#define PER_TURN      16
#define QUESTION_MAX  4096u
#define QUESTION_MS   15000
#define QUESTIONS_MAX 64u /* at once; the others are not asked, as by a server that is busy */
#define ORIGINAL_DST  80  /* SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST */
#define DNS_PORT      53

/* A datagram whose answer is to come. */
struct question {
    struct question *prev, *next;
    struct mux_stream *stream;
    struct sockaddr_in from;
    uint64_t asked_ms;
};

static struct {
    bool open;
    struct hub_watch tcp[2]; /* IPv4, IPv6 */
    uint16_t port[2];        /* at which they listen; 0: they do not */
    struct hub_watch names;
    struct question *first;
    size_t questions;
} egress = { .tcp = { { .fd = -1 }, { .fd = -1 } }, .names = { .fd = -1 } };

/* ---- connections ---- */

/* Where it was meant to go; false: to the listener itself. */
static bool meant4(int fd, struct mux_open *ret)
{
    struct sockaddr_in to, from;
    socklen_t len = sizeof to, from_len = sizeof from;

    if (getsockopt(fd, IPPROTO_IP, ORIGINAL_DST, &to, &len) < 0 ||
        getpeername(fd, (struct sockaddr *) &from, &from_len) < 0)
        return false;
    *ret = (struct mux_open){ .kind = MUX_TCP4,
                              .port = ntohs(to.sin_port),
                              .source_port = ntohs(from.sin_port) };
    memcpy(ret->address, &to.sin_addr, 4);
    return ret->address[0] != 127;
}

static bool meant6(int fd, struct mux_open *ret)
{
    struct sockaddr_in6 to, from;
    socklen_t len = sizeof to, from_len = sizeof from;

    if (getsockopt(fd, IPPROTO_IPV6, ORIGINAL_DST, &to, &len) < 0 ||
        getpeername(fd, (struct sockaddr *) &from, &from_len) < 0)
        return false;
    *ret = (struct mux_open){ .kind = MUX_TCP6,
                              .port = ntohs(to.sin6_port),
                              .source_port = ntohs(from.sin6_port) };
    memcpy(ret->address, &to.sin6_addr, 16);
    return !IN6_IS_ADDR_LOOPBACK(&to.sin6_addr);
}

/* A connection that cannot be taken now is closed: a listener that waits would keep the loop busy. */
static void on_connection(struct hub *hub, struct hub_watch *watch, uint32_t events)
{
    (void) events;
    for (int i = 0; i < PER_TURN; i++) {
        auto_close int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct mux_open open;

        if (fd < 0)
            return;
        if ((watch == &egress.tcp[0] ? meant4 : meant6)(fd, &open) && hub_open(hub, &open, fd) == 0)
            (void) take_fd(&fd);
    }
}

/* ---- questions ---- */

static void forget(struct question *q)
{
    *(q->prev ? &q->prev->next : &egress.first) = q->next;
    if (q->next)
        q->next->prev = q->prev;
    egress.questions--;
    free(q);
}

static void ask(struct hub *hub, const uint8_t *data, size_t len, const struct sockaddr_in *from)
{
    static const struct mux_open open = { .kind = MUX_QUESTION };
    struct question *q = egress.questions < QUESTIONS_MAX ? calloc(1, sizeof *q) : NULL;
    struct mux_stream *stream = q ? mux_open(&hub->mux, &open, NULL) : NULL;

    if (!stream || hub_join(hub, stream, -1, true, q) < 0) {
        if (stream)
            mux_reset(&hub->mux, stream);
        free(q);
        return;
    }
    *q = (struct question){
        .next = egress.first, .stream = stream, .from = *from, .asked_ms = io_now_ms()
    };
    if (q->next)
        q->next->prev = q;
    egress.first = q;
    egress.questions++;
    if (mux_room(&hub->mux, stream) >= len)
        mux_send(&hub->mux, stream, data, len);
    else
        mux_reset(&hub->mux, stream);
}

static void on_question(struct hub *hub, struct hub_watch *watch, uint32_t events)
{
    uint8_t data[QUESTION_MAX];
    struct sockaddr_in from;

    (void) events;
    for (int i = 0; i < PER_TURN; i++) {
        socklen_t len = sizeof from;
        ssize_t n =
            recvfrom(watch->fd, data, sizeof data, MSG_DONTWAIT, (struct sockaddr *) &from, &len);

        if (n < 0)
            return;
        if (n > 0)
            ask(hub, data, (size_t) n, &from);
    }
}

void egress_answer(struct hub *hub, struct mux_stream *stream, const uint8_t *data, size_t len)
{
    struct question *q = hub_owner(stream);

    (void) sendto(egress.names.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *) &q->from, sizeof q->from);
    mux_reset(&hub->mux, stream); /* one answer is all */
}

void egress_gone(struct hub *hub, void *owner)
{
    (void) hub;
    forget(owner);
}

void egress_tick(struct hub *hub)
{
    uint64_t now = io_now_ms();

    for (struct question *q = egress.first, *next; q; q = next) {
        next = q->next;
        if (now - q->asked_ms >= QUESTION_MS)
            mux_reset(&hub->mux, q->stream);
    }
}

/* ---- the beginning ---- */

static void stop_listening(struct hub *hub, struct hub_watch *watch)
{
    if (!watch->added)
        return;
    hub_unwatch(hub, watch);
    own_close(&watch->fd);
}

static int listen_tcp(struct hub *hub, int family, struct hub_watch *watch, uint16_t *ret_port,
                      struct err *err)
{
    struct sockaddr_in6 at = {
        .sin6_family = (sa_family_t) family
    }; /* of either family: any address, any port */
    socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof at;
    auto_close int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;

    if (fd >= 0 && family == AF_INET6)
        (void) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    stop_listening(hub, watch); /* of an attempt before that failed behind this */
    *watch = (struct hub_watch){ .fd = fd, .ready = on_connection };
    if (fd < 0 || bind(fd, (struct sockaddr *) &at, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *) &at, &len) < 0 || hub_watch(hub, watch, EPOLLIN) < 0) {
        watch->fd = -1;
        return err_sys(err, errno, "listen for connections");
    }
    *ret_port = ntohs(at.sin6_port); /* sin_port is at the same place */
    ports_hide(*ret_port);
    (void) take_fd(&fd);
    return 0;
}

static int listen_names(struct hub *hub, struct err *err)
{
    static const uint8_t server[4] = EGRESS_SERVER4;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(DNS_PORT) };
    auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(&at.sin_addr, server, sizeof server);
    stop_listening(hub, &egress.names);
    egress.names = (struct hub_watch){ .fd = fd, .ready = on_question };
    if (fd < 0 || bind(fd, (struct sockaddr *) &at, sizeof at) < 0 ||
        hub_watch(hub, &egress.names, EPOLLIN) < 0) {
        egress.names.fd = -1;
        return err_sys(err, errno, "listen for questions");
    }
    (void) take_fd(&fd);
    return 0;
}

int egress_open(struct hub *hub, struct err *err)
{
    uint16_t *port = egress.port;
    struct err ignored;

    if (egress.open)
        return 0;
    if (egress_addresses4(err) < 0 || listen_tcp(hub, AF_INET, &egress.tcp[0], &port[0], err) < 0 ||
        egress_redirect4(port[0], err) < 0 || listen_names(hub, err) < 0)
        return -1;
    egress.open = true;
    /* Where the guest's kernel has no IPv6, programs use the other. */
    if (egress_addresses6(&ignored) == 0 &&
        listen_tcp(hub, AF_INET6, &egress.tcp[1], &port[1], &ignored) == 0)
        (void) egress_redirect6(port[1], &ignored);
    return 0;
}

void egress_close_outside(struct hub *hub)
{
    hub_reset_ours(hub);
    stop_listening(hub, &egress.names);
}

/* What fails here leaves the guest without a network, as at the start. */
void egress_renew(struct hub *hub)
{
    struct err ignored;

    if (!egress.open) {
        egress_remove_addresses();
        return;
    }
    if (egress_addresses4(&ignored) == 0)
        (void) egress_redirect4(egress.port[0], &ignored);
    if (egress.names.fd < 0)
        (void) listen_names(hub, &ignored);
    if (egress.port[1] && egress_addresses6(&ignored) == 0)
        (void) egress_redirect6(egress.port[1], &ignored);
}
