#include "image/outside.h"

#include "jail/agents.h"
#include "jail/mounts.h"
#include "jail/sysview.h"

#include "base/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* criu takes a millisecond for each mount, and forty of them are masks: they are left out of a dump, and put over /proc
 * again before anything runs. */
static void skip(struct criu_job *job, const char *name)
{
    static char path[CRIU_SKIPS_MAX][32];
    size_t i = job->skip_count;

    if (i == CRIU_SKIPS_MAX)
        return;
    (void) snprintf(path[i], sizeof path[i], "/proc/%s", name);
    job->skip[job->skip_count++] = path[i];
}

void outside_masks(struct criu_job *job, bool held)
{
    const char *name;

    job->skip_count = 0;
    for (size_t i = 0; (name = jail_masked(i)); i++)
        skip(job, name);
    for (size_t i = 0; !held && (name = jail_shown(i)); i++)
        skip(job, name);
}

struct holders {
    bool *held;
};

static bool is_shown(const char *path)
{
    const char *name;

    for (size_t i = 0; strncmp(path, "/proc/", 6) == 0 && (name = jail_shown(i)); i++)
        if (strcmp(path + 6, name) == 0)
            return true;
    return false;
}

static void look_at(pid_t pid, const void *arg)
{
    const struct holders *holders = arg;
    char path[32], link[64];
    auto_dir DIR *dir = NULL;
    const struct dirent *entry;

    (void) snprintf(path, sizeof path, "/proc/%d/fd", (int) pid);
    dir = *holders->held ? NULL : opendir(path);
    while (dir && !*holders->held && (entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1);

        link[n > 0 ? n : 0] = '\0';
        *holders->held = is_shown(link);
    }
}

bool outside_held(const struct cgroups *cgroups, const char *name)
{
    bool held = false;
    const struct holders holders = { .held = &held };

    cgroup_each_process(cgroups, name, look_at, &holders);
    return held;
}

static void add_external(struct criu_job *job, const char *inside, const char *key,
                         const char *outside)
{
    char *out = job->external[job->external_count++];

    if (outside)
        (void) snprintf(out, CRIU_TEXT_MAX, "mnt[%s]:%s", key, outside);
    else
        (void) snprintf(out, CRIU_TEXT_MAX, "mnt[%s]:%s", inside, key);
}

void outside_mounts(struct criu_job *job, const char *view, bool shm_joined,
                    const struct volume_use *volumes)
{
    size_t count = volume_use_count(volumes);
    const char *name;
    char sys[64];

    (void) snprintf(sys, sizeof sys, SYSVIEW_SHOWN "/%s/sys", view ? view : "");
    add_external(job, "/usr", "usr", view ? "/usr" : NULL);
    add_external(job, "/sys", "sys", view ? sys : NULL);
    add_external(job, "/dev", "dev", view ? "/dev" : NULL);
    add_external(job, AGENTS_AT, "agent", view ? AGENTS_OPEN : NULL);
    add_external(job, "/dev/shm", "shm", !view ? NULL : shm_joined ? "/shm" : "/disk/shm");
    for (size_t i = 0; (name = jail_shown(i)); i++) {
        char inside[32], outside[64];

        (void) snprintf(inside, sizeof inside, "/proc/%s", name);
        (void) snprintf(outside, sizeof outside, SYSVIEW_SHOWN "/%s/proc/%s", view ? view : "",
                        name);
        add_external(job, inside, name, view ? outside : NULL);
    }
    for (size_t i = 0; i < count; i++) {
        char key[16], outside[32];

        (void) snprintf(key, sizeof key, "volume%zu", i);
        (void) snprintf(outside, sizeof outside, "/volumes/%zu", i);
        add_external(job, volumes[i].path, key, view ? outside : NULL);
    }
}
