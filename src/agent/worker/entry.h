/* entry.h - one file, directory or link as a reply says it.
 *
 * Owns:    the names behind the last few numbers seen, so that a listing of fifty thousand files
 *          does not read /etc/passwd as often.
 * Callers: the file operations of the worker. */
#ifndef COVE_AGENT_WORKER_ENTRY_H
#define COVE_AGENT_WORKER_ENTRY_H

#include "wire/agent.h"

#include <limits.h>
#include <sys/stat.h>

enum agent_entry_type entry_type(mode_t mode);

/* Fills type, mode, owner, group, size and time. `path` and the names are borrowed: they last until
 * the next call. */
void entry_fill(struct agent_reply *reply, const char *path, const struct stat *st);

/* The target of a link into the reply; nothing where it cannot be read. `size` bytes at out. */
void entry_target(struct agent_reply *reply, int dirfd, const char *name, char *out, size_t size);

/* What a request wants beyond that, of the entry at reply->path: where a link leads in the end (AGENT_RESOLVE), and
 * attributes whose names begin with request->name. Nothing where it cannot be had. The reply borrows from `room`. */
struct entry_room {
    char target[PATH_MAX];
    char attrs[AGENT_ATTRS_MAX];
};
void entry_detail(struct agent_reply *reply, const struct agent_request *request,
                  struct entry_room *room);

#endif
