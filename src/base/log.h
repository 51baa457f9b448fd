/* log.h - one line per event on stderr: time level program event key=value ...
 *
 * Where stderr is systemd's journal ($JOURNAL_STREAM), the level is journald's prefix and the time is journald's own.
 *
 * Values that come from outside go through log_quote. Never user content. */
#ifndef COVE_BASE_LOG_H
#define COVE_BASE_LOG_H

#include <stddef.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

void log_init(const char *program, enum log_level most);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints text as a quoted value into out: controls, quotes and non-ASCII are escaped, and what
 * does not fit is cut. Returns out. */
const char *log_quote(char *out, size_t size, const char *text);

#endif
