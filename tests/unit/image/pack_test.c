#include "check.h"

#include "base/io.h"
#include "base/own.h"
#include "image/pack.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct err err;

/* Two files: one of three chunks, the last of them short, and one that is empty; what does not get smaller is in it, too. */
static struct pack_file files[] = { { "pages-1.img", 2 * PACK_CHUNK + 4096 },
                                    { "pages-12.img", 0 } };
static char *bytes;

static int memory(void)
{
    int fd = memfd_create("pack_test", MFD_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static void fill(void)
{
    unsigned seed = 4711;

    bytes = bytes ? bytes : malloc(files[0].size);
    CHECK(bytes);
    memset(bytes, 'x', PACK_CHUNK);
    for (size_t i = PACK_CHUNK; i < files[0].size; i++)
        bytes[i] = (char) (rand_r(&seed) >> 7);
}

/* The chunks of the files, in *ret_data. */
static struct pack closed(int *ret_data)
{
    int from[] = { memory(), memory() }, pair[2];
    struct pack pack;
    pid_t pid;

    fill();
    *ret_data = memory();
    CHECK(io_write_all(from[0], bytes, files[0].size) == 0);
    CHECK(pack_new(files, ARRAY_LEN(files), &pack, &err) == 0);
    CHECK(pipe(pair) == 0);
    pid = pack_close_start(&pack, from, *ret_data, pair[1], &err);
    CHECK(pid > 0);
    (void) close(pair[1]);
    CHECK(io_read_all(pair[0], pack.chunk, pack.head->chunks * sizeof *pack.chunk) == 0);
    CHECK(pack_wait(pid, &err) == 0);
    (void) close(pair[0]);
    (void) close(from[0]);
    (void) close(from[1]);
    return pack;
}

static int opened(const struct pack *pack, int data, uint32_t parts, int to[2])
{
    int rc = 0;

    to[0] = memory();
    to[1] = memory();
    for (uint32_t i = 0; i < parts; i++)
        if (pack_wait(pack_open_start(pack, data, to, false, i, parts, &err), &err) < 0)
            rc = -1;
    return rc;
}

static void what_was_compressed_is_opened_again(void)
{
    for (uint32_t parts = 1; parts <= 4; parts++) {
        char *again = malloc(files[0].size);
        struct pack pack;
        int data, to[2];

        pack = closed(&data);
        CHECK(pack.head->chunks == 3);
        CHECK(pack.chunk[0].len < 4096);        /* one letter, a million times */
        CHECK(pack.chunk[1].len == PACK_CHUNK); /* noise: as it was */
        CHECK(opened(&pack, data, parts, to) == 0);
        CHECK(again && pread(to[0], again, files[0].size, 0) == (ssize_t) files[0].size);
        CHECK(memcmp(again, bytes, files[0].size) == 0);
        CHECK(lseek(to[1], 0, SEEK_END) == 0);
        free(again);
        free(pack.data);
        (void) close(data);
        (void) close(to[0]);
        (void) close(to[1]);
    }
}

static void a_changed_chunk_is_refused(void)
{
    struct pack pack;
    int data, to[2];

    pack = closed(&data);
    CHECK(pwrite(data, "?", 1, 100) == 1);
    CHECK(opened(&pack, data, 2, to) == -1);
    CHECK(err.kind == ERR_DENIED);
    free(pack.data);
    (void) close(data);
}

static void chunks_that_are_missing_are_refused(void)
{
    struct pack pack;
    int data, to[2];

    pack = closed(&data);
    CHECK(ftruncate(data, 10) == 0);
    CHECK(opened(&pack, data, 1, to) == -1);
    CHECK(err.kind == ERR_DENIED);
    free(pack.data);
    (void) close(data);
}

static void refuse(void (*change)(struct pack *pack))
{
    struct pack pack, again;

    CHECK(pack_new(files, ARRAY_LEN(files), &pack, &err) == 0);
    for (uint32_t i = 0; i < pack.head->chunks; i++)
        pack.chunk[i].len = 1;
    CHECK(pack_parse(pack.data, pack.len, &again, &err) == 0);
    change(&pack);
    CHECK(pack_parse(pack.data, pack.len, &again, &err) == -1);
    CHECK(err.kind == ERR_DENIED);
    free(pack.data);
}

static void other_magic(struct pack *p)
{
    p->head->magic[0] ^= 1;
}
static void other_chunk(struct pack *p)
{
    p->head->chunk_bytes = 1u << 30;
}
static void many_files(struct pack *p)
{
    p->head->files = PACK_FILES_MAX + 1;
}
static void many_chunks(struct pack *p)
{
    p->head->chunks = PACK_CHUNKS_MAX + 1;
}
static void shorter(struct pack *p)
{
    p->len--;
}
static void larger_file(struct pack *p)
{
    p->file[0].size = UINT64_MAX;
}
static void other_size(struct pack *p)
{
    p->file[1].size = 1;
}
static void a_path(struct pack *p)
{
    memcpy(p->file[0].name, "pages-1/../x", 13);
}
static void no_end(struct pack *p)
{
    memset(p->file[0].name, '1', PACK_NAME_MAX);
}
static void no_number(struct pack *p)
{
    memcpy(p->file[0].name, "pages-.img", 11);
}
static void long_chunk(struct pack *p)
{
    p->chunk[2].len = PACK_CHUNK + 1;
}
static void blank_chunk(struct pack *p)
{
    p->chunk[0].len = 0;
}

static void lists_that_do_not_add_up_are_refused(void)
{
    void (*const changes[])(struct pack *) = { other_magic, other_chunk, many_files, many_chunks,
                                               shorter,     larger_file, other_size, a_path,
                                               no_end,      no_number,   long_chunk, blank_chunk };

    for (size_t i = 0; i < ARRAY_LEN(changes); i++)
        refuse(changes[i]);
}

static void more_than_there_may_be_is_refused(void)
{
    struct pack_file *many = calloc(PACK_FILES_MAX + 1, sizeof *many);
    struct pack_file large = { "pages-1.img", (uint64_t) PACK_CHUNKS_MAX * PACK_CHUNK + 1 };
    struct pack pack;

    CHECK(many && pack_new(many, PACK_FILES_MAX + 1, &pack, &err) == -1);
    CHECK(err.kind == ERR_TOO_BIG);
    CHECK(pack_new(&large, 1, &pack, &err) == -1);
    CHECK(err.kind == ERR_TOO_BIG);
    free(many);
}

CHECK_MAIN(T(what_was_compressed_is_opened_again), T(a_changed_chunk_is_refused),
           T(chunks_that_are_missing_are_refused), T(lists_that_do_not_add_up_are_refused),
           T(more_than_there_may_be_is_refused))
