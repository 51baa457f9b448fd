#include "base/io.h"
#include "base/own.h"
#include "cli/doctor/doctor_checks.h"

#include <stdio.h>
#include <string.h>

struct controller {
    int version; /* 0: not there */
    char mount[128];
};

/* In v2 some controllers are not listed: CPU time and freezing are always there, devices are
 * programs. */
static bool in_v2(const struct doctor_host *host, const char *mount, const char *name)
{
    char path[256], list[512];

    if (strcmp(name, "cpuacct") == 0)
        name = "cpu";
    (void) snprintf(path, sizeof path, "%s/cgroup.controllers", mount + 1);
    if (io_read_text(host->root_fd, path, list, sizeof list) < 0 || !list[0] || list[0] == '\n')
        return false; /* v2 is mounted, but v1 has every controller */
    return strcmp(name, "devices") == 0 || strcmp(name, "freezer") == 0 ||
           doctor_has_word(list, name, " \n");
}

/* Per controller, from what is mounted: v1 and v2 live side by side on many hosts. */
static void find_controller(const struct doctor_host *host, const char *name,
                            struct controller *ret)
{
    auto_free char *mounts = doctor_text(host, "proc/self/mounts");
    char *save = NULL;

    ret->version = 0;
    for (char *line = mounts ? strtok_r(mounts, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        char where[128], type[32], options[256];
        int version = 0;

        if (sscanf(line, "%*s %127s %31s %255s", where, type, options) != 3 || where[0] != '/')
            continue;
        if (strcmp(type, "cgroup") == 0 && doctor_has_word(options, name, ","))
            version = 1;
        else if (strcmp(type, "cgroup2") == 0 && in_v2(host, where, name))
            version = 2;
        if (version && (!ret->version || version == 1)) {
            ret->version = version;
            memcpy(ret->mount, where, sizeof ret->mount);
        }
    }
}

DOCTOR_RUN(check_controller)
{
    struct controller found;

    find_controller(host, check->name, &found);
    if (found.version)
        doctor_set(ret, DOCTOR_OK, "v%d at %s", found.version, found.mount);
    else
        doctor_set(ret, check->otherwise, "missing");
}

/* As jail/io_limit.c does it. */
DOCTOR_RUN(check_io)
{
    struct controller v1, v2;

    find_controller(host, "blkio", &v1);
    find_controller(host, "io", &v2);
    if (v1.version == 1)
        doctor_set(ret, DOCTOR_OK, "v1 at %s, by blkio.throttle of each sandbox's device",
                   v1.mount);
    else if (v2.version == 2)
        doctor_set(ret, DOCTOR_OK, "v2 at %s, by io.max", v2.mount);
    else
        doctor_set(ret, check->otherwise, "missing: a sandbox with 'io' or 'iops' is refused");
}

DOCTOR_RUN(check_cgroup_kill)
{
    struct controller found;
    char release[64];
    unsigned major = 0, minor = 0;

    find_controller(host, "freezer", &found);
    if (doctor_line(host, "proc/sys/kernel/osrelease", release, sizeof release) == 0)
        (void) sscanf(release, "%u.%u", &major, &minor);
    if (found.version == 2 && major * 1000 + minor >= 5014)
        doctor_set(ret, DOCTOR_OK, "yes");
    else
        doctor_set(ret, check->otherwise, "no: %s",
                   found.version == 2 ? "the kernel is too old" : "cgroup v1");
}

DOCTOR_RUN(check_swap)
{
    auto_free char *swaps = doctor_text(host, "proc/swaps");
    struct controller memory;
    char path[256];
    char *second = swaps ? strchr(swaps, '\n') : NULL;

    find_controller(host, "memory", &memory);
    (void) snprintf(path, sizeof path, "%s/memory.memsw.limit_in_bytes", memory.mount + 1);
    if (!second || !second[1])
        doctor_set(ret, DOCTOR_OK, "no swap");
    else if (memory.version == 2)
        doctor_set(ret, DOCTOR_OK, "swap, limited by cgroup v2");
    else if (memory.version == 1 && doctor_exists(host, path))
        doctor_set(ret, DOCTOR_OK, "swap, limited by cgroup v1");
    else
        doctor_set(ret, check->otherwise, "swap without limits");
}
