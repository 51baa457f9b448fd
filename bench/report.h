/* report.h - how results are printed: tables of series, facts, and targets met or missed.
 *
 * Everything goes to stdout as it becomes known; report_verdicts repeats the targets at the end. */
#ifndef COVE_BENCH_REPORT_H
#define COVE_BENCH_REPORT_H

#include "series.h"

#include <stdbool.h>

/* Heading of a section, and of its table of series. */
void report_section(const char *title);
void report_series_head(const char *title);

/* One row. `base_p50` (0: none) is what the ratio compares with; `note` may be NULL. An empty
 * series prints as a dash with its note. */
void report_series(const char *label, struct series *series, uint64_t base_p50, const char *note);

/* "  label   value" */
void report_fact(const char *label, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A target of the project: printed at once as met or missed, and again by report_verdicts. */
void report_target(bool met, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void report_verdicts(void);

#endif
