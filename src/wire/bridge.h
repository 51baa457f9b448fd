/* bridge.h - what the keeper's workers ask of the bridge of a virtual machine: to save it, to load it, to let it run.
 *
 * The bridge listens on an abstract socket of the jail's network namespace, as it does for the agent. A connection has one order, a
 * struct bridge_order with a descriptor where that is said, and gets one answer, a struct err; ERR_NONE is done. Orders are done one
 * after the other. */
#ifndef COVE_WIRE_BRIDGE_H
#define COVE_WIRE_BRIDGE_H

#include <stdint.h>

#define BRIDGE_SOCKET "cove-bridge"

enum bridge_op {
    BRIDGE_SAVE =
        1, /* with the end of a pipe: the machine stands still, and its state is written there */
    BRIDGE_LOAD, /* with the end of a pipe: the machine is as the state says that is read there, and stands still */
    BRIDGE_GO, /* the machine runs, and its agent knows time, name and random bytes of now */
};

struct bridge_order {
    uint32_t op; /* enum bridge_op */
};

#endif
