#include "driver/shrink.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "image/compress.h"
#include "keeper/ops.h"
#include "keeper/sandbox.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IOPRIO_IDLE (3 << 13) /* no header has it */

struct result {
    struct err err; /* ERR_NONE: done */
    struct keeper_image image;
    uint64_t us;
};

/* ---- the process ---- */

/* Whatever else the machine has to do comes first; but not SCHED_IDLE, which on a busy host would never end. */
static void step_back(void)
{
    const struct sched_param none = { .sched_priority = 0 };

    (void) setpriority(PRIO_PROCESS, 0, 19);
    (void) sched_setscheduler(0, SCHED_BATCH, &none);
    (void) syscall(__NR_ioprio_set, 1, 0, IOPRIO_IDLE);
}

static _Noreturn void run(const struct keeper *k, const char *image, int answer)
{
    int keep[] = { answer, k->host->images.dir_fd };
    struct result r = { .err = { .kind = ERR_NONE } };
    uint64_t begin = io_now_us();
    struct image_meta meta;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void) prctl(PR_SET_NAME, "cove-shrink");
    io_keep_only(keep, ARRAY_LEN(keep));
    step_back();
    if (compress_image(&k->host->images, image, &meta, &r.err) == 0) {
        r.err.kind = ERR_NONE;
        r.image = meta.image;
    }
    r.us = io_now_us() - begin;
    (void) send(answer, &r, sizeof r, MSG_NOSIGNAL);
    _exit(0);
}

/* ---- the keeper's half ---- */

/* Also by those who are still on their way to its lock, or change its disks. */
static bool is_used(struct keeper *k, const char *image)
{
    return image_busy(&k->host->images, image) || sandbox_of_image(k, image) ||
           (k->host->merging.order && strcmp(k->host->merging.image, image) == 0);
}

static void end(struct keeper *k, const struct keeper_image *image, const struct err *err)
{
    char id[KEEPER_NAME_MAX];

    memcpy(id, k->host->shrink.image, sizeof id);
    keeper_unwatch(k, &k->host->shrink.watch);
    if (k->host->shrink.pid > 0)
        (void) waitpid(k->host->shrink.pid, NULL, 0); /* it said its word, or was killed */
    k->host->shrink.pid = 0;
    k->host->shrink.image[0] = '\0';
    if (err)
        log_line(LOG_WARNING, "not compressed image=%s %s", id, err->msg);
    ops_shrunk(k, id, image, err);
}

static void on_answer(struct keeper *k, struct watch *watch)
{
    const char *id = k->host->shrink.image;
    struct err err = { .kind = ERR_NONE };
    struct result r;
    ssize_t n = recv(watch->fd, &r, sizeof r, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t) sizeof r)
        err_set(&err, ERR_INTERNAL, "the process that compressed it died");
    else if (r.err.kind != ERR_NONE)
        err = r.err;
    else if (is_used(k, id))
        err_set(&err, ERR_STATE, "image '%s' is being worked on", id);
    else
        (void) compress_commit(&k->host->images, id, &err);
    if (err.kind == ERR_DISK_FULL)
        err_set(&err, ERR_DISK_FULL, "%s", IMAGE_NO_ROOM);
    if (err.kind != ERR_NONE) {
        (void) kill(k->host->shrink.pid, SIGKILL);
        compress_undo(&k->host->images, id);
        end(k, NULL, &err);
        return;
    }
    log_line(LOG_INFO, "compressed image=%s bytes=%" PRIu64 " us=%" PRIu64, id, r.image.bytes,
             r.us);
    end(k, &r.image, NULL);
}

int shrink_begin(struct keeper *k, const char *image, struct err *err)
{
    struct image_meta meta;
    int pair[2];
    pid_t pid;

    if (image_read(&k->host->images, image, &meta, err) < 0)
        return -1;
    if (meta.image.flags & KEEPER_IMAGE_COMPRESSED)
        return 0;
    if (!(meta.image.flags & KEEPER_IMAGE_MEMORY))
        return err_set(err, ERR_STATE, "image '%s' has no memory to compress", image);
    if (k->host->shrink.pid)
        return err_set(err, ERR_TOO_MANY, "another image is being compressed");
    if (is_used(k, image))
        return err_set(err, ERR_STATE, "image '%s' is being worked on", image);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "socketpair");
    pid = fork();
    if (pid == 0)
        run(k, image, pair[1]);
    (void) close(pair[1]);
    if (pid < 0) {
        (void) close(pair[0]);
        return err_sys(err, errno, "fork");
    }
    k->host->shrink.pid = pid;
    memcpy(k->host->shrink.image, meta.image.id, sizeof k->host->shrink.image);
    if (keeper_watch(k, &k->host->shrink.watch, pair[0], on_answer, err) < 0) {
        shrink_cancel(k, image);
        return -1;
    }
    return 1;
}

void shrink_cancel(struct keeper *k, const char *image)
{
    struct err err;

    if (!k->host->shrink.pid || strcmp(k->host->shrink.image, image) != 0)
        return;
    (void) kill(k->host->shrink.pid, SIGKILL);
    (void) waitpid(k->host->shrink.pid, NULL, 0);
    k->host->shrink.pid = 0;
    compress_undo(&k->host->images, image);
    err_set(&err, ERR_STATE, "image '%s' was needed in the meantime", image);
    end(k, NULL, &err);
}
