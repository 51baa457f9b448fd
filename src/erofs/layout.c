#include "erofs/layout.h"

#include "base/own.h"
#include "erofs/format.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define INLINE_MOST 2048u /* of directories and links; of files: TAIL_MOST of write.c */
#define ALIGN       64u   /* an inode lies in one block */
#define PIECE       (256u * 1024)

/* ---- names in order ---- */

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int by_name(const void *a, const void *b)
{
    const struct tree_node *x = *(struct tree_node *const *) a, *y = *(struct tree_node *const *) b;

    return compare(x->name, x->name_len, y->name, y->name_len);
}

static int sort_children(struct tree_node *dir, struct err *err)
{
    auto_free struct tree_node **list = NULL;
    size_t n = 0;

    if (dir->count < 2)
        return 0;
    list = malloc(dir->count * sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "no memory to sort a directory");
    for (struct tree_node *child = dir->children; child; child = child->next)
        list[n++] = child;
    qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; i < n; i++) {
        list[i]->previous = i ? list[i - 1] : NULL;
        list[i]->next = i + 1 < n ? list[i + 1] : NULL;
    }
    dir->children = list[0];
    return 0;
}

/* This sibling, or the first behind it that is written. */
static struct tree_node *written(struct tree_node *node)
{
    while (node && node->below)
        node = node->next;
    return node;
}

/* The node behind this one in a walk over all that are written, parents first; NULL: that was the last. */
static struct tree_node *behind(struct tree_node *node)
{
    struct tree_node *next = written(node->children);

    while (!next && node->parent != node) {
        next = written(node->next);
        node = node->parent;
    }
    return next;
}

/* ---- directories ---- */

/* "." and ".." have their place among the names. */
struct entries {
    const struct tree_node *dir;
    struct tree_node *child;
    unsigned dots; /* how many of both are behind us */
};

struct entry {
    const char *name;
    size_t len;
    const struct tree_inode *inode;
};

static bool next_entry(struct entries *at, struct entry *ret)
{
    static const char dots[] = "..";
    const struct tree_node *child = at->child;
    size_t len = at->dots + 1;

    if (at->dots < 2 && (!child || compare(child->name, child->name_len, dots, len) > 0)) {
        *ret = (struct entry){ dots, len, at->dots ? at->dir->parent->inode : at->dir->inode };
        at->dots++;
        return true;
    }
    if (!child)
        return false;
    *ret = (struct entry){ child->name, child->name_len, child->inode };
    at->child = written(child->next);
    return true;
}

static uint8_t type_of(const struct tree_inode *inode)
{
    return S_ISDIR(inode->mode)   ? EROFS_TYPE_DIR
           : S_ISLNK(inode->mode) ? EROFS_TYPE_LINK
           : S_ISCHR(inode->mode) ? EROFS_TYPE_DEVICE
                                  : EROFS_TYPE_FILE;
}

/* As many entries as fit into a block. ret_used: bytes of the block that they take. `out` NULL: only counts. false: none are left. */
static bool next_block(struct entries *at, unsigned char *out, size_t *ret_used)
{
    struct entries from = *at;
    struct entry entry;
    size_t used = 0, count = 0, name_at, i = 0;

    for (struct entries look = *at; next_entry(&look, &entry); *at = look, count++) {
        if (used + sizeof(struct erofs_dirent) + entry.len > EROFS_BLOCK)
            break;
        used += sizeof(struct erofs_dirent) + entry.len;
    }
    *ret_used = used;
    if (!out || count == 0)
        return count > 0;
    memset(out, 0, EROFS_BLOCK);
    name_at = count * sizeof(struct erofs_dirent);
    for (; i < count && next_entry(&from, &entry); i++) {
        struct erofs_dirent dirent = { .nid = entry.inode->place / EROFS_NID_UNIT,
                                       .name_at = (uint16_t) name_at,
                                       .type = type_of(entry.inode) };

        memcpy(out + i * sizeof dirent, &dirent, sizeof dirent);
        memcpy(out + name_at, entry.name, entry.len);
        name_at += entry.len;
    }
    return true;
}

static struct entries entries_of(const struct tree_node *dir)
{
    return (struct entries){ .dir = dir, .child = written(dir->children) };
}

/* ---- the first walk ---- */

static void plan_dir(struct tree_node *dir, uint32_t *next)
{
    struct entries at = entries_of(dir);
    struct tree_inode *inode = dir->inode;
    uint64_t blocks = 0;
    size_t used = 0, last = 0;

    inode->subdirs = 0;
    for (const struct tree_node *child = dir->children; child; child = child->next)
        inode->subdirs += tree_is_dir(child) && !child->below;
    while (next_block(&at, NULL, &used)) {
        blocks++;
        last = used;
    }
    inode->size = (blocks - 1) * EROFS_BLOCK + last;
    inode->tail_len = (uint16_t) (last <= INLINE_MOST ? last : 0);
    inode->block = *next;
    *next += (uint32_t) (blocks - (inode->tail_len > 0));
}

static void plan_link(struct tree_inode *inode, uint32_t *next)
{
    inode->size = strlen(inode->target);
    inode->tail_len = (uint16_t) (inode->size <= INLINE_MOST ? inode->size : 0);
    inode->block = *next;
    *next += inode->tail_len == 0;
}

static uint64_t xattr_bytes(const struct tree_inode *inode)
{
    return inode->xattrs_len ? EROFS_XATTR_HEAD + inode->xattrs_len : 0;
}

/* Last bytes lie in one block. */
static uint64_t place_for(uint64_t at, const struct tree_inode *inode)
{
    uint64_t head = sizeof(struct erofs_inode) + xattr_bytes(inode);

    at = (at + ALIGN - 1) / ALIGN * ALIGN;
    while ((at + head) % EROFS_BLOCK + inode->tail_len > EROFS_BLOCK)
        at += ALIGN;
    return at;
}

int layout_plan(struct layout *layout, struct tree *tree, struct err *err)
{
    uint64_t at = LAYOUT_ROOT, blocks;
    uint32_t next = layout->dir_block;

    layout->inodes = 0;
    for (struct tree_node *node = tree->root; node; node = behind(node)) {
        struct tree_inode *inode = node->inode;

        if (tree_is_dir(node) && sort_children(node, err) < 0)
            return -1;
        if (inode->number)
            continue; /* another name of a file that has its place */
        if (tree_is_dir(node))
            plan_dir(node, &next);
        else if (S_ISLNK(inode->mode))
            plan_link(inode, &next);
        inode->number = (uint32_t) ++layout->inodes;
        inode->place = place_for(at, inode);
        at = inode->place + sizeof(struct erofs_inode) + xattr_bytes(inode) + inode->tail_len;
    }
    assert(tree->root->inode->place == LAYOUT_ROOT);
    layout->meta_block = next;
    blocks = (at + EROFS_BLOCK - 1) / EROFS_BLOCK;
    if (blocks > UINT32_MAX - next)
        return err_set(err, ERR_TOO_BIG, "the image is larger than a file system can be");
    layout->end_block = next + (uint32_t) blocks;
    return 0;
}

/* ---- the second walk ---- */

static int write_dir(const struct erofs_writer *w, const struct tree_node *dir, struct err *err)
{
    struct entries at = entries_of(dir);
    uint64_t to = (uint64_t) dir->inode->block * EROFS_BLOCK;
    uint64_t end = to + dir->inode->size - dir->inode->tail_len;
    unsigned char block[EROFS_BLOCK];
    size_t used;

    for (; to < end && next_block(&at, block, &used); to += EROFS_BLOCK)
        if (erofs_put(w->fd, block, sizeof block, to, err) < 0)
            return -1;
    return 0;
}

/* The last block alone. */
static void dir_tail(const struct tree_node *dir, unsigned char *out)
{
    struct entries at = entries_of(dir);
    unsigned char block[EROFS_BLOCK];
    uint64_t before = dir->inode->size - dir->inode->tail_len;
    size_t used;

    for (; before > 0; before -= EROFS_BLOCK)
        (void) next_block(&at, NULL, &used);
    if (next_block(&at, block, &used))
        memcpy(out, block, dir->inode->tail_len);
}

static int write_link(const struct erofs_writer *w, const struct tree_inode *inode, struct err *err)
{
    char block[EROFS_BLOCK] = { 0 };

    if (inode->tail_len > 0)
        return 0;
    memcpy(block, inode->target, inode->size);
    return erofs_put(w->fd, block, sizeof block, (uint64_t) inode->block * EROFS_BLOCK, err);
}

/* The metadata is written in pieces, as it is made. */
struct pen {
    const struct erofs_writer *writer;
    unsigned char data[PIECE];
    uint64_t start; /* of data[0], in the image */
    size_t len;
};

static int pen_flush(struct pen *pen, struct err *err)
{
    if (erofs_put(pen->writer->fd, pen->data, pen->len, pen->start, err) < 0)
        return -1;
    pen->start += pen->len;
    pen->len = 0;
    return 0;
}

/* Zeros up to `at`, then room for len bytes. */
static int pen_at(struct pen *pen, uint64_t at, size_t len, unsigned char **ret, struct err *err)
{
    size_t gap = (size_t) (at - pen->start - pen->len);

    if (pen->len + gap + len > sizeof pen->data && pen_flush(pen, err) < 0)
        return -1;
    gap = (size_t) (at - pen->start - pen->len);
    memset(pen->data + pen->len, 0, gap);
    *ret = pen->data + pen->len + gap;
    pen->len += gap + len;
    return 0;
}

static int write_inode(struct pen *pen, uint64_t meta, const struct tree_node *node,
                       struct err *err)
{
    const struct tree_inode *inode = node->inode;
    uint64_t xattrs = xattr_bytes(inode);
    struct erofs_inode core = {
        .format = inode->tail_len ? EROFS_INLINE : EROFS_PLAIN,
        .xattr_count = (uint16_t) (xattrs ? (xattrs - EROFS_XATTR_HEAD) / 4 + 1 : 0),
        .mode = inode->mode,
        .size = inode->size,
        .block = inode->block,
        .ino = inode->number,
        .uid = inode->uid,
        .gid = inode->gid,
        .mtime = (uint64_t) inode->mtime,
        .links = S_ISDIR(inode->mode) ? 2 + inode->subdirs : inode->links,
    };
    unsigned char *out;

    if (pen_at(pen, meta + inode->place, sizeof core + xattrs + inode->tail_len, &out, err) < 0)
        return -1;
    memcpy(out, &core, sizeof core);
    out += sizeof core;
    memset(out, 0, xattrs ? EROFS_XATTR_HEAD : 0);
    if (xattrs)
        memcpy(out + EROFS_XATTR_HEAD, inode->xattrs, inode->xattrs_len);
    out += xattrs;
    if (inode->tail_len == 0)
        return 0;
    if (S_ISREG(inode->mode))
        return erofs_read_tail(pen->writer, inode, out, err);
    if (S_ISLNK(inode->mode))
        memcpy(out, inode->target, inode->tail_len);
    else
        dir_tail(node, out);
    return 0;
}

int layout_write(struct layout *layout, const struct erofs_writer *w, struct tree *tree,
                 struct err *err)
{
    auto_free struct pen *pen = malloc(sizeof *pen);
    uint64_t meta = (uint64_t) layout->meta_block * EROFS_BLOCK;
    uint32_t number = 0;

    if (!pen)
        return err_set(err, ERR_NO_MEMORY, "no memory to write an image");
    pen->writer = w;
    pen->start = meta;
    pen->len = 0;
    for (struct tree_node *node = tree->root; node; node = behind(node)) {
        if (node->inode->number <= number)
            continue; /* written with its first name */
        number = node->inode->number;
        if (tree_is_dir(node) ? write_dir(w, node, err) < 0
                              : S_ISLNK(node->inode->mode) && write_link(w, node->inode, err) < 0)
            return -1;
        if (write_inode(pen, meta, node, err) < 0)
            return -1;
        node->inode->tail_at = /* for readers from now on */
            meta + node->inode->place + sizeof(struct erofs_inode) + xattr_bytes(node->inode);
    }
    return pen_flush(pen, err);
}
