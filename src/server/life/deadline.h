/* deadline.h - ends what has lived long enough, and cleans up behind what was lost.
 *
 * Deadlines are in the store, so they hold over a restart of the server. A sandbox whose time has
 * come is killed or paused, as it was asked for. A record whose sandbox the keeper does not have is
 * reported lost, once, and removed.
 *
 * Owns:    one thread, from start to stop. */
#ifndef COVE_SERVER_LIFE_DEADLINE_H
#define COVE_SERVER_LIFE_DEADLINE_H

#include "base/err.h"

#include <stdint.h>

struct app;

int deadline_start(struct app *app, struct err *err);
void deadline_stop(void);
/* Pure: how far the clock was set since *ahead_ms was noted, and notes it; 0 for what is only drift. Both are real
 * time less a clock that cannot be set. */
int64_t deadline_jump(int64_t *ahead_ms, int64_t now_ahead_ms);
/* A deadline may be earlier than it was: look again. */
void deadline_changed(struct app *app);

#endif
