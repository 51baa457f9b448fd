/* What the gateway knows of the host that it runs on: its addresses, and whether it has a route for IPv6.
 *
 * Whether an address is the host's own is the kernel's word, never a guess, since a sandbox reaches such an address only if
 * a rule means it. It takes four calls to ask, so the answer "no" is remembered, until the kernel says that an address,
 * a route or a rule for routes has changed. It says so before a change is done with, on a socket that is looked at
 * whenever something is about to be taken from memory: what was heard by then is forgotten first. The answer "yes" is
 * not remembered: an address that is taken away may be reached at once. */
#include "egress/egress_own.h"

#include "base/own.h"
#include "base/special.h"
#include "egress/may_name.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define LOOK_MS       10000 /* how often addresses and name servers of this host are read again */
#define NEWS_AT_ONCE  64
#define GROUP(number) (1u << ((number) -1))

int host_watch(void)
{
    struct sockaddr_nl all = { .nl_family = AF_NETLINK,
                               .nl_groups = GROUP(RTNLGRP_IPV4_IFADDR) |
                                            GROUP(RTNLGRP_IPV6_IFADDR) | GROUP(RTNLGRP_IPV4_ROUTE) |
                                            GROUP(RTNLGRP_IPV6_ROUTE) | GROUP(RTNLGRP_IPV4_RULE) |
                                            GROUP(RTNLGRP_IPV6_RULE) };
    auto_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    return fd < 0 || bind(fd, (const struct sockaddr *) &all, sizeof all) < 0 ? -1 : take_fd(&fd);
}

/* Whether what is remembered holds. What has changed does not matter; nor do words that were lost (ENOBUFS). */
static bool memory_holds(struct egress *e)
{
    char news;
    int heard = 0;

    if (e->news_fd < 0)
        return false;
    while (heard < NEWS_AT_ONCE && recv(e->news_fd, &news, sizeof news, MSG_TRUNC) >= 0)
        heard++;
    if (heard == 0 && errno == EAGAIN)
        return true;
    memset(e->foreign, 0, sizeof e->foreign);
    return heard < NEWS_AT_ONCE && errno == EAGAIN;
}

static struct ip *place_of(struct egress *e, const struct ip *ip)
{
    uint32_t hash = 0;

    for (size_t i = 0; i < sizeof ip->bytes; i++)
        hash = hash * 31 + ip->bytes[i];
    return &e->foreign[hash % FOREIGN_IPS];
}

/* Addresses that the list does not have are new ones, and ranges that are local by a route. */
static bool is_own(struct egress *e, const struct ip *ip)
{
    struct ip *place = place_of(e, ip);
    bool holds;

    for (size_t i = 0; i < e->own_count; i++)
        if (ip_same(ip, &e->own[i]))
            return true;
    holds = memory_holds(e);
    if (holds && ip_same(ip, place)) /* an empty place is ::, which no program asks for */
        return false;
    if (host_has_ip(ip))
        return true;
    if (holds)
        *place = *ip;
    return false;
}

const char *kind_here(struct egress *e, const struct ip *ip)
{
    const struct special *row = special_find(ip->bytes);
    struct ip inner;

    if (row && row->never)
        return row->kind;
    if (is_own(e, ip) || (ip_inner(ip, &inner) && is_own(e, &inner)))
        return MAY_NAME_HOST;
    return row ? row->kind : NULL;
}

/* A connected datagram socket sends nothing; it only says whether there is a route. */
static bool has_way_out6(void)
{
    struct sockaddr_in6 far = { .sin6_family = AF_INET6,
                                .sin6_port = htons(53),
                                .sin6_addr = { { { 0x20, 0x01, 0x48, 0x60, [15] = 1 } } } };
    auto_close int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && connect(fd, (const struct sockaddr *) &far, sizeof far) == 0;
}

void host_look(struct egress *e, uint64_t now)
{
    struct ifaddrs *list = NULL;

    if (e->looked_ms != 0 && now - e->looked_ms < LOOK_MS)
        return;
    e->looked_ms = now;
    e->has6 = has_way_out6();
    lookup_servers(e);
    if (getifaddrs(&list) < 0)
        return;
    e->own_count = 0;
    for (const struct ifaddrs *at = list; at && e->own_count < OWN_IPS; at = at->ifa_next) {
        uint16_t port;

        if (at->ifa_addr && ip_of_sockaddr(at->ifa_addr, &e->own[e->own_count], &port))
            e->own_count++;
    }
    freeifaddrs(list);
}
