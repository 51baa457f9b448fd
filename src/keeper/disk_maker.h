/* disk_maker.h - the process that makes image disks, so that the keeper never waits for one. */
#ifndef COVE_KEEPER_DISK_MAKER_H
#define COVE_KEEPER_DISK_MAKER_H

#include "base/err.h"

#include <stdint.h>

struct disk_order {
    uint64_t bytes, inodes;
    uint32_t tag;
    uint32_t reserved;
};

struct disk_answer {
    uint32_t tag;
    uint32_t reserved;
    struct err err; /* ERR_NONE: a mount descriptor comes with it */
};

/* Serves orders until the keeper's end of the socket closes. Never returns. */
_Noreturn void disk_maker_run(int sock, int host_mnt_fd, int dir_fd);

#endif
