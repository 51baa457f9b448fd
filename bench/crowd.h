/* crowd.h - many sandboxes alive at once.
 *
 * Made, asked and removed by CROWD_LANES threads, each with its own connection to the keeper. */
#ifndef COVE_BENCH_CROWD_H
#define COVE_BENCH_CROWD_H

#include "host.h"
#include "rig.h"
#include "series.h"

#define CROWD_LANES 8

/* Disks that a keeper may hold ready for whoever comes next; more of them are left behind. */
#define CROWD_POOL_MAX 8

/* Moments at which the host's memory is read. */
enum crowd_moment { CROWD_BEFORE, CROWD_ALIVE, CROWD_ASKED, CROWD_GONE, CROWD_MOMENTS };

struct crowd {
    struct rig *rig; /* borrowed */
    size_t count;
    struct limits limits;
    struct host_trace *members; /* "" where create failed */
    size_t created, destroyed;
    size_t create_failures, exec_failures, destroy_failures;
    struct err why; /* of the first failure */

    uint64_t create_us, exec_all_us, adopt_us, list_us, destroy_us; /* of the whole crowd */
    struct series create, exec, destroy;                            /* of each */
    size_t listed;
    size_t adopted; /* answered an exec after the keeper's restart */
    struct host_memory memory[CROWD_MOMENTS];
    uint64_t own_anonymous_kib; /* of every PID 1, when all are alive */
    uint64_t keeper_kib, keeper_restarted_kib;
    size_t keeper_fds;
    struct host_left left;  /* with the keeper alive; loops: more than a pool has */
    struct host_left after; /* when the keeper has ended, too */
};

/* disk_bytes 0: as preset. */
int crowd_init(struct crowd *crowd, struct rig *rig, size_t count, uint64_t disk_bytes,
               struct err *err);

/* All phases in order; -1 only when nothing more can be measured. */
int crowd_run(struct crowd *crowd, struct err *err);

void crowd_report(struct crowd *crowd);
void crowd_done(struct crowd *crowd);

#endif
