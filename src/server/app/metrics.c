#include "server/app/metrics.h"

/* Upper bounds in seconds; 0.5 and 30 are the alert thresholds of docs/metrics.md. */
const double metrics_bounds[METRICS_BUCKETS] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                 0.25,  0.5,    1,     5,    30,    120,  600 };

static void observe(struct histogram *histogram, uint64_t us)
{
    size_t i = 0;

    while (i < METRICS_BUCKETS && (double) us > metrics_bounds[i] * 1e6)
        i++;
    atomic_fetch_add(&histogram->buckets[i], 1);
    atomic_fetch_add(&histogram->sum_us, us);
}

void metrics_startup(struct metrics *metrics, uint64_t us)
{
    observe(&metrics->startup, us);
    atomic_fetch_add(&metrics->created, 1);
}

void metrics_execution(struct metrics *metrics, const struct exec_result *result)
{
    observe(&metrics->execution, result->wall_ms * 1000);
    if (result->ended < EXIT_COUNT)
        atomic_fetch_add(&metrics->executions[result->ended], 1);
}
