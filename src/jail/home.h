/* home.h - the keeper's own root: a small read-only tree that holds what sandboxes are made from, so that a new mount
 * namespace copies a handful of mounts and not the host's. */
#ifndef COVE_JAIL_HOME_H
#define COVE_JAIL_HOME_H

#include "base/err.h"

#define HOME_BASES  32 /* /bases/0 and so on: see root_base_open() */
#define HOME_LAYERS 64 /* /layers/0 and so on: driver/layers.h */

/* Once, at start: from then on the caller sees nothing else of the host. */
int home_enter(const char *state, struct err *err);

#endif
