#include "agent/egress_rules.h"

#include "base/own.h"
#include "wire/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define LO_INDEX     1
#define SET_REPLACE  64 /* IPT_SO_SET_REPLACE, IP6T_SO_SET_REPLACE */
#define HOOKS        5
#define VALID_HOOKS  0x1bu /* all that the table nat has: PREROUTING, INPUT, OUTPUT, POSTROUTING */
#define ACCEPT       (-2)  /* -NF_ACCEPT - 1 */
#define PORT_GIVEN   2u    /* NF_NAT_RANGE_PROTO_SPECIFIED */
#define TCP_PROTOCOL 6
#define TABLE_MAX    4096

/* ---- addresses ---- */

static int ask_kernel(int sock, const struct nlmsghdr *message, const char *what, struct err *err)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } reply;
    ssize_t n;

    if (send(sock, message, message->nlmsg_len, 0) < 0)
        return err_sys(err, errno, "ask the kernel for %s", what);
    n = recv(sock, &reply, sizeof reply, 0);
    if (n < (ssize_t) NLMSG_LENGTH(sizeof reply.error) || reply.head.nlmsg_type != NLMSG_ERROR)
        return err_set(err, ERR_INTERNAL, "ask the kernel for %s: no answer", what);
    return reply.error.error == 0 || reply.error.error == -EEXIST
               ? 0
               : err_sys(err, -reply.error.error, "the address %s", what);
}

/* RTM_NEWADDR or RTM_DELADDR. */
static int set_address(int sock, uint16_t what, const struct loopback_address *a, struct err *err)
{
    struct {
        struct nlmsghdr head;
        struct ifaddrmsg address;
        struct rtattr local;
        uint8_t bytes[16];
    } message = { .address = { .ifa_family = a->v6 ? AF_INET6 : AF_INET,
                               .ifa_prefixlen = a->prefix,
                               .ifa_index = LO_INDEX } };
    uint16_t len = a->v6 ? 16 : 4;

    if (inet_pton(message.address.ifa_family, a->text, message.bytes) != 1)
        return err_set(err, ERR_INTERNAL, "invalid address '%s'", a->text);
    message.local.rta_type = IFA_LOCAL;
    message.local.rta_len = (uint16_t) RTA_LENGTH(len);
    message.head.nlmsg_type = what;
    message.head.nlmsg_flags =
        (uint16_t) (NLM_F_REQUEST | NLM_F_ACK | (what == RTM_NEWADDR ? NLM_F_CREATE : 0));
    message.head.nlmsg_len = (uint32_t) (NLMSG_LENGTH(sizeof message.address) + RTA_LENGTH(len));
    return ask_kernel(sock, &message.head, a->text, err);
}

/* Linux does not make addresses of a network that begins with 0 its own, as gVisor does: half of the addresses need a route. gVisor has no
 * such routes, and needs none. */
static void add_first_half(int sock)
{
    static const uint8_t own[4] = EGRESS_OWN4;
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        struct rtattr device;
        uint32_t index;
        struct rtattr source;
        uint8_t address[4];
    } message = { .head = { .nlmsg_type = RTM_NEWROUTE,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE,
                            .nlmsg_len = sizeof message },
                  .route = { .rtm_family = AF_INET,
                             .rtm_dst_len = 1,
                             .rtm_table = RT_TABLE_LOCAL,
                             .rtm_protocol = RTPROT_BOOT,
                             .rtm_scope = RT_SCOPE_HOST,
                             .rtm_type = RTN_LOCAL },
                  .device = { .rta_type = RTA_OIF, .rta_len = RTA_LENGTH(4) },
                  .index = LO_INDEX,
                  .source = { .rta_type = RTA_PREFSRC, .rta_len = RTA_LENGTH(4) } };
    struct err ignored;

    memcpy(message.address, own, sizeof own);
    (void) ask_kernel(sock, &message.head, "0.0.0.0/1", &ignored);
}

static int add_addresses(bool v6, struct err *err)
{
    auto_close int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (sock < 0)
        return err_sys(err, errno, "netlink");
    for (size_t i = 0; i < LOOPBACK_ADDRESSES; i++)
        if (loopback_addresses[i].v6 == v6 &&
            set_address(sock, RTM_NEWADDR, &loopback_addresses[i], err) < 0)
            return -1;
    if (!v6)
        add_first_half(sock);
    return 0;
}

int egress_addresses4(struct err *err)
{
    return add_addresses(false, err);
}

int egress_addresses6(struct err *err)
{
    return add_addresses(true, err);
}

void egress_remove_addresses(void)
{
    auto_close int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct err ignored; /* of those that are not there */

    for (size_t i = 0; sock >= 0 && i < LOOPBACK_ADDRESSES; i++)
        (void) set_address(sock, RTM_DELADDR, &loopback_addresses[i], &ignored);
}

/* ---- rules ---- */

/* struct ipt_ip and struct ip6t_ip6. */
struct match4 {
    uint8_t src[4], dst[4], src_mask[4], dst_mask[4];
    char interfaces[64]; /* names and masks: any */
    uint16_t protocol;
    uint8_t flags, inverse;
};
_Static_assert(sizeof(struct match4) == 84, "struct ipt_ip");

struct match6 {
    uint8_t src[16], dst[16], src_mask[16], dst_mask[16];
    char interfaces[64];
    uint16_t protocol;
    uint8_t tos, flags, inverse;
};
_Static_assert(sizeof(struct match6) == 134, "struct ip6t_ip6, without its end");

/* The rest of struct ipt_entry and struct ip6t_entry. */
struct entry_tail {
    uint32_t cache;
    uint16_t target_offset, next_offset;
    uint32_t came_from;
};
#define ENTRY4 112u
#define ENTRY6 168u

struct target {
    uint16_t size;
    char name[29];
    uint8_t revision;
};

struct range4 { /* struct nf_nat_ipv4_multi_range_compat of one */
    uint32_t count, flags;
    uint8_t from[4], to[4];
    uint16_t port_from, port_to;
};

struct range6 { /* struct nf_nat_range */
    uint32_t flags;
    uint8_t from[16], to[16];
    uint16_t port_from, port_to;
};

struct replace {
    char name[32];
    uint32_t valid_hooks, entry_count, size, hook_entry[HOOKS], underflow[HOOKS], counter_count;
    void *counters;
    uint8_t entries[TABLE_MAX];
};

struct rules {
    bool v6;
    struct replace table;
};

/* One rule: TCP, or everything, to such addresses; what is done with it. */
static void add_rule(struct rules *r, const uint8_t *dst, unsigned prefix, bool tcp,
                     const char *name, const void *data, size_t len)
{
    uint8_t *at = r->table.entries + r->table.size;
    uint32_t head = r->v6 ? ENTRY6 : ENTRY4;
    uint32_t target_size = (uint32_t) (sizeof(struct target) + len + 7) & ~7u;
    struct entry_tail tail = { .target_offset = (uint16_t) head,
                               .next_offset = (uint16_t) (head + target_size) };
    struct target target = { .size = (uint16_t) target_size };
    uint8_t *to = at + (r->v6 ? offsetof(struct match6, dst) : offsetof(struct match4, dst));
    uint8_t *mask =
        at + (r->v6 ? offsetof(struct match6, dst_mask) : offsetof(struct match4, dst_mask));
    uint16_t protocol = tcp ? TCP_PROTOCOL : 0;

    memset(at, 0, head + target_size);
    if (dst)
        memcpy(to, dst, r->v6 ? 16 : 4);
    for (unsigned i = 0; i < prefix; i++)
        mask[i / 8] |= (uint8_t) (0x80u >> i % 8);
    memcpy(at + (r->v6 ? offsetof(struct match6, protocol) : offsetof(struct match4, protocol)),
           &protocol, sizeof protocol);
    if (r->v6) /* IP6T_F_PROTO */
        at[offsetof(struct match6, flags)] = tcp;
    memcpy(at + (r->v6 ? 136 : 84), &tail, sizeof tail);
    memcpy(target.name, name, strlen(name));
    memcpy(at + head, &target, sizeof target);
    memcpy(at + head + sizeof target, data, len);
    r->table.size += head + target_size;
    r->table.entry_count++;
}

static void add_accept(struct rules *r, const uint8_t *dst, unsigned prefix)
{
    const int32_t verdict = ACCEPT;

    add_rule(r, dst, prefix, false, "", &verdict, sizeof verdict);
}

static void begin_hook(struct rules *r, unsigned hook)
{
    r->table.hook_entry[hook] = r->table.size;
}

/* Whatever no rule of the hook was about is left as it is. */
static void end_hook(struct rules *r, unsigned hook)
{
    r->table.underflow[hook] = r->table.size;
    add_accept(r, NULL, 0);
}

static void pass_hook(struct rules *r, unsigned hook)
{
    begin_hook(r, hook);
    end_hook(r, hook);
}

static void add_redirect(struct rules *r, uint16_t port)
{
    struct range4 range4 = { .count = 1, .flags = PORT_GIVEN };
    struct range6 range6 = { .flags = PORT_GIVEN };

    range4.port_from = range4.port_to = range6.port_from = range6.port_to = htons(port);
    if (r->v6)
        add_rule(r, NULL, 0, true, "REDIRECT", &range6, sizeof range6);
    else
        add_rule(r, NULL, 0, true, "REDIRECT", &range4, sizeof range4);
}

static int raw[2] = { -1, -1 }; /* IPv4, IPv6; until the rules are set, or for good */
static bool raw_kept;

void egress_rules_prepare(bool keep)
{
    raw_kept = keep;
    raw[0] = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    raw[1] = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
}

static int install(struct rules *r, struct err *err)
{
    static uint8_t counters[64 * 16];
    char error[30] = "ERROR";
    int sock = raw[r->v6], rc = 0;

    pass_hook(r, 4);
    add_rule(r, NULL, 0, false, "ERROR", error, sizeof error);
    memcpy(r->table.name, "nat", 4);
    r->table.valid_hooks = VALID_HOOKS;
    r->table.counter_count = 5; /* of what is replaced, which has no rules */
    r->table.counters = counters;
    if (sock < 0)
        return err_set(err, ERR_DENIED, "redirect connections: not allowed");
    if (setsockopt(sock, r->v6 ? IPPROTO_IPV6 : IPPROTO_IP, SET_REPLACE, &r->table,
                   (socklen_t) (offsetof(struct replace, entries) + r->table.size)) < 0)
        rc = err_sys(err, errno, "redirect connections");
    if (!raw_kept)
        own_close(&raw[r->v6]);
    return rc;
}

int egress_redirect4(uint16_t port, struct err *err)
{
    static const uint8_t loopback[4] = { 127 }, own[4] = EGRESS_OWN4;
    struct rules r = { .v6 = false };

    pass_hook(&r, 0);
    pass_hook(&r, 1);
    begin_hook(&r, 3);
    add_accept(&r, loopback, 8);
    add_accept(&r, own, 32);
    add_redirect(&r, port);
    end_hook(&r, 3);
    return install(&r, err);
}

int egress_redirect6(uint16_t port, struct err *err)
{
    static const uint8_t loopback[16] = { [15] = 1 };
    static const uint8_t own[16] = { 0xfd, 0x63, 0x6f, 0x76, 0x65, [15] = 2 };
    struct rules r = { .v6 = true };

    pass_hook(&r, 0);
    pass_hook(&r, 1);
    begin_hook(&r, 3);
    add_accept(&r, loopback, 128);
    add_accept(&r, own, 128);
    add_redirect(&r, port);
    end_hook(&r, 3);
    return install(&r, err);
}
