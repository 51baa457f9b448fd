/* pstree.h - the tree of processes in a dump, made so that criu can restore it.
 *
 * criu restores a session whose leader is no forebear of a process only for processes that belong to init. Ours belong to the
 * shepherd of their command, which is a subreaper: in the dump they are given to init, as they would have been without one.
 *
 * Callers: save.c, before an image is signed. */
#ifndef COVE_IMAGE_PSTREE_H
#define COVE_IMAGE_PSTREE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* ERR_UNSUPPORTED: there is a process that could not be restored, and why. */
int pstree_fix(int memory_fd, struct err *err);

/* The same for what the file has after its magic; out has room for as much. 1: it was fixed; 0: no need to. Pure. */
int pstree_fix_bytes(const uint8_t *text, size_t len, uint8_t *out, size_t *ret_len,
                     struct err *err);

#endif
