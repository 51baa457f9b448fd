#include "base/parse.h"

#include "base/own.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit size_units[] = {
    { "", 1 },
    { "b", 1 },
    { "k", 1ull << 10 },
    { "kb", 1ull << 10 },
    { "kib", 1ull << 10 },
    { "m", 1ull << 20 },
    { "mb", 1ull << 20 },
    { "mib", 1ull << 20 },
    { "g", 1ull << 30 },
    { "gb", 1ull << 30 },
    { "gib", 1ull << 30 },
    { "t", 1ull << 40 },
    { "tb", 1ull << 40 },
    { "tib", 1ull << 40 },
};

static const struct unit duration_units[] = {
    { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 },
};

static const struct unit cpu_units[] = {
    { "", 1000 },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower_alnum(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z');
}

int parse_u64(const char *text, uint64_t *ret_value, struct err *err)
{
    uint64_t value = 0;

    if (!is_digit(text[0]))
        return err_set(err, ERR_INVALID, "'%.40s' is not a number", text);
    for (const char *c = text; *c; c++) {
        if (!is_digit(*c))
            return err_set(err, ERR_INVALID, "'%.40s' is not a number", text);
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t) (*c - '0'), &value))
            return err_set(err, ERR_INVALID, "'%.40s' is too large", text);
    }
    *ret_value = value;
    return 0;
}

/* digits[.digits]unit. The fraction may have at most six digits; what it yields is cut to
 * whole units of the result unless `exact` asks that nothing be cut. */
static int parse_with_unit(const char *text, const struct unit *units, size_t unit_count,
                           bool exact, const char *what, uint64_t *ret_value, struct err *err)
{
    uint64_t whole = 0, fraction = 0, scale = 1, value, part;
    const char *c = text;

    if (!is_digit(*c))
        return err_set(err, ERR_LIMIT, "'%.40s' is not %s", text, what);
    for (; is_digit(*c); c++)
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (uint64_t) (*c - '0'), &whole))
            return err_set(err, ERR_LIMIT, "'%.40s' is too large for %s", text, what);
    if (*c == '.') {
        c++;
        if (!is_digit(*c))
            return err_set(err, ERR_LIMIT, "'%.40s' is not %s", text, what);
        for (; is_digit(*c); c++) {
            if (scale >= 1000000)
                return err_set(err, ERR_LIMIT, "'%.40s' has too many decimals", text);
            scale *= 10;
            fraction = fraction * 10 + (uint64_t) (*c - '0');
        }
    }
    for (size_t i = 0; i < unit_count; i++) {
        if (strcasecmp(c, units[i].name) != 0)
            continue;
        if (__builtin_mul_overflow(whole, units[i].factor, &value) ||
            __builtin_mul_overflow(fraction, units[i].factor, &part) ||
            __builtin_add_overflow(value, part / scale, &value))
            return err_set(err, ERR_LIMIT, "'%.40s' is too large for %s", text, what);
        if (exact && part % scale != 0)
            return err_set(err, ERR_LIMIT, "'%.40s' is finer than %s can be", text, what);
        *ret_value = value;
        return 0;
    }
    return err_set(err, ERR_LIMIT, "'%.40s' is not %s", text, what);
}

int parse_size(const char *text, uint64_t *ret_bytes, struct err *err)
{
    return parse_with_unit(text, size_units, ARRAY_LEN(size_units), false,
                           "a size (such as 512m or 1.5g)", ret_bytes, err);
}

int parse_duration_ms(const char *text, uint64_t *ret_ms, struct err *err)
{
    return parse_with_unit(text, duration_units, ARRAY_LEN(duration_units), false,
                           "a duration (such as 500ms, 60s or 5m)", ret_ms, err);
}

int parse_cpus_milli(const char *text, uint32_t *ret_milli, struct err *err)
{
    uint64_t milli;

    if (parse_with_unit(text, cpu_units, ARRAY_LEN(cpu_units), true,
                        "a number of cores (such as 2 or 0.5)", &milli, err) < 0)
        return -1;
    if (milli > UINT32_MAX)
        return err_set(err, ERR_LIMIT, "'%.40s' is too large for a number of cores", text);
    *ret_milli = (uint32_t) milli;
    return 0;
}

/* One of the list, up to its comma or its end. */
static int parse_port(const char *text, size_t len, uint16_t *ret)
{
    char number[8];
    uint64_t port = 0;
    struct err ignored;

    if (len >= sizeof number)
        return -1;
    memcpy(number, text, len);
    number[len] = '\0';
    if (parse_u64(number, &port, &ignored) < 0 || port < 1 || port > UINT16_MAX)
        return -1;
    *ret = (uint16_t) port;
    return 0;
}

int parse_port_list(const char *text, uint16_t *out, size_t most, size_t *ret_count,
                    struct err *err)
{
    size_t count = 0;

    for (bool more = *text != '\0'; more;) {
        size_t len = strcspn(text, ","), i = 0;
        uint16_t port = 0;

        if (parse_port(text, len, &port) < 0)
            return err_set(err, ERR_INVALID, "'%.20s': ports are numbers from 1 to 65535, 80,443",
                           text);
        more = text[len] == ',';
        text += len + (more ? 1 : 0);
        while (i < count && out[i] != port)
            i++;
        if (i < count)
            continue;
        if (count == most)
            return err_set(err, ERR_TOO_BIG, "more than %zu ports", most);
        out[count++] = port;
    }
    *ret_count = count;
    return 0;
}

int parse_mode(const char *text, uint32_t *ret_mode, struct err *err)
{
    uint32_t mode = 0;
    size_t len = strlen(text);

    if (len < 1 || len > 5 || strspn(text, "01234567") != len)
        return err_set(err, ERR_INVALID, "'%.40s' is not a file mode (such as 644)", text);
    for (const char *c = text; *c; c++)
        mode = mode * 8 + (uint32_t) (*c - '0');
    if (mode > 07777)
        return err_set(err, ERR_INVALID, "'%.40s' is not a file mode (such as 644)", text);
    *ret_mode = mode;
    return 0;
}

const char *size_text(char *out, size_t size, uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    uint64_t whole = bytes, rest = 0;
    size_t unit = 0;

    while (whole >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        rest = whole % 1024;
        whole /= 1024;
        unit++;
    }
    if (whole < 10 && rest * 10 / 1024 > 0)
        (void) snprintf(out, size, "%" PRIu64 ".%" PRIu64 " %s", whole, rest * 10 / 1024,
                        units[unit]);
    else
        (void) snprintf(out, size, "%" PRIu64 " %s", whole, units[unit]);
    return out;
}

bool name_ok(const char *text)
{
    size_t len = strnlen(text, 64);

    if (len < 1 || len > 63 || !is_lower_alnum(text[0]) || !is_lower_alnum(text[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_lower_alnum(text[i]) && text[i] != '-' && text[i] != '_' && text[i] != '.')
            return false;
    return true;
}

bool id_ok(const char *text)
{
    if (strnlen(text, ID_LEN + 1) != ID_LEN || text[0] != 'i')
        return false;
    for (size_t i = 1; i < ID_LEN; i++)
        if (!is_lower_alnum(text[i]))
            return false;
    return true;
}
