#include "server/serve/peer_owner.h"

#include "base/own.h"
#include "check.h"
#include "egress/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct pair {
    int listener, client, server;
    struct sockaddr_storage peer;
};

static socklen_t address(const char *ip, uint16_t port, struct sockaddr_storage *ret)
{
    struct ip at = { { 0 } };

    CHECK(ip_parse(ip, &at));
    return ip_to_sockaddr(&at, port, ret);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    struct ip ip;
    uint16_t port = 0;

    CHECK(getsockname(fd, (struct sockaddr *) &at, &len) == 0);
    CHECK(ip_of_sockaddr((const struct sockaddr *) &at, &ip, &port));
    return port;
}

/* mapped: the client's socket is one of IPv6 that talks IPv4. */
static struct pair connect_to(const char *ip, bool mapped)
{
    struct sockaddr_storage at;
    socklen_t len = address(ip, 0, &at);
    struct pair pair = { socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), -1, -1, { 0 } };
    uint16_t port;

    CHECK(bind(pair.listener, (struct sockaddr *) &at, len) == 0 && listen(pair.listener, 9) == 0);
    port = port_of(pair.listener);
    len = address(ip, port, &at);
    if (mapped) {
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

        CHECK(inet_pton(AF_INET6, "::ffff:127.0.0.1", &six.sin6_addr) == 1);
        pair.client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(connect(pair.client, (struct sockaddr *) &six, sizeof six) == 0);
    } else {
        pair.client = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(connect(pair.client, (struct sockaddr *) &at, len) == 0);
    }
    len = sizeof pair.peer;
    pair.server = accept4(pair.listener, (struct sockaddr *) &pair.peer, &len, SOCK_CLOEXEC);
    CHECK(pair.server >= 0);
    return pair;
}

static void pair_close(struct pair *pair)
{
    own_close(&pair->client);
    own_close(&pair->server);
    own_close(&pair->listener);
}

static enum peer_owner owner(struct peer_owners *owners, const struct pair *pair)
{
    return peer_owner_of(owners, pair->server, (const struct sockaddr *) &pair->peer);
}

/* By netlink, and by the tables of /proc. */
static void in_both_ways(void (*check)(struct peer_owners *owners))
{
    for (int by_table = 0; by_table < 2; by_table++) {
        struct peer_owners owners;
        struct err err;

        CHECK_INT(peer_owners_open(&owners, by_table, &err), 0);
        CHECK_INT(owners.fd < 0, by_table);
        check(&owners);
        peer_owners_close(&owners);
    }
}

static bool has_six(void)
{
    return access("/proc/net/if_inet6", F_OK) == 0;
}

static void check_local(struct peer_owners *owners)
{
    static const struct {
        const char *ip;
        bool mapped;
    } rows[] = {
        { "127.0.0.1", false }, { "127.1.2.3", false }, { "127.0.0.1", true }, { "::1", false }
    };

    for (size_t i = 0; i < ARRAY_LEN(rows) - !has_six(); i++) {
        struct pair pair = connect_to(rows[i].ip, rows[i].mapped);

        CHECK_INT(owner(owners, &pair), PEER_LOCAL);
        pair_close(&pair);
    }
}

static void a_program_of_this_host_is_known(void)
{
    in_both_ways(check_local);
}

static void check_gateway(struct peer_owners *owners)
{
    static const char *const ips[] = { "127.0.0.1", "::1" };

    for (size_t i = 0; i < ARRAY_LEN(ips) - !has_six(); i++) {
        struct pair pair = connect_to(ips[i], false);

        CHECK(fchown(pair.client, EGRESS_UID, (gid_t) -1) == 0);
        CHECK_INT(owner(owners, &pair), PEER_GATEWAY);
        pair_close(&pair);
    }
}

static void a_connection_of_the_gateway_is_known(void)
{
    in_both_ways(check_gateway);
}

/* The kernel tells uid 0 of a socket that nobody has any more: a request that was sent before must not be root's. */
static void check_closed(struct peer_owners *owners)
{
    struct pair pair = connect_to("127.0.0.1", false);

    CHECK(fchown(pair.client, EGRESS_UID, (gid_t) -1) == 0);
    CHECK(write(pair.client, "x", 1) == 1);
    own_close(&pair.client);
    CHECK_INT(owner(owners, &pair), PEER_UNKNOWN);
    pair_close(&pair);
}

static void who_sent_and_left_is_not_known(void)
{
    in_both_ways(check_closed);
}

/* A listener at the other end's port is not the other end. */
static void check_listener(struct peer_owners *owners)
{
    struct pair pair = connect_to("127.0.0.1", false);
    struct sockaddr_storage at;
    socklen_t len = address("127.0.0.1", port_of(pair.client), &at);
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    (void) setsockopt(pair.client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    own_close(&pair.client);
    CHECK(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    while (bind(other, (struct sockaddr *) &at, len) < 0)
        CHECK(errno == EADDRINUSE); /* until the kernel is done with the one before */
    CHECK(listen(other, 1) == 0);
    CHECK_INT(owner(owners, &pair), PEER_UNKNOWN);
    (void) close(other);
    pair_close(&pair);
}

static void a_listener_is_not_taken_for_the_other_end(void)
{
    in_both_ways(check_listener);
}

static double us_each(struct peer_owners *owners, const struct pair *pair, int rounds)
{
    struct timespec from, to;

    (void) clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < rounds; i++)
        (void) owner(owners, pair);
    (void) clock_gettime(CLOCK_MONOTONIC, &to);
    return ((double) (to.tv_sec - from.tv_sec) * 1e6 + (double) (to.tv_nsec - from.tv_nsec) / 1e3) /
           rounds;
}

static void asking_takes_microseconds(void)
{
    struct pair pair = connect_to("127.0.0.1", false);
    struct peer_owners owners;
    struct err err;
    double us;

    CHECK_INT(peer_owners_open(&owners, false, &err), 0);
    (void) us_each(&owners, &pair, 1000);
    us = us_each(&owners, &pair, 20000);
    (void) fprintf(stderr, "asked in %.2f us\n", us);
    CHECK(us < 200); /* of a busy machine; 2 to 4 on an idle one */
    peer_owners_close(&owners);
    pair_close(&pair);
}

CHECK_MAIN(T(a_program_of_this_host_is_known), T(a_connection_of_the_gateway_is_known),
           T(who_sent_and_left_is_not_known), T(a_listener_is_not_taken_for_the_other_end),
           T(asking_takes_microseconds))
