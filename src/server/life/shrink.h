/* shrink.h - images that were not used for as long as image_compress_after says are compressed, one after the other, in the
 * background; and what they take then counts for the quotas.
 *
 * Owns:    the thread.
 * Callers: main.c. */
#ifndef COVE_SERVER_LIFE_SHRINK_H
#define COVE_SERVER_LIFE_SHRINK_H

#include "base/err.h"

struct app;

int shrink_start(struct app *app, struct err *err);
void shrink_stop(void);

#endif
