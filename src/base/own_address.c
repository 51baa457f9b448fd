#include "base/own_address.h"

#include "base/own.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define AT_IPV4 12

struct route_question {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr to;
    uint8_t address[16];
};

static struct route_question ask_for_route(const uint8_t address[16])
{
    static const uint8_t four_begins[AT_IPV4] = { [10] = 0xff, [11] = 0xff };
    bool four = memcmp(address, four_begins, sizeof four_begins) == 0;
    uint16_t len = four ? 4 : 16;
    struct route_question q = {
        .head = { .nlmsg_len = (uint32_t) (offsetof(struct route_question, address) + len),
                  .nlmsg_type = RTM_GETROUTE,
                  .nlmsg_flags = NLM_F_REQUEST },
        .route = { .rtm_family = four ? AF_INET : AF_INET6, .rtm_dst_len = (uint8_t) (8 * len) },
        .to = { .rta_len = (uint16_t) RTA_LENGTH(len), .rta_type = RTA_DST },
    };

    memcpy(q.address, address + (four ? AT_IPV4 : 0), len);
    return q;
}

/* By the route, not by the address that a socket gets: where a route alone makes a range local, connections may come from
 * another address than the one they go to. An answer that is an error says that there is no way there, today. */
bool own_address(const uint8_t address[16])
{
    struct route_question q = ask_for_route(address);
    auto_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        uint8_t rest[1024];
    } answer;
    ssize_t n;

    if (fd < 0 || send(fd, &q, q.head.nlmsg_len, 0) != (ssize_t) q.head.nlmsg_len)
        return true; /* not known to be elsewhere */
    do
        n = recv(fd, &answer, sizeof answer, 0);
    while (n < 0 && errno == EINTR);
    if (n < (ssize_t) NLMSG_LENGTH(sizeof answer.route))
        return true;
    return answer.head.nlmsg_type == RTM_NEWROUTE && answer.route.rtm_type == RTN_LOCAL;
}
