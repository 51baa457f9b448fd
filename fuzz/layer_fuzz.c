/* layer_fuzz.c - layers of an image: two hostile tars, merged, finished and written as EROFS, in one file or cut between them.
 *
 * Checksums are put right on the way. Whatever comes of it: no name leaves the tree, every node is found by its name, and the
 * image has room for all that it names. Of a file above a cut: the way to all that is written is written, and nothing that the file
 * below does not have is left out. */
#include "erofs/format.h"
#include "oci/cut.h"
#include "oci/finish.h"
#include "oci/merge.h"
#include "tar_sum.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int apply(struct merge *merge, char *in, size_t size)
{
    static struct tar tar;
    struct err err;
    size_t at = 0;

    memset(&tar, 0, sizeof tar);
    tar.layer = true;
    merge_layer(merge);
    while (at < size) {
        size_t n = size - at < TAR_BLOCK ? size - at : TAR_BLOCK, used = 0;
        struct slice piece = { 0 };
        int event;

        if (tar.state == TAR_AT_HEAD && tar.have == 0 && n == TAR_BLOCK)
            fix_sum(in + at);
        event = tar_read(&tar, in + at, n, &used, &piece, &err);
        if (event < 0)
            return -1;
        at += used;
        if (event != TAR_MORE && event != TAR_END &&
            merge_event(merge, &tar, event, piece, &err) < 0) {
            must(err.msg[0] && err.kind != ERR_INTERNAL);
            return -1;
        }
    }
    return merge->file ? -1 : 0;
}

static uint64_t check(const struct merge *merge, const struct tree_node *dir)
{
    uint64_t nodes = 0;

    for (const struct tree_node *node = dir->children; node; node = node->next) {
        must(node->parent == dir && node->name_len > 0 && !memchr(node->name, '/', node->name_len));
        must(strcmp(node->name, ".") != 0 && strcmp(node->name, "..") != 0);
        must(tree_child(&merge->tree, dir, node->name, node->name_len) == node);
        must(node->inode->links > 0);
        nodes += 1 + check(merge, node);
    }
    return nodes;
}

static void check_written(const struct merge *merge, const struct tree_node *dir)
{
    for (const struct tree_node *node = dir->children; node; node = node->next) {
        must(!node->below || node->layer <= merge->cut_layer);
        must(node->below || !dir->below);
        must(node->below || !S_ISREG(node->inode->mode) ||
             node->inode->file == merge->writer.number);
        check_written(merge, node);
    }
}

/* The file below is whole. -1: there is no room for it. */
static int cut(struct merge *merge, int fd)
{
    static const unsigned char uuid[16] = "below";
    struct erofs_size written;
    struct err err;

    if (cut_finish(merge, uuid, &written, &err) < 0)
        return -1;
    must(cut_next(merge, fd, &err) == 0);
    must(check(merge, merge->tree.root) == merge->tree.nodes);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tree_limits limits = { 300, 100, 20, 2000 };
    static const unsigned char uuid[16] = "fuzz";
    static struct oci_config config;
    size_t half = size / 2 / TAR_BLOCK * TAR_BLOCK;
    char *copy = malloc(size + 1);
    struct merge merge;
    struct finish finish;
    struct erofs_size written;
    struct err err;
    struct stat st;
    int fd = memfd_create("image", MFD_CLOEXEC), above = memfd_create("above", MFD_CLOEXEC), ok;
    bool several = size > 0 && data[size - 1] & 1;

    memcpy(copy, data, size);
    must(merge_init(&merge, fd, &limits, 1 << 20, &err) == 0);
    ok = apply(&merge, copy, half) == 0 && (!several || cut(&merge, above) == 0) &&
         apply(&merge, copy + half, size - half) == 0;
    must(check(&merge, merge.tree.root) == merge.tree.nodes);
    if (ok && finish_image(&merge, &config, &finish, &err) == 0) {
        must(check(&merge, merge.tree.root) == merge.tree.nodes);
        if (cut_finish(&merge, uuid, &written, &err) == 0) {
            check_written(&merge, merge.tree.root);
            must(fstat(several ? above : fd, &st) == 0 && st.st_size % EROFS_BLOCK == 0);
            must(written.inodes > 5);
        } else { /* what is brought along has no room */
            must(several && err.kind == ERR_TOO_BIG);
        }
    }
    merge_done(&merge);
    (void) close(fd);
    (void) close(above);
    free(copy);
    return 0;
}
