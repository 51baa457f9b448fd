#include "oci/merge.h"

#include "base/own.h"
#include "oci/cut.h"

#include <string.h>
#include <sys/stat.h>

#define WHITEOUT ".wh."
#define OPAQUE   ".wh..wh..opq"
#define RESERVED ".wh..wh."

int merge_init(struct merge *m, int image_fd, const struct tree_limits *limits, uint64_t bytes_max,
               struct err *err)
{
    memset(m, 0, sizeof *m);
    if (erofs_init(&m->writer, image_fd, bytes_max, err) < 0)
        return -1;
    if (tree_init(&m->tree, limits, err) < 0) {
        erofs_done(&m->writer);
        return -1;
    }
    m->tree.dropped = erofs_dropped;
    m->tree.context = &m->writer;
    return 0;
}

void merge_done(struct merge *m)
{
    m->tree.dropped = NULL;
    tree_inode_free(&m->tree, m->file);
    m->file = NULL;
    tree_done(&m->tree);
    cut_done(m);
    erofs_done(&m->writer);
}

int merge_read(const struct merge *m, const struct tree_inode *inode, void *out, size_t size,
               size_t *ret_len, struct err *err)
{
    bool here = inode->file == m->writer.number;
    const struct erofs_writer below = { .fd = here ? -1 : m->below_fd[inode->file] };

    return erofs_read(here ? &m->writer : &below, inode, out, size, ret_len, err);
}

void merge_layer(struct merge *m)
{
    m->layer++;
}

static int of_entry(const struct tar *tar, struct err *err)
{
    return err_wrap(err, "the image's entry '%.100s'", tar->entry.path);
}

/* ---- what a layer may not bring ---- */

static bool is_system_name(const char *name, size_t len)
{
    return (len == 3 && (memcmp(name, "dev", 3) == 0 || memcmp(name, "sys", 3) == 0)) ||
           (len == 4 && memcmp(name, "proc", 4) == 0);
}

/* The sandbox's own kernel views are mounted there. */
static bool is_system(const struct merge *m, const struct tree_node *dir)
{
    if (dir == m->tree.root)
        return false;
    while (dir->parent != m->tree.root)
        dir = dir->parent;
    return is_system_name(dir->name, dir->name_len);
}

static int owner_of(struct merge *m, uint32_t id, uint16_t *ret, struct err *err)
{
    if (id > MERGE_ID_MAX && !m->squash_ids)
        return err_set(
            err, ERR_INVALID,
            "its owner is %u: a sandbox has the ids 0 to %u (--squash-ids gives the file to "
            "%u)",
            id, MERGE_ID_MAX, MERGE_ID_NOBODY);
    m->dropped.squashed += id > MERGE_ID_MAX;
    *ret = (uint16_t) (id > MERGE_ID_MAX ? MERGE_ID_NOBODY : id);
    return 0;
}

static int add_xattrs(struct merge *m, const struct tar *tar, struct tree_inode *inode,
                      struct err *err)
{
    struct slice name, value;
    size_t at = 0;

    while (tar_xattr(tar, &at, &name, &value)) {
        if (name.len <= 5 || memcmp(name.at, "user.", 5) != 0 || S_ISLNK(inode->mode)) {
            m->dropped.xattrs++;
            continue;
        }
        if (tree_inode_xattr(&m->tree, inode, name.at + 5, name.len - 5, value.at, value.len, err) <
            0)
            return -1;
    }
    return 0;
}

static struct tree_inode *inode_of(struct merge *m, const struct tar *tar, struct err *err)
{
    static const uint16_t types[] = {
        [TAR_FILE] = S_IFREG, [TAR_DIR] = S_IFDIR, [TAR_LINK] = S_IFLNK
    };
    const struct tar_entry *e = &tar->entry;
    uint16_t mode = (uint16_t) (e->type == TAR_LINK ? 0777 : e->mode), uid = 0, gid = 0;
    struct tree_inode *inode;

    if (owner_of(m, e->uid, &uid, err) < 0 || owner_of(m, e->gid, &gid, err) < 0)
        return NULL;
    if (e->type == TAR_FILE && (mode & 06000)) {
        m->dropped.set_ids++;
        mode &= 01777;
    }
    inode = tree_inode_new(types[e->type] | mode, uid, gid, e->mtime);
    if (inode && e->type == TAR_LINK)
        inode->target = strdup(e->target);
    if (!inode || (e->type == TAR_LINK && !inode->target)) {
        tree_inode_free(&m->tree, inode);
        err_set(err, ERR_NO_MEMORY, "no memory for the tree");
        return NULL;
    }
    if (add_xattrs(m, tar, inode, err) < 0) {
        tree_inode_free(&m->tree, inode);
        return NULL;
    }
    return inode;
}

/* ---- entries ---- */

/* 1: the entry was a whiteout, and is done. */
static int whiteout(struct merge *m, const char *path, struct err *err)
{
    struct tree_node *dir, *node;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

    if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) != 0)
        return 0;
    if (tree_walk(&m->tree, path, false, m->layer, &dir, &name, err) < 0)
        return -1;
    if (strcmp(name, OPAQUE) == 0) {
        if (dir)
            tree_hide(&m->tree, dir, m->layer);
        return 1;
    }
    if (strncmp(name, RESERVED, strlen(RESERVED)) == 0)
        return 1; /* of storage drivers of old */
    name += strlen(WHITEOUT);
    if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(err, ERR_INVALID, "a whiteout without a name");
    node = dir ? tree_child(&m->tree, dir, name, strlen(name)) : NULL;
    if (!node)
        return 1;
    tree_hide(&m->tree, node, m->layer);
    if (node->layer < m->layer && !node->children)
        tree_remove(&m->tree, node);
    return 1;
}

/* Makes the name free. The inode that is to get it may be one that goes with what is there. */
static int place(struct merge *m, struct tree_node *dir, const char *name, struct tree_inode *inode,
                 struct err *err)
{
    struct tree_node *node = tree_child(&m->tree, dir, name, strlen(name));
    bool named = inode->links > 0;

    if (node && tree_is_dir(node) && S_ISDIR(inode->mode)) {
        tree_inode_free(&m->tree, node->inode);
        node->inode = inode;
        inode->links = 1;
        node->layer = m->layer;
        return 0;
    }
    inode->links += named; /* held */
    if (node)
        tree_remove(&m->tree, node);
    inode->links -= named;
    if (named && inode->links == 0) {
        tree_inode_free(&m->tree, inode);
        return err_set(err, ERR_INVALID, "a hard link to a file that the link replaces");
    }
    return tree_put(&m->tree, dir, name, strlen(name), inode, m->layer, NULL, err);
}

static int hard_link(struct merge *m, const struct tar *tar, struct tree_node *dir,
                     const char *name, struct err *err)
{
    struct tree_node *from_dir, *from = NULL;
    const char *from_name;

    if (tree_walk(&m->tree, tar->entry.target, false, m->layer, &from_dir, &from_name, err) < 0)
        return -1;
    if (from_dir)
        from = tree_child(&m->tree, from_dir, from_name, strlen(from_name));
    if (!from || tree_is_dir(from))
        return err_set(err, ERR_INVALID,
                       "a hard link to '%.100s', which is not a file of the image",
                       tar->entry.target);
    if (tree_child(&m->tree, dir, name, strlen(name)) == from)
        return 0;
    return place(m, dir, name, from->inode, err);
}

static int root_entry(struct merge *m, const struct tar *tar, struct err *err)
{
    struct tree_inode *inode = inode_of(m, tar, err);

    if (!inode)
        return -1;
    tree_inode_free(&m->tree, m->tree.root->inode);
    m->tree.root->inode = inode;
    inode->links = 1;
    return 0;
}

static int begin(struct merge *m, const struct tar *tar, struct err *err)
{
    const struct tar_entry *e = &tar->entry;
    struct tree_inode *inode;
    const char *name;
    int rc;

    if (!e->path[0])
        return root_entry(m, tar, err);
    rc = whiteout(m, e->path, err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (e->type == TAR_NODE) {
        m->dropped.nodes++;
        return 0;
    }
    if (tree_walk(&m->tree, e->path, true, m->layer, &m->dir, &name, err) < 0)
        return -1;
    if (is_system(m, m->dir) ||
        (m->dir == m->tree.root && is_system_name(name, strlen(name)) && e->type != TAR_DIR)) {
        m->dropped.system++;
        return 0;
    }
    if (e->type == TAR_SAME)
        return hard_link(m, tar, m->dir, name, err);
    inode = inode_of(m, tar, err);
    if (!inode)
        return -1;
    if (e->type != TAR_FILE)
        return place(m, m->dir, name, inode, err);
    m->file = inode; /* named when its content is whole */
    return erofs_begin(&m->writer, inode, e->size, err);
}

static int end(struct merge *m, const struct tar *tar, struct err *err)
{
    struct tree_inode *inode = take_ptr(&m->file);
    const char *slash = strrchr(tar->entry.path, '/');

    if (!inode)
        return 0;
    if (erofs_end(&m->writer, err) < 0) {
        tree_inode_free(&m->tree, inode);
        return -1;
    }
    return place(m, m->dir, slash ? slash + 1 : tar->entry.path, inode, err);
}

int merge_event(struct merge *m, const struct tar *tar, int event, struct slice data,
                struct err *err)
{
    int rc = event == TAR_ENTRY             ? begin(m, tar, err)
             : event == TAR_ENTRY_END       ? end(m, tar, err)
             : event == TAR_DATA && m->file ? erofs_add(&m->writer, data.at, data.len, err)
                                            : 0;

    return rc < 0 ? of_entry(tar, err) : 0;
}
