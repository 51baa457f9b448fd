/* limits.h - what one sandbox may use. One table: name, default, bounds, help. */
#ifndef COVE_WIRE_LIMITS_H
#define COVE_WIRE_LIMITS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct limits {
    uint64_t memory_bytes; /* RAM and swap together, page cache and tmpfs included */
    uint64_t disk_bytes;   /* what the sandbox may write on top of its template */
    uint64_t disk_inodes;
    uint64_t cpu_milli; /* thousandths of a core */
    uint64_t processes; /* threads count */
    uint64_t open_files; /* per process */
    uint64_t ptys;
};

enum limit_unit { LIMIT_BYTES, LIMIT_COUNT, LIMIT_CPUS };

struct limit_info {
    const char *name; /* in options, JSON and messages */
    size_t offset;    /* of its uint64_t in struct limits */
    enum limit_unit unit;
    uint64_t least, most, preset;
    const char *help;
};

extern const struct limit_info limit_table[];
extern const size_t limit_count;

static inline uint64_t *limit_field(struct limits *limits, const struct limit_info *info)
{
    return (uint64_t *) (void *) ((char *) limits + info->offset);
}

static inline uint64_t limit_value(const struct limits *limits, const struct limit_info *info)
{
    return *(const uint64_t *) (const void *) ((const char *) limits + info->offset);
}

void limits_preset(struct limits *limits);
/* What is not as preset in sandboxes that E2B's SDKs make: they have two cores (and root). */
#define LIMITS_E2B_CPU_MILLI 2000

/* What is 0 is as it is there. */
void limits_complete(struct limits *limits, const struct limits *from);

/* Sets one limit from text, by the name's own unit. */
int limits_parse(struct limits *limits, const char *name, const char *text, struct err *err);

/* Every limit within its row's bounds (ERR_LIMIT), and not beyond the host (ERR_LIMIT_HOST). */
int limits_check(const struct limits *limits, uint64_t host_memory, uint64_t host_cpu_milli,
                 struct err *err);

#endif
