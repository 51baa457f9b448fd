/* report.h - what the command line says, and how it ends.
 *
 * Every failure is one line on stderr, `cove: sentence`, and the exit code of its kind. Text that
 * comes out of a sandbox, or from a server, passes through report_text: a terminal never sees its control bytes. */
#ifndef COVE_CLI_REPORT_H
#define COVE_CLI_REPORT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define COVE_STATE_DEFAULT "/var/lib/cove"

/* --state, or COVE_STATE, or the default. */
const char *report_state(void);

/* Prints `cove: <message>` and returns the exit code. */
int report_error(const struct err *err);

/* `cove: <text>`, for what is worth saying though it is no failure. */
void report_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Printable UTF-8 stays, everything else is shown as \xNN. Cut to `size`. Returns out. */
const char *report_text(char *out, size_t size, const char *text);
/* The same, whole, in memory of its own. NULL: there is none. */
char *report_safe(const char *text);

/* "512 MiB", "1.5 GiB", "0 B". */
const char *report_size(char *out, size_t size, uint64_t bytes);

/* "850 ms", "2.5 s", "3 min", "4 h", "2 d". */
const char *report_span(char *out, size_t size, uint64_t ms);

/* Flushes stdout: a full disk or a closed pipe is a failure, not silence. Returns code, or another.
 */
int report_end(int code);

#endif
