/* format.h - EROFS on disk, as far as we write it: little-endian, blocks of 4 KiB, nothing compressed, extended inodes only.
 *
 *   block 0                  the superblock at byte 1024
 *   data                     whole blocks of files, in the order of their arrival
 *   directories              whole blocks of directories
 *   metadata                 inodes; behind each its extended attributes and, inline, its last bytes
 *
 * An inode's number ("nid") is its place in the metadata, in units of 32 bytes. */
#ifndef COVE_EROFS_FORMAT_H
#define COVE_EROFS_FORMAT_H

#include <stdint.h>

#define EROFS_BLOCK      4096u
#define EROFS_BLOCK_BITS 12u
#define EROFS_SUPER_AT   1024u
#define EROFS_MAGIC      0xE0F5E1E2u
#define EROFS_NID_UNIT   32u

#define EROFS_COMPAT_CHECKSUM 0x1u
#define EROFS_COMPAT_MTIME    0x2u

struct erofs_super {
    uint32_t magic, checksum, compat;
    uint8_t block_bits, extra_slots;
    uint16_t root_nid;
    uint64_t inodes, time;
    uint32_t time_nsec, blocks, meta_block, xattr_block;
    uint8_t uuid[16], volume[16];
    uint32_t incompat;
    uint8_t reserved[44];
};
_Static_assert(sizeof(struct erofs_super) == 128, "the superblock has 128 bytes");

/* Of i_format: bit 0 is set in extended inodes, the layout is in bits 1 to 3. */
#define EROFS_PLAIN  (1u | 0u << 1) /* all bytes in blocks */
#define EROFS_INLINE (1u | 2u << 1) /* the last bytes are behind the inode */

struct erofs_inode {
    uint16_t format, xattr_count, mode, reserved;
    uint64_t size;
    uint32_t block; /* the first one */
    uint32_t ino, uid, gid;
    uint64_t mtime;
    uint32_t mtime_nsec, links;
    uint8_t reserved2[16];
};
_Static_assert(sizeof(struct erofs_inode) == 64, "an extended inode has 64 bytes");

struct erofs_dirent {
    uint64_t nid;
    uint16_t name_at; /* in the same block; of the first one: also how many there are */
    uint8_t type;
    uint8_t reserved;
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_dirent) == 12, "a directory entry has 12 bytes");

enum erofs_type {
    EROFS_TYPE_FILE = 1,
    EROFS_TYPE_DIR = 2,
    EROFS_TYPE_DEVICE =
        3, /* of characters; the one with the number 0 hides a name of a file system below */
    EROFS_TYPE_LINK = 7
};

#define EROFS_XATTR_HEAD 12u /* before the attributes of an inode */
#define EROFS_XATTR_USER 1u  /* "user.", the one kind that we write */

struct erofs_xattr {
    uint8_t name_len, prefix;
    uint16_t value_len; /* name and value follow, padded to four bytes */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "structs are written as they are");

#endif
