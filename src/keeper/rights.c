#include "keeper/rights.h"

#include "base/lockdown.h"
#include "base/own.h"

#include <linux/capability.h>

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

/* What is missing: modules, raw devices, the clock, reboots, accounting, consoles, the kernel's log, audit, MAC, immutable files,
 * alarms and suspend. */
/* clang-format off */
static const struct {
    int capability;
    const char *reason;
} kept[] = {
    { CAP_SYS_ADMIN,          "namespaces, mounts, loop devices, attributes of overlays" },
    { CAP_SETUID,             "the owner of a sandbox's user namespace" },
    { CAP_SETGID,             "id maps, and file system ids" },
    { CAP_SETPCAP,            "bounds of what a child may have" },
    { CAP_SETFCAP,            "id maps; file capabilities when layers are merged" },
    { CAP_CHOWN,              "disks belong to their sandbox" },
    { CAP_DAC_OVERRIDE,       "files of whatever owner: templates, layers" },
    { CAP_DAC_READ_SEARCH,    "the same, for criu: files by handle" },
    { CAP_FOWNER,             "modes and times of such files" },
    { CAP_FSETID,             "setgid bits when layers are merged" },
    { CAP_MKNOD,              "the six devices of /dev, whiteouts" },
    { CAP_SYS_CHROOT,         "entering a mount namespace" },
    { CAP_KILL,               "the end of a sandbox" },
    { CAP_SYS_PTRACE,         "criu; userfaultfds that follow forks" },
    { CAP_CHECKPOINT_RESTORE, "criu" },
    { CAP_SYS_RESOURCE,       "criu: limits and memory areas as they were; the keeper's own descriptors" },
    { CAP_SYS_NICE,           "criu: priorities as they were; a disk maker that gives way" },
    { CAP_IPC_LOCK,           "criu: locked memory as it was" },
    { CAP_IPC_OWNER,          "criu: System V memory of whatever owner" },
    { CAP_LEASE,              "criu: leases on files of whatever owner" },
    { CAP_NET_ADMIN,          "a sandbox's loopback, its gateway, criu's sockets" },
    { CAP_NET_RAW,            "criu: connections that are held still" },
    { CAP_NET_BIND_SERVICE,   "criu: sockets as they were" },
    { CAP_BPF,                "device rules on cgroup v2, the gateway's socket look-up" },
    { CAP_PERFMON,            "the same, in the eyes of the kernel's verifier" },
};
/* clang-format on */

int rights_reduce(struct err *err)
{
    uint64_t keep = 0;

    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        keep |= LOCKDOWN_CAP(kept[i].capability);
    return lockdown_capabilities(keep, err);
}
