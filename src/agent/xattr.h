/* xattr.h - extended attributes of a file, links followed.
 *
 * Which namespaces a user may touch (user.*, security.*, trusted.*) is the kernel's to say.
 *
 * Callers: worker.c. */
#ifndef COVE_AGENT_XATTR_H
#define COVE_AGENT_XATTR_H

#include "agent/worker.h"

int xattr_get(struct worker *w, struct err *err);
int xattr_set(struct worker *w, struct err *err);
int xattr_list(struct worker *w, struct err *err);
int xattr_remove(struct worker *w, struct err *err);

#endif
