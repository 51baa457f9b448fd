/* limits.h - what one sandbox may use. One table: name, default, bounds, help. */
#ifndef COVE_WIRE_LIMITS_H
#define COVE_WIRE_LIMITS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limits {
    uint64_t memory_bytes; /* RAM and swap together, page cache and tmpfs included */
    uint64_t disk_bytes;   /* what the sandbox may write on top of its template */
    uint64_t disk_inodes;
    uint64_t cpu_milli; /* thousandths of a core */
    uint64_t processes; /* threads count */
    /* Each pair was one number of 64 bits: records and images of the versions before are read as they are. */
    uint32_t open_files; /* per process */
    uint32_t io_kib;     /* per second, read from its disk, and as many written; 0: no limit */
    uint32_t ptys;
    uint32_t io_ops; /* likewise, operations */
};

enum limit_unit { LIMIT_BYTES, LIMIT_COUNT, LIMIT_CPUS };
enum limit_field { LIMIT_U64, LIMIT_U32, LIMIT_KIB }; /* KIB: 32 bits, of bytes in KiB */

struct limit_info {
    const char *name; /* in options, JSON and messages */
    size_t offset;    /* of its field in struct limits */
    enum limit_field field;
    enum limit_unit unit;
    uint64_t least, most;
    uint64_t fallback; /* the default; 0: no limit, unless one is asked for */
    const char *help;
};

extern const struct limit_info limit_table[];
extern const size_t limit_count;

uint64_t limit_value(const struct limits *limits, const struct limit_info *info);
/* What a field cannot hold becomes the most that it can, which limits_check() refuses. */
void limit_set(struct limits *limits, const struct limit_info *info, uint64_t value);

static inline bool limits_io(const struct limits *limits)
{
    return limits->io_kib || limits->io_ops;
}

/* What is written counts as memory then: at most half of it can be. */
static inline bool limits_disk_in_memory(const struct limits *limits)
{
    return limits->disk_bytes <= limits->memory_bytes / 2;
}

void limits_default(struct limits *limits);
/* What differs from the defaults in sandboxes that E2B's SDKs make: they have two cores (and root). */
#define LIMITS_E2B_CPU_MILLI 2000

/* Open files of a process, at most. */
#define LIMIT_FILES_MAX 1048576u

/* What is 0 is as it is there. */
void limits_complete(struct limits *limits, const struct limits *from);

/* Sets one limit from text, by the name's own unit. */
int limits_parse(struct limits *limits, const char *name, const char *text, struct err *err);

/* Every limit within its row's bounds (ERR_LIMIT), and not beyond the host (ERR_LIMIT_HOST). */
int limits_check(const struct limits *limits, uint64_t host_memory, uint64_t host_cpu_milli,
                 struct err *err);

#endif
