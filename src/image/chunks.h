/* chunks.h - the hashes of an image's pages, one for each piece of 64 KiB: memory/hashes.
 *
 * That file is among those that image.c signs as a whole, so that a piece can be trusted as soon as it was compared, without the
 * others having been read. It is written when criu has written the pages, and read after image.c has found it unchanged.
 *
 * Callers: save.c; loader.c for what criu itself copies, fill.c and pages.c for what comes later. */
#ifndef COVE_IMAGE_CHUNKS_H
#define COVE_IMAGE_CHUNKS_H

#include "base/err.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_BYTES      (64u << 10)
#define CHUNKS_NAME      "hashes"
#define CHUNKS_NAME_ROOM 32

struct chunk_file {
    char name[CHUNKS_NAME_ROOM];
    uint64_t bytes;
    uint64_t first; /* of its chunks, among all */
};

struct chunks {
    uint64_t size; /* of all, mapped */
    uint32_t files;
    uint32_t reserved;
    struct chunk_file file[]; /* then the hashes */
};

/* Of all pages-*.img in that directory. Free it with chunks_free(). */
int chunks_write(int memory_fd, struct chunks **ret, struct err *err);
/* ERR_DENIED: it does not fit the files that are there. Free it with chunks_free(). */
int chunks_read(int memory_fd, struct chunks **ret, struct err *err);
void chunks_free(struct chunks *chunks);

/* NULL: none has that name. */
const struct chunk_file *chunks_find(const struct chunks *chunks, const char *name);
size_t chunks_count(const struct chunks *chunks);
/* Whether that chunk of a file has these bytes. */
bool chunks_same(const struct chunks *chunks, const struct chunk_file *file, uint64_t index,
                 const void *data, size_t len);

/* The hash of a file's hashes; and the same of bytes that come piece by piece. */
void chunks_tree_of(const struct chunks *chunks, const struct chunk_file *file,
                    unsigned char ret[SHA256_LEN]);
struct chunk_tree {
    struct sha256 all, chunk;
    uint32_t len; /* of the chunk, so far */
};
void chunks_tree_init(struct chunk_tree *tree);
void chunks_tree_add(struct chunk_tree *tree, const void *data, size_t len);
void chunks_tree_done(struct chunk_tree *tree, unsigned char ret[SHA256_LEN]);

/* Compares all of them, but those that `later` has a 1 for (of chunks_count bytes; NULL: none). 0: they are as they were. */
int chunks_check(int memory_fd, const struct chunks *chunks, const uint8_t *later, struct err *err);

#endif
