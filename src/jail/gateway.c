/* No packet filter, no address translation, no connection tracking, no device:
 *
 *   1. "local default dev lo" makes every address one of the sandbox's own, so that a packet to any of them stays
 *      inside and looks for a socket there.
 *   2. A program at that look-up (BPF_SK_LOOKUP) gives connections to addresses that are not loopback's or the
 *      sandbox's to the gateway's listener, whatever their port; datagrams to port 53 to the gateway's other socket; and
 *      refuses the rest. It fails closed: what it does not know is dropped.
 *
 * Without the program the routes alone would let a sandbox find its own servers behind foreign addresses, nothing more.
 * All of it belongs to the namespace, which nobody inside has the capability to change (net.h). */
#include "jail/gateway.h"

#include "base/own.h"
#include "jail/bpf.h"

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

/* What programs inside see as their own: addresses that are nobody's. The v6 one is of a kind that programs try after
 * v4, since few hosts have a way out for it. */
static const uint8_t own4[4] = { 192, 0, 2, 2 };
static const uint8_t own6[16] = { 0xfd, 0x63, 0x6f, 0x76, 0x65, [15] = 2 };

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
    errnum = set_address(sock, AF_INET, own4, sizeof own4);
    if (errnum == 0)
        errnum = set_route(sock, AF_INET, own4, sizeof own4);
    if (errnum != 0)
        return err_sys(err, errnum, "make every address local");
    /* A host without IPv6 has sandboxes without it: connections there fail, as they do on the host. */
    if (set_address(sock, AF_INET6, own6, sizeof own6) == 0)
        (void) set_route(sock, AF_INET6, own6, sizeof own6);
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

/* ---- the program ---- */

#define FIELD(reg, field) LOAD_FROM(reg, BPF_REG_6, struct bpf_sk_lookup, field)
#define KEY_AT            (-4)
#define SET_KEY(value)    INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, KEY_AT, value)

/* Jumps name a place; assemble() counts. */
enum place { SIX = 1, SIX_OWN, FOREIGN, HAND_OVER, PASS, DROP, PLACES };
#define PLACE_CODE                   0xff /* no instruction: marks a place */
#define AT(place)                    INSN(PLACE_CODE, 0, 0, place, 0)
#define GO(place)                    SKIP(place)
#define GO_IF(reg, value, place)     SKIP_IF(reg, value, place)
#define GO_IF_NOT(reg, value, place) SKIP_IF_NOT(reg, value, place)

static uint32_t word(const uint8_t *address, size_t index)
{
    uint32_t value;

    memcpy(&value, address + 4 * index, sizeof value);
    return value;
}

static bool jumps(const struct bpf_insn *insn)
{
    uint8_t kind = insn->code & 0x07, op = insn->code & 0xf0;

    return (kind == BPF_JMP || kind == BPF_JMP32) && op != BPF_CALL && op != BPF_EXIT;
}

/* Takes the places out and counts the jumps; returns how many instructions are left. */
static uint32_t assemble(struct bpf_insn *program, size_t count)
{
    int16_t where[PLACES] = { 0 }, n = 0;

    for (size_t i = 0; i < count; i++) {
        if (program[i].code == PLACE_CODE)
            where[program[i].off] = n;
        else
            program[n++] = program[i];
    }
    for (int16_t i = 0; i < n; i++)
        if (jumps(&program[i]))
            program[i].off = (int16_t) (where[program[i].off] - i - 1);
    return (uint32_t) n;
}

static int load_program(int map_fd, struct err *err)
{
    static const uint8_t loopback6[16] = { [15] = 1 };
    struct bpf_insn program[] = {
        COPY(BPF_REG_6, BPF_REG_1),
        FIELD(BPF_REG_7, family),
        GO_IF_NOT(BPF_REG_7, AF_INET, SIX),

        /* 127.0.0.0/8 and its own address are the sandbox's business */
        FIELD(BPF_REG_8, local_ip4),
        GO_IF(BPF_REG_8, word(own4, 0), PASS),
        AND(BPF_REG_8, (int32_t) htonl(0xff000000)),
        GO_IF(BPF_REG_8, htonl(0x7f000000), PASS),
        GO(FOREIGN),

        AT(SIX), /* and so are ::1 and its own */
        FIELD(BPF_REG_7, local_ip6[0]),
        FIELD(BPF_REG_8, local_ip6[1]),
        FIELD(BPF_REG_9, local_ip6[2]),
        FIELD(BPF_REG_2, local_ip6[3]),
        GO_IF_NOT(BPF_REG_9, 0, FOREIGN),
        GO_IF_NOT(BPF_REG_7, word(loopback6, 0), SIX_OWN),
        GO_IF_NOT(BPF_REG_8, word(loopback6, 1), FOREIGN),
        GO_IF(BPF_REG_2, word(loopback6, 3), PASS),
        GO(FOREIGN),
        AT(SIX_OWN),
        GO_IF_NOT(BPF_REG_7, word(own6, 0), FOREIGN),
        GO_IF_NOT(BPF_REG_8, word(own6, 1), FOREIGN),
        GO_IF(BPF_REG_2, word(own6, 3), PASS),

        AT(FOREIGN),
        SET_KEY(GATEWAY_TCP),
        FIELD(BPF_REG_7, protocol),
        GO_IF(BPF_REG_7, IPPROTO_TCP, HAND_OVER),
        GO_IF_NOT(BPF_REG_7, IPPROTO_UDP, DROP),
        FIELD(BPF_REG_8, local_port),
        GO_IF_NOT(BPF_REG_8, DNS_PORT, DROP),
        SET_KEY(GATEWAY_DNS),

        AT(HAND_OVER), /* to the socket of that key */
        INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd),
        INSN(0, 0, 0, 0, 0),
        COPY(BPF_REG_2, BPF_REG_10),
        ADD(BPF_REG_2, KEY_AT),
        CALL(BPF_FUNC_map_lookup_elem),
        INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, DROP, 0),
        COPY(BPF_REG_7, BPF_REG_0),
        COPY(BPF_REG_1, BPF_REG_6),
        COPY(BPF_REG_2, BPF_REG_7),
        MOVE(BPF_REG_3, 0),
        CALL(BPF_FUNC_sk_assign),
        COPY(BPF_REG_8, BPF_REG_0),
        COPY(BPF_REG_1, BPF_REG_7),
        CALL(BPF_FUNC_sk_release),
        GO_IF_NOT(BPF_REG_8, 0, DROP),

        AT(PASS),
        MOVE(BPF_REG_0, SK_PASS),
        LEAVE,
        AT(DROP),
        MOVE(BPF_REG_0, SK_DROP),
        LEAVE,
    };
    union bpf_attr attr;
    int fd;

    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_SK_LOOKUP;
    attr.expected_attach_type = BPF_SK_LOOKUP;
    attr.insn_cnt = assemble(program, ARRAY_LEN(program));
    attr.insns = (uint64_t) (uintptr_t) program;
    attr.license = (uint64_t) (uintptr_t) "Apache-2.0";
    fd = bpf_call(BPF_PROG_LOAD, &attr);
    return fd < 0 ? err_sys(err, errno, "load the gateway's program") : fd;
}

/* For the sockets, by their place in enum keeper_gateway. They leave it when they are closed. */
static int make_map(struct err *err)
{
    union bpf_attr attr;
    int fd;

    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_SOCKMAP;
    attr.key_size = sizeof(uint32_t);
    attr.value_size = sizeof(uint64_t);
    attr.max_entries = GATEWAY_HOLD;
    fd = bpf_call(BPF_MAP_CREATE, &attr);
    return fd < 0 ? err_sys(err, errno, "make the gateway's map") : fd;
}

static int make_pair(struct gateways *g, struct err *err)
{
    auto_close int map = make_map(err);
    int program = map < 0 ? -1 : load_program(map, err);

    if (program < 0)
        return -1;
    g->map_fd = take_fd(&map);
    g->program_fd = program;
    return 0;
}

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

    if (g->program_fd < 0 && make_pair(g, err) < 0)
        return -1;
    map = take_fd(&g->map_fd);
    program = take_fd(&g->program_fd);
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
    *g = (struct gateways){ .map_fd = -1, .program_fd = -1 };
}

void gateways_refill(struct gateways *g)
{
    struct err ignored; /* whoever needs one tries again, and is told */

    if (!g->used)
        return;
    g->used = false;
    if (g->program_fd < 0)
        (void) make_pair(g, &ignored);
}

void gateways_close(struct gateways *g)
{
    own_close(&g->program_fd);
    own_close(&g->map_fd);
}

int gateway_open(struct gateways *g, const struct nets *nets, int pidfd, int ret_fds[GATEWAY_FDS],
                 struct err *err)
{
    int fds[GATEWAY_FDS] = { -1, -1, -1 };
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
