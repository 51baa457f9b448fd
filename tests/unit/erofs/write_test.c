/* What fsck.erofs and the kernel say of images is tested by tests/e2e/image_test; here, what they cannot see. */
#include "check.h"

#include "base/own.h"
#include "base/sha256.h"
#include "erofs/format.h"
#include "erofs/write.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct err err;
static const unsigned char uuid[16] = "a test's image";

/* Files of sizes around every boundary, in this or the other order of their names' arrival. */
static const uint64_t sizes[] = { 0,    1,    2047, 2048, 2049,   4095,   4096,
                                  4097, 6144, 6145, 8192, 262144, 262145, 1000003 };

static void add_file(struct tree *tree, struct erofs_writer *w, const char *name, uint64_t size)
{
    struct tree_inode *inode = tree_inode_new(S_IFREG | 0644, 1, 2, 1700000000);
    auto_free char *data = malloc(size + 1);

    for (uint64_t i = 0; i < size; i++)
        data[i] = (char) (i * 31 + size);
    CHECK(erofs_begin(w, inode, size, &err) == 0);
    for (uint64_t at = 0; at < size; at += 1000)
        CHECK(erofs_add(w, data + at, size - at < 1000 ? size - at : 1000, &err) == 0);
    CHECK(erofs_end(w, &err) == 0);
    CHECK(tree_put(tree, tree->root, name, strlen(name), inode, 1, NULL, &err) == 0);
}

static void hash_image(int fd, char hex[SHA256_HEX])
{
    unsigned char digest[SHA256_LEN], piece[4096];
    struct sha256 sha;
    off_t at = 0;
    ssize_t n;

    sha256_init(&sha);
    for (; (n = pread(fd, piece, sizeof piece, at)) > 0; at += n)
        sha256_add(&sha, piece, (size_t) n);
    sha256_done(&sha, digest);
    sha256_hex(digest, sizeof digest, hex);
}

static void write_one(bool drop, char hex[SHA256_HEX], struct erofs_size *size)
{
    auto_close int fd = memfd_create("image", MFD_CLOEXEC);
    struct erofs_writer w;
    struct tree tree;
    char name[16];

    CHECK(erofs_init(&w, fd, 1 << 30, &err) == 0);
    CHECK(tree_init(&tree, &tree_limits_default, &err) == 0);
    tree.dropped = erofs_dropped;
    tree.context = &w;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        (void) snprintf(name, sizeof name, "f%zu", i);
        add_file(&tree, &w, name, sizes[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct tree_node *node;
        auto_free char *data = malloc(1 << 20);
        size_t len = 0;

        (void) snprintf(name, sizeof name, "f%zu", i);
        node = tree_child(&tree, tree.root, name, strlen(name));
        CHECK(erofs_read(&w, node->inode, data, 1 << 20, &len, &err) == 0);
        CHECK_INT(len, sizes[i]);
        for (size_t at = 0; at < len; at++)
            if (data[at] != (char) (at * 31 + sizes[i]))
                CHECK(!"the content is what was written");
    }
    if (drop)
        tree_remove(&tree, tree_child(&tree, tree.root, "f13", 3));
    CHECK(erofs_finish(&w, &tree, uuid, size, &err) == 0);
    hash_image(fd, hex);
    tree.dropped = NULL;
    tree_done(&tree);
    erofs_done(&w);
}

static void the_same_files_give_the_same_bytes(void)
{
    char one[SHA256_HEX], two[SHA256_HEX];
    struct erofs_size size;

    write_one(false, one, &size);
    CHECK_INT(size.inodes, ARRAY_LEN(sizes) + 1);
    write_one(false, two, &size);
    CHECK_STR(one, two);
}

static void what_was_removed_takes_no_room(void)
{
    char hex[SHA256_HEX];
    struct erofs_size with, without;

    write_one(false, hex, &with);
    write_one(true, hex, &without);
    CHECK(with.bytes - without.bytes >= 1000003 / EROFS_BLOCK * EROFS_BLOCK);
}

static void content_that_does_not_fit_its_entry_is_refused(void)
{
    auto_close int fd = memfd_create("image", MFD_CLOEXEC);
    struct tree_inode *inode = tree_inode_new(S_IFREG | 0644, 0, 0, 0);
    struct erofs_writer w;
    struct tree tree = { 0 };

    CHECK(erofs_init(&w, fd, 100, &err) == 0);
    CHECK(erofs_begin(&w, inode, 101, &err) == -1 && err.kind == ERR_TOO_BIG);
    CHECK(erofs_begin(&w, inode, 10, &err) == 0);
    CHECK(erofs_add(&w, "12345678901", 11, &err) == -1);
    CHECK(erofs_add(&w, "12345", 5, &err) == 0);
    CHECK(erofs_end(&w, &err) == -1);
    CHECK_STR(err.msg, "a file has less content than its entry says");
    tree_inode_free(&tree, inode);
    erofs_done(&w);
}

static void attributes_are_limited(void)
{
    struct tree_inode *inode = tree_inode_new(S_IFREG | 0644, 0, 0, 0);
    struct tree tree;
    char value[4096] = { 0 };
    int added = 0;

    CHECK(tree_init(&tree, &tree_limits_default, &err) == 0);
    while (added < 100 && tree_inode_xattr(&tree, inode, "a", 1, value, sizeof value, &err) == 0)
        added++;
    CHECK_INT(added, 3);
    CHECK(err.kind == ERR_TOO_BIG);
    tree_inode_free(&tree, inode);
    tree_done(&tree);
}

CHECK_MAIN(T(the_same_files_give_the_same_bytes), T(what_was_removed_takes_no_room),
           T(content_that_does_not_fit_its_entry_is_refused), T(attributes_are_limited))
