/* xattr.h - extended attributes of a file, links followed.
 *
 * Which namespaces a user may touch (user.*, security.*, trusted.*) is the kernel's to say.
 *
 * Callers: worker.c. */
#ifndef COVE_AGENT_WORKER_XATTR_H
#define COVE_AGENT_WORKER_XATTR_H

#include "agent/worker/worker.h"

int xattr_get(struct worker *w, struct err *err);
int xattr_set(struct worker *w, struct err *err);
int xattr_list(struct worker *w, struct err *err);
int xattr_remove(struct worker *w, struct err *err);

/* For others: rest of a name and value, in turn, of the attributes whose names begin with `prefix`; those that are no
 * texts or do not fit are left out. Returns the bytes used at out. */
uint32_t xattr_collect(const char *path, const char *prefix, char *out, size_t size);
/* Those that begin with `prefix` become `attrs`, and no others stay. */
int xattr_replace(int fd, const char *path, const char *prefix, const struct texts *attrs,
                  struct err *err);

#endif
