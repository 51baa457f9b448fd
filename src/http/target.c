#include "http/target.h"

#include "http/chars.h"

#include <string.h>

#define HOST_MAX 255

static int parse_port(struct slice text, uint16_t *ret_port, struct err *err)
{
    uint64_t port;

    if (text.len > 5 || !slice_number(text, &port) || port == 0 || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "the host has an invalid port '%.*s'", SLICE_ARGS(text));
    *ret_port = (uint16_t) port;
    return 0;
}

/* "[" hex digits, colons and dots "]". Whether it is an address is asked when it is used as one. */
static size_t ipv6_len(struct slice text)
{
    for (size_t i = 1; i < text.len; i++) {
        if (text.at[i] == ']')
            return i > 1 ? i + 1 : 0;
        if (!char_is(text.at[i], CHAR_HEX) && text.at[i] != ':' && text.at[i] != '.')
            return 0;
    }
    return 0;
}

int host_parse(struct slice text, struct host *ret_host, struct err *err)
{
    struct host host = { 0 };
    size_t n;

    if (text.len == 0)
        return err_set(err, ERR_INVALID, "the host is empty");
    if (text.len > HOST_MAX)
        return err_set(err, ERR_INVALID, "the host is longer than %d bytes", HOST_MAX);
    n = text.at[0] == '[' ? ipv6_len(text) : char_span(text.at, text.len, CHAR_HOST);
    if (n == 0 || (n < text.len && text.at[n] != ':'))
        return err_set(err, ERR_INVALID, "'%.*s' is not a host name", SLICE_ARGS(text));
    host.name = (struct slice){ text.at, n };
    if (n < text.len &&
        parse_port((struct slice){ text.at + n + 1, text.len - n - 1 }, &host.port, err) < 0)
        return -1;
    *ret_host = host;
    return 0;
}

static int parse_path(struct slice text, struct target *target, struct err *err)
{
    size_t n = char_span(text.at, text.len, CHAR_PATH);
    size_t bad = n;

    target->path = (struct slice){ text.at, n };
    if (n < text.len && text.at[n] == '?') {
        target->query = (struct slice){ text.at + n + 1, text.len - n - 1 };
        bad = n + 1 + char_span(target->query.at, target->query.len, CHAR_QUERY);
    }
    if (bad < text.len)
        return err_set(err, ERR_INVALID,
                       "the request target has the byte 0x%02x, which is not allowed",
                       (unsigned char) text.at[bad]);
    return 0;
}

static size_t scheme_len(struct slice text)
{
    static const char *const schemes[] = { "http://", "https://" };

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t len = strlen(schemes[i]);

        if (text.len >= len && slice_is_nocase((struct slice){ text.at, len }, schemes[i]))
            return len;
    }
    return 0;
}

int target_parse(struct slice text, struct target *ret_target, struct err *err)
{
    struct target target = { 0 };
    size_t scheme, n;

    if (text.len == 0)
        return err_set(err, ERR_INVALID, "the request target is empty");
    if (slice_is(text, "*")) {
        target.path = text;
        target.asterisk = true;
        *ret_target = target;
        return 0;
    }
    if (text.at[0] != '/') {
        scheme = scheme_len(text);
        if (scheme == 0)
            return err_set(err, ERR_INVALID,
                           "the request target begins with neither / nor http://");
        text = (struct slice){ text.at + scheme, text.len - scheme };
        for (n = 0; n < text.len && text.at[n] != '/' && text.at[n] != '?'; n++)
            continue;
        target.authority = (struct slice){ text.at, n };
        text = (struct slice){ text.at + n, text.len - n };
    }
    if (parse_path(text, &target, err) < 0)
        return -1;
    *ret_target = target;
    return 0;
}
