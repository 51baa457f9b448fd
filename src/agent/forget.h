/* forget.h - in a virtual machine: the kernel forgets files of the template in time.
 *
 * Each file of the template that the guest's kernel remembers costs virtiofsd, on the host, a descriptor and some memory of the sandbox's
 * jail. The kernel forgets files only when memory is short, so that 'find /' would take all descriptors there are, and every further
 * file would be an error (ENFILE). The agent looks how many are remembered, more often when there are many, and has the kernel drop
 * those that are not in use.
 *
 * Callers: main.c. */
#ifndef COVE_AGENT_FORGET_H
#define COVE_AGENT_FORGET_H

#include "agent/core/loop.h"

#include <stdbool.h>
#include <stdint.h>

/* From now on. A kernel that does not tell how many there are, or has no such file system mounted, is left alone. */
void forget_begin(struct loop *loop);

/* Whether so many files are too many. *most: how many may be remembered, 0 at first; files in use cannot be forgotten, so that it rises above
 * what was left by the last time. `before`: whether the last answer was yes. */
bool forget_wanted(uint64_t count, bool before, uint64_t *most);

#endif
