/* confine.h - what a process gives up before it becomes the agent. Runs between clone and exec. */
#ifndef COVE_JAIL_CONFINE_H
#define COVE_JAIL_CONFINE_H

#include "base/err.h"
#include "jail/seccomp.h"
#include "wire/limits.h"

#include <stdbool.h>

/* Resource limits of processes; the cgroup's are already in force. */
int confine_limits(const struct limits *limits, struct err *err);

/* Everything but BOOT_AGENT_CAPS, from the bounding set too: no exec can bring them back. */
int confine_capabilities(uint64_t keep, struct err *err);

/* no_new_privs, Landlock, seccomp. *ret_listening: BOOT_FD_NOTIFY is the listener of refused calls. notify may be NULL: refusals are
 * not to be heard of. */
int confine_kernel(const struct seccomp_filter *notify, const struct seccomp_filter *quiet,
                   bool *ret_listening, struct err *err);

/* Whether this kernel's Landlock is one that confine_kernel uses. */
bool confine_has_landlock(void);

#endif
