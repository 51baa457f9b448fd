#include "server/serve/peer_owner.h"

#include "base/log.h"
#include "base/own.h"
#include "egress/egress.h"
#include "egress/may_name.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define REPLY_MAX  16384
#define ALL_STATES 0xffffffffu

/* One end of a connection. */
struct end {
    struct ip ip;
    uint16_t port;
};

/* What is known of a socket; inode 0: no process has it any more. */
struct found {
    bool any;
    uint32_t uid, inode;
};

/* ---- netlink ---- */

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

static void put_end(const struct end *end, bool four, __be32 words[4])
{
    memset(words, 0, 4 * sizeof words[0]);
    memcpy(words, end->ip.bytes + (four ? 12 : 0), four ? 4 : 16);
}

/* The socket at `from`, connected to `to`; to NULL: to anything. */
static struct question ask_for(const struct end *from, const struct end *to, uint32_t seq)
{
    bool four = ip_is4(&from->ip);
    struct question q = {
        .head = { .nlmsg_len = sizeof q,
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = (uint16_t) (NLM_F_REQUEST | (to ? 0 : NLM_F_DUMP)),
                  .nlmsg_seq = seq },
        .body = { .sdiag_family = four ? AF_INET : AF_INET6,
                  .sdiag_protocol = IPPROTO_TCP,
                  .idiag_states = ALL_STATES & ~(1u << TCP_LISTEN),
                  .id = { .idiag_sport = htons(from->port),
                          .idiag_dport = to ? htons(to->port) : 0,
                          .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
    };

    put_end(from, four, q.body.id.idiag_src);
    if (to)
        put_end(to, four, q.body.id.idiag_dst);
    return q;
}

/* A dump is filtered by the port alone. One of several at that address and port: the gateway's counts. */
static void take(const struct peer_owners *owners, const struct inet_diag_msg *m,
                 const struct end *from, struct found *ret)
{
    struct in6_addr at = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

    if (m->idiag_family == AF_INET)
        memcpy(at.s6_addr + 12, m->id.idiag_src, 4);
    else
        memcpy(at.s6_addr, m->id.idiag_src, 16);
    if (m->idiag_state == TCP_LISTEN || ntohs(m->id.idiag_sport) != from->port ||
        memcmp(&at, from->ip.bytes, sizeof at) != 0 || (ret->any && ret->uid == owners->gateway))
        return;
    *ret = (struct found){ true, m->idiag_uid, m->idiag_inode };
}

/* Whether the answer is whole. */
static bool read_answer(const struct peer_owners *owners, const struct end *from, bool dump,
                        struct found *ret)
{
    _Alignas(struct nlmsghdr) char reply[REPLY_MAX];
    ssize_t n = recv(owners->fd, reply, sizeof reply, 0);

    if (n < 0)
        return errno != EINTR;
    for (struct nlmsghdr *m = (void *) reply; n > 0 && NLMSG_OK(m, (size_t) n);
         m = NLMSG_NEXT(m, n)) {
        if (m->nlmsg_seq != owners->seq)
            continue; /* the rest of an answer that was given up */
        if (m->nlmsg_type == NLMSG_ERROR || m->nlmsg_type == NLMSG_DONE)
            return true;
        if (m->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
            m->nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
            take(owners, NLMSG_DATA(m), from, ret);
        if (!dump)
            return true;
    }
    return false;
}

static struct found by_netlink(struct peer_owners *owners, const struct end *from,
                               const struct end *to)
{
    struct question q = ask_for(from, to, ++owners->seq);
    struct found found = { .any = false };

    if (send(owners->fd, &q, sizeof q, 0) == (ssize_t) sizeof q)
        while (!read_answer(owners, from, !to, &found))
            ;
    return found;
}

/* ---- tables ---- */

/* "0100007F:1F90", or the same with four words: numbers as they are in memory. */
static bool read_end(const char *text, struct end *ret)
{
    size_t digits = strcspn(text, ":"), words = digits / 8;
    unsigned port;

    if ((words != 1 && words != 4) || sscanf(text + digits, ":%4x", &port) != 1)
        return false;
    memset(&ret->ip, 0, sizeof ret->ip);
    ret->ip.bytes[10] = ret->ip.bytes[11] = 0xff;
    for (size_t i = 0; i < words; i++) {
        uint32_t word;

        if (sscanf(text + 8 * i, "%8x", &word) != 1)
            return false;
        memcpy(ret->ip.bytes + (words == 1 ? 12 : 4 * i), &word, sizeof word);
    }
    ret->port = (uint16_t) port;
    return true;
}

static bool same_end(const struct end *a, const struct end *b)
{
    return a->port == b->port && ip_same(&a->ip, &b->ip);
}

static void look_at_line(const struct peer_owners *owners, const char *line, const struct end *from,
                         const struct end *to, struct found *ret)
{
    char own[48], other[48];
    struct end source, target;
    uint32_t state, uid, inode;

    if (sscanf(line, " %*d: %47s %47s %x %*s %*s %*s %u %*d %u", own, other, &state, &uid,
               &inode) != 5 ||
        state == TCP_LISTEN || !read_end(own, &source) || !read_end(other, &target) ||
        !same_end(&source, from) || (to && !same_end(&target, to)) ||
        (ret->any && ret->uid == owners->gateway))
        return;
    *ret = (struct found){ true, uid, inode };
}

/* A socket of IPv6 may talk IPv4, and is in the second table then. */
static struct found by_table(const struct peer_owners *owners, const struct end *from,
                             const struct end *to)
{
    static const char *const names[] = { "tcp", "tcp6" };
    struct found found = { .any = false };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int fd = openat(owners->pages, names[i], O_RDONLY | O_CLOEXEC);
        FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
        char line[512];

        while (file && fgets(line, sizeof line, file))
            look_at_line(owners, line, from, to, &found);
        if (file)
            (void) fclose(file);
        else if (fd >= 0)
            (void) close(fd);
    }
    return found;
}

/* ---- the answer ---- */

static struct found find(struct peer_owners *owners, const struct end *from, const struct end *to)
{
    return owners->fd >= 0 ? by_netlink(owners, from, to) : by_table(owners, from, to);
}

static bool own_end(int fd, struct end *ret)
{
    struct sockaddr_storage own;
    socklen_t len = sizeof own;

    return getsockname(fd, (struct sockaddr *) &own, &len) == 0 &&
           ip_of_sockaddr((const struct sockaddr *) &own, &ret->ip, &ret->port);
}

enum peer_owner peer_owner_of(struct peer_owners *owners, int fd, const struct sockaddr *at)
{
    struct end own, peer;
    struct found found;
    const char *kind;
    bool loopback;

    if (!own_end(fd, &own) || !ip_of_sockaddr(at, &peer.ip, &peer.port))
        return PEER_UNKNOWN;
    kind = ip_kind(&peer.ip);
    loopback = kind && strcmp(kind, "loopback") == 0;
    if (!loopback && !ip_same(&own.ip, &peer.ip) && !host_has_ip(&peer.ip))
        return PEER_ELSEWHERE;
    found = find(owners, &peer, &own);
    if (!found.any && !loopback)
        found = find(owners, &peer, NULL);
    if (!found.any || found.inode == 0)
        return PEER_UNKNOWN;
    return found.uid == owners->gateway  ? PEER_GATEWAY
           : found.uid == owners->puller ? PEER_PULLER
                                         : PEER_LOCAL;
}

/* Of this host's own file, without a library that would have to be loaded. */
static uint32_t user_named(const char *name)
{
    FILE *file = fopen("/etc/passwd", "re");
    uint32_t uid = UINT32_MAX;
    struct passwd *user;

    while (file && uid == UINT32_MAX && (user = fgetpwent(file)))
        if (strcmp(user->pw_name, name) == 0)
            uid = user->pw_uid;
    if (file)
        (void) fclose(file);
    return uid;
}

/* ---- start ---- */

/* A connection to ourselves, whose owner we know. */
static bool finds_us(struct peer_owners *owners)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof at;
    auto_close int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto_close int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto_close int server = -1;

    if (listener < 0 || client < 0 || bind(listener, (struct sockaddr *) &at, sizeof at) < 0 ||
        listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *) &at, &len) < 0 ||
        connect(client, (struct sockaddr *) &at, sizeof at) < 0)
        return false;
    server = accept4(listener, (struct sockaddr *) &at, &len, SOCK_CLOEXEC);
    return server >= 0 && peer_owner_of(owners, server, (struct sockaddr *) &at) == PEER_LOCAL;
}

int peer_owners_open(struct peer_owners *owners, bool by_table, struct err *err)
{
    struct timeval patience = { .tv_sec = 1 }; /* an answer is there when the question is sent */

    *owners = (struct peer_owners){
        .fd = -1, .pages = -1, .gateway = EGRESS_UID, .puller = user_named("cove-pull")
    };
    if (!by_table)
        owners->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (owners->fd >= 0 &&
        setsockopt(owners->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
        finds_us(owners))
        return 0;
    own_close(&owners->fd);
    owners->pages = open("/proc/self/net", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (owners->pages < 0)
        return err_sys(err, errno, "open /proc/self/net");
    if (!finds_us(owners)) {
        own_close(&owners->pages);
        return err_set(err, ERR_UNSUPPORTED, "the kernel does not tell who owns a connection");
    }
    if (!by_table)
        log_line(LOG_WARNING, "no NETLINK_SOCK_DIAG: who connects is looked up in /proc/net/tcp");
    return 0;
}

void peer_owners_close(struct peer_owners *owners)
{
    own_close(&owners->fd);
    own_close(&owners->pages);
}
