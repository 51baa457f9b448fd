#include "series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void series_add(struct series *series, uint64_t us)
{
    if (series->count == series->room) {
        size_t room = series->room ? series->room * 2 : 256;
        uint64_t *grown = realloc(series->us, room * sizeof *grown);

        if (!grown) {
            (void) fprintf(stderr, "cove-bench: no memory for a measurement\n");
            exit(1);
        }
        series->us = grown;
        series->room = room;
    }
    series->us[series->count++] = us;
    series->sorted = 0;
}

static int compare_us(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}

uint64_t series_at(struct series *series, double percent)
{
    size_t rank;

    if (!series->count)
        return 0;
    if (!series->sorted)
        qsort(series->us, series->count, sizeof *series->us, compare_us);
    series->sorted = 1;
    rank = (size_t) ceil(percent / 100.0 * (double) series->count);
    return series->us[rank ? rank - 1 : 0];
}

void series_done(struct series *series)
{
    free(series->us);
    *series = (struct series){ 0 };
}
