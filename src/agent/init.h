/* init.h - the first process of a virtual machine's kernel: it makes what the agent finds in other sandboxes, and becomes the agent.
 *
 * Modules, the template (read-only) with the disk over it as the root, /proc, /dev, /sys, /dev/cove with the agent's program, a cgroup
 * with the limit of processes, the loopback, the trunk as standard input. wire/boot.h has what it is told.
 *
 * Runs before anything of the tenant's: what it reads was made by the bridge and by tools/vm. A failure is a line on the console, which
 * the bridge passes on, and the machine's end. */
#ifndef COVE_AGENT_INIT_H
#define COVE_AGENT_INIT_H

int init_main(void);

#endif
