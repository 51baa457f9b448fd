/* rights.h - what cove-pull, and cove-dial which it starts, keep of their rights.
 *
 * Callers: main.c, before the first byte that it reads. */
#ifndef COVE_PULLER_RIGHTS_H
#define COVE_PULLER_RIGHTS_H

#include "base/err.h"

/* ERR_DENIED as root: the program that starts cove-pull chooses another user. */
int rights_drop(struct err *err);

#endif
