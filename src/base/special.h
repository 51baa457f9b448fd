/* special.h - internet addresses that are not public: the registries of special addresses (RFC 6890 and its followers),
 * and what clouds and hosts are used to.
 *
 * An IPv4 address is ::ffff:a.b.c.d here. Pure. */
#ifndef COVE_BASE_SPECIAL_H
#define COVE_BASE_SPECIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct special {
    const char *kind;  /* "private", "loopback", "metadata", … */
    bool never;        /* no rule of a tenant leads there, whatever the operator's settings are */
    uint8_t bits;      /* of the prefix; of IPv4: 96 more than its own */
    uint8_t first[16]; /* bits behind the prefix are 0 */
};
/* A row that is more exact comes first. */
extern const struct special specials[];
extern const size_t special_count;

/* IPv6 addresses that lead to an IPv4 address inside (NAT64, 6to4, SIIT). */
struct special_carrier {
    uint8_t bits, at; /* at: the byte where the IPv4 address begins */
    uint8_t first[16];
};
extern const struct special_carrier special_carriers[];
extern const size_t special_carrier_count;

/* ---- at the socket look-up of a sandbox ----
 *
 * What a program inside connects to is looked up by a program of the keeper's (jail/gateway.c), in the kernel. An address of
 * a row that is closed is refused there, so that the connect fails at once. The table is memory that the gateway shares
 * with that program; nothing inside the sandbox has it. */
#define SPECIAL_ROWS    64 /* at least special_count */
#define SPECIAL_REFUSED 64 /* a power of two */

struct special_refused {
    /* of this refusal, from 1 on, written last; another one: it is being written */
    uint32_t number;
    uint32_t family; /* AF_INET, AF_INET6 */
    uint32_t port;
    uint8_t four[4], six[16]; /* the one that the family says */
};

struct special_table {
    uint8_t open[SPECIAL_ROWS]; /* not 0: the gateway decides on addresses of this row */
    uint32_t refused_count;     /* written by the program */
    uint32_t unused[7];
    struct special_refused refused[SPECIAL_REFUSED]; /* the last ones, each at its number - 1 */
};

/* Whether the first `bits` of the two are the same. */
bool special_begins(const uint8_t address[16], const uint8_t first[16], unsigned bits);
/* The IPv4 address that this one carries; false: none. */
bool special_inner(const uint8_t address[16], uint8_t ret[16]);
/* The row of the address, or of the one that it carries; NULL: it is public. */
const struct special *special_find(const uint8_t address[16]);

#endif
