#include "base/own.h"
#include "cli/doctor/doctor_checks.h"
#include "cli/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool below_root(const struct doctor_host *host, const char *path)
{
    return doctor_exists(host, path + 1);
}

static bool too_old(const char *version)
{
    unsigned major = 0, minor = 0;

    return sscanf(version, "%u.%u", &major, &minor) == 2 && major * 100 + minor < 319;
}

/* In the order in which the keeper looks. */
DOCTOR_RUN(check_criu)
{
    bool from_prefix = below_root(host, CRIU_PREFIX CRIU_INSTALLED);
    const char *where = from_prefix ? CRIU_PREFIX : CRIU_INSTALLED;
    struct doctor_criu criu = { 0 };
    bool root = doctor_is_root(host);

    if (!from_prefix && !below_root(host, CRIU_INSTALLED)) {
        doctor_set(ret, check->otherwise, "neither in %s nor as %s", CRIU_PREFIX, CRIU_INSTALLED);
        return;
    }
    if (host->probes->criu(from_prefix, root, &criu) == 0) {
        if (!from_prefix && too_old(criu.version)) {
            doctor_set(ret, check->otherwise, "%s, %s: too old, 3.19 or newer is needed",
                       criu.version, where);
            return;
        }
        doctor_set(ret, root ? DOCTOR_OK : DOCTOR_NOTE, "%s, %s%s", criu.version, where,
                   root ? "" : "; only root can try it");
        return;
    }
    doctor_set(ret, check->otherwise, "%.20s, %s: 'criu check' says: %.80s", criu.version, where,
               criu.said);
    if (from_prefix)
        (void) snprintf(
            ret->fix, sizeof ret->fix,
            "tools/criu --again fetches it again; 'criu check' names what the kernel, or "
            "the container that cove runs in, lacks");
}

DOCTOR_RUN(check_swap_space)
{
    char total[64], available[64], a[32], b[32];
    unsigned long long bytes = 0;

    if (doctor_field(host, check->name, "SwapTotal", total, sizeof total) == 0)
        bytes = strtoull(total, NULL, 10) * 1024;
    if (bytes == 0) {
        doctor_set(ret, check->otherwise, "none");
        return;
    }
    if (doctor_field(host, check->name, "SwapFree", available, sizeof available) < 0)
        (void) snprintf(available, sizeof available, "0");
    doctor_set(ret, DOCTOR_OK, "%s, %s free", report_size(a, sizeof a, bytes),
               report_size(b, sizeof b, strtoull(available, NULL, 10) * 1024));
}

/* The switch is there whenever userfaultfd is. It concerns users without rights, whom restored processes are among: they
 * are given theirs by the device, which is root's (src/criu/shim.c). */
DOCTOR_RUN(check_lazy_restore)
{
    if (doctor_exists(host, check->name))
        doctor_set(ret, DOCTOR_OK, "/dev/userfaultfd: memory of large images follows");
    else if (doctor_exists(host, "proc/sys/vm/unprivileged_userfaultfd"))
        doctor_set(ret, check->otherwise, "no /dev/userfaultfd: all memory at once");
    else
        doctor_set(ret, check->otherwise, "no userfaultfd in this kernel");
}
