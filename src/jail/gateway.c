/* No packet filter, no address translation, no connection tracking, no device:
 *
 *   1. "local default dev lo" makes every address one of the sandbox's own, so that a packet to any of them stays
 *      inside and looks for a socket there.
 *   2. A program at that look-up (BPF_SK_LOOKUP, gateway_program.c) gives connections to addresses that are not loopback's
 *      or the sandbox's to the gateway's listener, whatever their port, but for special addresses that are closed;
 *      datagrams to port 53 to the gateway's other socket; and refuses the rest. It fails closed: what it does not know
 *      is dropped.
 *
 * Without the program the routes alone would let a sandbox find its own servers behind foreign addresses, nothing more.
 * All of it belongs to the namespace, which no process inside has the capability to change (net.h). */
#include "jail/gateway.h"

#include "base/own.h"
#include "jail/bpf.h"
#include "jail/gateway_program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define LO_INDEX 1 /* in every namespace */
#define BACKLOG  256
#define DNS_PORT 53

/* What programs inside see as their own: addresses that belong to no host. The v6 one is of a kind that programs try after
 * v4, since few hosts have a route for it. */
const uint8_t gateway_own4[4] = { 192, 0, 2, 2 };
const uint8_t gateway_own6[16] = { 0xfd, 0x63, 0x6f, 0x76, 0x65, [15] = 2 };

/* ---- addresses and routes ---- */

struct message {
    struct nlmsghdr head;
    union {
        struct ifaddrmsg address;
        struct rtmsg route;
    };
    uint8_t attributes[64];
};

static void add_attribute(struct message *m, uint16_t type, const void *data, uint16_t len)
{
    struct rtattr *at = (struct rtattr *) (void *) ((char *) m + NLMSG_ALIGN(m->head.nlmsg_len));

    at->rta_type = type;
    at->rta_len = (uint16_t) RTA_LENGTH(len);
    memcpy(RTA_DATA(at), data, len);
    m->head.nlmsg_len = NLMSG_ALIGN(m->head.nlmsg_len) + (uint32_t) RTA_ALIGN(at->rta_len);
}

/* 0, or the errno that the kernel answers; what is there already is as good as made. */
static int ask(int sock, struct message *m)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } reply;
    ssize_t n;

    m->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    if (send(sock, m, m->head.nlmsg_len, 0) < 0)
        return errno;
    n = recv(sock, &reply, sizeof reply, 0);
    if (n < (ssize_t) NLMSG_LENGTH(sizeof reply.error) || reply.head.nlmsg_type != NLMSG_ERROR)
        return n < 0 ? errno : EPROTO;
    return reply.error.error == -EEXIST ? 0 : -reply.error.error;
}

static int set_address(int sock, uint8_t family, const uint8_t *own, uint16_t len)
{
    struct message m = { .head = { .nlmsg_type = RTM_NEWADDR,
                                   .nlmsg_len = NLMSG_LENGTH(sizeof m.address) } };

    m.address = (struct ifaddrmsg){ .ifa_family = family,
                                    .ifa_prefixlen = (uint8_t) (8 * len),
                                    .ifa_flags = IFA_F_NODAD,
                                    .ifa_index = LO_INDEX };
    add_attribute(&m, IFA_LOCAL, own, len);
    add_attribute(&m, IFA_ADDRESS, own, len);
    return ask(sock, &m);
}

/* local default dev lo table local [src own] */
static int set_route(int sock, uint8_t family, const uint8_t *own, uint16_t len)
{
    struct message m = { .head = { .nlmsg_type = RTM_NEWROUTE,
                                   .nlmsg_len = NLMSG_LENGTH(sizeof m.route) } };
    uint32_t lo = LO_INDEX;

    m.route = (struct rtmsg){ .rtm_family = family,
                              .rtm_table = RT_TABLE_LOCAL,
                              .rtm_protocol = RTPROT_STATIC,
                              .rtm_scope = RT_SCOPE_HOST,
                              .rtm_type = RTN_LOCAL };
    add_attribute(&m, RTA_OIF, &lo, sizeof lo);
    if (family == AF_INET) /* or a connection's source would be its destination */
        add_attribute(&m, RTA_PREFSRC, own, len);
    return ask(sock, &m);
}

static int make_all_local(struct err *err)
{
    auto_close int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    int errnum;

    if (sock < 0)
        return err_sys(err, errno, "ask for routes");
    errnum = set_address(sock, AF_INET, gateway_own4, sizeof gateway_own4);
    if (errnum == 0)
        errnum = set_route(sock, AF_INET, gateway_own4, sizeof gateway_own4);
    if (errnum != 0)
        return err_sys(err, errnum, "make every address local");
    /* A host without IPv6 has sandboxes without it: connections there fail, as they do on the host. */
    if (set_address(sock, AF_INET6, gateway_own6, sizeof gateway_own6) == 0)
        (void) set_route(sock, AF_INET6, gateway_own6, sizeof gateway_own6);
    return 0;
}

/* ---- sockets ---- */

/* For both families, if there are two. */
static int open_socket(int type, uint16_t port, int *ret_fd, struct err *err)
{
    struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    auto_close int fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int off = 0, on = 1;
    bool six = fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;

    if (!six) {
        own_close(&fd);
        fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    if (fd < 0 || bind(fd, six ? (const void *) &any6 : (const void *) &any4,
                       six ? sizeof any6 : sizeof any4) < 0)
        return err_sys(err, errno, type == SOCK_DGRAM ? "take port 53 in the sandbox" : "bind");
    /* So that answers can come from the address that was asked, which IPv6 does not take for local otherwise. */
    if (six && type == SOCK_DGRAM &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on) < 0)
        return err_sys(err, errno, "answer for any address");
    if (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
        return err_sys(err, errno, "listen in the sandbox");
    *ret_fd = take_fd(&fd);
    return 0;
}

/* ---- together ---- */

static int fill_map(int map, const int fds[GATEWAY_FDS], struct err *err)
{
    union bpf_attr attr;

    for (uint32_t key = 0; key < GATEWAY_HOLD; key++) {
        uint64_t value = (uint64_t) fds[key];

        memset(&attr, 0, sizeof attr);
        attr.map_fd = (uint32_t) map;
        attr.key = (uint64_t) (uintptr_t) &key;
        attr.value = (uint64_t) (uintptr_t) &value;
        if (bpf_call(BPF_MAP_UPDATE_ELEM, &attr) < 0)
            return err_sys(err, errno, "put a socket into the gateway's map");
    }
    return 0;
}

/* The link holds the program, the program the map, the map no socket. A pair is one sandbox's alone, whatever becomes of
 * it: what a sandbox connects to can never be another's listener. */
static int catch_all(struct gateways *g, int fds[GATEWAY_FDS], struct err *err)
{
    auto_close int map = -1, program = -1, ns = -1;
    union bpf_attr attr;

    if (g->program_fd < 0 && gateway_program_make(g, err) < 0)
        return -1;
    map = take_fd(&g->map_fd);
    program = take_fd(&g->program_fd);
    fds[GATEWAY_TABLE] = take_fd(&g->table_fd);
    if (fill_map(map, fds, err) < 0)
        return -1;
    ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return err_sys(err, errno, "open the network namespace");
    memset(&attr, 0, sizeof attr);
    attr.link_create.prog_fd = (uint32_t) program;
    attr.link_create.target_fd = (uint32_t) ns;
    attr.link_create.attach_type = BPF_SK_LOOKUP;
    fds[GATEWAY_HOLD] = bpf_call(BPF_LINK_CREATE, &attr);
    return fds[GATEWAY_HOLD] < 0 ? err_sys(err, errno, "attach the gateway's program") : 0;
}

/* In the sandbox's network namespace. */
static int open_inside(struct gateways *g, int fds[GATEWAY_FDS], struct err *err)
{
    if (open_socket(SOCK_STREAM, 0, &fds[GATEWAY_TCP], err) < 0 ||
        open_socket(SOCK_DGRAM, DNS_PORT, &fds[GATEWAY_DNS], err) < 0 || catch_all(g, fds, err) < 0)
        return -1;
    /* Last: with the routes but without the program a sandbox would talk to itself. */
    return make_all_local(err);
}

int gateway_routes(struct err *err)
{
    return make_all_local(err);
}

void gateways_init(struct gateways *g)
{
    *g = (struct gateways){ .map_fd = -1, .table_fd = -1, .program_fd = -1, .special_fd = -1 };
}

void gateways_refill(struct gateways *g)
{
    struct err ignored; /* the next caller that needs one tries again, and is told */

    if (!g->used)
        return;
    g->used = false;
    if (g->program_fd < 0)
        (void) gateway_program_make(g, &ignored);
}

void gateways_close(struct gateways *g)
{
    own_close(&g->program_fd);
    own_close(&g->table_fd);
    own_close(&g->map_fd);
    own_close(&g->special_fd);
}

int gateway_open(struct gateways *g, const struct nets *nets, int pidfd, int ret_fds[GATEWAY_FDS],
                 struct err *err)
{
    int fds[GATEWAY_FDS] = { -1, -1, -1, -1 };
    int rc;

    if (setns(pidfd, CLONE_NEWNET) < 0)
        return err_sys(err, errno, "enter the sandbox's network");
    rc = open_inside(g, fds, err);
    nets_leave(nets);
    g->used = true;
    for (size_t i = 0; i < GATEWAY_FDS; i++) {
        if (rc == 0)
            ret_fds[i] = take_fd(&fds[i]);
        own_close(&fds[i]);
    }
    return rc < 0 ? err_wrap(err, "gateway") : 0;
}
