/* creds.h - the keeper with other ids for a moment, with all its capabilities. */
#ifndef COVE_JAIL_CREDS_H
#define COVE_JAIL_CREDS_H

#include "base/err.h"

#include <stdint.h>

/* File system ids only: whose layers an overlay is mounted for. creds_files(0) is the way back. */
void creds_files(uint32_t id);

/* The effective id, but files still as root: who owns the user namespace made next. The owner pays for what is
 * counted per user inside it (inotify, message queues, pending signals), all the way up; were it root, all
 * sandboxes would share root's share, and one could take it from all. creds_owner(0) is the way
 * back; there is no way on if that fails, so it does not return then. */
int creds_owner(uint32_t id, struct err *err);

#endif
