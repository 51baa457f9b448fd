/* machine.h - the jail around a machine: what a bridge and the program that makes a guest (runsc) see and may do. No command of the
 * tenant's runs here; who breaks out of the guest arrives here.
 *
 *   /bundle/rootfs   the sandbox's file system, layers and disk as in a jail
 *   /agent           the agent's program, for the guest
 *   /machine         the program that makes the guest
 *   /proc /dev       a jail's; /plain is a /proc without masks, because the kernel lets nobody mount another one where none is in full sight
 *   /bundle /run     scratch
 *
 * It has the sandbox's ids, cgroups and namespaces, no file of the host but these, and no network. It has more rights than a jail: the
 * capabilities and calls that make namespaces and mounts of its own. All of them are about its own user namespace.
 *
 * Callers: child.c, between clone and exec. */
#ifndef COVE_JAIL_MACHINE_H
#define COVE_JAIL_MACHINE_H

#include "base/err.h"
#include "jail/seccomp.h"
#include "jail/template.h"
#include "wire/limits.h"

#define MACHINE_ROOT    "/bundle/rootfs"
#define MACHINE_AGENT   "/agent"
#define MACHINE_PROGRAM "/machine"

struct machine {
    const char *isolation; /* by name: the bridge's first argument */
    const char *program;   /* a file below /usr */
    int bridge_fd;         /* cove-bridge, open for reading */
};

/* What jail_mounts is for a jail. Takes the descriptors. */
int machine_mounts(const struct machine *machine, const struct template *t, const char *view,
                   int root_fd, int disk_fd, int proc_fd, struct err *err);

/* Limits, capabilities, no_new_privs, the filter; in this order. */
int machine_confine(const struct limits *limits, const struct seccomp_filter *filter,
                    struct err *err);

/* What the guest's kernel needs beside what the sandbox may have. */
void machine_allow(struct limits *limits);

#endif
