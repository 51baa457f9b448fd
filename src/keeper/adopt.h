/* adopt.h - at start: the journal says what was meant, the kernel says what is.
 *
 * What lives and was meant to is taken over; what was meant but is dead is reported lost; what is there
 * but was not meant, or was not finished, is killed and cleared away. */
#ifndef COVE_KEEPER_ADOPT_H
#define COVE_KEEPER_ADOPT_H

#include "keeper/keeper.h"

int adopt_all(struct keeper *keeper, struct err *err);

#endif
