/* metrics.h - what the server counts, for GET /metrics (surface/tools/metrics_page.c).
 *
 * Counters and histograms are atomics: adding is cheap and takes no lock. What sandboxes use now is asked of
 * them when a client asks.
 *
 * Owns:    nothing outside struct metrics, which lives in struct app.
 * Callers: ops*.c add; metrics_page.c shows. */
#ifndef COVE_SERVER_APP_METRICS_H
#define COVE_SERVER_APP_METRICS_H

#include "client/exec.h"

#include <stdatomic.h>
#include <stdint.h>

#define METRICS_BUCKETS 14

/* Upper bounds of the buckets, in seconds. */
extern const double metrics_bounds[METRICS_BUCKETS];

struct histogram {
    atomic_uint_fast64_t buckets[METRICS_BUCKETS + 1]; /* the last: +Inf */
    atomic_uint_fast64_t sum_us;
};

struct metrics {
    struct histogram startup;   /* a create, from the request to a listening agent */
    struct histogram execution; /* a command, from its start to its end */
    atomic_uint_fast64_t created, create_failures, killed;
    atomic_uint_fast64_t executions[EXIT_COUNT]; /* by enum agent_exit */
};

void metrics_startup(struct metrics *metrics, uint64_t us);
void metrics_execution(struct metrics *metrics, const struct exec_result *result);

#endif
