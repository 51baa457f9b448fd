/* net.h - network namespaces for sandboxes: only lo, up.
 *
 * Making one takes 0.4 ms, so a few are made ahead, whenever nothing else is to do. A ready one has never
 * been anybody's, and a used one is never used again.
 *
 * They belong to the host's user namespace, not to the sandbox's: the sandbox's root cannot change its
 * network, whatever capability it gains inside. What it would need one for, low ports, is open to all.
 *
 * Owns:    the ready ones, as descriptors: they are gone with the keeper. */
#ifndef COVE_KEEPER_NET_H
#define COVE_KEEPER_NET_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define NETS_READY 8

struct nets {
    int own_fd; /* the keeper's own */
    size_t count;
    int ready[NETS_READY];
};

int nets_open(struct nets *nets, struct err *err);
void nets_close(struct nets *nets);

/* Makes one more, if there are not enough. False: there are. */
bool nets_refill(struct nets *nets);

/* Moves the keeper into a fresh network namespace, for the clone of a child that stays there … */
int nets_enter(struct nets *nets, struct err *err);
/* … and back. There is no way on if that fails: the keeper ends, and a new one adopts. */
void nets_leave(const struct nets *nets);

#endif
