#include "image/outside.h"

#include "jail/agents.h"
#include "jail/mounts.h"

#include <stdio.h>

/* criu takes a millisecond for each mount, and forty of them are masks: they are left out of a dump, and put over /proc
 * again before anything runs. */
void outside_masks(struct criu_job *job)
{
    static char path[CRIU_SKIPS_MAX][32];
    const char *name;

    for (size_t i = 0; i < CRIU_SKIPS_MAX && (name = jail_masked(i)); i++) {
        (void) snprintf(path[i], sizeof path[i], "/proc/%s", name);
        job->skip[job->skip_count++] = path[i];
    }
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
    char sys[64];

    (void) snprintf(sys, sizeof sys, "/views/%s", view ? view : "");
    add_external(job, "/usr", "usr", view ? "/usr" : NULL);
    add_external(job, "/sys", "sys", view ? sys : NULL);
    add_external(job, "/dev", "dev", view ? "/dev" : NULL);
    add_external(job, AGENTS_AT, "agent", view ? AGENTS_OPEN : NULL);
    add_external(job, "/dev/shm", "shm", !view ? NULL : shm_joined ? "/shm" : "/disk/shm");
    for (size_t i = 0; i < count; i++) {
        char key[16], outside[32];

        (void) snprintf(key, sizeof key, "volume%zu", i);
        (void) snprintf(outside, sizeof outside, "/volumes/%zu", i);
        add_external(job, volumes[i].path, key, view ? outside : NULL);
    }
}
