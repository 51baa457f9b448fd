#include "wire/limits.h"

#include "base/own.h"
#include "check.h"

#include <inttypes.h>

#define HOST_MEMORY (64ull << 30)
#define HOST_CPUS   8000

static void every_row_is_complete_and_its_preset_is_within_bounds(void)
{
    CHECK_INT(sizeof(struct limits), 7 * sizeof(uint64_t)); /* as journals and images have it */
    for (size_t i = 0; i < limit_count; i++) {
        const struct limit_info *row = &limit_table[i];

        CHECK(row->name && row->name[0] && row->help && row->help[0]);
        CHECK(row->fallback == 0 || (row->least <= row->fallback && row->fallback <= row->most));
        CHECK(row->least > 0);
        for (size_t k = 0; k < i; k++) {
            CHECK(limit_table[k].offset != row->offset);
            CHECK(strcmp(limit_table[k].name, row->name) != 0);
        }
    }
}

static void presets_pass(void)
{
    struct limits limits;
    struct err err;

    limits_default(&limits);
    CHECK_INT(limits.memory_bytes, 512 << 20);
    CHECK_INT(limits.cpu_milli, 1000);
    CHECK_INT(limits_check(&limits, HOST_MEMORY, HOST_CPUS, &err), 0);
}

static void each_limit_is_refused_just_outside_its_bounds(void)
{
    for (size_t i = 0; i < limit_count; i++) {
        const struct limit_info *row = &limit_table[i];
        const uint64_t unit = row->field == LIMIT_KIB ? 1024 : 1;
        const uint64_t bad[] = { row->least - unit, row->most + unit, 0, UINT64_MAX };

        for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
            struct limits limits;
            char want[160];
            struct err err;

            limits_default(&limits);
            if (row->fallback == 0 && bad[k] == 0) /* no limit */
                continue;
            limit_set(&limits, row, bad[k]);
            CHECK_INT(limits_check(&limits, UINT64_MAX, UINT64_MAX, &err), -1);
            CHECK_INT(err.kind, ERR_LIMIT);
            (void) snprintf(want, sizeof want, "limit '%s': ", row->name);
            CHECK(strncmp(err.msg, want, strlen(want)) == 0);
            CHECK(strstr(err.msg, " is not between ") != NULL);
        }
    }
}

static void bounds_are_said_as_people_write_them(void)
{
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        { "memory", "5", "limit 'memory': 5 B is not between 8 MiB and 4 TiB" },
        { "memory", "7.5m", "limit 'memory': 7.5 MiB is not between 8 MiB and 4 TiB" },
        { "cpus", "0.001", "limit 'cpus': 0.001 is not between 0.01 and 1024" },
        { "pids", "3", "limit 'pids': 3 is not between 4 and 30000" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct limits limits;
        struct err err;

        limits_default(&limits);
        CHECK_INT(limits_parse(&limits, cases[i].name, cases[i].text, &err), 0);
        CHECK_INT(limits_check(&limits, UINT64_MAX, UINT64_MAX, &err), -1);
        CHECK_STR(err.msg, cases[i].want);
    }
}

static void bounds_themselves_are_allowed(void)
{
    for (size_t i = 0; i < limit_count; i++) {
        struct limits limits;
        struct err err;

        limits_default(&limits);
        limit_set(&limits, &limit_table[i], limit_table[i].least);
        CHECK_INT(limits_check(&limits, UINT64_MAX, UINT64_MAX, &err), 0);
        limit_set(&limits, &limit_table[i], limit_table[i].most);
        CHECK_INT(limits_check(&limits, UINT64_MAX, UINT64_MAX, &err), 0);
    }
}

static void more_than_the_host_has_is_a_kind_of_its_own(void)
{
    struct limits limits;
    struct err err;

    limits_default(&limits);
    limits.memory_bytes = 2 * HOST_MEMORY;
    CHECK_INT(limits_check(&limits, HOST_MEMORY, HOST_CPUS, &err), -1);
    CHECK_INT(err.kind, ERR_LIMIT_HOST);
    CHECK_STR(err.msg, "limit 'memory': 131072 MiB is more than this host has (65536 MiB)");
    limits_default(&limits);
    limits.cpu_milli = 8500;
    CHECK_INT(limits_check(&limits, HOST_MEMORY, HOST_CPUS, &err), -1);
    CHECK_INT(err.kind, ERR_LIMIT_HOST);
    CHECK_STR(err.msg, "limit 'cpus': 8.500 is more than this host has (8)");
}

static void each_unit_is_parsed_its_own_way(void)
{
    struct limits limits;
    struct err err;

    limits_default(&limits);
    CHECK_INT(limits_parse(&limits, "memory", "1.5g", &err), 0);
    CHECK(limits.memory_bytes == 3ull << 29);
    CHECK_INT(limits_parse(&limits, "cpus", "0.25", &err), 0);
    CHECK_INT(limits.cpu_milli, 250);
    CHECK_INT(limits_parse(&limits, "pids", "77", &err), 0);
    CHECK_INT(limits.processes, 77);
}

static void what_does_not_parse_names_the_limit(void)
{
    static const struct {
        const char *name, *text, *refusal;
        enum err_kind kind;
    } cases[] = {
        { "memory", "12three", "limit 'memory': '12three' is not a size (such as 512m or 1.5g)",
          ERR_LIMIT },
        { "disk", "", "limit 'disk': '' is not a size (such as 512m or 1.5g)", ERR_LIMIT },
        { "pids", "many", "limit 'pids': 'many' is not a number", ERR_LIMIT },
        { "pids", "5k", "limit 'pids': '5k' is not a number", ERR_LIMIT },
        { "cpus", "0.0001",
          "limit 'cpus': '0.0001' is finer than a number of cores (such as 2 or 0.5) can be",
          ERR_LIMIT },
        { "ptys", "-1", "limit 'ptys': '-1' is not a number", ERR_LIMIT },
        { "speed", "1", "there is no limit 'speed'", ERR_INVALID },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct limits before, limits;
        struct err err;

        limits_default(&before);
        limits = before;
        CHECK_INT(limits_parse(&limits, cases[i].name, cases[i].text, &err), -1);
        CHECK_STR(err.msg, cases[i].refusal);
        CHECK_INT(err.kind, cases[i].kind);
        CHECK(memcmp(&before, &limits, sizeof limits) == 0);
    }
}

/* Journals, images and callers of the version before have one number of 64 bits in the place of each pair. */
static void limits_of_the_version_before_are_read_as_they_are(void)
{
    const uint64_t before[7] = { 512 << 20, 1 << 30, 262144, 1000, 512, 16384, 64 };
    struct limits limits, preset;

    memcpy(&limits, before, sizeof limits);
    limits_default(&preset);
    CHECK(memcmp(&limits, &preset, sizeof limits) == 0);
    CHECK(!limits_io(&limits));
}

static void io_limits_are_none_unless_they_are_asked_for(void)
{
    struct limits limits;
    struct err err;

    limits_default(&limits);
    CHECK(!limits_io(&limits));
    CHECK_INT(limits_parse(&limits, "io", "10m", &err), 0);
    CHECK_INT(limits.io_kib, 10 * 1024);
    CHECK_INT(limits_parse(&limits, "iops", "500", &err), 0);
    CHECK_INT(limits.io_ops, 500);
    CHECK_INT(limits.open_files, 16384);
    CHECK_INT(limits.ptys, 64);
    CHECK_INT(limits_check(&limits, HOST_MEMORY, HOST_CPUS, &err), 0);
    CHECK_INT(limits_parse(&limits, "io", "1", &err), 0); /* too little, and not "no limit" */
    CHECK_INT(limits_check(&limits, HOST_MEMORY, HOST_CPUS, &err), -1);
    CHECK_STR(err.msg, "limit 'io': 1 KiB is not between 1 MiB and 1 TiB");
    CHECK_INT(limits_parse(&limits, "io", "0", &err), 0);
    CHECK_INT(limits_check(&limits, HOST_MEMORY, HOST_CPUS, &err), 0);
}

CHECK_MAIN(T(limits_of_the_version_before_are_read_as_they_are),
           T(io_limits_are_none_unless_they_are_asked_for),
           T(every_row_is_complete_and_its_preset_is_within_bounds), T(presets_pass),
           T(each_limit_is_refused_just_outside_its_bounds), T(bounds_themselves_are_allowed),
           T(bounds_are_said_as_people_write_them), T(more_than_the_host_has_is_a_kind_of_its_own),
           T(each_unit_is_parsed_its_own_way), T(what_does_not_parse_names_the_limit))
