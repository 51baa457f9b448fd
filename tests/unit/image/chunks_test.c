#include "check.h"

#include "base/own.h"
#include "image/chunks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough for two processes to share the work. */
#define BYTES (300u * CHUNK_BYTES + 5000)

static char scratch[] = "/tmp/cove-chunks.XXXXXX";
static int dir;
static struct err err;

static void put(const char *name, size_t len)
{
    auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    auto_free unsigned char *data = malloc(len + 1);

    CHECK(data != NULL);
    for (size_t i = 0; i < len; i++)
        data[i] = (unsigned char) (i * 31 + i / 4096);
    CHECK(write(fd, data, len) == (ssize_t) len);
}

static void change(const char *name, off_t at)
{
    auto_close int fd = openat(dir, name, O_RDWR | O_CLOEXEC);
    unsigned char byte;

    CHECK(pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, at) == 1);
}

static void begin(void)
{
    struct chunks *written = NULL;

    if (!dir)
        dir = open(mkdtemp(scratch), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void) unlinkat(dir, CHUNKS_NAME, 0);
    (void) unlinkat(dir, "pages-9.img", 0);
    put("pages-1.img", BYTES);
    put("pages-2.img", 10);
    put("other", 10);
    CHECK(chunks_write(dir, &written, &err) == 0);
    chunks_free(written);
}

static bool good(const uint8_t *later)
{
    struct chunks *c = NULL;
    bool same = chunks_read(dir, &c, &err) == 0 && chunks_check(dir, c, later, &err) == 0;

    chunks_free(c);
    return same;
}

static void what_was_not_changed_is_good(void)
{
    begin();
    CHECK(good(NULL));
}

static void every_byte_counts(void)
{
    static const off_t at[] = { 0, CHUNK_BYTES - 1, BYTES / 2, BYTES - 1 };

    begin();
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        change("pages-1.img", at[i]);
        CHECK(!good(NULL));
        change("pages-1.img", at[i]);
    }
    change("pages-2.img", 9);
    CHECK(!good(NULL));
    change("pages-2.img", 9);
    CHECK(good(NULL));
}

static void files_more_less_longer_and_shorter_are_refused(void)
{
    begin();
    put("pages-9.img", 1);
    CHECK(!good(NULL));
    CHECK(unlinkat(dir, "pages-9.img", 0) == 0);
    put("pages-2.img", 11);
    CHECK(!good(NULL));
    put("pages-2.img", 9);
    CHECK(!good(NULL));
    CHECK(unlinkat(dir, "pages-2.img", 0) == 0);
    CHECK(!good(NULL));
}

static void hashes_that_are_none_are_refused(void)
{
    begin();
    put(CHUNKS_NAME, 3);
    CHECK(!good(NULL));
    put(CHUNKS_NAME, 5000);
    CHECK(!good(NULL));
}

static void what_comes_later_is_compared_then(void)
{
    static uint8_t later[400];
    static unsigned char data[CHUNK_BYTES];
    struct chunks *c = NULL;
    const struct chunk_file *f;
    auto_close int fd = -1;

    begin();
    CHECK(chunks_read(dir, &c, &err) == 0);
    f = chunks_find(c, "pages-1.img");
    CHECK(f != NULL && chunks_find(c, "other") == NULL);
    memset(later, 0, sizeof later);
    later[f->first + 7] = 1;
    change("pages-1.img", 7 * CHUNK_BYTES + 1);
    CHECK(good(later));
    fd = openat(dir, "pages-1.img", O_RDONLY | O_CLOEXEC);
    CHECK(pread(fd, data, sizeof data, 7 * CHUNK_BYTES) == (ssize_t) sizeof data);
    CHECK(!chunks_same(c, f, 7, data, sizeof data));
    data[1] ^= 1;
    CHECK(chunks_same(c, f, 7, data, sizeof data));
    CHECK(!chunks_same(c, f, 7, data, sizeof data - 1));
    CHECK(!chunks_same(c, f, 6, data, sizeof data));
    CHECK(!chunks_same(c, f, 301, data, sizeof data));
    chunks_free(c);
}

static void a_stream_has_the_hash_of_the_file(void)
{
    static const size_t steps[] = { 1, CHUNK_BYTES - 1, CHUNK_BYTES, 5000, 3 * CHUNK_BYTES };
    static unsigned char data[BYTES];
    unsigned char want[SHA256_LEN], got[SHA256_LEN];
    auto_close int fd = -1;
    struct chunk_tree tree;
    struct chunks *c = NULL;
    size_t at = 0;

    begin();
    fd = openat(dir, "pages-1.img", O_RDONLY | O_CLOEXEC);
    CHECK(chunks_read(dir, &c, &err) == 0);
    CHECK(read(fd, data, sizeof data) == (ssize_t) sizeof data);
    chunks_tree_of(c, chunks_find(c, "pages-1.img"), want);
    chunks_tree_init(&tree);
    for (size_t i = 0; at < sizeof data; i++) {
        size_t part = steps[i % ARRAY_LEN(steps)];

        if (part > sizeof data - at)
            part = sizeof data - at;
        chunks_tree_add(&tree, data + at, part);
        at += part;
    }
    chunks_tree_done(&tree, got);
    CHECK(memcmp(want, got, sizeof want) == 0);
    chunks_free(c);
}

static void the_scratch_directory_goes(void)
{
    static const char *const names[] = { "pages-1.img", "pages-2.img", "other", CHUNKS_NAME };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        (void) unlinkat(dir, names[i], 0);
    CHECK(rmdir(scratch) == 0);
}

CHECK_MAIN(T(what_was_not_changed_is_good), T(every_byte_counts),
           T(files_more_less_longer_and_shorter_are_refused), T(hashes_that_are_none_are_refused),
           T(what_comes_later_is_compared_then), T(a_stream_has_the_hash_of_the_file),
           T(the_scratch_directory_goes))
