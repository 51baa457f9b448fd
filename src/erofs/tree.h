/* tree.h - a file tree in memory: names, attributes and where the content is. Names are keys here and never paths of the host.
 *
 * A node is a name in a directory; an inode is a file, which several nodes may name. What a layer of an image says about the
 * tree is src/oci's subject; writing it is write.h's.
 *
 * Owns:    all nodes and inodes, until tree_free().
 * Never:   holds content of files: an inode says where in the image that is. */
#ifndef COVE_EROFS_TREE_H
#define COVE_EROFS_TREE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREE_NAME_MAX  255u
#define TREE_PATH_MAX  4096u /* with its NUL */
#define TREE_HOPS_MAX  40u   /* symbolic links on the way to a file */
#define TREE_LINKS_MAX 65000u

struct tree_limits {
    uint64_t entries;   /* nodes of the whole tree, also such as were removed again */
    uint32_t directory; /* nodes of one directory */
    uint32_t depth;
    uint32_t xattrs; /* bytes of an inode's extended attributes */
};

extern const struct tree_limits tree_limits_default;

struct tree_inode {
    uint16_t mode; /* with its type: S_IFREG, S_IFDIR or S_IFLNK; of a whiteout S_IFCHR */
    uint16_t uid, gid;
    uint32_t links;   /* nodes that name the inode */
    uint32_t subdirs; /* of a directory; of layout.c */
    /* as many had it when the image was cut; of src/oci/cut.c, as is the next */
    uint32_t links_below;
    bool spread; /* some of its names are written, so all are */
    int64_t mtime;
    uint64_t size;
    char *target;          /* of a symbolic link */
    unsigned char *xattrs; /* as on disk, without the head */
    uint32_t xattrs_len;
    /* where the content is; of write.c */
    uint8_t file; /* the number of the writer that has it */
    uint32_t block;
    uint64_t tail_at;
    uint16_t tail_len; /* bytes that go behind the inode */
    uint64_t place;    /* of the inode in the metadata */
    uint32_t number;   /* 0: not placed yet */
};

struct tree_node {
    struct tree_node *parent;                     /* of the root: itself */
    struct tree_node *next, *previous, *children; /* siblings; sorted by name only in write.c */
    struct tree_node *chain;                      /* of the table of names */
    struct tree_inode *inode;
    uint32_t layer;  /* the last layer that had an entry for the node */
    uint32_t opaque; /* the last layer that hid everything from below the node */
    uint32_t count;  /* of children */
    uint16_t depth;
    bool below; /* not written: a file below has the node, and all that is in it */
    uint8_t name_len;
    char name[];
};

struct tree {
    struct tree_limits limits;
    struct tree_node *root;
    struct tree_node **table;
    size_t table_size;    /* a power of two */
    uint64_t nodes, made; /* now, and ever */
    uint64_t inodes;      /* now, the root's included */
    uint64_t secret[2];   /* of the table: names are hostile */
    /* Told before an inode that no node names any more is freed; may be NULL. */
    void (*dropped)(void *context, const struct tree_inode *inode);
    void *context;
};

int tree_init(struct tree *tree, const struct tree_limits *limits, struct err *err);
void tree_done(struct tree *tree);

/* A new inode without a name, for tree_put(); NULL: no memory. */
struct tree_inode *tree_inode_new(uint16_t mode, uint16_t uid, uint16_t gid, int64_t mtime);
void tree_inode_free(struct tree *tree, struct tree_inode *inode);
/* ERR_TOO_BIG past the limit. `name` is without "user.". */
int tree_inode_xattr(const struct tree *tree, struct tree_inode *inode, const char *name,
                     size_t name_len, const void *value, size_t value_len, struct err *err);

struct tree_node *tree_child(const struct tree *tree, const struct tree_node *dir, const char *name,
                             size_t len);
/* A name for an inode; the name must be free. The tree owns a new inode from then on, also if this fails. */
int tree_put(struct tree *tree, struct tree_node *dir, const char *name, size_t len,
             struct tree_inode *inode, uint32_t layer, struct tree_node **ret, struct err *err);
/* With all below. */
void tree_remove(struct tree *tree, struct tree_node *node);
/* Removes what is below `node` and of an earlier layer than this one, but for directories with something left in them. */
void tree_hide(struct tree *tree, struct tree_node *node, uint32_t layer);

/* Walks from the root, through symbolic links as the sandbox would, and never out of the tree. `path` is relative, without ".." (as
 * http/tar.h gives it). ret_dir: where its last part is or would be; directories that are missing are made, as of `layer`, if
 * make is set. ret_name: that part, within `path`. The last part is not followed. ret_dir is NULL if a directory is missing. */
int tree_walk(struct tree *tree, const char *path, bool make, uint32_t layer,
              struct tree_node **ret_dir, const char **ret_name, struct err *err);

static inline bool tree_is_dir(const struct tree_node *node)
{
    return (node->inode->mode & 0170000) == 0040000;
}

#endif
