/* jail_mounts.h - what a sandbox sees: root, /proc, /dev, /sys. Runs between clone and exec. */
#ifndef COVE_KEEPER_JAIL_MOUNTS_H
#define COVE_KEEPER_JAIL_MOUNTS_H

#include "base/err.h"
#include "keeper/template.h"
#include "wire/limits.h"

/* As the sandbox's root, in its own mount namespace: attaches everything below root_fd, makes it "/"
 * and leaves nothing of the old root. view: the name of a sysview. */
int jail_mounts(const struct template *t, const struct limits *limits, const char *view,
                int root_fd, int disk_fd, struct err *err);

/* The keeper's own root, prepared once: a small read-only tree that holds what sandboxes are made from,
 * so that a new mount namespace copies a handful of mounts and not the host's. */
int jail_prepare(const char *state, struct err *err);

#endif
