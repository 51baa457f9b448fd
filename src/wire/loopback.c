#include "wire/loopback.h"

const struct loopback_address loopback_addresses[LOOPBACK_ADDRESSES] = {
    { "10.0.0.1", 1, false },
    { "192.0.2.2", 1, false },
    { "192.0.2.1", 32, false },
    /* of a kind (6to4) that programs do not prefer to IPv4: few hosts have a route for IPv6 */
    { "2002:c000:202::1", 3, true },
    { "fd63:6f76:6500::2", 7, true },
};
