/* grep.h - lines that match, in a file or in every file below a directory.
 *
 * Patterns are POSIX extended regular expressions, or plain texts with AGENT_FIXED; both go by
 * bytes. A file is read through one window of fixed size: a line that is longer is searched piece by
 * piece (a match must lie within LINE_MAX bytes), and only the part around the match is sent. A file
 * with a NUL is no text: its first match is one item with AGENT_BINARY and without the line.
 * FIFOs, devices, links, procfs and sysfs are passed over.
 *
 * Callers: worker.c. */
#ifndef COVE_AGENT_WORKER_GREP_H
#define COVE_AGENT_WORKER_GREP_H

#include "agent/worker/worker.h"

#include <stdbool.h>

#define GREP_LIMIT   1000u
#define GREP_LINE    65536u /* a longer line is searched in pieces */
#define GREP_OVERLAP 4096u  /* bytes that two pieces share */
#define GREP_SHOWN   4096u  /* bytes of a line that are sent */

/* What to look for. */
struct needle;

int needle_new(const char *pattern, bool fixed, bool ignore_case, struct needle **ret,
               struct err *err);
void needle_free(struct needle *needle);

/* First match in text, which is NUL-terminated at len and has no other NUL. `begins` and `ends` say
 * whether it is the begin and end of its line. */
bool needle_find(const struct needle *needle, const char *text, size_t len, bool begins, bool ends,
                 size_t *ret_at, size_t *ret_len);

int grep_run(struct worker *w, struct err *err);

#endif
