/* series.h - measured durations of one kind, and what is said about them.
 *
 * Durations are microseconds. Percentiles are values that were measured (nearest rank), never
 * interpolated. */
#ifndef COVE_BENCH_SERIES_H
#define COVE_BENCH_SERIES_H

#include <stddef.h>
#include <stdint.h>

struct series {
    uint64_t *us;
    size_t count, room;
    int sorted;
};

void series_add(struct series *series, uint64_t us);

/* The value that `percent` of the values do not exceed; 0 is the least. An empty series is 0. */
uint64_t series_at(struct series *series, double percent);

void series_done(struct series *series);

#endif
