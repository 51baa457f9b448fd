/* How a jail is saved: its processes by criu, or its files while all of them are frozen. */
#include "driver/jail/save.h"

#include "base/io.h"
#include "base/own.h"
#include "driver/jail/connect.h"
#include "driver/jail/jail.h"
#include "driver/jail/posture.h"
#include "image/fill.h"
#include "image/filters.h"
#include "image/inventory.h"
#include "image/mm.h"
#include "image/outside.h"
#include "image/pstree.h"
#include "image/timers.h"
#include "jail/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FREEZE_MS 5000

/* Which of criu's files has the id map, and what the processes amount to. */
static int look_through(struct saving *s, struct err *err)
{
    int own = openat(s->memory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        if (fchownat(own, entry->d_name, 0, 0, AT_SYMLINK_NOFOLLOW) < 0)
            return err_sys(err, errno, "take over criu's files");
        s->meta.image.threads += strncmp(entry->d_name, "core-", 5) == 0; /* a file for each */
        if (strncmp(entry->d_name, "pages-", 6) == 0 &&
            fstatat(own, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            s->meta.image.memory_bytes += (uint64_t) st.st_size;
        if (strncmp(entry->d_name, "userns-", 7) == 0 &&
            strlen(entry->d_name) < sizeof s->meta.ids_file)
            (void) strcpy(s->meta.ids_file, entry->d_name);
    }
    return s->meta.ids_file[0] ? 0 : err_set(err, ERR_INTERNAL, "criu wrote no id map");
}

static int complete(struct saving *s, struct err *err)
{
    return pstree_fix(s->memory_fd, err) < 0 || timers_fix(s->memory_fd, err) < 0 ||
                   inventory_fix(s->memory_fd, err) < 0 || mm_fix(s->memory_fd, err) < 0 ||
                   filters_make_quiet(s->memory_fd, s->w->sandbox.filter, err) < 0
               ? -1
               : look_through(s, err);
}

/* Every process stands still. Which files they have open matters to criu alone. */
static int on_standing(struct saving *s, struct err *err)
{
    if (!s->held && outside_held(&s->w->keeper->host->cgroups, s->w->sandbox.cgroup)) {
        s->held = true;
        return err_set(err, ERR_STATE, "a process has a file of /proc open");
    }
    return save_standing(s, err);
}

/* ---- with processes ---- */

static int on_point(void *arg, const char *point, pid_t pid, struct err *err)
{
    struct saving *s = arg;

    (void) pid;
    return strcmp(point, "post-dump") == 0 ? on_standing(s, err) : 0;
}

/* The sandbox continues, as itself; after a failure, too. */
static int put_back(struct saving *s, struct err *err)
{
    if (posture_put_back(s->w->keeper, &s->w->sandbox, err) == 0)
        return 0;
    s->w->result.unconfined = true;
    return -1;
}

static int save_memory(struct saving *s, struct err *err)
{
    const struct sandbox *box = &s->w->sandbox;
    struct criu_job job = { .criu = &s->w->keeper->host->criu,
                            .leave_running = !(s->flags & KEEPER_SAVE_STOP),
                            .pid = box->info.pid,
                            .owner = box->info.uid_base,
                            .images_fd = s->memory_fd,
                            .lock_fd = s->dir_fd,
                            .work_fd = s->w->scratch_fd,
                            .reached = on_point,
                            .arg = s };
    struct err why;
    int rc;

    outside_mounts(&job, NULL, false, box->volumes);
    outside_masks(&job, false);
    if (fill_wait(&s->w->keeper->host->images, box->info.id, err) < 0 || jail_add_pts(err) < 0)
        return -1;
    rc = connect_quiesce(&s->w->keeper->host->nets, box->pid.fd, box->info.pid, err);
    s->stood_since_us = io_now_us();
    if (rc == 0) {
        rc = criu_run(&job, NULL, err);
        if (rc < 0 && s->held) { /* once more, and better: they stand as they stood */
            outside_masks(&job, true);
            rc = criu_run(&job, NULL, err);
        }
        if (rc < 0 && err->kind == ERR_TIMEOUT) { /* killed, where it ran in the place of others */
            s->w->result.unconfined = true;
            return -1;
        }
    }
    if (rc == 0 && s->flags & KEEPER_SAVE_STOP)
        return 0;
    if (put_back(s, &why) < 0) {
        *err = why;
        return -1;
    }
    return rc < 0 ? -1 : save_finish(s, err);
}

/* ---- files alone ---- */

int save_freeze(const struct worker *w, bool frozen, struct err *err)
{
    const struct cgroups *cgroups = &w->keeper->host->cgroups;
    uint64_t until = io_now_ms() + FREEZE_MS;
    const struct timespec moment = { .tv_nsec = 200000 };

    if (cgroup_freeze(cgroups, w->sandbox.cgroup, frozen, err) < 0)
        return -1;
    while (cgroup_freeze_done(cgroups, w->sandbox.cgroup, frozen) != 1) {
        if (io_now_ms() > until)
            return err_set(err, ERR_TIMEOUT, "the sandbox did not freeze");
        (void) nanosleep(&moment, NULL);
    }
    return 0;
}

static int save_files(struct saving *s, struct err *err)
{
    struct err ignored;
    int rc;

    s->stood_since_us = io_now_us();
    rc = save_freeze(s->w, true, err);
    if (rc == 0)
        rc = save_standing(s, err);
    /* It stays as it is: killed when its image has a name. */
    if (rc == 0 && s->flags & SAVE_ENDS)
        return 0;
    (void) save_freeze(s->w, false, &ignored);
    return rc < 0 ? -1 : save_finish(s, err);
}

/* ---- the keeper's half ---- */

static const struct save_way way = { .disk = JAIL_DISK,
                                     .kills = true,
                                     .memory = save_memory,
                                     .files = save_files,
                                     .complete = complete };

static int save(struct worker *w, const struct keeper_request *r, struct err *err)
{
    return save_run(w, r, &way, err);
}

int save_jail(struct keeper *k, struct sandbox *s, const struct keeper_request *r, struct err *err)
{
    if (r->flags & KEEPER_SAVE_MEMORY && !criu_there())
        return err_set(err, ERR_UNSUPPORTED,
                       "there is no criu here, or it is too old: 'cove doctor' says more");
    if (r->flags & KEEPER_SAVE_MEMORY && s->filter_form == FILTER_LISTENS && s->listener < 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "the kernel does not let the keeper hold its listener");
    for (size_t i = 0; i < volume_use_count(s->volumes); i++)
        if (strpbrk(s->volumes[i].path, "[]:")) /* criu's own signs */
            return err_set(err, ERR_UNSUPPORTED, "a volume is mounted at a path with [, ] or :");
    return save_begin(k, s, r, save, err);
}
