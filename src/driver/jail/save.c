/* The order, with processes; in brackets, what a crash right after it leaves:
 *
 *   quiesce   the agent closes every connection and gives up its listener     [running; put back, or killed]
 *   dump      the processes stop, and memory/ is written                      [running]
 *   disk      what the disk has in memory goes to its file; a snapshot copies the file, SEAL and STOP take it
 *   sync      image and disk are on the host's disk for good
 *   commit    <id>.new becomes <id>                                           [STOP: paused; SEAL: gone]
 *   end       the processes are killed, or continue
 *   sync      its name, and what the end of the mount wrote; only then is it answered
 *
 * Whatever fails from the quiesce on, the agent is put back as it was (posture.h), or the sandbox is killed.
 * With STOP the commit is made while every process is stopped, so that none can do anything that is in
 * neither the image nor the world. Without STOP the copy of the disk is made there, and the rest when they run again. */
#include "driver/jail/save.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/full.h"
#include "driver/io_rule.h"
#include "driver/jail/jail.h"
#include "image/chunks.h"
#include "keeper/life.h"
#include "keeper/ops.h"
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ---- the disk ---- */

static int flush_disk(const struct saving *s, struct err *err)
{
    const struct worker *w = s->w;
    auto_close int fd = jail_open_inside(w->sandbox.info.pid, s->way->disk, O_RDONLY | O_DIRECTORY);

    if (fd >= 0 && syncfs(fd) == 0)
        return 0;
    /* What its file has no room for is an input/output error to the file system that is on it. */
    if (errno == EIO && image_disk_full(w->keeper->host->disks.dir_fd))
        errno = ENOSPC;
    return err_sys(err, errno, "flush the sandbox's disk");
}

/* Where the host's file system can share blocks it does; elsewhere holes stay holes. */
int save_copy_disk(const struct disks *disks, uint64_t from_number, uint64_t number,
                   struct err *err)
{
    auto_close int from = -1, to = -1;
    char name[DISK_FILE_NAME];
    struct stat st;

    disk_file_name(from_number, name);
    from = openat(disks->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    disk_file_name(number, name);
    to = openat(disks->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (from < 0 || to < 0 || fstat(from, &st) < 0)
        return err_sys(err, errno, "copy the disk");
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    if (ftruncate(to, st.st_size) < 0 || disk_copy_data(from, to) < 0) {
        err_sys(err, errno, "copy the disk");
        (void) unlinkat(disks->dir_fd, name, 0);
        return -1;
    }
    return 0;
}

static int copy_disk(struct saving *s, struct err *err)
{
    return save_copy_disk(&s->w->keeper->host->disks, s->w->sandbox.layers.number[0],
                          s->meta.layers.number[0], err);
}

/* ---- the image ---- */

static uint64_t bytes_in(int dir_fd, const char *name)
{
    int own = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;
    uint64_t bytes = 0;
    struct stat st;

    while (dir && (entry = readdir(dir)))
        if (fstatat(own, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            bytes += (uint64_t) st.st_blocks * 512u;
    return bytes;
}

static void count_bytes(struct saving *s)
{
    s->meta.image.bytes = bytes_in(s->dir_fd, "memory") +
                          disk_bytes(&s->w->keeper->host->disks, s->meta.layers.number[0]);
}

/* Before all else: the hashes are a file of their own. */
static int hash_pages(struct saving *s, struct err *err)
{
    struct chunks *chunks = NULL;
    int rc = chunks_write(s->memory_fd, &chunks, err);

    if (rc == 0)
        rc = image_hash_pages(&s->w->keeper->host->images, chunks, s->meta.pages, err);
    chunks_free(chunks);
    return rc;
}

int save_finish(struct saving *s, struct err *err)
{
    const struct images *images = &s->w->keeper->host->images;

    if (s->flags & KEEPER_SAVE_MEMORY) {
        if (s->way->complete(s, err) < 0 || hash_pages(s, err) < 0 ||
            image_hash(images, s->memory_fd, IMAGE_PARSED, s->meta.small, err) < 0)
            return -1;
    }
    s->meta.image.frozen_us = io_now_us() - s->stood_since_us;
    /* Before it has its name: a power cut leaves a whole image or none. */
    if (disk_sync(&s->w->keeper->host->disks, s->meta.layers.number[0], err) < 0)
        return -1;
    count_bytes(s);
    if (image_commit(images, s->meta.image.id, s->dir_fd, &s->meta, err) < 0)
        return -1;
    s->committed = true;
    return 0;
}

int save_standing(struct saving *s, struct err *err)
{
    if (flush_disk(s, err) < 0)
        return -1;
    return s->flags & SAVE_ENDS ? save_finish(s, err) : copy_disk(s, err);
}

/* ---- the worker ---- */

static uint64_t real_time_ms(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
}

static int fill_meta(struct saving *s, const struct keeper_request *r, struct err *err)
{
    struct image_meta *meta = &s->meta;
    const struct sandbox *box = &s->w->sandbox;
    struct utsname kernel;

    memcpy(meta->image.id, r->image, sizeof meta->image.id);
    memcpy(meta->image.owner, r->owner, sizeof meta->image.owner);
    meta->image.flags = (r->flags & KEEPER_SAVE_MEMORY ? KEEPER_IMAGE_MEMORY : 0u) |
                        (r->flags & KEEPER_SAVE_STOP ? KEEPER_IMAGE_PAUSED : 0u);
    meta->image.saved_ms = real_time_ms();
    meta->image.sandbox = box->info;
    meta->layers = box->layers;
    memcpy(meta->volumes, box->volumes, sizeof meta->volumes);
    meta->template_inode = box->template_inode;
    memcpy(meta->hostname, box->hostname, sizeof meta->hostname);
    if (uname(&kernel) == 0)
        (void) snprintf(meta->kernel, sizeof meta->kernel, "%.63s", kernel.release);
    if (!(r->flags & SAVE_ENDS) && disk_new_number(&meta->layers.number[0], err) < 0)
        return -1;
    return 0;
}

/* No process inside can kill the first process. One that was killed may take long to die, beside others. */
static bool is_dead(const struct sandbox *s)
{
    struct pollfd p = { .fd = s->pid.fd, .events = POLLIN };

    /* Once more behind it: one that died between the two is found dying by neither. */
    return poll(&p, 1, SAVE_DYING_MS) == 1 || sandbox_pid_dying(s->info.pid) || poll(&p, 1, 0) == 1;
}

static int make_image(struct saving *s, const struct keeper_request *r, struct err *err)
{
    if (image_begin(&s->w->keeper->host->images, r->image, &s->dir_fd, err) < 0)
        return -1;
    s->memory_fd = openat(s->dir_fd, "memory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->memory_fd < 0)
        return err_sys(err, errno, "open memory");
    if (fill_meta(s, r, err) < 0)
        return -1;
    return r->flags & KEEPER_SAVE_MEMORY ? s->way->memory(s, err) : s->way->files(s, err);
}

/* Nothing half-written stays. */
static void unmake_image(struct saving *s, const char *image, struct err *err)
{
    const struct worker *w = s->w;
    uint64_t number = s->meta.layers.number[0];

    if (err->kind == ERR_DISK_FULL) {
        log_line(LOG_WARNING, "image=%s %s", image, err->msg);
        err_set(err, ERR_DISK_FULL, "%s", IMAGE_NO_ROOM);
    }
    image_remove(&w->keeper->host->images, image, ".new");
    if (number && number != w->sandbox.layers.number[0])
        disks_remove(&w->keeper->host->disks, number);
}

/* The disk is mounted until the last process is dead, and the end of a mount writes to it. */
static int sync_end(const struct saving *s, struct err *err)
{
    const struct worker *w = s->w;

    if (!s->way->kills || !(s->flags & KEEPER_SAVE_MEMORY)) /* else they were killed */
        (void) cgroup_end(&w->keeper->host->cgroups, w->sandbox.cgroup, false);
    (void) is_dead(&w->sandbox);
    return disk_sync(&w->keeper->host->disks, s->meta.layers.number[0], err);
}

int save_run(struct worker *w, const struct keeper_request *r, const struct save_way *way,
             struct err *err)
{
    struct saving s = { .w = w, .way = way, .flags = r->flags, .dir_fd = -1, .memory_fd = -1 };
    struct images *images = &w->keeper->host->images;
    int rc = make_image(&s, r, err);

    if (rc < 0 && s.committed && r->flags & SAVE_ENDS) {
        /* It failed after the commit. What is there, image or processes, is the sandbox; both must not be. */
        if (is_dead(&w->sandbox))
            rc = 0, w->result.unconfined = false;
        else
            image_remove(images, r->image, "");
    }
    if (rc < 0) {
        unmake_image(&s, r->image, err);
        return -1;
    }
    w->result.image = s.meta.image;
    w->result.layers = s.meta.layers;
    /* It is what it is by now: a host that cannot write will say so elsewhere, too. */
    if ((s.flags & SAVE_ENDS && sync_end(&s, err) < 0) || image_sync_name(images, err) < 0)
        log_line(LOG_ERROR, "image=%s %s", r->image, err->msg);
    return 0;
}

/* ---- the keeper's half ---- */

static void on_end(struct keeper *k, struct sandbox *s, struct worker_result *r)
{
    bool ended = save_took_disk(s, &r->layers);

    if (r->err.kind != ERR_NONE) {
        log_line(LOG_WARNING, "not saved sandbox=%s %s", s->info.id, r->err.msg);
        if (r->unconfined) {
            save_unconfined(k, s, &r->err);
            return; /* answered when it is gone */
        }
        sandbox_back(k, s);
        ops_saved(k, s, NULL, &r->err);
        return;
    }
    log_line(LOG_INFO, "saved sandbox=%s image=%s bytes=%" PRIu64 " us_still=%" PRIu64, s->info.id,
             r->image.id, r->image.bytes, r->image.frozen_us);
    if (ended) {
        s->saved = r->image;
        save_became(k, s, &r->layers);
        return; /* answered when it is gone */
    }
    (void) images_add(&k->host->images, r->image.id, &r->layers, NULL);
    sandbox_back(k, s);
    ops_saved(k, s, &r->image, NULL);
}

#define BTRFS 0x9123683eu
#define XFS   0x58465342u

/* Where files can share blocks, the disk of a snapshot takes none of its own. */
static bool shares_blocks(const struct keeper *k)
{
    struct statfs fs;

    return fstatfs(k->host->disks.dir_fd, &fs) == 0 &&
           ((uint32_t) fs.f_type == BTRFS || (uint32_t) fs.f_type == XFS);
}

/* What the image will take on the host's disk at least: it is refused before it begins, not in the middle. */
static int check_image_fits(struct keeper *k, const struct sandbox *s,
                            const struct keeper_request *r, struct err *err)
{
    struct keeper_stats stats = { 0 };
    uint64_t bytes = 0;

    if (r->flags & KEEPER_SAVE_MEMORY &&
        cgroup_stats(&k->host->cgroups, s->cgroup, false, &stats, err) == 0 &&
        stats.memory_bytes > stats.memory_cache_bytes)
        bytes = stats.memory_bytes - stats.memory_cache_bytes;
    if (!(r->flags & SAVE_ENDS) && !shares_blocks(k))
        bytes += disk_bytes(&k->host->disks, s->layers.number[0]);
    return full_check(k, bytes, err) < 0 ? err_set(err, ERR_DISK_FULL, "%s", IMAGE_NO_ROOM) : 0;
}

static int check_save(const struct keeper *k, const struct sandbox *s,
                      const struct keeper_request *r, struct err *err)
{
    if (s->info.life != LIFE_RUNNING && s->info.life != LIFE_PAUSED)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s", s->info.id,
                       keeper_life_name(s->info.life));
    if (s->info.disk_kind != DISK_IMAGE)
        return err_set(err, ERR_UNSUPPORTED, "its disk is in memory");
    if (r->flags & KEEPER_SAVE_SEAL && r->flags != KEEPER_SAVE_SEAL)
        return err_set(err, ERR_INVALID, "flags: what is sealed are files, under another id");
    if (r->flags & KEEPER_SAVE_STOP && strcmp(r->image, s->info.id) != 0)
        return err_set(err, ERR_INVALID, "image: of a sandbox that ends, it has the sandbox's id");
    if (!(r->flags & KEEPER_SAVE_STOP) && sandbox_find((struct keeper *) (uintptr_t) k, r->image))
        return err_set(err, ERR_INVALID, "image: is the id of a sandbox");
    if (images_have(&k->host->images, r->image) ||
        sandbox_of_image((struct keeper *) (uintptr_t) k, r->image))
        return err_set(err, ERR_EXISTS, "there is an image '%s' already", r->image);
    if (k->host->images.count == IMAGES_MAX)
        return err_set(err, ERR_TOO_MANY, "there are %d images, as many as can be", IMAGES_MAX);
    return 0;
}

int save_begin(struct keeper *k, struct sandbox *s, const struct keeper_request *r,
               worker_deed *saver, struct err *err)
{
    bool frozen = s->info.life == LIFE_PAUSED;

    if (check_save(k, s, r, err) < 0 || check_image_fits(k, s, r, err) < 0)
        return -1;
    sandbox_set_life(k, s, LIFE_PAUSING);
    s->was_frozen = frozen;
    memcpy(s->image, r->image, sizeof s->image);
    if (sandbox_record(k, s, err) < 0)
        goto undo;
    /* The agent has to do its part; what else is thawed with it has a moment more. */
    if (frozen && (r->flags & KEEPER_SAVE_MEMORY || s->info.isolation != ISOLATION_JAIL) &&
        cgroup_freeze(&k->host->cgroups, s->cgroup, false, err) < 0)
        goto undo;
    io_rule_pause(k, s);
    if (worker_start(k, s, "cove-saver", saver, r, on_end, err) < 0)
        goto undo;
    return 0;

undo:
    sandbox_back(k, s);
    return -1;
}
