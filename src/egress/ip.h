/* ip.h - internet addresses of both families as one kind, and ranges of them.
 *
 * An IPv4 address is kept as ::ffff:a.b.c.d, so that the two ways to write it are one and the same for every rule.
 * Forms of IPv6 that carry an IPv4 address to be reached (NAT64, 6to4) are judged as that address, too: see ip_kind.
 * Pure. */
#ifndef COVE_EGRESS_IP_H
#define COVE_EGRESS_IP_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct ip {
    uint8_t bytes[16];
};

struct ip_range {
    struct ip first; /* bits behind `bits` are 0 */
    uint8_t bits;    /* 0 to 128; of IPv4: 96 more than its own */
};

#define IP_TEXT_MAX 46

bool ip_is4(const struct ip *ip);
bool ip_same(const struct ip *a, const struct ip *b);
/* Strict: four decimal numbers without leading zeros, or IPv6 without a zone. */
bool ip_parse(const char *text, struct ip *ret);
void ip_print(const struct ip *ip, char out[IP_TEXT_MAX]);

/* "10.0.0.0/8", "2001:db8::/32", or an address alone. Bits set behind the prefix are ERR_INVALID: a range that was
 * meant differently must not be guessed. */
int ip_range_parse(const char *text, struct ip_range *ret, struct err *err);
bool ip_in(const struct ip *ip, const struct ip_range *range);

/* The IPv4 address that this one of IPv6 leads to (NAT64, 6to4); false: none. */
bool ip_inner(const struct ip *ip, struct ip *ret);
/* What an address that is not public is: "private", "loopback", "link-local", "metadata", …; NULL for public ones. */
const char *ip_kind(const struct ip *ip);

bool ip_of_sockaddr(const struct sockaddr *at, struct ip *ret, uint16_t *ret_port);
/* Returns the length. IPv4 addresses get AF_INET. */
socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret);

#endif
