/* rights.h - which capabilities the keeper keeps, and everything that it starts on the host.
 *
 * No filter and no Landlock: both are inherited by every sandbox, would be part of every saved image, and of what criu makes of it.
 *
 * Callers: main.c, first of all. */
#ifndef COVE_KEEPER_RIGHTS_H
#define COVE_KEEPER_RIGHTS_H

#include "base/err.h"

int rights_reduce(struct err *err);

#endif
