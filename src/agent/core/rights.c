#include "agent/core/rights.h"

#include "wire/boot.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set_caps(uint64_t caps)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = {
        { .effective = (uint32_t) caps, .permitted = (uint32_t) caps },
        { .effective = (uint32_t) (caps >> 32), .permitted = (uint32_t) (caps >> 32) },
    };

    return (int) syscall(SYS_capset, &head, data);
}

/* Takes every capability outside `keep` from the bounding set; `among` says which may be there. */
static int bound(uint64_t keep, uint64_t among)
{
    for (unsigned long cap = 0; cap < 64; cap++) {
        if (!(among & BOOT_CAP(cap)) || (keep & BOOT_CAP(cap)))
            continue;
        /* EINVAL: a number that this kernel does not know. */
        if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return -1;
    }
    return 0;
}

/* What root has in the profile `root`. */
static uint64_t root_caps = BOOT_ROOT_CAPS;

/* All that this kernel knows. */
static uint64_t every_cap(void)
{
    uint64_t caps = 0;

    for (unsigned long cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        caps |= BOOT_CAP(cap);
    return caps;
}

int rights_boot(uint64_t more, bool full, struct err *err)
{
    uint64_t own;

    if (full)
        root_caps = every_cap();
    own = BOOT_AGENT_CAPS | (full ? root_caps : 0);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(err, errno, "dumpable");
    if (bound(own, UINT64_MAX) < 0)
        return err_sys(err, errno, "bounding set");
    (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (set_caps(own | more) < 0)
        return err_sys(err, errno, "capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, errno, "no new privileges");
    return 0;
}

void rights_bound_strict(void)
{
    (void) bound(0, BOOT_AGENT_CAPS);
}

int rights_become(const struct user *user, bool root_profile, struct err *err)
{
    uint64_t bounding = root_profile ? root_caps : 0;
    uint64_t caps = root_profile && user->uid == 0 ? root_caps : 0;

    /* The bounding set first: it needs SETPCAP, which goes with the uid. */
    if (bound(bounding, BOOT_AGENT_CAPS | root_caps) < 0)
        return err_sys(err, errno, "bounding set");
    if (syscall(SYS_setgroups, (size_t) user->group_count, user->groups) < 0)
        return err_sys(err, errno, "groups");
    if (syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0)
        return err_sys(err, errno, "gid %u", user->gid);
    if (syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
        return err_sys(err, errno, "uid %u", user->uid);
    if (set_caps(caps) < 0)
        return err_sys(err, errno, "capabilities");
    /* A change of uid sets this to fs.suid_dumpable, which a host may have at 1. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(err, errno, "dumpable");
    return 0;
}

static int lend_files(const struct user *user)
{
    (void) syscall(SYS_setfsgid, user->gid);
    (void) syscall(SYS_setfsuid, user->uid);
    /* Neither call says whether it worked; asking for an id that cannot be does. */
    return (uint32_t) syscall(SYS_setfsgid, (gid_t) -1) == user->gid &&
                   (uint32_t) syscall(SYS_setfsuid, (uid_t) -1) == user->uid
               ? 0
               : -1;
}

/* gVisor has no ids for files alone. The real and saved ids stay root's, so the user cannot signal this process. */
static int lend_effective(const struct user *user)
{
    return syscall(SYS_setresgid, (gid_t) -1, user->gid, (gid_t) -1) < 0 ||
                   syscall(SYS_setresuid, (uid_t) -1, user->uid, (uid_t) -1) < 0
               ? -1
               : 0;
}

int rights_lend(const struct user *user, struct err *err)
{
    static const struct user root = { .name = "root" };

    if (rights_become(&root, true, err) < 0)
        return -1;
    if (lend_files(user) < 0 && lend_effective(user) < 0)
        return err_set(err, ERR_DENIED, "uid %u or gid %u cannot be lent to", user->uid, user->gid);
    if (set_caps(root_caps) < 0) /* the change took those on files */
        return err_sys(err, errno, "capabilities");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(err, errno, "dumpable");
    return 0;
}
