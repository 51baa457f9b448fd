/* subtree.h - operations on a directory and all below it: list, remove, chmod, chown.
 *
 * All go by the descriptors of walk.h and follow no link below the path they were given. Remove,
 * chmod and chown stay on the file system they begin on.
 *
 * Callers: worker.c, move.c. */
#ifndef COVE_AGENT_WORKER_SUBTREE_H
#define COVE_AGENT_WORKER_SUBTREE_H

#include "agent/worker/worker.h"

int subtree_list(struct worker *w, struct err *err);
int subtree_remove(struct worker *w, struct err *err);
int subtree_chmod(struct worker *w, struct err *err);
int subtree_chown(struct worker *w, struct err *err);

/* Removes `name` in dirfd and all below it; `path` names it in errors. *count grows by what went,
 * also when it fails on the way. Stops when the caller of `w` (may be NULL) has gone. */
int subtree_remove_at(struct worker *w, int dirfd, const char *name, const char *path,
                      uint64_t *count, struct err *err);

#endif
