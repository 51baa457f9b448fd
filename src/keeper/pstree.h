/* pstree.h - the tree of processes in a dump, made so that criu can restore it.
 *
 * criu restores a session whose leader is no forebear of a process only for processes that belong to init. Ours belong to the
 * shepherd of their command, which is a subreaper: in the dump they are given to init, as they would have been without one.
 *
 * Callers: save.c, before an image is signed. */
#ifndef COVE_KEEPER_PSTREE_H
#define COVE_KEEPER_PSTREE_H

#include "base/err.h"

/* ERR_UNSUPPORTED: there is a process that could not be restored, and why. */
int pstree_mend(int memory_fd, struct err *err);

#endif
