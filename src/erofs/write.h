/* write.h - writes a tree as an EROFS image: the same files in the same order give the same bytes.
 *
 * Content comes first, as it arrives, and is written once. Then the tree is known, and directories and inodes follow. What no file of the
 * finished tree needs (files that a later layer replaced) becomes a hole of the image.
 *
 * Owns:    nothing but memory. The image is the caller's open file, empty at the start.
 * Callers: src/oci, in a process without privilege. */
#ifndef COVE_EROFS_WRITE_H
#define COVE_EROFS_WRITE_H

#include "base/err.h"
#include "erofs/tree.h"

struct erofs_limits {
    uint64_t bytes; /* of all content that ever arrived */
};

#define EROFS_BYTES_MAX (20ull << 30)

struct erofs_extent {
    uint32_t block, count;
};

struct erofs_writer {
    int fd;         /* borrowed: read and write */
    uint8_t number; /* of an image that is several files */
    uint64_t bytes_max;
    uint32_t next_block; /* the first that is free */
    uint64_t arrived;    /* bytes of content */
    /* the file whose content arrives */
    struct tree_inode *file; /* NULL: none */
    uint64_t left, at;       /* to come; where the next whole-block byte goes */
    uint64_t whole;          /* bytes of its whole blocks that are to come */
    unsigned char *buffer;   /* of bytes for `at` */
    size_t buffered;
    /* last bytes of files, until they go behind their inodes */
    unsigned char *pool;
    uint32_t pool_block;
    size_t pooled;
    struct erofs_extent *dead; /* extents that nothing needs */
    size_t dead_count, dead_room;
    bool dead_lost; /* no memory for some: they stay as they are */
};

int erofs_init(struct erofs_writer *writer, int fd, uint64_t bytes_max, struct err *err);
void erofs_done(struct erofs_writer *writer);

/* The content of a new file, of this size: begin, then pieces, then end, which fails if some is missing. */
int erofs_begin(struct erofs_writer *writer, struct tree_inode *inode, uint64_t size,
                struct err *err);
int erofs_add(struct erofs_writer *writer, const void *data, size_t len, struct err *err);
int erofs_end(struct erofs_writer *writer, struct err *err);

/* The content of a file that another writer has finished, once more: from then on it is here. */
int erofs_copy(struct erofs_writer *writer, int from_fd, struct tree_inode *inode, struct err *err);

/* All content of a file; ERR_TOO_BIG if it has more than size bytes. ret_len may be NULL. Of a writer that has finished, its
 * descriptor alone is needed. */
int erofs_read(const struct erofs_writer *writer, const struct tree_inode *inode, void *out,
               size_t size, size_t *ret_len, struct err *err);

/* For tree->dropped: the blocks of a file that went. context is the writer. */
void erofs_dropped(void *writer, const struct tree_inode *inode);

/* Directories, inodes, superblock; the image is whole then. `uuid` names it. */
struct erofs_size {
    uint64_t bytes; /* of the image, without holes */
    uint64_t inodes;
};
int erofs_finish(struct erofs_writer *writer, struct tree *tree, const unsigned char uuid[16],
                 struct erofs_size *ret, struct err *err);

#endif
