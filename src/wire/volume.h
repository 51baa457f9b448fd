/* volume.h - volumes as the programs name them to each other: ids, mount points, bounds.
 *
 * A volume is a directory that outlives sandboxes: a file system of a fixed size in a file of its own. Names and
 * tenants are the server's business; here a volume is an id. Pure. */
#ifndef COVE_WIRE_VOLUME_H
#define COVE_WIRE_VOLUME_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VOLUMES_MAX      4   /* in one sandbox */
#define VOLUME_ID_LEN    21  /* 'v' and 20 of a-z, 0-9 */
#define VOLUME_ID_MAX    24  /* of its array */
#define VOLUME_PATH_MAX  128 /* of its array */
#define VOLUME_READ_ONLY 1u  /* the only flag of struct volume_use */

/* One volume in one sandbox. All zero: none; those that are come first. */
struct volume_use {
    char volume[VOLUME_ID_MAX];
    char path[VOLUME_PATH_MAX]; /* where it is mounted, inside */
    uint32_t flags;
    uint32_t reserved;
};

struct volume_info {
    char id[VOLUME_ID_MAX];
    uint64_t bytes;            /* its size: the quota of all that is written to it */
    uint64_t stored;           /* bytes that the host's disk holds of it now */
    uint32_t readers, writers; /* sandboxes that have it mounted; at most one writes */
};

struct volume_user {
    char sandbox[64];
    char path[VOLUME_PATH_MAX];
    uint32_t flags;
    uint32_t reserved;
};

/* Sizes are whole MiB; there is at most one inode per VOLUME_INODE_BYTES, and by default half of that. */
#define VOLUME_MIB          (1024ull * 1024)
#define VOLUME_BYTES_LEAST  (16 * VOLUME_MIB)
#define VOLUME_BYTES_MOST   (4096 * 1024 * VOLUME_MIB)
#define VOLUME_INODE_BYTES  8192ull
#define VOLUME_INODES_LEAST 64ull

bool volume_id_ok(const char *text);
uint64_t volume_inodes_default(uint64_t bytes);
/* ERR_LIMIT, names the one that is wrong. */
int volume_size_check(uint64_t bytes, uint64_t inodes, struct err *err);

/* Absolute, shorter than VOLUME_PATH_MAX, of plain components, and neither "/" nor in /proc, /sys or /dev. */
int volume_path_check(const char *path, struct err *err);

/* All of a sandbox's volumes: ids, paths, flags; none twice, none below another; nothing behind the first that is
 * none. */
int volume_uses_check(const struct volume_use uses[VOLUMES_MAX], struct err *err);
size_t volume_use_count(const struct volume_use uses[VOLUMES_MAX]);

#endif
