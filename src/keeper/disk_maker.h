/* disk_maker.h - the process that makes image disks, so that the keeper never waits for one. */
#ifndef COVE_KEEPER_DISK_MAKER_H
#define COVE_KEEPER_DISK_MAKER_H

#include "base/err.h"

#include <stdint.h>

enum disk_job {
    DISK_NEW,  /* blank, of bytes and inodes */
    DISK_OLD,  /* one that is there, to be written on */
    DISK_BASE, /* one that is there, to be a layer below others: read-only */
};

struct disk_order {
    uint64_t bytes, inodes;
    uint64_t number; /* of its file */
    uint32_t tag;
    uint32_t job; /* enum disk_job */
};

#define DISK_FILE_NAME 24
/* The file of a disk in <state>/disks. */
void disk_file_name(uint64_t number, char out[DISK_FILE_NAME]);

struct disk_answer {
    uint64_t number;
    uint32_t tag;
    uint32_t job;
    struct err err; /* ERR_NONE: a mount descriptor comes with it */
};

/* Serves orders until the keeper's end of the socket closes. Never returns. */
_Noreturn void disk_maker_run(int sock, int host_mnt_fd, int dir_fd);

#endif
