/* spawn_pack.h - a prepared command as bytes: for a process that was forked before the command was
 * known.
 *
 * Both ends are the same program, so the bytes have no version. They are checked all the same.
 *
 * Callers: proc/spare.c packs, proc/shepherd.c and proc/start.c unpack. */
#ifndef COVE_AGENT_CORE_SPAWN_PACK_H
#define COVE_AGENT_CORE_SPAWN_PACK_H

#include "agent/core/spawn.h"

/* The number of bytes; 0: they do not fit. Descriptors are left out. */
size_t spawn_pack(const struct spawn *spawn, char *out, size_t room);

/* The bytes are borrowed until spawn_done. Standard descriptors are 0, "nothing". -1: not whole, or no memory; spawn_done has nothing to free then. */
int spawn_unpack(struct spawn *ret, char *data, size_t len);

#endif
