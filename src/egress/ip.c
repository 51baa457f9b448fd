#include "egress/ip.h"

#include "base/own.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

bool ip_is4(const struct ip *ip)
{
    return memcmp(ip->bytes, mapped, sizeof mapped) == 0;
}

bool ip_same(const struct ip *a, const struct ip *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static struct ip of4(const void *four)
{
    struct ip ip;

    memcpy(ip.bytes, mapped, sizeof mapped);
    memcpy(ip.bytes + sizeof mapped, four, 4);
    return ip;
}

bool ip_parse(const char *text, struct ip *ret)
{
    struct in_addr four;

    if (inet_pton(AF_INET, text, &four) == 1) {
        *ret = of4(&four);
        return true;
    }
    return inet_pton(AF_INET6, text, ret->bytes) == 1;
}

void ip_print(const struct ip *ip, char out[IP_TEXT_MAX])
{
    if (ip_is4(ip))
        (void) inet_ntop(AF_INET, ip->bytes + sizeof mapped, out, IP_TEXT_MAX);
    else
        (void) inet_ntop(AF_INET6, ip->bytes, out, IP_TEXT_MAX);
}

/* Whether the first `bits` are those of `like`. */
static bool begins(const struct ip *ip, const struct ip *like, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    uint8_t mask = (uint8_t) (0xff00u >> rest);

    return memcmp(ip->bytes, like->bytes, whole) == 0 &&
           (rest == 0 || ((ip->bytes[whole] ^ like->bytes[whole]) & mask) == 0);
}

bool ip_in(const struct ip *ip, const struct ip_range *range)
{
    return begins(ip, &range->first, range->bits);
}

static bool is_clean(const struct ip_range *range)
{
    for (unsigned bit = range->bits; bit < 128; bit++)
        if (range->first.bytes[bit / 8] & 0x80u >> bit % 8)
            return false;
    return true;
}

int ip_range_parse(const char *text, struct ip_range *ret, struct err *err)
{
    char address[IP_TEXT_MAX];
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t) (slash - text) : strlen(text);
    uint64_t bits, most;
    struct ip_range range;

    if (len >= sizeof address)
        return err_set(err, ERR_INVALID, "'%.60s' is no address", text);
    memcpy(address, text, len);
    address[len] = '\0';
    if (!ip_parse(address, &range.first))
        return err_set(err, ERR_INVALID, "'%.60s' is no address", text);
    most = strchr(address, ':') ? 128 : 32;
    bits = most;
    if (slash && (parse_u64(slash + 1, &bits, err) < 0 || bits > most))
        return err_set(err, ERR_INVALID, "'%.60s' has no prefix of 0 to %u bits", text,
                       (unsigned) most);
    range.bits = (uint8_t) (bits + (128 - most));
    if (!is_clean(&range))
        return err_set(err, ERR_INVALID, "'%.60s' has bits behind its prefix", text);
    *ret = range;
    return 0;
}

/* ---- what is not public ---- */

/* The registries of special addresses (RFC 6890 and its followers). A row that is more exact comes first. */
static const struct {
    const char *range, *kind;
} special[] = {
    { "169.254.169.254/32", "metadata" },
    { "169.254.170.2/32", "metadata" },
    { "100.100.100.200/32", "metadata" },
    { "168.63.129.16/32", "metadata" }, /* looks public, and is the host of a virtual machine */
    { "fd00:ec2::254/128", "metadata" },
    { "0.0.0.0/8", "unspecified" },
    { "10.0.0.0/8", "private" },
    { "100.64.0.0/10", "private" }, /* shared address space of carriers */
    { "127.0.0.0/8", "loopback" },
    { "169.254.0.0/16", "link-local" },
    { "172.16.0.0/12", "private" },
    { "192.0.0.0/24", "reserved" },
    { "192.0.2.0/24", "reserved" }, /* the sandbox's own address is of these */
    { "192.88.99.0/24", "reserved" },
    { "192.168.0.0/16", "private" },
    { "198.18.0.0/15", "private" }, /* benchmarks */
    { "198.51.100.0/24", "reserved" },
    { "203.0.113.0/24", "reserved" },
    { "224.0.0.0/4", "multicast" },
    { "240.0.0.0/4", "reserved" },
    { "::/128", "unspecified" },
    { "::1/128", "loopback" },
    { "::/96", "reserved" }, /* IPv4-compatible, long given up */
    { "64:ff9b:1::/48", "private" },
    { "100::/64", "reserved" },
    { "2001::/23", "reserved" }, /* Teredo and other protocols */
    { "2001:db8::/32", "reserved" },
    { "3fff::/20", "reserved" },
    { "5f00::/16", "reserved" },
    { "fc00::/7", "private" },
    { "fe80::/10", "link-local" },
    { "fec0::/10", "private" },
    { "ff00::/8", "multicast" },
};

/* IPv6 addresses that lead to the IPv4 address inside. */
static const struct {
    const char *range;
    size_t at;
} carriers[] = { { "64:ff9b::/96", 12 }, { "2002::/16", 2 }, { "::ffff:0:0:0/96", 12 } };

static const char *kind_of(const struct ip *ip)
{
    struct ip_range range;
    struct err ignored;

    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (ip_range_parse(special[i].range, &range, &ignored) == 0 && ip_in(ip, &range))
            return special[i].kind;
    return NULL;
}

bool ip_inner(const struct ip *ip, struct ip *ret)
{
    struct ip_range range;
    struct err ignored;

    for (size_t i = 0; i < ARRAY_LEN(carriers); i++)
        if (ip_range_parse(carriers[i].range, &range, &ignored) == 0 && ip_in(ip, &range)) {
            *ret = of4(ip->bytes + carriers[i].at);
            return true;
        }
    return false;
}

const char *ip_kind(const struct ip *ip)
{
    struct ip inner;

    return kind_of(ip_inner(ip, &inner) ? &inner : ip);
}

bool ip_of_sockaddr(const struct sockaddr *at, struct ip *ret, uint16_t *ret_port)
{
    if (at->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *) (const void *) at;

        *ret = of4(&in->sin_addr);
        *ret_port = ntohs(in->sin_port);
        return true;
    }
    if (at->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *) (const void *) at;

        memcpy(ret->bytes, &in->sin6_addr, sizeof ret->bytes);
        *ret_port = ntohs(in->sin6_port);
        return true;
    }
    return false;
}

socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret)
{
    struct sockaddr_in6 *six = (struct sockaddr_in6 *) (void *) ret;
    struct sockaddr_in *four = (struct sockaddr_in *) (void *) ret;

    memset(ret, 0, sizeof *ret);
    if (ip_is4(ip)) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        memcpy(&four->sin_addr, ip->bytes + sizeof mapped, 4);
        return sizeof *four;
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    memcpy(&six->sin6_addr, ip->bytes, sizeof ip->bytes);
    return sizeof *six;
}
