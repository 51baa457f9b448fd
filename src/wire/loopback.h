/* loopback.h - what the loopback of a guest has beside its own addresses, so that every address is its own (agent/egress.h).
 *
 * Callers: the agent, which adds them when the sandbox has a network, and removes them where it has none; runsc.c for a guest that is
 * loaded: its kernel begins with the addresses, and no sandbox without a network may keep them. */
#ifndef COVE_WIRE_LOOPBACK_H
#define COVE_WIRE_LOOPBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loopback_address {
    const char *text;
    uint8_t prefix;
    bool v6;
};

#define LOOPBACK_ADDRESSES 5
extern const struct loopback_address loopback_addresses[LOOPBACK_ADDRESSES];

#endif
