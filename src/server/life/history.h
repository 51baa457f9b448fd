/* history.h - what each sandbox used, every few seconds, for as long as it lives: a ring in memory.
 *
 * Every HISTORY_EVERY_MS the running sandboxes are looked at, one after the other; a paused one has no points, and the
 * points of one that is gone are gone with it, as are all of them when the server starts again.
 *
 * Owns:    one thread from start to stop, and the rings: at most HISTORY_POINTS for each sandbox that the keeper has.
 * Callers: ops.h reads, after it knows whose sandbox it is. */
#ifndef COVE_SERVER_LIFE_HISTORY_H
#define COVE_SERVER_LIFE_HISTORY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct app;

#define HISTORY_EVERY_MS 5000
#define HISTORY_POINTS   720 /* an hour */

struct history_point {
    uint64_t time_ms;   /* real time */
    uint64_t cpu_milli; /* thousandths of a core, since the point before */
    uint64_t cpu_limit; /* the same, that it may use */
    uint64_t memory_bytes, memory_cache_bytes, memory_limit_bytes;
    uint64_t disk_bytes, disk_limit_bytes;
};

int history_start(struct app *app, struct err *err);
void history_stop(void);

/* Points from from_ms to until_ms (0: open), oldest first; the array is the caller's to free. None is no error. */
int history_read(const char *sandbox, uint64_t from_ms, uint64_t until_ms,
                 struct history_point **ret, size_t *ret_count, struct err *err);

/* ---- pure: one ring ---- */

struct history_ring {
    struct history_point *points;
    size_t room, first, count; /* room grows as the sandbox gets older */
};
int history_ring_add(struct history_ring *ring, const struct history_point *point);
const struct history_point *history_ring_at(const struct history_ring *ring, size_t i);

#endif
