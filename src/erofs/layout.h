/* layout.h - where directories and inodes of an image lie, and their bytes. For write.c alone.
 *
 * Two walks in the same order, sorted by name: the first says where each inode is, the second writes them. Directories name inodes by
 * their place, so nothing can be written before the first walk is done. */
#ifndef COVE_EROFS_LAYOUT_H
#define COVE_EROFS_LAYOUT_H

#include "base/err.h"
#include "erofs/tree.h"
#include "erofs/write.h"

#define LAYOUT_ROOT 128u /* the root's place: no inode has the numbers 0 and 1 */

struct layout {
    uint32_t dir_block;  /* first of directories; given */
    uint32_t meta_block; /* first of inodes */
    uint32_t end_block;
    uint64_t inodes;
};

int layout_plan(struct layout *layout, struct tree *tree, struct err *err);
int layout_write(struct layout *layout, const struct erofs_writer *writer, struct tree *tree,
                 struct err *err);

/* Of write.c. */
int erofs_put(int fd, const void *data, size_t len, uint64_t at, struct err *err);
int erofs_read_tail(const struct erofs_writer *writer, const struct tree_inode *inode, void *out,
                    struct err *err);

#endif
