/* path.h - paths as callers write them, and errors that name them.
 *
 * A request's path is absolute, relative to the user's home, or begins with "~". Only the text is
 * tidied here (doubled slashes, ".", trailing slashes); ".." and links are the kernel's to resolve,
 * with the user's rights, inside the sandbox.
 *
 * Callers: the file operations of the worker. Never: touches a file, but for path_parents and
 * path_open_parent. */
#ifndef COVE_AGENT_WORKER_PATH_H
#define COVE_AGENT_WORKER_PATH_H

#include "base/err.h"
#include "wire/agent.h"

#include <stdbool.h>

/* A home and a request's path, with the slash between them. */
#define PATH_TEXT_MAX (2 * AGENT_PATH_MAX)

/* Always absolute, without a trailing slash unless it is "/". */
int path_resolve(const char *home, const char *text, char out[PATH_TEXT_MAX], struct err *err);

/* Behind the last slash: "b" of "/a/b", "" of "/". */
const char *path_base(const char *path);

/* True when the last part is one that no entry can have: "", "." or "..". */
bool path_is_special(const char *path);

/* The directory of a path as a descriptor that can only be used as a place (O_PATH). */
int path_open_parent(const char *path, struct err *err);

/* Makes every missing directory above the last part. */
int path_parents(const char *path, struct err *err);

/* "<path>: <reason>" with the kind of the errno. A long path is cut at its front, so that the reason
 * is always whole; a full disk is called that. Returns -1. */
int path_err(struct err *err, int errnum, const char *path);

/* The same with a reason of one's own. */
int path_fail(struct err *err, enum err_kind kind, const char *path, const char *reason);

#endif
