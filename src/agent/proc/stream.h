/* stream.h - the pipes or the terminal of one process, on the agent's side.
 *
 * Output is read into rings while they have room: with a reader attached, room is made only before
 * its place, so a reader that stalls leaves the pipe full and the process waiting; with none, the
 * oldest bytes go.
 *
 * Owns:    the descriptors, from stream_open to their end or stream_close_all. Callers: proc.c. */
#ifndef COVE_AGENT_PROC_STREAM_H
#define COVE_AGENT_PROC_STREAM_H

#include "agent/proc/proc.h"

/* Makes pipes or a terminal. ret_child has the command's three ends, for the caller to close; 0
 * stands for /dev/null. */
int stream_open(struct proc *proc, const struct agent_request *request, const struct user *user,
                int ret_child[3], struct err *err);
/* Starts reading. */
int stream_start(struct proc *proc, struct err *err);
void stream_close_all(struct proc *proc);

/* The grace is over: what is in the pipes now still counts as the command's output. */
void stream_settle(struct proc *proc);
/* Nothing more is to be expected. */
bool stream_whole(const struct proc *proc);

#endif
