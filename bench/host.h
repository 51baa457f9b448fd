/* host.h - what the host says: memory in use, and what of a sandbox is still there.
 *
 * Other cove instances and tests may run on the same machine, so what is left is looked for by the
 * ids of our own sandboxes and the path of our own state directory, never by a count of everything.
 */
#ifndef COVE_BENCH_HOST_H
#define COVE_BENCH_HOST_H

#include "base/parse.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Rows of /proc/meminfo, in KiB. */
enum host_memory_row {
    HOST_AVAILABLE,
    HOST_FREE,
    HOST_CACHED,
    HOST_SHMEM,
    HOST_ANON,
    HOST_SLAB_RECLAIMABLE,
    HOST_SLAB_KEPT,
    HOST_PERCPU,
    HOST_PAGE_TABLES,
    HOST_KERNEL_STACK,
    HOST_MEMORY_ROWS
};

struct host_memory {
    int64_t kib[HOST_MEMORY_ROWS];
};

const char *host_memory_name(enum host_memory_row row);
void host_memory_read(struct host_memory *ret);

/* Resident memory of a process in KiB, and the part of it that is its own (no file's); 0 when it is
 * gone. */
uint64_t host_resident_kib(int pid);
uint64_t host_anonymous_kib(int pid);

/* Open descriptors of a process. */
size_t host_open_files(int pid);

/* One sandbox as the leftovers are looked for. */
struct host_trace {
    char id[ID_LEN + 1];
    int pid;   /* of its PID 1 */
    int pidfd; /* likewise; -1: unknown */
};

struct host_left {
    size_t processes, cgroups, loops, mounts, files;
};

/* Loops are those with a backing file in the state directory; a keeper holds some ready in its
 * pool. A process is left when it runs, or waits to be reaped by the keeper: one that an earlier
 * keeper started is the host's init's to reap, which may take its time.
 *
 * Sorts the traces by id. keeper_pid 0: there is none whose mounts could be looked at. */
void host_left(const char *state, int keeper_pid, struct host_trace *traces, size_t count,
               struct host_left *ret);

static inline size_t host_left_total(const struct host_left *left)
{
    return left->processes + left->cgroups + left->loops + left->mounts + left->files;
}

/* "2 cores, 23.5 GiB, kernel 6.18, cgroup v1" */
void host_describe(char *out, size_t size);

#endif
