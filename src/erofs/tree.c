#include "erofs/tree.h"

#include "base/own.h"
#include "erofs/format.h"

#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define TABLE_START 1024u

const struct tree_limits tree_limits_default = {
    .entries = 1000000, .directory = 100000, .depth = 256, .xattrs = 16384
};

/* ---- inodes ---- */

struct tree_inode *tree_inode_new(uint16_t mode, uint16_t uid, uint16_t gid, int64_t mtime)
{
    struct tree_inode *inode = calloc(1, sizeof *inode);

    if (inode)
        *inode = (struct tree_inode){ .mode = mode, .uid = uid, .gid = gid, .mtime = mtime };
    return inode;
}

void tree_inode_free(struct tree *tree, struct tree_inode *inode)
{
    if (!inode)
        return;
    if (tree->dropped)
        tree->dropped(tree->context, inode);
    free(inode->target);
    free(inode->xattrs);
    free(inode);
}

int tree_inode_xattr(const struct tree *tree, struct tree_inode *inode, const char *name,
                     size_t name_len, const void *value, size_t value_len, struct err *err)
{
    struct erofs_xattr head = { .name_len = (uint8_t) name_len,
                                .prefix = EROFS_XATTR_USER,
                                .value_len = (uint16_t) value_len };
    size_t len = (sizeof head + name_len + value_len + 3) & ~(size_t) 3;
    unsigned char *more;

    if (name_len == 0 || name_len > UINT8_MAX || value_len > UINT16_MAX ||
        inode->xattrs_len + len > tree->limits.xattrs)
        return err_set(err, ERR_TOO_BIG, "more than %u bytes of extended attributes",
                       tree->limits.xattrs);
    more = realloc(inode->xattrs, inode->xattrs_len + len);
    if (!more)
        return err_set(err, ERR_NO_MEMORY, "no memory for the tree");
    inode->xattrs = more;
    more += inode->xattrs_len;
    memset(more, 0, len);
    memcpy(more, &head, sizeof head);
    memcpy(more + sizeof head, name, name_len);
    memcpy(more + sizeof head + name_len, value, value_len);
    inode->xattrs_len += (uint32_t) len;
    return 0;
}

/* ---- the table of names ---- */

static uint64_t mix(uint64_t value)
{
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93ull;
    return value ^ value >> 32;
}

static size_t slot_of(const struct tree *tree, const struct tree_node *dir, const char *name,
                      size_t len)
{
    uint64_t hash = mix((uint64_t) (uintptr_t) dir ^ tree->secret[0]);

    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = 0;

        memcpy(&word, name + at, len - at < 8 ? len - at : 8);
        hash = mix(hash ^ word) * (tree->secret[1] | 1);
    }
    return mix(hash ^ len) & (tree->table_size - 1);
}

static void table_add(struct tree *tree, struct tree_node *node)
{
    struct tree_node **slot = &tree->table[slot_of(tree, node->parent, node->name, node->name_len)];

    node->chain = *slot;
    *slot = node;
}

static void table_remove(struct tree *tree, const struct tree_node *node)
{
    struct tree_node **at = &tree->table[slot_of(tree, node->parent, node->name, node->name_len)];

    while (*at != node)
        at = &(*at)->chain;
    *at = node->chain;
}

/* Fewer than two nodes for each slot. One that cannot grow only gets slower. */
static void table_grow(struct tree *tree)
{
    struct tree_node **old = tree->table, **more;
    size_t size = tree->table_size;

    if (tree->nodes < 2 * size)
        return;
    more = calloc(4 * size, sizeof(struct tree_node *));
    if (!more)
        return;
    tree->table = more;
    tree->table_size = 4 * size;
    for (size_t i = 0; i < size; i++)
        for (struct tree_node *node = old[i], *next; node; node = next) {
            next = node->chain;
            table_add(tree, node);
        }
    free(old);
}

/* ---- nodes ---- */

struct tree_node *tree_child(const struct tree *tree, const struct tree_node *dir, const char *name,
                             size_t len)
{
    struct tree_node *node = tree->table[slot_of(tree, dir, name, len)];

    while (node &&
           (node->parent != dir || node->name_len != len || memcmp(node->name, name, len) != 0))
        node = node->chain;
    return node;
}

static struct tree_node *node_new(struct tree_node *parent, const char *name, size_t len)
{
    struct tree_node *node = calloc(1, sizeof *node + len + 1);

    if (!node)
        return NULL;
    node->parent = parent ? parent : node;
    node->depth = (uint16_t) (parent ? parent->depth + 1 : 0);
    node->name_len = (uint8_t) len;
    memcpy(node->name, name, len);
    return node;
}

int tree_init(struct tree *tree, const struct tree_limits *limits, struct err *err)
{
    struct tree_inode *inode = tree_inode_new(S_IFDIR | 0755, 0, 0, 0);

    memset(tree, 0, sizeof *tree);
    tree->limits = *limits;
    tree->table_size = TABLE_START;
    tree->table = calloc(TABLE_START, sizeof(struct tree_node *));
    tree->root = node_new(NULL, "", 0);
    if (getrandom(tree->secret, sizeof tree->secret, 0) != (ssize_t) sizeof tree->secret)
        tree->secret[0] = (uint64_t) (uintptr_t) tree->root;
    if (!tree->table || !tree->root || !inode) {
        free(inode);
        tree_done(tree);
        return err_set(err, ERR_NO_MEMORY, "no memory for the tree");
    }
    inode->links = 1;
    tree->root->inode = inode;
    tree->inodes = 1;
    return 0;
}

static int may_put(const struct tree *tree, const struct tree_node *dir, size_t len,
                   struct err *err)
{
    if (len == 0 || len > TREE_NAME_MAX)
        return err_set(err, ERR_INVALID, "a name of more than %u bytes", TREE_NAME_MAX);
    if (tree->made >= tree->limits.entries)
        return err_set(err, ERR_TOO_BIG, "the image has more than %llu entries",
                       (unsigned long long) tree->limits.entries);
    if (dir->count >= tree->limits.directory)
        return err_set(err, ERR_TOO_BIG, "a directory of the image has more than %u entries",
                       tree->limits.directory);
    if (dir->depth >= tree->limits.depth)
        return err_set(err, ERR_TOO_BIG, "the image has more than %u levels of directories",
                       tree->limits.depth);
    return 0;
}

int tree_put(struct tree *tree, struct tree_node *dir, const char *name, size_t len,
             struct tree_inode *inode, uint32_t layer, struct tree_node **ret, struct err *err)
{
    int rc = !inode ? err_set(err, ERR_NO_MEMORY, "no memory for the tree")
             : inode->links >= TREE_LINKS_MAX
                 ? err_set(err, ERR_TOO_BIG, "a file of the image has more than %u names",
                           TREE_LINKS_MAX)
                 : may_put(tree, dir, len, err);
    struct tree_node *node = rc < 0 ? NULL : node_new(dir, name, len);

    if (!node) {
        if (inode && inode->links == 0)
            tree_inode_free(tree, inode);
        return rc < 0 ? -1 : err_set(err, ERR_NO_MEMORY, "no memory for the tree");
    }
    node->inode = inode;
    node->layer = layer;
    node->next = dir->children;
    if (dir->children)
        dir->children->previous = node;
    dir->children = node;
    dir->count++;
    tree->inodes += inode->links == 0;
    inode->links++;
    tree->nodes++;
    tree->made++;
    table_add(tree, node);
    table_grow(tree);
    if (ret)
        *ret = node;
    return 0;
}

static void drop_node(struct tree *tree, struct tree_node *node)
{
    table_remove(tree, node);
    if (node->previous)
        node->previous->next = node->next;
    else
        node->parent->children = node->next;
    if (node->next)
        node->next->previous = node->previous;
    node->parent->count--;
    tree->nodes--;
    if (--node->inode->links == 0) {
        tree->inodes--;
        tree_inode_free(tree, node->inode);
    }
    free(node);
}

/* Depth is limited, and so is this. */
void tree_remove(struct tree *tree, struct tree_node *node)
{
    while (node->children)
        tree_remove(tree, node->children);
    drop_node(tree, node);
}

void tree_hide(struct tree *tree, struct tree_node *node, uint32_t layer)
{
    if (node->opaque == layer)
        return; /* what is below is of this layer already */
    node->opaque = layer;
    for (struct tree_node *child = node->children, *next; child; child = next) {
        next = child->next;
        tree_hide(tree, child, layer);
        if (child->layer < layer && !child->children)
            drop_node(tree, child);
    }
}

void tree_done(struct tree *tree)
{
    while (tree->root && tree->root->children)
        tree_remove(tree, tree->root->children);
    if (tree->root) {
        tree_inode_free(tree, tree->root->inode);
        free(tree->root);
    }
    free(tree->table);
    tree->table = NULL;
    tree->root = NULL;
}

/* ---- walking ---- */

/* What is left of the way: the path, or a link's target in front of the rest. */
struct way {
    char text[2 * TREE_PATH_MAX];
    const char *at;
    unsigned hops;
};

static int follow(struct way *way, struct tree_node **dir, const struct tree *tree,
                  const struct tree_inode *link, struct err *err)
{
    char rest[TREE_PATH_MAX];
    size_t rest_len = strlen(way->at), len = strlen(link->target);

    if (++way->hops > TREE_HOPS_MAX)
        return err_set(err, ERR_INVALID, "too many symbolic links on the way");
    if (rest_len >= sizeof rest || len + rest_len + 2 > sizeof way->text)
        return err_set(err, ERR_INVALID, "its path gets too long by symbolic links");
    memcpy(rest, way->at, rest_len + 1);
    memcpy(way->text, link->target, len);
    way->text[len] = '/';
    memcpy(way->text + len + 1, rest, rest_len + 1);
    way->at = way->text;
    if (link->target[0] == '/')
        *dir = tree->root;
    return 0;
}

/* One part of the way, which names a directory or a link to one. 1: there is none. */
static int step(struct tree *tree, struct way *way, struct tree_node **dir, size_t len, bool make,
                uint32_t layer, struct err *err)
{
    struct tree_node *child;
    const char *name = way->at;

    way->at += len + (way->at[len] == '/');
    if (len == 0 || (len == 1 && name[0] == '.'))
        return 0;
    if (len == 2 && name[0] == '.' && name[1] == '.') { /* of a link's target */
        *dir = (*dir)->parent;
        return 0;
    }
    child = tree_child(tree, *dir, name, len);
    if (child && S_ISLNK(child->inode->mode))
        return follow(way, dir, tree, child->inode, err);
    if (!child && !make)
        return 1;
    if (!child && tree_put(tree, *dir, name, len, tree_inode_new(S_IFDIR | 0755, 0, 0, 0), layer,
                           &child, err) < 0)
        return -1;
    if (!tree_is_dir(child))
        return err_set(err, ERR_INVALID, "a part of its path is not a directory");
    *dir = child;
    return 0;
}

int tree_walk(struct tree *tree, const char *path, bool make, uint32_t layer,
              struct tree_node **ret_dir, const char **ret_name, struct err *err)
{
    const char *slash = strrchr(path, '/');
    size_t parents = slash ? (size_t) (slash - path) : 0;
    struct tree_node *dir = tree->root;
    struct way way = { .at = way.text };

    if (strlen(path) >= TREE_PATH_MAX)
        return err_set(err, ERR_TOO_BIG, "a path of more than %u bytes", TREE_PATH_MAX - 1);
    memcpy(way.text, path, parents);
    way.text[parents] = '\0';
    while (*way.at) {
        int rc = step(tree, &way, &dir, strcspn(way.at, "/"), make, layer, err);

        if (rc < 0)
            return -1;
        if (rc > 0) {
            dir = NULL;
            break;
        }
    }
    *ret_dir = dir;
    *ret_name = slash ? slash + 1 : path;
    return 0;
}
