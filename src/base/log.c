#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *level_names[] = {
    [LOG_ERROR] = "error", [LOG_WARNING] = "warning", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"
};

static const int journal_levels[] = {
    [LOG_ERROR] = 3, [LOG_WARNING] = 4, [LOG_INFO] = 6, [LOG_DEBUG] = 7
};

/* A reload may set both while others log. */
static const char *_Atomic log_program = "cove";
static _Atomic int log_most = LOG_INFO;
static _Atomic bool
    log_journal; /* stderr is systemd's journal, which has the time, and the level by a prefix */

static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char own[64];

    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return false;
    (void) snprintf(own, sizeof own, "%llu:%llu", (unsigned long long) st.st_dev,
                    (unsigned long long) st.st_ino);
    return strcmp(stream, own) == 0;
}

void log_init(const char *program, enum log_level most)
{
    log_program = program;
    log_most = (int) most;
    log_journal = is_journal();
}

static int put_time(char *out, size_t size, enum log_level level)
{
    struct timespec now;
    struct tm utc;

    (void) clock_gettime(CLOCK_REALTIME, &now);
    (void) gmtime_r(&now.tv_sec, &utc);
    return snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %s %s ", utc.tm_year + 1900,
                    utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                    now.tv_nsec / 1000000, level_names[level], log_program);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    int n, m;

    if ((int) level > log_most)
        return;
    n = log_journal ? snprintf(line, sizeof line, "<%d>%s ", journal_levels[level], log_program)
                    : put_time(line, sizeof line, level);
    va_start(args, fmt);
    m = vsnprintf(line + n, sizeof line - (size_t) n - 1, fmt, args);
    va_end(args);
    n = m < 0 ? n : n + m;
    if (n > (int) sizeof line - 2)
        n = (int) sizeof line - 2;
    line[n++] = '\n';
    /* One write per line, so that lines of several processes do not mix. */
    if (write(STDERR_FILENO, line, (size_t) n) < 0)
        return;
}

const char *log_quote(char *out, size_t size, const char *text)
{
    size_t n = 0;

    if (size < 8) {
        if (size)
            out[0] = '\0';
        return out;
    }
    out[n++] = '"';
    for (; *text && n < size - 6; text++) {
        unsigned char c = (unsigned char) *text;

        if (c == '"' || c == '\\') {
            out[n++] = '\\';
            out[n++] = (char) c;
        } else if (c >= 0x20 && c < 0x7f) {
            out[n++] = (char) c;
        } else {
            (void) snprintf(out + n, size - n, "\\x%02x", c);
            n += 4;
        }
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}
