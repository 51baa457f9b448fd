#include "oci/cut.h"

#include "base/own.h"

#include <string.h>
#include <sys/stat.h>

/* A name that the files below have. Those that are gone are hidden by the next file. */
struct cut_name {
    struct cut_name *next, *children;
    uint8_t len;
    char text[];
};

bool cut_above(unsigned cuts, uint64_t bytes, bool last)
{
    return cuts < MERGE_BELOW_MAX && bytes >= CUT_BYTES && !(last && cuts == 0);
}

/* ---- the names below ---- */

/* Depth is limited, here and in all that follows. */
static void free_names(struct cut_name *name)
{
    while (name) {
        struct cut_name *next = name->next;

        free_names(name->children);
        free(name);
        name = next;
    }
}

static int take_names(const struct tree_node *dir, struct cut_name **ret, struct err *err)
{
    for (const struct tree_node *node = dir->children; node; node = node->next) {
        struct cut_name *name = calloc(1, sizeof *name + node->name_len);

        if (!name)
            return err_set(err, ERR_NO_MEMORY, "no memory for the names of the image");
        name->len = node->name_len;
        memcpy(name->text, node->name, node->name_len);
        name->next = *ret;
        *ret = name;
        if (take_names(node, &name->children, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- whiteouts ---- */

static int hide_names(struct merge *m, struct tree_node *dir, const struct cut_name *names,
                      struct err *err)
{
    for (const struct cut_name *name = names; name; name = name->next) {
        struct tree_node *node = tree_child(&m->tree, dir, name->text, name->len);

        if (!node && tree_put(&m->tree, dir, name->text, name->len,
                              tree_inode_new(S_IFCHR, 0, 0, 0), m->layer, NULL, err) < 0)
            return -1;
        if (node && tree_is_dir(node) && hide_names(m, node, name->children, err) < 0)
            return -1;
    }
    return 0;
}

/* Names that were counted when they came are not counted again. */
static int hide(struct merge *m, struct err *err)
{
    const struct tree_limits limits = m->tree.limits;
    uint64_t made = m->tree.made;
    int rc;

    m->tree.limits.entries = UINT64_MAX;
    m->tree.limits.directory = UINT32_MAX;
    rc = hide_names(m, m->tree.root, m->names, err);
    m->tree.limits = limits;
    m->tree.made = made;
    return rc;
}

static void remove_whiteouts(struct merge *m, struct tree_node *dir)
{
    for (struct tree_node *node = dir->children, *next; node; node = next) {
        next = node->next;
        if (S_ISCHR(node->inode->mode))
            tree_remove(&m->tree, node);
        else
            remove_whiteouts(m, node);
    }
}

/* ---- what changed ---- */

static void mark_names(const struct merge *m, struct tree_node *dir)
{
    for (struct tree_node *node = dir->children; node; node = node->next) {
        struct tree_inode *inode = node->inode;

        node->below = node->layer <= m->cut_layer &&
                      (tree_is_dir(node) || inode->links == inode->links_below);
        if (!node->below)
            inode->spread = true;
        mark_names(m, node);
    }
}

/* Behind mark_names(): other names of changed files, and directories on the way to a change. Brings content along. */
static int mark_rest(struct merge *m, struct tree_node *dir, struct err *err)
{
    for (struct tree_node *node = dir->children; node; node = node->next) {
        struct tree_inode *inode = node->inode;

        if (mark_rest(m, node, err) < 0)
            return -1;
        node->below = node->below && (tree_is_dir(node) || !inode->spread);
        if (!node->below)
            dir->below = false;
        if (!node->below && S_ISREG(inode->mode) && inode->file != m->writer.number &&
            erofs_copy(&m->writer, m->below_fd[inode->file], inode, err) < 0)
            return -1;
    }
    return 0;
}

static void forget_marks(struct tree_node *dir)
{
    for (struct tree_node *node = dir->children; node; node = node->next) {
        struct tree_inode *inode = node->inode;

        node->below = inode->spread = false;
        inode->number = 0;
        inode->links_below = inode->links;
        forget_marks(node);
    }
}

/* ---- files ---- */

int cut_finish(struct merge *m, const unsigned char uuid[16], struct erofs_size *ret,
               struct err *err)
{
    if (m->below_count > 0) {
        if (hide(m, err) < 0)
            return -1;
        mark_names(m, m->tree.root);
        if (mark_rest(m, m->tree.root, err) < 0)
            return -1;
    }
    return erofs_finish(&m->writer, &m->tree, uuid, ret, err);
}

int cut_next(struct merge *m, int image_fd, struct err *err)
{
    uint64_t arrived = m->writer.arrived, bytes_max = m->writer.bytes_max;

    remove_whiteouts(m, m->tree.root);
    forget_marks(m->tree.root);
    m->tree.root->inode->number = 0;
    cut_done(m);
    if (take_names(m->tree.root, &m->names, err) < 0)
        return -1;
    m->below_fd[m->below_count++] = m->writer.fd;
    m->cut_layer = m->layer;
    m->cut_at = arrived;
    erofs_done(&m->writer);
    if (erofs_init(&m->writer, image_fd, bytes_max, err) < 0)
        return -1;
    m->writer.arrived = arrived;
    m->writer.number = (uint8_t) m->below_count;
    return 0;
}

void cut_done(struct merge *m)
{
    free_names(m->names);
    m->names = NULL;
}
