/* steps.h - where the time of an operation goes, by the keeper's own log.
 *
 * A keeper started with --verbose logs one line per create and destroy, with the microseconds of
 * each step: `create id=... us_total=... us_cgroup=...`. */
#ifndef COVE_BENCH_STEPS_H
#define COVE_BENCH_STEPS_H

/* Prints a table for each kind of line that the log has; nothing when it has none. */
void steps_report(int log_fd);
/* The same of resumes and forks. */
void steps_report_loads(int log_fd);

#endif
