/* disk_maker.h - the process that makes image disks, so that the keeper never waits for one. */
#ifndef COVE_DISK_DISK_MAKER_H
#define COVE_DISK_DISK_MAKER_H

#include "base/err.h"
#include "wire/layers.h"
#include "wire/volume.h"

#include <stdbool.h>
#include <stdint.h>

#define DISK_POOL 4 /* disks made ahead; tags of orders below this are theirs */

enum disk_job {
    DISK_NEW,   /* blank, of bytes and inodes */
    DISK_OLD,   /* one that is there, to be written on */
    DISK_BASE,  /* one that is there, to be a layer below others: read-only */
    DISK_MERGE, /* a new one that says what several say together: merge_maker.c */
    /* of volume_maker.c */
    DISK_VOLUME_MAKE, /* of bytes and inodes */
    DISK_VOLUME_ATTACH,
    DISK_VOLUME_DROP, /* its name is gone already */
};

struct disk_order {
    uint64_t bytes, inodes;
    uint64_t number; /* of its file */
    uint32_t tag;
    uint32_t job;               /* enum disk_job */
    char volume[VOLUME_ID_MAX]; /* of DISK_VOLUME_* */
    struct layers layers;       /* of DISK_MERGE: of which disks, the uppermost first */
};

#define DISK_FILE_NAME 24
/* The file of a disk in <state>/disks. */
void disk_file_name(uint64_t number, char out[DISK_FILE_NAME]);

struct disk_answer {
    uint64_t number;
    uint32_t tag;
    uint32_t job;
    struct err err; /* ERR_NONE: a mount descriptor comes with it, where the job gives one */
};

/* What is data in one file, to the same places of another. */
int disk_copy_data(int from, int to);

/* Serves orders until the keeper's end of the socket closes. Never returns. */
_Noreturn void disk_maker_run(int sock, int host_mnt_fd, int dir_fd, int volumes_fd);

static inline bool disk_job_mounts(uint32_t job)
{
    return job != DISK_VOLUME_MAKE && job != DISK_VOLUME_DROP && job != DISK_MERGE;
}

/* How the arguments of mkfs.ext4 begin for each of our file systems: no share of root's, and no question. */
#define DISK_MKFS "mkfs.ext4", "-q", "-F", "-b", "4096", "-I", "256", "-m", "0"

/* For volume_maker.c and merge_maker.c. mkfs.ext4 with these arguments, in the current directory. */
int disk_maker_mkfs(const char *const *argv, struct err *err);
/* A file becomes a blank disk; `name` is in the current directory, which is that of the disks. */
int disk_maker_format(int dir_fd, const char *name, uint64_t bytes, uint64_t inodes,
                      struct err *err);
/* The file system on a device, as a detached mount; `base`: read-only. */
int disk_maker_mount(int loop_fd, bool base, struct err *err);
/* A loop device that clears itself, bound to the image; the device keeps the image's open file. */
int disk_maker_loop(int dev_fd, int control_fd, int image, bool read_only, struct err *err);

#endif
