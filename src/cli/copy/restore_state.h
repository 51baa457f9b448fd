/* restore_state.h - how a restored state takes the place of the one that is there, at one moment.
 *
 *   <state>/restore.new/     being unpacked: the old state counts, the next restore removes it
 *   <state>/restore.ready/   whole and on disk: from this rename on the new state counts
 *   <state>/restore.old/     what it took the place of, being removed
 *
 * Behind the rename each part is moved into place. A restore that is killed in between leaves restore.ready, and no keeper starts beside
 * it; `cove up` and the next restore move the rest first.
 *
 * Owns:    those three directories.
 * Callers: restore.c, up.c. */
#ifndef COVE_CLI_RESTORE_STATE_H
#define COVE_CLI_RESTORE_STATE_H

#include "base/err.h"

#include <stdbool.h>

#define RESTORE_NEW "restore.new"

/* An empty restore.new. */
int restore_begin(int state_fd, int *ret_fd, struct err *err);
/* Gives up what was begun. */
void restore_abort(int state_fd);
/* All of restore.new is on disk and counts: the moment itself. */
int restore_commit(int state_fd, struct err *err);
/* Moves into place what a commit left; does nothing where there is none. No program may use the state meanwhile. */
int restore_finish(int state_fd, struct err *err);
/* The same by path; a state that is not there has nothing to finish. */
int restore_finish_at(const char *state, struct err *err);

/* Whether there is anything that a restore would take away. */
bool restore_is_empty(int state_fd);
/* Whether sandboxes run, or ran until their keeper ended. */
bool restore_has_sandboxes(int state_fd);

#endif
