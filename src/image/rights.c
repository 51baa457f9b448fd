/* The three processes of a restore share their memory: who has one has the others, so all have one table. The guard must stay root,
 * for the cgroups' files are root's. What makes that little is the rest: no program can be run, nothing traced or mounted, and
 * of all files only those of this sandbox's cgroups are within reach. */
#include "image/rights.h"

#include "base/lockdown.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>

/* clang-format off */
static const struct lockdown_call own_calls[] = {
    /* pages, and what processes do to their memory */
    CALL_IF(ioctl, CALL_IS, 1, UFFDIO_API), CALL_IF(ioctl, CALL_IS, 1, UFFDIO_COPY), CALL_IF(ioctl, CALL_IS, 1, UFFDIO_ZEROPAGE),
    CALL_IF(ioctl, CALL_IS, 1, UFFDIO_WAKE), CALL_IF(ioctl, CALL_IS, 1, UFFDIO_WRITEPROTECT),
    /* criu hands over its userfaultfds */
    CALL(accept4), CALL(setsockopt), CALL(sendmsg), CALL(recvmsg), CALL(sendto), CALL(recvfrom),
    /* one of them is started again, and becomes `nobody` */
    CALL_IF(clone, CALL_IS, 0, CLONE_VM | CLONE_FILES | SIGCHLD),
    CALL_IF(clone, CALL_IS, 0, CLONE_VM | CLONE_FILES | CLONE_PIDFD | SIGCHLD), CALL(wait4), CALL(futex), CALL(set_robust_list),
    CALL_IF(setresuid, CALL_IS, 0, RIGHTS_NOBODY), CALL_IF(setresgid, CALL_IS, 0, RIGHTS_NOBODY), CALL_IF(setgroups, CALL_IS, 0, 0),
    CALL_IF(prctl, CALL_IS, 0, PR_SET_NO_NEW_PRIVS),
    /* the end of the sandbox, or of the work */
    CALL(openat), CALL(newfstatat), CALL(unlinkat), CALL_IF(kill, CALL_IS, 1, SIGKILL),
};
/* clang-format on */
static const struct lockdown_rows own_rows = { "pages, criu, and the sandbox's end", own_calls,
                                               ARRAY_LEN(own_calls) };

static const struct lockdown filler = {
    .program = "cove-filler",
    .capabilities = LOCKDOWN_CAP(CAP_KILL)         /* processes of the sandbox's ids */
                    | LOCKDOWN_CAP(CAP_SYS_PTRACE) /* a userfaultfd that follows forks */
                    | LOCKDOWN_CAP(CAP_SETUID) | LOCKDOWN_CAP(CAP_SETGID),
    .no_tcp = true,
    .rows = { &lockdown_runtime, &lockdown_bytes, &lockdown_data_only, &own_rows },
};

int rights_of_filler(const struct fill_box *box, struct err *err)
{
    struct lockdown_path paths[CG_HIERARCHIES_MAX + 1] = {
        { LOCKDOWN_REMOVE, box->images->dir_fd, NULL }, /* <id>.fill */
    };
    int dirs[CG_HIERARCHIES_MAX];
    size_t count = 1;
    int rc;

    for (size_t i = 0; i < box->cgroups->count; i++) {
        dirs[i] = openat(box->cgroups->hierarchy[i].parent_fd, box->cgroup,
                         O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dirs[i] >= 0)
            paths[count++] = (struct lockdown_path){ LOCKDOWN_CHANGE, dirs[i], NULL };
    }
    rc = lockdown_enter(&filler, paths, count, err);
    for (size_t i = 0; i < box->cgroups->count; i++)
        own_close(&dirs[i]);
    return rc;
}
