/* rights.h - what those who bring the pages of a restored sandbox keep of the keeper's rights.
 *
 * Callers: fill.c, before it hears of criu or of the sandbox. */
#ifndef COVE_IMAGE_RIGHTS_H
#define COVE_IMAGE_RIGHTS_H

#include "image/fill.h"

#include <sys/types.h>

#define RIGHTS_NOBODY 65534u

/* Left: the descriptors, the sandbox's cgroups, the name of its .fill, kill(SIGKILL), another process of the same memory. */
int rights_of_filler(const struct fill_box *box, struct err *err);

#endif
