/* ops.h - what a caller can ask: one table from operation to handler.
 *
 * Operations with as_user in agent_ops have no handler here: a worker does them (worker.h).
 * Callers: door.c gives new connections ops_request_kind. */
#ifndef COVE_AGENT_OPS_H
#define COVE_AGENT_OPS_H

#include "agent/core/agent.h"

/* A connection that has not yet asked anything. */
extern const struct conn_kind ops_request_kind;

/* The shepherd reached `count` processes for the SIGNAL with this id; 0: no client asked. */
void ops_signalled(struct agent *agent, uint64_t id, uint32_t count);
/* Its shepherd is gone: who still waits for one of its signals is told so. */
void ops_signals_lost(struct agent *agent, const struct proc *proc);

/* A child of the agent is gone. True: it was a worker, or the spare. */
bool ops_worker_reaped(struct agent *agent, pid_t pid);

#endif
