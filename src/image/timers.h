/* timers.h - timerfds in a dump, made so that criu restores them running.
 *
 * A periodic timer that has expired and was not read yet has, as the kernel tells it, no time left; criu sets that, which
 * means: off. One whose period is shorter than a dump takes always is in that state at every read. It is given a
 * nanosecond.
 *
 * Callers: save.c, before an image is signed. */
#ifndef COVE_IMAGE_TIMERS_H
#define COVE_IMAGE_TIMERS_H

#include "base/err.h"

int timers_fix(int memory_fd, struct err *err);

#endif
