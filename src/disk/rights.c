/* The maker handles orders of the keeper, and the kernel reads the file systems that it makes; it never reads what is in them. Only a
 * merge does: it walks trees that tenants made, so it is done with mounts and devices before it begins. */
#include "disk/rights.h"

#include "base/lockdown.h"
#include "base/own.h"
#include "disk/merge.h"

#include <linux/capability.h>
#include <linux/fd.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <linux/prctl.h>
#include <sched.h>
#include <sys/ioctl.h>

#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

/* clang-format off */
static const struct lockdown_call work_calls[] = {
    CALL_IF(clone, CALL_HAS_NONE, 0, NAMESPACES), CALL(vfork), CALL(execve), CALL(wait4), CALL(kill), CALL(setsid),
    CALL(setpriority), CALL(fchdir), CALL(chdir), CALL(futex), CALL(set_robust_list),
    CALL_IF(prctl, CALL_IS, 0, PR_SET_PDEATHSIG),
    /* mkfs asks whether its file is a device */
    CALL_IF(ioctl, CALL_IS, 1, BLKGETSIZE64), CALL_IF(ioctl, CALL_IS, 1, BLKGETSIZE), CALL_IF(ioctl, CALL_IS, 1, FDGETPRM),
    CALL_IF(ioctl, CALL_IS, 1, BLKSSZGET), CALL_IF(ioctl, CALL_IS, 1, BLKPBSZGET), CALL_IF(ioctl, CALL_IS, 1, BLKDISCARDZEROES),
    CALL_IF(ioctl, CALL_IS, 1, BLKROGET),
    /* what a merger gives up */
    CALL(capget), CALL(capset), CALL(seccomp), CALL(landlock_create_ruleset), CALL(landlock_add_rule),
    CALL(landlock_restrict_self), CALL_IF(prctl, CALL_IS, 0, PR_SET_NO_NEW_PRIVS),
    CALL_IF(prctl, CALL_IS, 0, PR_SET_DUMPABLE), CALL_IF(prctl, CALL_IS, 0, PR_CAPBSET_DROP),
    CALL_IF(prctl, CALL_IS, 0, PR_CAP_AMBIENT),
};
static const struct lockdown_rows work = { "workers, and mkfs", work_calls, ARRAY_LEN(work_calls) };

static const struct lockdown_call mount_calls[] = {
    CALL(fsopen), CALL(fsconfig), CALL(fsmount),
    CALL_IF(ioctl, CALL_IS, 1, LOOP_CTL_GET_FREE), CALL_IF(ioctl, CALL_IS, 1, LOOP_CONFIGURE),
    CALL_IF(ioctl, CALL_IS, 1, LOOP_GET_STATUS64),
};
static const struct lockdown_rows mounts = { "detached mounts of images", mount_calls, ARRAY_LEN(mount_calls) };

static const struct lockdown_call tree_calls[] = {
    CALL(linkat), CALL(symlinkat), CALL(mknodat), CALL(fchownat), CALL(chmod), CALL(getxattr), CALL(lgetxattr), CALL(fgetxattr),
    CALL(setxattr), CALL(lsetxattr), CALL(fsetxattr), CALL(listxattr), CALL(llistxattr), CALL(flistxattr),
    CALL(syncfs), CALL(sendmsg), CALL(recvfrom), CALL(sendto),
};
static const struct lockdown_rows trees = { "files of every kind, and the keeper's socket", tree_calls, ARRAY_LEN(tree_calls) };

/* Files of whatever owner; SYS_ADMIN for what overlays note in attributes, and the maker's mounts. */
#define CAPABILITIES                                                                               \
    (LOCKDOWN_CAP(CAP_SYS_ADMIN) | LOCKDOWN_CAP(CAP_DAC_OVERRIDE) | LOCKDOWN_CAP(CAP_CHOWN) |      \
     LOCKDOWN_CAP(CAP_FOWNER) | LOCKDOWN_CAP(CAP_FSETID) | LOCKDOWN_CAP(CAP_MKNOD) |               \
     LOCKDOWN_CAP(CAP_SETFCAP))

static const struct lockdown maker = {
    .program = "cove-disks",
    .capabilities = CAPABILITIES | LOCKDOWN_CAP(CAP_SETPCAP), /* for the merger to drop it */
    .any_file = true, /* what is on a mount that is made later cannot be named now */
    .rows = { &lockdown_runtime, &lockdown_bytes, &lockdown_names, &lockdown_code, &work, &mounts, &trees },
};

static const struct lockdown merger = {
    .program = "cove-disks: merge",
    .capabilities = CAPABILITIES,
    .no_tcp = true,
    .alone = true,
    .rows = { &lockdown_runtime, &lockdown_bytes, &lockdown_names, &lockdown_data_only, &trees },
};
/* clang-format on */

int rights_of_maker(struct err *err)
{
    return lockdown_enter(&maker, NULL, 0, err);
}

int rights_of_merger(const int *from, size_t count, int to, int disks, struct err *err)
{
    struct lockdown_path paths[MERGE_MAX + 2] = {
        { LOCKDOWN_FILL, to, NULL },
        { LOCKDOWN_REMOVE, disks, NULL },
    };

    for (size_t i = 0; i < count; i++)
        paths[i + 2] = (struct lockdown_path){ LOCKDOWN_READ, from[i], NULL };
    return lockdown_enter(&merger, paths, count + 2, err);
}
