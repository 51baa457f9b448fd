/* sysview.h - what a sandbox sees as /sys, and as meminfo, stat and cpuinfo of /proc: what runtimes size themselves by.
 *
 * The real sysfs tells about the host and is never mounted. Node, the JVM and Go look for the number of
 * cores and the cgroup's limits there, so a small tree with this sandbox's answers stands in for it.
 * Sandboxes with the same limits share one tree, read-only.
 *
 * Owns:    /views/<name>/sys and /views/<name>/proc on a tmpfs in the keeper's own root. */
#ifndef COVE_JAIL_SYSVIEW_H
#define COVE_JAIL_SYSVIEW_H

#include "base/err.h"
#include "wire/limits.h"

#include <stddef.h>
#include <stdint.h>

#define SYSVIEW_NAME 16
/* The same tmpfs, read-only: what is mounted from there is so by itself. */
#define SYSVIEW_SHOWN "/shown"

struct sysview {
    char name[SYSVIEW_NAME];
    uint32_t users;
    uint64_t memory_bytes, cpu_milli, processes;
};

struct sysviews {
    size_t count; /* one per slot: enough even if no two sandboxes are alike */
    struct sysview *view;
};

int sysviews_open(struct sysviews *views, uint32_t count, struct err *err);

/* The view for these limits, made where there is none; NULL with err. */
struct sysview *sysview_take(struct sysviews *views, const struct limits *limits, struct err *err);
/* Accepts NULL. A view without users stays for the next who wants the same, or is written over. */
void sysview_drop(struct sysviews *views, struct sysview *view);

#endif
