/* What people type: sizes, durations, cores, modes, numbers, names. Beyond not crashing: a refusal
 * leaves the result alone and says something, and a success is stable when written out again. */
#include "base/err.h"
#include "base/parse.h"
#include "wire/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

typedef int (*parse_fn)(const char *text, uint64_t *ret, struct err *err);

/* `again` gives the plain number in the parser's own unit. */
static void check(parse_fn parse, const char *text, const char *unit)
{
    uint64_t value = UNTOUCHED, twice;
    struct err err = { 0 };
    char plain[64];

    if (parse(text, &value, &err) < 0) {
        must(value == UNTOUCHED && err.kind != ERR_NONE && err.msg[0]);
        return;
    }
    (void) snprintf(plain, sizeof plain, "%" PRIu64 "%s", value, unit);
    must(parse(plain, &twice, &err) == 0 && twice == value);
}

static void check_names(const char *text)
{
    if (id_ok(text))
        must(name_ok(text) && strlen(text) == ID_LEN);
    if (name_ok(text))
        must(!strchr(text, '/') && text[0] != '.' && text[0] != '-' && strlen(text) < 64);
}

static void check_ports(const char *text)
{
    size_t count = SIZE_MAX, twice, at = 0;
    uint16_t ports[4], again[4];
    struct err err = { 0 };
    char plain[4 * 6 + 1] = "";

    if (parse_port_list(text, ports, 4, &count, &err) < 0) {
        must(count == SIZE_MAX && err.kind != ERR_NONE && err.msg[0]);
        return;
    }
    must(count <= 4);
    for (size_t i = 0; i < count; i++) {
        must(ports[i] > 0);
        at += (size_t) snprintf(plain + at, sizeof plain - at, "%s%u", i > 0 ? "," : "", ports[i]);
    }
    must(parse_port_list(plain, again, 4, &twice, &err) == 0 && twice == count &&
         memcmp(ports, again, count * sizeof ports[0]) == 0);
}

static void check_limits(const char *text)
{
    for (size_t i = 0; i < limit_count; i++) {
        struct limits limits;
        struct err err;

        limits_default(&limits);
        if (limits_parse(&limits, limit_table[i].name, text, &err) == 0)
            (void) limits_check(&limits, UINT64_MAX, UINT64_MAX, &err);
        else
            must(err.kind == ERR_LIMIT &&
                 limit_value(&limits, &limit_table[i]) == limit_table[i].fallback);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    uint32_t small = 0x5a5a5a5a;
    struct err err;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check(parse_u64, text, "");
    check(parse_size, text, "b");
    check(parse_duration_ms, text, "ms");
    if (parse_cpus_milli(text, &small, &err) < 0)
        must(small == 0x5a5a5a5a);
    small = 0x5a5a5a5a;
    if (parse_mode(text, &small, &err) < 0)
        must(small == 0x5a5a5a5a);
    else
        must(small <= 07777);
    check_names(text);
    check_ports(text);
    check_limits(text);
    free(text);
    return 0;
}
