/* tree.h - directories of templates as wholes: remove, measure, copy files into.
 *
 * Everything is relative to descriptors and never follows a symlink. Trees are those of
 * templates (made by root from packages or from the host), never a sandbox's. */
#ifndef COVE_TEMPLATE_TREE_H
#define COVE_TEMPLATE_TREE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_size {
    uint64_t bytes; /* on disk; a file with n links counts 1/n at each */
    uint64_t files; /* entries of every kind */
};

int tree_measure(int dir_fd, const char *name, struct tree_size *ret, struct err *err);

/* A file or directory with all below it. What is not there is removed already. */
int tree_remove(int dir_fd, const char *name, struct err *err);

/* Whether there is a file with just this text. */
bool tree_holds(int dir_fd, const char *name, const char *text);

/* A new file with this content, owner and mode, whatever the umask. */
int tree_put(int dir_fd, const char *name, const void *data, size_t len, mode_t mode, uid_t uid,
             struct err *err);

/* A new file with the content and the times of an open one, of at most `most` bytes; owned by root. python takes compiled
 * files for those of a source by the source's time. */
int tree_copy(int from_fd, int dir_fd, const char *name, mode_t mode, uint64_t most,
              struct err *err);

/* A new directory, whatever the umask; one that is there gets this mode and owner. */
int tree_mkdir(int dir_fd, const char *name, mode_t mode, uid_t uid, struct err *err);

#endif
