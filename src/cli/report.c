#include "cli/report.h"

#include "base/own.h"
#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

const char *report_state(void)
{
    const char *state = getenv("COVE_STATE");

    return state && state[0] ? state : COVE_STATE_DEFAULT;
}

int report_error(const struct err *err)
{
    char text[4 * ERR_MSG_MAX];

    (void) fflush(stdout);
    (void) fprintf(stderr, "cove: %s\n", report_text(text, sizeof text, err->msg));
    return err_kind_info(err->kind)->exit_code;
}

void report_note(const char *fmt, ...)
{
    auto_free char *raw = NULL, *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&raw, fmt, args) < 0)
        raw = NULL;
    va_end(args);
    text = raw ? report_safe(raw) : NULL;
    (void) fprintf(stderr, "cove: %s\n", text ? text : fmt);
}

/* Bytes of the well-formed UTF-8 sequence at `at` that is safe to show, or 0. Controls (C1 as
 * well), overlong forms, surrogates, and the marks that reorder text are not. */
static size_t utf8_len(const unsigned char *at, uint32_t *ret_code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = at[0] < 0x80       ? 1
                 : at[0] >> 5 == 6  ? 2
                 : at[0] >> 4 == 14 ? 3
                 : at[0] >> 3 == 30 ? 4
                                    : 0;
    uint32_t code;

    if (len == 0)
        return 0;
    code = len == 1 ? at[0] : at[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret_code = code;
    return len;
}

static int is_printable(uint32_t code)
{
    if (code < 0x20 || (code >= 0x7f && code < 0xa0))
        return 0;
    return !((code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
             (code >= 0x2066 && code <= 0x2069) || code == 0xfeff);
}

const char *report_text(char *out, size_t size, const char *text)
{
    const unsigned char *at = (const unsigned char *) text;
    size_t n = 0;

    while (*at && n + 5 <= size) {
        uint32_t code = 0;
        size_t len = utf8_len(at, &code);

        if (len && is_printable(code)) {
            memcpy(out + n, at, len);
            n += len;
            at += len;
        } else {
            (void) snprintf(out + n, 5, "\\x%02x", *at++);
            n += 4;
        }
    }
    if (size)
        out[n] = '\0';
    return out;
}

char *report_safe(const char *text)
{
    size_t size = 4 * strlen(text) + 5;
    char *out = malloc(size);

    if (out)
        (void) report_text(out, size, text);
    return out;
}

const char *report_size(char *out, size_t size, uint64_t bytes)
{
    return size_text(out, size, bytes);
}

const char *report_span(char *out, size_t size, uint64_t ms)
{
    uint64_t s = ms / 1000;

    if (ms < 1000)
        (void) snprintf(out, size, "%" PRIu64 " ms", ms);
    else if (s < 10 && ms % 1000 >= 100)
        (void) snprintf(out, size, "%" PRIu64 ".%" PRIu64 " s", s, ms % 1000 / 100);
    else if (s < 120)
        (void) snprintf(out, size, "%" PRIu64 " s", s);
    else if (s < 7200)
        (void) snprintf(out, size, "%" PRIu64 " min", s / 60);
    else if (s < 172800)
        (void) snprintf(out, size, "%" PRIu64 " h", s / 3600);
    else
        (void) snprintf(out, size, "%" PRIu64 " d", s / 86400);
    return out;
}

int report_end(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    /* The reader is gone: end as a command that SIGPIPE ended would. */
    if (errno == EPIPE)
        return 128 + 13;
    if (code == 0) {
        report_note("write to stdout: %s", strerror(errno));
        return err_kind_info(err_kind_of_errno(errno))->exit_code;
    }
    return code;
}
