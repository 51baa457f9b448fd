/* metrics.h - what the server counts, and GET /metrics (Prometheus text).
 *
 * Counters and histograms are atomics: adding is cheap and takes no lock. What sandboxes use now is asked of
 * them when somebody looks.
 *
 * Owns:    nothing outside struct metrics, which lives in struct app.
 * Callers: ops*.c add; the route shows. */
#ifndef COVE_API_METRICS_H
#define COVE_API_METRICS_H

#include "client/exec.h"

#include <stdatomic.h>
#include <stdint.h>

struct exchange;

#define METRICS_BUCKETS 14

struct histogram {
    atomic_uint_fast64_t buckets[METRICS_BUCKETS + 1]; /* the last: +Inf */
    atomic_uint_fast64_t sum_us;
};

struct metrics {
    struct histogram startup;   /* a create, from the request to a listening agent */
    struct histogram execution; /* a command, from its start to its end */
    atomic_uint_fast64_t created, create_failures, killed;
    atomic_uint_fast64_t executions[EXIT_LOST + 1]; /* by enum agent_exit */
};

void metrics_startup(struct metrics *metrics, uint64_t us);
void metrics_execution(struct metrics *metrics, const struct exec_result *result);

int metrics_route(struct exchange *x, struct err *err);

#endif
