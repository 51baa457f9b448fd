/* idle.h - moves sandboxes down the tiers by itself, and lets go of what was kept long enough.
 *
 * A sandbox that was made with idle times is looked at every few seconds. It is idle while it uses no processor, has no
 * request, stream or terminal open, and no connection to the outside: one that works is never put to sleep, nor one
 * that waits for an answer from outside. What sleeps in memory and is meant to be on disk is moved there. Both take as
 * long as they take, in this thread and no other.
 *
 * Owns:    one thread, and what it saw of each such sandbox at the last look.
 * Callers: main.c; deadline.c, after it paused something. */
#ifndef COVE_SERVER_LIFE_IDLE_H
#define COVE_SERVER_LIFE_IDLE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct app;

int idle_start(struct app *app, struct err *err);
void idle_stop(void);
/* There may be something to be moved. */
void idle_changed(void);

/* Pure: whether so much processor time within so much time is work of a sandbox with this enum isolation. */
bool idle_works(uint32_t isolation, uint64_t cpu_us, uint64_t wall_ms);

#endif
