#include "jail/confine.h"

#include "base/own.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MiB ((rlim_t) 1024 * 1024)

int confine_limits(const struct limits *limits, struct err *err)
{
    /* clang-format off */
    const struct {
        int resource;
        rlim_t most;
        const char *name;
    } rows[] = {
        { RLIMIT_CORE,       0,                                "core size" },
        { RLIMIT_NOFILE,     (rlim_t) limits->open_files,      "open files" },
        { RLIMIT_NPROC,      (rlim_t) limits->processes,       "processes" }, /* second line to pids.max */
        { RLIMIT_MEMLOCK,    8 * MiB,                          "locked memory" },
        { RLIMIT_MSGQUEUE,   819200,                           "message queues" },
        { RLIMIT_SIGPENDING, 4096,                             "pending signals" },
        { RLIMIT_NICE,       0,                                "nice" },
        { RLIMIT_RTPRIO,     0,                                "realtime priority" },
        { RLIMIT_STACK,      8 * MiB,                          "stack" },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rlimit now, want = { rows[i].most, rows[i].most };

        if (getrlimit((__rlimit_resource_t) rows[i].resource, &now) < 0)
            return err_sys(err, errno, "read the limit of %s", rows[i].name);
        /* Raising would need CAP_SYS_RESOURCE on the host: we live with what the keeper has. */
        if (now.rlim_max < want.rlim_max)
            want.rlim_cur = want.rlim_max = now.rlim_max;
        if (setrlimit((__rlimit_resource_t) rows[i].resource, &want) < 0)
            return err_sys(err, errno, "limit %s", rows[i].name);
    }
    return 0;
}

int confine_capabilities(uint64_t keep, struct err *err)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = {
        { (uint32_t) keep, (uint32_t) keep, 0 },
        { (uint32_t) (keep >> 32), (uint32_t) (keep >> 32), 0 },
    };

    for (int cap = 0; cap < 64; cap++) {
        if (keep & BOOT_CAP(cap))
            continue;
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL) /* past the last one this kernel knows */
                break;
            return err_sys(err, errno, "drop capability %d", cap);
        }
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        syscall(__NR_capset, &head, data) < 0)
        return err_sys(err, errno, "set capabilities");
    return 0;
}

#ifndef LANDLOCK_SCOPE_SIGNAL /* Linux 6.12 */
#define LANDLOCK_SCOPE_SIGNAL (1ull << 1)
#endif
#define LANDLOCK_SCOPE_ABI 6

#ifndef LANDLOCK_ACCESS_FS_REFER /* Linux 5.19 */
#define LANDLOCK_ACCESS_FS_REFER (1ull << 13)
#endif
#define LANDLOCK_REFER_ABI 2

static long landlock_abi(void)
{
    return syscall(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

bool confine_has_landlock(void)
{
    return landlock_abi() >= LANDLOCK_REFER_ABI;
}

/* A second line only: no device nodes, whatever the file system allows, and no signal past
 * the sandbox, should a namespace fail. Not the scope of abstract sockets: a checkpoint connects to one from inside. Rights that are not handled here cost nothing; but one is
 * denied by every ruleset that does not grant it, links and renames between directories. So it is
 * granted, below the root, which is everything. */
static int landlock(struct err *err)
{
    struct {
        uint64_t handled_access_fs, handled_access_net, scoped;
    } rules = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                     LANDLOCK_ACCESS_FS_REFER };
    struct landlock_path_beneath_attr everywhere = { .allowed_access = LANDLOCK_ACCESS_FS_REFER };
    long abi = landlock_abi();
    auto_close int fd = -1, root = -1;

    if (abi < LANDLOCK_REFER_ABI)
        return 0; /* a kernel without it, or where it would forbid renames: `cove doctor` says so */
    if (abi >= LANDLOCK_SCOPE_ABI)
        rules.scoped = LANDLOCK_SCOPE_SIGNAL;
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    everywhere.parent_fd = root;
    fd =
        (int) syscall(__NR_landlock_create_ruleset, &rules,
                      abi >= LANDLOCK_SCOPE_ABI ? sizeof rules : sizeof rules.handled_access_fs, 0);
    if (root < 0 || fd < 0 ||
        syscall(__NR_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &everywhere, 0) < 0 ||
        syscall(__NR_landlock_restrict_self, fd, 0) < 0)
        return err_sys(err, errno, "Landlock");
    return 0;
}

int confine_kernel(const struct seccomp_filter *notify, const struct seccomp_filter *quiet,
                   bool *ret_listening, struct err *err)
{
    int fd;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, errno, "no_new_privs");
    if (landlock(err) < 0)
        return -1;
    errno = EBUSY;
    fd = notify ? seccomp_install(notify, true) : -1;
    if (fd < 0 && errno != EBUSY)
        return err_sys(err, errno, "seccomp");
    if (fd < 0) {
        /* An outer listener (cove inside another sandbox): refusals are then refused uncounted. */
        *ret_listening = false;
        if (seccomp_install(quiet, false) < 0)
            return err_sys(err, errno, "seccomp");
        return 0;
    }
    /* From here on only what the filter allows. The listener comes close-on-exec; dup2 clears that. */
    if (fd == BOOT_FD_NOTIFY ? fcntl(fd, F_SETFD, 0) < 0
                             : dup2(fd, BOOT_FD_NOTIFY) < 0 || close(fd) < 0)
        return err_sys(err, errno, "place the listener");
    *ret_listening = true;
    return 0;
}
