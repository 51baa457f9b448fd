/* resumed.h - what a sandbox does when it finds itself again after it was saved.
 *
 * Programs that want to know watch the file RESUMED_FILE (inotify, or its time): it is replaced whole, and says how often, why,
 * when, and after how long. No signal is sent: most programs do not know one.
 *
 * Callers: ops.c */
#ifndef COVE_AGENT_RESUMED_H
#define COVE_AGENT_RESUMED_H

#include "agent/core/agent.h"

#define RESUMED_DIR  "/run/cove"
#define RESUMED_FILE RESUMED_DIR "/resumed"

/* Before: nothing is held that a checkpoint could not save, and in a guest no command runs. -1: it is not so, and must not be saved. */
int resumed_make_ready(struct agent *agent, struct err *err);

/* After, or although nothing was made ready. listener: of refused calls, a duplicate is taken; -1: none. why is one of
 * the keeper's words. -1: the keeper must not let the sandbox continue. */
int resumed_now(struct agent *agent, const char *why, uint64_t slept_ms, int listener,
                struct err *err);

#endif
