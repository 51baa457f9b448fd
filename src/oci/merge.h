/* merge.h - the layers of an image, one after the other, become one tree; content goes straight into the EROFS image.
 *
 * Layers are tar streams (http/tar.h, with `layer` set), the lowest first. What a layer may say and what comes of it:
 *
 *   a directory again           takes the new mode and owner, keeps what is in it
 *   anything else again         replaces what was there, with all below
 *   .wh.NAME                    hides NAME of lower layers, wherever in its layer the entry stands
 *   .wh..wh..opq                hides all that lower layers have in that directory
 *   a parent that is a link     is followed inside the tree, as the sandbox would; never outside
 *   devices, FIFOs              are left out and counted
 *   below /dev, /proc, /sys     is left out and counted
 *   set-user-id, set-group-id   of files: dropped and counted
 *   attributes but user.*       dropped and counted
 *   an owner above 65535        is refused, or becomes 65534 with squash_ids
 *   ".." in a name, a whiteout of "..", a hard link to nothing: refused
 *
 * Owns:    the tree and the writer, from init to done. Never: resolves a name on the host. */
#ifndef COVE_OCI_MERGE_H
#define COVE_OCI_MERGE_H

#include "base/err.h"
#include "erofs/tree.h"
#include "erofs/write.h"
#include "http/tar.h"

#define MERGE_ID_MAX    65535u
#define MERGE_ID_NOBODY 65534u

/* An image may be cut into files, the lowest first: cut.h. */
#define MERGE_BELOW_MAX 3

/* What was left out of the image. */
struct merge_dropped {
    uint64_t nodes, system, set_ids, xattrs, squashed;
};

struct merge {
    struct tree tree;
    struct erofs_writer writer;
    uint32_t layer; /* 1 is the lowest */
    bool squash_ids;
    struct merge_dropped dropped;
    /* of cut.c */
    unsigned below_count;
    int below_fd[MERGE_BELOW_MAX]; /* borrowed: the files that are whole, the lowest first */
    uint32_t cut_layer;            /* the last layer of these; 0: there are none */
    uint64_t cut_at;               /* bytes of content that had arrived then */
    struct cut_name *names;        /* that they have */
    /* the file whose content arrives; NULL: the content is skipped */
    struct tree_inode *file;
    struct tree_node *dir;
};

int merge_init(struct merge *merge, int image_fd, const struct tree_limits *limits,
               uint64_t bytes_max, struct err *err);
void merge_done(struct merge *merge);

/* Before the entries of each layer. */
void merge_layer(struct merge *merge);
/* What the reader said: TAR_ENTRY, TAR_DATA, TAR_ENTRY_END. `tar` keeps the entry in between. */
int merge_event(struct merge *merge, const struct tar *tar, int event, struct slice data,
                struct err *err);

/* All content of a file, in whichever file of the image that is: erofs_read(). */
int merge_read(const struct merge *merge, const struct tree_inode *inode, void *out, size_t size,
               size_t *ret_len, struct err *err);

#endif
