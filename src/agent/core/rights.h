/* rights.h - capabilities and ids: what the agent keeps, and how a child becomes a user.
 *
 * Raw system calls throughout: spawn.c runs this in a child that shares its parent's memory, where
 * libc's own setresuid, which believes that it must tell other threads, has no business.
 *
 * Callers: main.c at boot; spawn.c and ops.c in children. */
#ifndef COVE_AGENT_CORE_RIGHTS_H
#define COVE_AGENT_CORE_RIGHTS_H

#include "agent/core/user.h"

/* Cuts the agent down to BOOT_AGENT_CAPS, whatever it was started with; undumpable. more: what it keeps for itself beside
 * them, out of reach of every exec. full: of a virtual machine, where root has every capability of the guest's kernel (BOOT_MACHINE). */
int rights_boot(uint64_t more, bool full, struct err *err);

/* Of the profile `strict`: takes all from the agent's bounding set, which its commands inherit. So a command finds nothing left to take,
 * which is 14 us of each start. No exec of the agent's needs a capability; what it has stays. A failure is none: rights_become takes
 * what is left. */
void rights_bound_strict(void);

/* From the agent's rights to the user's, for good: groups, ids, capabilities, bounding set. With
 * `root_profile`, uid 0 keeps BOOT_ROOT_CAPS, or all in a virtual machine; everybody else ends with none. */
int rights_become(const struct user *user, bool root_profile, struct err *err);

/* Root of the root profile, with all its capabilities, but whatever it makes is the user's (fsuid, fsgid). */
int rights_lend(const struct user *user, struct err *err);

#endif
