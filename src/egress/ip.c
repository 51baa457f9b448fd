#include "egress/ip.h"

#include "base/own.h"
#include "base/parse.h"
#include "base/special.h"

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

bool ip_in(const struct ip *ip, const struct ip_range *range)
{
    return special_begins(ip->bytes, range->first.bytes, range->bits);
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
        return err_set(err, ERR_INVALID, "'%.60s' is not an address", text);
    memcpy(address, text, len);
    address[len] = '\0';
    if (!ip_parse(address, &range.first))
        return err_set(err, ERR_INVALID, "'%.60s' is not an address", text);
    most = strchr(address, ':') ? 128 : 32;
    bits = most;
    if (slash && (parse_u64(slash + 1, &bits, err) < 0 || bits > most))
        return err_set(err, ERR_INVALID, "'%.60s' has no prefix of 0 to %u bits", text,
                       (unsigned) most);
    range.bits = (uint8_t) (bits + (128 - most));
    if (!is_clean(&range))
        return err_set(err, ERR_INVALID, "'%.60s' has bits set after its prefix", text);
    *ret = range;
    return 0;
}

/* ---- what is not public ---- */

bool ip_inner(const struct ip *ip, struct ip *ret)
{
    return special_inner(ip->bytes, ret->bytes);
}

const char *ip_kind(const struct ip *ip)
{
    const struct special *row = special_find(ip->bytes);

    return row ? row->kind : NULL;
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
