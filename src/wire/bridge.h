/* bridge.h - what the keeper's workers ask of the bridge of a guest: to save it, to load it, to let it run.
 *
 * The bridge listens on an abstract socket of the jail's network namespace, as it does for the agent. A connection has one order, a
 * struct bridge_order with a descriptor where that is said, and gets one answer, a struct err; ERR_NONE is done. Orders are done one
 * after the other. */
#ifndef COVE_WIRE_BRIDGE_H
#define COVE_WIRE_BRIDGE_H

#include <stdint.h>

#define BRIDGE_SOCKET "cove-bridge"

enum bridge_op {
    /* With the end of a pipe: the guest's state is written there. A virtual machine stands still behind that. In gVisor all
     * commands stood still before. */
    BRIDGE_SAVE = 1,
    /* With the end of a pipe or, for gVisor, a file: the guest is as the state says that is read there. A virtual machine stands still
     * until it may go. In gVisor the agent runs, and all commands stand still until it hears from the keeper. */
    BRIDGE_LOAD,
    BRIDGE_GO, /* the guest runs, and its agent knows time, name and random bytes of now */
};

struct bridge_order {
    uint32_t op; /* enum bridge_op */
};

#endif
