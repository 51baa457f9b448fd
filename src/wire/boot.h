/* boot.h - how the keeper starts the agent.
 *
 * The agent is exec'd as PID 1 of its sandbox, as the sandbox's own root, with its filter, limits
 * and capabilities in place, cwd "/", stdio on the sandbox's /dev/null, and:
 *
 *   argv[1]  BOOT_* flags, decimal
 *   argv[2]  the template's user, argv[3] its working directory ("" is the user's home)
 *   argv[4]  memory limit in bytes, decimal: an agent cannot see its cgroup
 *   argv[5]  files that a process may have open, decimal: in a guest, the agent limits its commands; a jail is limited before it
 *   envp     the template's environment: the base of every command's
 *
 * It listens, writes one byte to BOOT_FD_READY and closes it. */
#ifndef COVE_WIRE_BOOT_H
#define COVE_WIRE_BOOT_H

#include "wire/limits.h"

#include <stddef.h>
#include <stdint.h>

#define BOOT_FD_LISTEN 3 /* unix stream socket, bound, not yet listening */
#define BOOT_FD_READY  4 /* write end of a pipe */
#define BOOT_FD_NOTIFY 5 /* seccomp listener, with BOOT_NOTIFY */

/* A bridge (src/bridge) is started like an agent, in the jail around a guest, and starts that guest. Its arguments are
 *   argv[1]  the isolation, by name
 *   argv[2]  processors of the guest, argv[3] its limit of processes, argv[4] inodes of its disk; decimal
 *   argv[5]  its volumes: for each 'r' (read-only) or 'w', its path and a newline; volume N is /volumes/N of the jail
 *   argv[6]  how it begins: BOOT_BRIDGE_START; BOOT_BRIDGE_LOAD: the guest is to be loaded by an order (wire/bridge.h); BOOT_BRIDGE_MAKE: it
 *            starts, and the memory and the state that it has then are kept for others; BOOT_BRIDGE_COPY: it has those of another one
 *   argv[7]  of a virtual machine: what its template is, one letter for each of the read-only files that it is made of, the nearest first:
 *            BOOT_ROOT_*; "": the template is a tree
 *   argv[8]  the agent's program, as the guest sees it
 *   argv[9]… the agent's own, from argv[1] on
 * and it has one descriptor more, on which a failure to start goes to the keeper as a struct err; one of /dev/kvm for the isolation `vm`;
 * with the last two of argv[6] one of the memory and one of
 * the state, files in memory, which no process can change once they are whole. A bridge that cannot use them lets the guest start,
 * and says so by the byte BOOT_WORD_STARTED before the first one. Those of argv[7] are BOOT_FD_ROOT and the next ones. */
#define BOOT_FD_CONTROL 6
#define BOOT_FD_KVM     7
#define BOOT_FD_MEMORY  8
#define BOOT_FD_STATE   9
#define BOOT_FD_ROOT    10

/* Each is a disk of the machine, which has places for 24 devices. */
#define BOOT_ROOTS_MAX  16
#define BOOT_ROOT_EROFS 'e' /* an EROFS file */
#define BOOT_ROOT_DISK                                                                             \
    'd' /* the disk of a sandbox that was saved: what it had written is below upper/ */

/* What the agent of a guest may set a command's limit of open files to: the most of limits.h. */
#define BOOT_FILES_MAX LIMIT_FILES_MAX

#define BOOT_WORD_STARTED "s"

#define BOOT_ROOT   1 /* profile `root`: commands may run as root */
#define BOOT_NOTIFY 2 /* BOOT_FD_NOTIFY is there: count and answer refused system calls */
#define BOOT_MUX                                                                                   \
    4 /* in a guest: standard input is the trunk (wire/mux.h), and none of the descriptors above is there */

#define BOOT_MACHINE                                                                               \
    8 /* with BOOT_MUX: the kernel is the guest's own. With BOOT_ROOT, root has all of its capabilities */

#define BOOT_ARG_COUNT        6
#define BOOT_BRIDGE_START     "start"
#define BOOT_BRIDGE_LOAD      "load"
#define BOOT_BRIDGE_MAKE      "make"
#define BOOT_BRIDGE_COPY      "copy"
#define BOOT_BRIDGE_AGENT     8 /* where the agent's arguments begin */
#define BOOT_BRIDGE_ARG_COUNT (BOOT_BRIDGE_AGENT + BOOT_ARG_COUNT)

/* In a virtual machine the agent's program is the first process of the kernel, too (agent/init.h): /init of a file system in memory, which
 * the bridge made (bridge/initrd.h). Its modules are in BOOT_INIT_MODULES, to be loaded in the order of their names: those that begin with
 * '1' before anything else, the others behind, or all at first where there is a file BOOT_INIT_ALL. Then it says that it waits, by one
 * byte 0 on the trunk, and reads a struct boot_told: a machine whose memory is to be copied is saved while it waits. Only behind that it
 * looks for disks, so that a copy finds its own.
 *
 * The texts have a NUL behind each: the limit of processes, the volumes as above, what the template is (argv[7] of the bridge), the agent's
 * arguments from argv[0] on (its name in BOOT_INIT_AGENT), the template's environment. The template is the virtiofs BOOT_INIT_ROOT, or disks
 * whose serial numbers are BOOT_INIT_ROOT and a number from 0 on, the nearest first; volumes are directories of the virtiofs BOOT_INIT_VOLUMES, named by their number from 0 on; what the sandbox
 * writes is on the disk BOOT_INIT_DISK; and the trunk is the virtio port BOOT_INIT_PORT. */
#define BOOT_TOLD_MAGIC 0x65766f63u /* "cove" */
#define BOOT_TEXTS_MAX  32768       /* an environment has half of it at most */
struct boot_told {
    uint32_t magic, len; /* len: of the texts */
    uint64_t time_ms;
    uint8_t seed[64]; /* random: machines of the same memory must not have the same numbers */
    char texts[BOOT_TEXTS_MAX];
};
#define BOOT_TOLD_HEAD offsetof(struct boot_told, texts)

#define BOOT_INIT_MODULES "modules"
#define BOOT_INIT_ALL     "all"
#define BOOT_INIT_ROOT    "root"
#define BOOT_INIT_VOLUMES "volumes"
#define BOOT_INIT_PORT    "trunk"
#define BOOT_INIT_DISK    "disk"

/* Capabilities of the sandbox's root; numbers of <linux/capability.h>. In both profiles the agent itself has
 * BOOT_AGENT_CAPS and no more; in `strict` its commands have none, in `root` root's commands have
 * BOOT_ROOT_CAPS. */
#define BOOT_CAP(n) (1ull << (n))
#define BOOT_ROOT_CAPS                                                                             \
    (BOOT_CAP(0) /* CHOWN */ | BOOT_CAP(1) /* DAC_OVERRIDE */ | BOOT_CAP(3) /* FOWNER */ |         \
     BOOT_CAP(4) /* FSETID */ | BOOT_CAP(5) /* KILL */ | BOOT_CAP(6) /* SETGID */ |                \
     BOOT_CAP(7) /* SETUID */ | BOOT_CAP(10) /* NET_BIND_SERVICE */ |                              \
     BOOT_CAP(18) /* SYS_CHROOT */ | BOOT_CAP(31) /* SETFCAP */)
#define BOOT_AGENT_CAPS (BOOT_ROOT_CAPS | BOOT_CAP(8) /* SETPCAP */)
/* With BOOT_MUX the agent itself has these, too, as far as it was started with them; they are about the guest's own kernel: routes
 * and rules of its network, and its host name. */
#define BOOT_GUEST_CAPS                                                                            \
    (BOOT_CAP(12) /* NET_ADMIN */ | BOOT_CAP(13) /* NET_RAW */ | BOOT_CAP(21) /* SYS_ADMIN */)
/* And with BOOT_MACHINE: its kernel's clock, which stands still while the machine is saved. */
#define BOOT_MACHINE_CAPS BOOT_CAP(25) /* SYS_TIME */

/* Where the keeper reaches the agent: an abstract socket of the sandbox's own network namespace, so that a
 * checkpoint finds it and nothing of the host is named. A connection from inside is refused: the keeper, being in no
 * process namespace that the agent sees, is process 0 to it. */
#define BOOT_AGENT_SOCKET "cove-agent"

/* Where `sudo` reaches the agent: an abstract socket of the sandbox's own network namespace. */
#define BOOT_SUDO_SOCKET "cove-sudo"

#endif
