/* qemu.h - QEMU's command line for a machine, and starting it without rights.
 *
 * Callers: vm.c, memory.c. */
#ifndef COVE_BRIDGE_QEMU_H
#define COVE_BRIDGE_QEMU_H

#include "bridge/guest.h"
#include "bridge/initrd.h"
#include "wire/vm.h"

#include <sys/types.h>

#define QEMU_LOADER         INITRD_PARTS VM_LOADER, "--library-path", INITRD_PARTS VM_LIBRARIES
#define QEMU_DISK           "/disk/image"
#define QEMU_FS_SOCKET      "/run/root"
#define QEMU_VOLUMES_SOCKET "/run/volumes"

/* Becomes that program, without rights unless it is said. */
_Noreturn void qemu_become(const char *const *argv, bool with_rights);

/* How its memory begins. */
enum qemu_way {
    QEMU_BOOT, /* empty, with a kernel that starts */
    QEMU_LOAD, /* as a state says that is loaded; it stands still until then */
    QEMU_MAKE, /* as QEMU_BOOT, and it is the file BOOT_FD_MEMORY */
    QEMU_COPY, /* as QEMU_LOAD, and it is as that file, which does not change */
};

struct qemu_lines {
    int trunk, monitor; /* QEMU's ends */
    int starter;        /* a second monitor, for who starts it; -1: none */
};

int qemu_start(const struct guest_start *start, enum qemu_way way, const struct qemu_lines *lines,
               pid_t *ret, struct err *err);

#endif
