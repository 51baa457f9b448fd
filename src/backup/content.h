/* content.h - what a file of a backup holds, as one digest that does not depend on how the file is stored.
 *
 * The file is cut into blocks of CONTENT_BLOCK bytes. The digest is SHA-256 over each block that is not all zeros, behind its
 * offset, and over the size of the file at the end (numbers as 8 bytes, big end first). Blocks of zeros cost nothing: a volume of
 * 10 GiB that is almost empty is hashed at once, and a copy with other holes has the same digest.
 *
 * Pure. */
#ifndef COVE_BACKUP_CONTENT_H
#define COVE_BACKUP_CONTENT_H

#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTENT_BLOCK 65536u

struct content {
    struct sha256 hash;
    uint64_t size;   /* so far */
    uint64_t stored; /* of it, in blocks that are not all zeros */
    size_t have;     /* of block */
    unsigned char block[CONTENT_BLOCK];
};

void content_init(struct content *content);
void content_add(struct content *content, const void *data, size_t len);
void content_zeros(struct content *content, uint64_t len);
void content_done(struct content *content, unsigned char ret[SHA256_LEN]);

bool content_is_zero(const void *data, size_t len);

#endif
