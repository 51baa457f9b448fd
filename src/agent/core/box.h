/* box.h - all commands of a virtual machine as one: a cgroup of the guest's kernel, made by agent/init.c, which the agent is not in.
 *
 * Before a machine is saved they are stopped, and what they wrote goes to the disk. A machine that runs again finds them so: none of
 * them runs before the agent has the time, the host name and the random bytes of now, and has let them go. Root inside can leave the
 * cgroup, and then runs at once.
 *
 * Callers: main.c; proc/start.c; resumed.c. */
#ifndef COVE_AGENT_CORE_BOX_H
#define COVE_AGENT_CORE_BOX_H

#include <stdbool.h>

#define BOX_CGROUP "/sys/fs/cgroup/sandbox"

/* In a machine; elsewhere the others do nothing. */
void box_open(void);

/* The calling process, and whatever it starts. */
void box_enter(void);

void box_stop(void);
void box_go(void);

#endif
