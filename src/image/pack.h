/* pack.h - pages of memory, compressed: a list of chunks with the hash of each, and the chunks.
 *
 * The list is small and authenticated as a whole by its owner (compress.c); a chunk is compared with its hash in
 * the memory that it is then decompressed from. So nothing that was not written here is ever parsed. What compresses
 * and what decompresses is a child with a filter that lets it read and write what it was given, and end: the bytes are a
 * tenant's, and all that they could ever spoil is themselves.
 *
 * Owns:    nothing; files are the caller's.
 * Callers: compress.c. */
#ifndef COVE_IMAGE_PACK_H
#define COVE_IMAGE_PACK_H

#include "base/err.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PACK_CHUNK      (1u << 20)
#define PACK_FILES_MAX  1024
#define PACK_CHUNKS_MAX (1u << 18) /* 256 GiB */
#define PACK_NAME_MAX   64

struct pack_head {
    char magic[8];
    uint32_t chunk_bytes, files, chunks, reserved;
};

struct pack_file {
    char name[PACK_NAME_MAX];
    uint64_t size; /* plain */
};

/* Chunks are in the order of the files and never cross from one into the next. */
struct pack_chunk {
    /* as it is stored; that of the plain bytes: they did not get smaller, and are stored as they are */
    uint32_t len;
    uint32_t reserved;
    unsigned char hash[SHA256_LEN]; /* of what is stored */
};

struct pack {
    void *data; /* of pack_new or pack_parse: head, files, chunks, as on disk */
    size_t len;
    struct pack_head *head; /* all three within data */
    struct pack_file *file;
    struct pack_chunk *chunk;
};

/* A list for these files, its chunks still blank. ERR_TOO_BIG: too many, or too large. The caller's to free (data). */
int pack_new(const struct pack_file *files, uint32_t count, struct pack *ret, struct err *err);
/* As it was read; ret points into data. Pure. ERR_DENIED: no such list. */
int pack_parse(void *data, size_t len, struct pack *ret, struct err *err);

/* A chunk into `plain` (of PACK_CHUNK bytes): how many, or -1 if it is not what the list says. room: of
 * pack_room() bytes. Pure. */
ssize_t pack_open_chunk(const struct pack_chunk *chunk, const void *stored, size_t plain_len,
                        void *plain, void *room);
size_t pack_room(void);

/* Children: started, and waited for; -1: not started. */
pid_t pack_close_start(const struct pack *pack, const int *from, int to, int chunks_to,
                       struct err *err);
/* Part number `part` of `parts` of the chunks. to: one for each file; or just one, a pipe, for all of them. */
pid_t pack_open_start(const struct pack *pack, int from, const int *to, bool pipe, uint32_t part,
                      uint32_t parts, struct err *err);
/* ERR_DENIED: what was stored is not what the list says. */
int pack_wait(pid_t pid, struct err *err);

#endif
