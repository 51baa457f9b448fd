/* proxy.h - the PROXY protocol's preamble (haproxy's proxy-protocol.txt, versions 1 and 2): who the client of a
 * load balancer is, told before the first byte of HTTP or TLS.
 *
 * Owns:    nothing. Pure: bytes in, an address out.
 * Callers: serve.c, for connections of peers that are trusted to say it; fuzz/proxy_fuzz.c.
 * Never:   takes more bytes than the preamble has: what follows may be TLS. As long as proxy_feed returns 0,
 *          every byte that it saw belongs to the preamble. */
#ifndef COVE_HTTP_PROXY_H
#define COVE_HTTP_PROXY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define PROXY_MAX 4112 /* bytes: 16, and 4096 of addresses and extensions */

enum proxy_family {
    PROXY_UNKNOWN, /* the proxy itself (a health check), or a kind of client that has no address */
    PROXY_IPV4,
    PROXY_IPV6
};

struct proxy {
    enum proxy_family family;
    unsigned char source[16]; /* network order; 4 bytes of it for IPv4 */
    uint16_t port;
    size_t len; /* of the preamble */
};

/* All bytes from the first on: 1 when the preamble is whole, 0 when more is to come, -1 when it is invalid. */
int proxy_feed(const char *data, size_t len, struct proxy *ret, struct err *err);

#endif
