/* memory.h - whether a command was killed for want of memory, where the kernel is the sandbox's own: in a virtual machine. Elsewhere the
 * sandbox's cgroup knows, which only the host sees.
 *
 * Callers: start.c, proc.c, agent/ops.c. */
#ifndef COVE_AGENT_PROC_MEMORY_H
#define COVE_AGENT_PROC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Processes that this kernel killed for want of memory; 0: unknown. */
uint64_t memory_kills(void);

/* Of a wait status: killed as the kernel does it, or by a shell's word. */
bool memory_could_kill(int status);

#endif
