/* layers.h - layers for tests: entries one after the other, then merged. */
#ifndef COVE_TESTS_LAYERS_H
#define COVE_TESTS_LAYERS_H

#include "oci/merge.h"
#include "oci/unpack.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct made {
    char *data;
    size_t len;
};

static void made_add(struct made *made, const void *data, size_t len)
{
    made->data = realloc(made->data, made->len + len + 1);
    memcpy(made->data + made->len, data, len);
    made->len += len;
}

static void made_entry(struct made *made, enum tar_type type, const char *path, const char *target,
                       uint32_t mode, uint32_t id, const void *data, size_t len)
{
    static const char zeros[TAR_BLOCK];
    struct tar_entry *entry = calloc(1, sizeof *entry);
    char head[TAR_HEAD_MAX];
    struct err err;
    ssize_t n;

    *entry = (struct tar_entry){
        .type = type, .mode = mode, .uid = id, .gid = id, .size = len, .mtime = 1700000000
    };
    (void) snprintf(entry->path, sizeof entry->path, "%s", path);
    (void) snprintf(entry->target, sizeof entry->target, "%s", target);
    n = tar_put_head(head, sizeof head, entry, &err);
    made_add(made, head, (size_t) n);
    made_add(made, data, len);
    made_add(made, zeros, tar_padding(len));
    free(entry);
}

static void made_file(struct made *made, const char *path, const char *text)
{
    made_entry(made, TAR_FILE, path, "", 0644, 0, text, strlen(text));
}

static void made_dir(struct made *made, const char *path, uint32_t mode)
{
    made_entry(made, TAR_DIR, path, "", mode, 0, "", 0);
}

static void made_link(struct made *made, const char *path, const char *target)
{
    made_entry(made, TAR_LINK, path, target, 0777, 0, "", 0);
}

static void made_hard(struct made *made, const char *path, const char *target)
{
    made_entry(made, TAR_SAME, path, target, 0644, 0, "", 0);
}

/* Changes the type of the last header, which had no content: '3', '4' or '6'. */
static void made_type(struct made *made, char type)
{
    char *block = made->data + made->len - TAR_BLOCK;
    unsigned sum = 0;

    block[156] = type;
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char) block[i];
    (void) snprintf(block + 148, 8, "%06o", sum);
}

/* Merges one layer, and frees it. */
static int made_merge(struct merge *merge, struct made *made, struct err *err)
{
    static const char zeros[TAR_END_SIZE];
    struct unpack *unpack = unpack_new(merge, err);
    char diff[SHA256_HEX];
    int rc;

    made_add(made, zeros, sizeof zeros);
    rc = unpack_feed(unpack, made->data, made->len, err);
    if (rc == 0)
        rc = unpack_end(unpack, diff, err);
    unpack_free(unpack);
    free(made->data);
    *made = (struct made){ 0 };
    return rc;
}

/* "f 644 0 5", "d 755 0", "l target", "-": what is there, by its path. */
static const char *made_look(struct merge *merge, const char *path)
{
    static char out[128];
    const struct tree_inode *inode;
    struct tree_node *dir = NULL, *node = NULL;
    const char *name;
    struct err err;

    if (tree_walk(&merge->tree, path, false, 1, &dir, &name, &err) == 0 && dir)
        node = tree_child(&merge->tree, dir, name, strlen(name));
    if (!node)
        return "-";
    inode = node->inode;
    if (S_ISLNK(inode->mode))
        (void) snprintf(out, sizeof out, "l %s", inode->target);
    else if (S_ISDIR(inode->mode))
        (void) snprintf(out, sizeof out, "d %o %u", inode->mode & 07777, inode->uid);
    else
        (void) snprintf(out, sizeof out, "f %o %u %llu", inode->mode & 07777, inode->uid,
                        (unsigned long long) inode->size);
    return out;
}

static const char *made_text(struct merge *merge, const char *path)
{
    static char out[4096];
    struct tree_node *dir = NULL, *node = NULL;
    const char *name;
    struct err err;
    size_t len = 0;

    if (tree_walk(&merge->tree, path, false, 1, &dir, &name, &err) == 0 && dir)
        node = tree_child(&merge->tree, dir, name, strlen(name));
    if (!node || !S_ISREG(node->inode->mode) ||
        merge_read(merge, node->inode, out, sizeof out - 1, &len, &err) < 0)
        return "-";
    out[len] = '\0';
    return out;
}

#endif
