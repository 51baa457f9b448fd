#include "wire/limits.h"

#include "base/own.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KiB       ((uint64_t) 1024)
#define MiB       (1024 * KiB)
#define GiB       (1024 * MiB)
#define TiB       (1024 * GiB)
#define AT(field) offsetof(struct limits, field)

const struct limit_info limit_table[] = {
    /* name      field                        unit          least     most      default   help */
    { "memory", AT(memory_bytes), LIMIT_U64, LIMIT_BYTES, 8 * MiB, 4 * TiB, 512 * MiB,
      "memory, swap and page cache included" },
    { "cpus", AT(cpu_milli), LIMIT_U64, LIMIT_CPUS, 10, 1024000, 1000, "cores, fractions allowed" },
    { "disk", AT(disk_bytes), LIMIT_U64, LIMIT_BYTES, 1 * MiB, 16 * TiB, 1 * GiB,
      "bytes the sandbox may write" },
    { "inodes", AT(disk_inodes), LIMIT_U64, LIMIT_COUNT, 64, 1ull << 31, 262144,
      "files the sandbox may make" },
    { "pids", AT(processes), LIMIT_U64, LIMIT_COUNT, 4, 30000, 512, "processes and threads" },
    { "files", AT(open_files), LIMIT_U32, LIMIT_COUNT, 16, LIMIT_FILES_MAX, 16384,
      "open files per process" },
    { "ptys", AT(ptys), LIMIT_U32, LIMIT_COUNT, 1, 1024, 64, "pseudo terminals" },
    { "io", AT(io_kib), LIMIT_KIB, LIMIT_BYTES, 1 * MiB, 1 * TiB, 0,
      "bytes per second read from the disk, and as many written" },
    { "iops", AT(io_ops), LIMIT_U32, LIMIT_COUNT, 100, 100000000, 0,
      "disk reads per second, and as many writes" },
};
const size_t limit_count = ARRAY_LEN(limit_table);

uint64_t limit_value(const struct limits *limits, const struct limit_info *info)
{
    const char *at = (const char *) limits + info->offset;
    uint64_t wide;
    uint32_t narrow;

    if (info->field == LIMIT_U64) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return info->field == LIMIT_KIB ? narrow * KiB : narrow;
}

void limit_set(struct limits *limits, const struct limit_info *info, uint64_t value)
{
    char *at = (char *) limits + info->offset;
    uint32_t narrow;

    if (info->field == LIMIT_U64) {
        memcpy(at, &value, sizeof value);
        return;
    }
    if (info->field == LIMIT_KIB && value) /* never down to 0, which is no limit */
        value = value < KiB ? 1 : value / KiB;
    narrow = value > UINT32_MAX ? UINT32_MAX : (uint32_t) value;
    memcpy(at, &narrow, sizeof narrow);
}

void limits_default(struct limits *limits)
{
    for (size_t i = 0; i < limit_count; i++)
        limit_set(limits, &limit_table[i], limit_table[i].fallback);
}

static int parse_value(const struct limit_info *info, const char *text, uint64_t *ret,
                       struct err *err)
{
    uint32_t milli;

    switch (info->unit) {
    case LIMIT_BYTES:
        return parse_size(text, ret, err);
    case LIMIT_COUNT:
        if (parse_u64(text, ret, err) < 0) {
            err->kind = ERR_LIMIT;
            return -1;
        }
        return 0;
    case LIMIT_CPUS:
        if (parse_cpus_milli(text, &milli, err) < 0)
            return -1;
        *ret = milli;
        return 0;
    }
    return err_set(err, ERR_INTERNAL, "limit '%s' has no unit", info->name);
}

void limits_complete(struct limits *limits, const struct limits *from)
{
    for (size_t i = 0; i < limit_count; i++)
        if (limit_value(limits, &limit_table[i]) == 0)
            limit_set(limits, &limit_table[i], limit_value(from, &limit_table[i]));
}

int limits_parse(struct limits *limits, const char *name, const char *text, struct err *err)
{
    uint64_t value;

    for (size_t i = 0; i < limit_count; i++) {
        if (strcmp(limit_table[i].name, name) != 0)
            continue;
        if (parse_value(&limit_table[i], text, &value, err) < 0)
            return err_wrap(err, "limit '%s'", name);
        limit_set(limits, &limit_table[i], value);
        return 0;
    }
    return err_set(err, ERR_INVALID, "there is no limit '%.40s'", name);
}

/* As people write it: "8 MiB", "0.5", "512". */
static const char *limit_text(char out[24], const struct limit_info *info, uint64_t value)
{
    if (info->unit == LIMIT_BYTES)
        return size_text(out, 24, value);
    if (info->unit == LIMIT_CPUS)
        (void) snprintf(out, 24, "%.15g", (double) value / 1000);
    else
        (void) snprintf(out, 24, "%" PRIu64, value);
    return out;
}

static int out_of_bounds(const struct limit_info *info, uint64_t value, struct err *err)
{
    char given[24], least[24], most[24];

    return err_set(err, ERR_LIMIT, "limit '%s': %s is not between %s and %s", info->name,
                   limit_text(given, info, value), limit_text(least, info, info->least),
                   limit_text(most, info, info->most));
}

int limits_check(const struct limits *limits, uint64_t host_memory, uint64_t host_cpu_milli,
                 struct err *err)
{
    for (size_t i = 0; i < limit_count; i++) {
        const struct limit_info *info = &limit_table[i];
        uint64_t value = limit_value(limits, info);

        if (value == 0 && info->fallback == 0)
            continue;
        if (value < info->least || value > info->most)
            return out_of_bounds(info, value, err);
    }
    if (limits->memory_bytes > host_memory)
        return err_set(err, ERR_LIMIT_HOST,
                       "limit 'memory': %" PRIu64 " MiB is more than this host has (%" PRIu64
                       " MiB)",
                       limits->memory_bytes / MiB, host_memory / MiB);
    if (limits->cpu_milli > host_cpu_milli)
        return err_set(err, ERR_LIMIT_HOST,
                       "limit 'cpus': %" PRIu64 ".%03" PRIu64
                       " is more than this host has (%" PRIu64 ")",
                       limits->cpu_milli / 1000, limits->cpu_milli % 1000, host_cpu_milli / 1000);
    return 0;
}
