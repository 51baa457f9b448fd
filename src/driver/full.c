#include "driver/full.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "disk/room.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_MS 1000 /* between two starts of the process */
#define MiB      (UINT64_C(1) << 20)

static void on_word(struct keeper *k, struct watch *watch)
{
    char word;
    ssize_t n = read(watch->fd, &word, 1);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == 1) {
        k->host->disk_full = word == ROOM_FULL;
        return;
    }
    keeper_unwatch(k, watch);
    (void) waitpid(k->host->room_pid, NULL,
                   0); /* its end of the pipe is closed by its death alone */
    k->host->room_pid = 0;
    k->host->room_ms = io_now_ms() + AGAIN_MS;
    log_line(LOG_WARNING, "the watcher of the disk's room is gone: another one follows");
}

static int start(struct keeper *k, struct err *err)
{
    int fd;

    if (room_start(&k->host->disks, k->host->reserve_set, &fd, &k->host->room_pid, err) < 0)
        return -1;
    /* A new watcher says that the disk is full, and never that it is not: it begins with room. */
    k->host->disk_full = false;
    return keeper_watch(k, &k->host->room, fd, on_word, err);
}

int full_start(struct keeper *k, uint64_t reserve, struct err *err)
{
    k->host->reserve_set = reserve;
    return start(k, err);
}

int full_tend(struct keeper *k)
{
    uint64_t now;
    struct err err;

    if (k->host->room.fd >= 0)
        return -1;
    now = io_now_ms();
    if (now < k->host->room_ms)
        return (int) (k->host->room_ms - now);
    k->host->room_ms = now + AGAIN_MS;
    if (start(k, &err) < 0)
        log_line(LOG_ERROR, "the disk's room is not watched: %s", err.msg);
    return k->host->room.fd >= 0 ? -1 : AGAIN_MS;
}

void full_now(const struct keeper *k, struct full *ret)
{
    struct statfs fs;

    *ret = (struct full){ .full = k->host->disk_full };
    if (fstatfs(k->state_fd, &fs) < 0)
        return;
    ret->free = (uint64_t) fs.f_bavail * (uint64_t) fs.f_bsize;
    ret->reserve =
        room_reserve((uint64_t) fs.f_blocks * (uint64_t) fs.f_bsize, k->host->reserve_set);
}

int full_check(const struct keeper *k, uint64_t bytes, struct err *err)
{
    struct full now;

    full_now(k, &now);
    if (!now.full && now.free >= now.reserve && bytes <= now.free - now.reserve)
        return 0;
    return err_set(err, ERR_DISK_FULL,
                   "the host's disk is full: %" PRIu64 " MiB are free, of which %" PRIu64
                   " MiB are kept",
                   now.free / MiB, now.reserve / MiB);
}
