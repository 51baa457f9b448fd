#include "base/special.h"

#include "base/own.h"

#include <string.h>

#define AT_IPV4 12
#define V4(a, b, c, d, bits4)                                                                      \
    96 + (bits4),                                                                                  \
    {                                                                                              \
        [10] = 0xff, [11] = 0xff, a, b, c, d                                                       \
    }
#define NEVER  true
#define LISTED false /* if the operator lists it */

/* clang-format off */
const struct special specials[] = {
    { "metadata",    NEVER,  V4(169, 254, 169, 254, 32) },
    { "metadata",    NEVER,  V4(169, 254, 170, 2, 32) },
    { "metadata",    NEVER,  V4(169, 254, 170, 23, 32) },
    { "metadata",    NEVER,  V4(100, 100, 100, 200, 32) },
    { "metadata",    NEVER,  V4(168, 63, 129, 16, 32) }, /* looks public, and is the host of a virtual machine */
    { "metadata",    NEVER,  V4(192, 0, 0, 192, 32) },
    { "metadata",    NEVER,  128, { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54 } }, /* fd00:ec2::254 */
    { "metadata",    NEVER,  128, { 0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23 } },       /* fd00:ec2::23 */
    { "metadata",    NEVER,  128, { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54 } }, /* fd20:ce::254 */
    { "metadata",    NEVER,  128, { 0xfd, 0x00, 0x00, 0x42, [15] = 0x42 } },       /* fd00:42::42 */
    { "unspecified", NEVER,  V4(0, 0, 0, 0, 8) },
    { "private",     LISTED, V4(10, 0, 0, 0, 8) },
    { "private",     LISTED, V4(100, 64, 0, 0, 10) }, /* shared address space of carriers */
    { "loopback",    NEVER,  V4(127, 0, 0, 0, 8) },
    { "link-local",  NEVER,  V4(169, 254, 0, 0, 16) },
    { "private",     LISTED, V4(172, 16, 0, 0, 12) },
    { "reserved",    LISTED, V4(192, 0, 0, 0, 24) },
    { "reserved",    LISTED, V4(192, 0, 2, 0, 24) }, /* the sandbox's own address is of these */
    { "reserved",    LISTED, V4(192, 88, 99, 0, 24) },
    { "private",     LISTED, V4(192, 168, 0, 0, 16) },
    { "private",     NEVER,  V4(198, 19, 0, 0, 16) }, /* between sandboxes: egress/peer.h */
    { "private",     LISTED, V4(198, 18, 0, 0, 15) }, /* benchmarks */
    { "reserved",    LISTED, V4(198, 51, 100, 0, 24) },
    { "reserved",    LISTED, V4(203, 0, 113, 0, 24) },
    { "multicast",   NEVER,  V4(224, 0, 0, 0, 4) },
    { "broadcast",   NEVER,  V4(255, 255, 255, 255, 32) },
    { "reserved",    LISTED, V4(240, 0, 0, 0, 4) },
    { "unspecified", NEVER,  128, { 0 } },
    { "loopback",    NEVER,  128, { [15] = 1 } },
    { "reserved",    NEVER,  96, { 0 } }, /* IPv4-compatible, long given up */
    { "private",     LISTED, 48, { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 } }, /* 64:ff9b:1::/48, NAT64 of one network */
    { "reserved",    LISTED, 64, { 0x01, 0x00 } },
    { "reserved",    LISTED, 32, { 0x20, 0x01, 0x0d, 0xb8 } },
    { "reserved",    LISTED, 23, { 0x20, 0x01 } }, /* Teredo and other protocols */
    { "reserved",    LISTED, 20, { 0x3f, 0xff } },
    { "reserved",    LISTED, 16, { 0x5f, 0x00 } },
    { "private",     LISTED, 7, { 0xfc } },
    { "link-local",  NEVER,  10, { 0xfe, 0x80 } },
    { "private",     LISTED, 10, { 0xfe, 0xc0 } },
    { "multicast",   NEVER,  8, { 0xff } },
};

const struct special_carrier special_carriers[] = {
    { 96, 12, { 0x00, 0x64, 0xff, 0x9b } },     /* 64:ff9b::/96 */
    { 16, 2,  { 0x20, 0x02 } },                 /* 2002::/16 */
    { 96, 12, { [8] = 0xff, 0xff } },           /* ::ffff:0:0:0/96 */
};
/* clang-format on */
_Static_assert(ARRAY_LEN(specials) <= SPECIAL_ROWS, "every row has a place in the table");
const size_t special_count = ARRAY_LEN(specials);
const size_t special_carrier_count = ARRAY_LEN(special_carriers);

bool special_begins(const uint8_t address[16], const uint8_t first[16], unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    uint8_t mask = (uint8_t) (0xff00u >> rest);

    return memcmp(address, first, whole) == 0 &&
           (rest == 0 || ((address[whole] ^ first[whole]) & mask) == 0);
}

bool special_inner(const uint8_t address[16], uint8_t ret[16])
{
    for (size_t i = 0; i < special_carrier_count; i++) {
        const struct special_carrier *carrier = &special_carriers[i];

        if (special_begins(address, carrier->first, carrier->bits)) {
            memset(ret, 0, AT_IPV4 - 2);
            memset(ret + AT_IPV4 - 2, 0xff, 2);
            memcpy(ret + AT_IPV4, address + carrier->at, 4);
            return true;
        }
    }
    return false;
}

const struct special *special_find(const uint8_t address[16])
{
    uint8_t inner[16];

    if (special_inner(address, inner))
        address = inner;
    for (size_t i = 0; i < special_count; i++)
        if (special_begins(address, specials[i].first, specials[i].bits))
            return &specials[i];
    return NULL;
}
