#include "base/kernel.h"
#include "base/own.h"
#include "cli/doctor/doctor_checks.h"
#include "wire/vm.h"

#include <stdio.h>
#include <string.h>

#define NS(ns, status, why)                                                                        \
    {                                                                                              \
        "namespace_" ns, "namespaces", ns " namespace", check_namespace, why,                      \
            "use a kernel with this namespace built in", ns, TEST_EXISTS, 0, status                \
    }
#define CGROUP(name, status, why)                                                                  \
    {                                                                                              \
        "cgroup_" name, "control groups", name, check_controller, why,                             \
            "mount cgroup v2 at /sys/fs/cgroup, or boot without cgroup_disable=" name, name,       \
            TEST_EXISTS, 0, status                                                                 \
    }
#define SYSCTL(id, title, file, test, wanted, status, why, fix)                                    \
    {                                                                                              \
        id, "kernel settings", title, check_number, why, fix, "proc/sys/" file, test, wanted,      \
            status                                                                                 \
    }
#define SWITCH(id, title, file, test, wanted, status, why, fix)                                    \
    {                                                                                              \
        id, "kernel settings", title, check_switch, why, fix, "proc/sys/" file, test, wanted,      \
            status                                                                                 \
    }
#define LIMIT(id, title, file, wanted, why, fix)                                                   \
    {                                                                                              \
        id, "limits", title, check_number, why, fix, "proc/sys/" file, TEST_LEAST, wanted,         \
            DOCTOR_NOTE                                                                            \
    }
#define PROGRAM(name, why)                                                                         \
    {                                                                                              \
        "program_" name, "other drivers", name, check_program, why, "apt-get install " name, name, \
            TEST_EXISTS, 0, DOCTOR_NOTE                                                            \
    }

/* clang-format off */
const struct doctor_check doctor_checks[] = {
    { "kernel", "kernel", "version", check_kernel,
      "the keeper starts on " KERNEL_LEAST " or newer", "install a newer kernel",
      NULL, TEST_LEAST, 0, DOCTOR_FAIL },
    { "root", "kernel", "run by", check_root,
      "the keeper is root; as another user this report cannot try everything", "sudo cove doctor",
      NULL, TEST_NONE, 0, DOCTOR_WARN },

    { "namespace_user", "namespaces", "user namespace", check_user_namespace,
      "gives every sandbox 65536 ids of its own, never the host's root",
      "sysctl -w user.max_user_namespaces=65536", "user", TEST_EXISTS, 0, DOCTOR_FAIL },
    NS("pid",    DOCTOR_FAIL, "a sandbox sees only its own processes"),
    NS("mnt",    DOCTOR_FAIL, "a sandbox has its own file system"),
    NS("net",    DOCTOR_FAIL, "a sandbox has no way to the host's network"),
    NS("ipc",    DOCTOR_FAIL, "shared memory and queues are the sandbox's own"),
    NS("uts",    DOCTOR_FAIL, "a sandbox has its own host name"),
    NS("cgroup", DOCTOR_WARN, "a sandbox does not see where it is in the host's groups"),
    NS("time",   DOCTOR_NOTE, "would hide how long the host is up"),

    CGROUP("memory",  DOCTOR_FAIL, "memory limits"),
    CGROUP("cpu",     DOCTOR_FAIL, "CPU limits"),
    CGROUP("cpuacct", DOCTOR_WARN, "CPU time used"),
    CGROUP("pids",    DOCTOR_FAIL, "process limits: against fork bombs"),
    CGROUP("devices", DOCTOR_WARN, "a second wall before the host's devices"),
    CGROUP("freezer", DOCTOR_WARN, "pausing, and killing without gaps"),
    { "cgroup_io", "control groups", "disk I/O", check_io,
      "limits of bytes and operations per second on a sandbox's disk",
      "mount cgroup v2 at /sys/fs/cgroup, or boot without cgroup_disable=io", NULL,
      TEST_NONE, 0, DOCTOR_NOTE },
    { "cgroup_kill", "control groups", "cgroup.kill", check_cgroup_kill,
      "ends a whole sandbox with one write; without it the freezer does the same in a loop", NULL,
      NULL, TEST_NONE, 0, DOCTOR_NOTE },
    { "swap_accounting", "control groups", "swap accounting", check_swap,
      "a memory limit without swap can be exceeded, and swap keeps secrets on disk",
      "swapoff -a, or boot with swapaccount=1", NULL, TEST_NONE, 0, DOCTOR_WARN },

    { "overlayfs", "files", "overlayfs", check_overlay,
      "many sandboxes share one template and write beside it", "modprobe overlay",
      "overlay", TEST_EXISTS, 0, DOCTOR_FAIL },
    { "erofs", "files", "EROFS", check_filesystem,
      "templates from container images are files of this kind", "modprobe erofs",
      "erofs", TEST_EXISTS, 0, DOCTOR_NOTE },
    { "idmapped_mounts", "files", "id-mapped mounts", check_idmap,
      "a template is stored once and owned by each sandbox's own ids",
      "keep the state directory on ext4, xfs or btrfs",
      NULL, TEST_NONE, 0, DOCTOR_FAIL },
    { "layers", "files", "layers of a root", check_layers,
      "what a sandbox's root is made of; both ways are as safe, and forks and snapshots work with both",
      "allow open_tree where cove itself runs in a container", NULL, TEST_NONE, 0, DOCTOR_FAIL },
    { "tmpfs", "files", "tmpfs", check_filesystem, "small disks of sandboxes", NULL,
      "tmpfs", TEST_EXISTS, 0, DOCTOR_FAIL },
    { "ext4", "files", "ext4", check_filesystem, "large disks of sandboxes", "modprobe ext4",
      "ext4", TEST_EXISTS, 0, DOCTOR_WARN },
    { "loop", "files", "loop devices", check_loop, "large disks of sandboxes", "modprobe loop",
      "dev/loop-control", TEST_EXISTS, 0, DOCTOR_WARN },

    { "seccomp", "filters", "seccomp with notification", check_seccomp,
      "refuses dangerous system calls, and tells which were tried",
      "use a kernel with CONFIG_SECCOMP_FILTER; allow seccomp where cove itself runs in a container",
      NULL, TEST_NONE, 0, DOCTOR_FAIL },
    { "landlock", "filters", "Landlock", check_landlock,
      "a second wall around files and abstract sockets", "boot with lsm=landlock,...",
      NULL, TEST_LEAST, 6, DOCTOR_WARN },

    SYSCTL("bpf", "unprivileged BPF", "kernel/unprivileged_bpf_disabled", TEST_LEAST, 1, DOCTOR_WARN,
           "the verifier has been used to escape; the filter of sandboxes refuses bpf as well",
           "sysctl -w kernel.unprivileged_bpf_disabled=2"),
    SWITCH("io_uring", "io_uring", "kernel/io_uring_disabled", TEST_LEAST, 2, DOCTOR_NOTE,
           "the source of most kernel exploits of its time; sandboxes are refused it by their filter as well",
           "sysctl -w kernel.io_uring_disabled=2"),
    SYSCTL("userfaultfd", "unprivileged userfaultfd", "vm/unprivileged_userfaultfd", TEST_EQUALS, 0, DOCTOR_WARN,
           "makes races in the kernel easy to win", "sysctl -w vm.unprivileged_userfaultfd=0"),
    SYSCTL("perf", "perf for users", "kernel/perf_event_paranoid", TEST_LEAST, 2, DOCTOR_WARN,
           "lets users look into the kernel's timing", "sysctl -w kernel.perf_event_paranoid=3"),
    SYSCTL("kptr", "kernel addresses hidden", "kernel/kptr_restrict", TEST_LEAST, 1, DOCTOR_WARN,
           "addresses of the kernel help exploits", "sysctl -w kernel.kptr_restrict=2"),
    SYSCTL("dmesg", "kernel log for root only", "kernel/dmesg_restrict", TEST_EQUALS, 1, DOCTOR_WARN,
           "the kernel's log tells addresses and the host's devices", "sysctl -w kernel.dmesg_restrict=1"),
    SWITCH("tiocsti", "typing into terminals", "dev/tty/legacy_tiocsti", TEST_EQUALS, 0, DOCTOR_NOTE,
           "TIOCSTI lets a program type into its terminal; sandboxes are refused it and have their own terminals",
           "sysctl -w dev.tty.legacy_tiocsti=0"),
    SYSCTL("symlinks", "protected symlinks", "fs/protected_symlinks", TEST_EQUALS, 1, DOCTOR_WARN,
           "tricks in shared directories such as /tmp", "sysctl -w fs.protected_symlinks=1"),
    SYSCTL("hardlinks", "protected hard links", "fs/protected_hardlinks", TEST_EQUALS, 1, DOCTOR_WARN,
           "tricks in shared directories such as /tmp", "sysctl -w fs.protected_hardlinks=1"),
    SYSCTL("fifos", "protected FIFOs", "fs/protected_fifos", TEST_LEAST, 1, DOCTOR_NOTE,
           "tricks in shared directories such as /tmp", "sysctl -w fs.protected_fifos=2"),
    SYSCTL("regular", "protected files", "fs/protected_regular", TEST_LEAST, 1, DOCTOR_NOTE,
           "tricks in shared directories such as /tmp", "sysctl -w fs.protected_regular=2"),
    SYSCTL("aslr", "address randomisation", "kernel/randomize_va_space", TEST_EQUALS, 2, DOCTOR_WARN,
           "makes memory errors harder to use", "sysctl -w kernel.randomize_va_space=2"),
    { "core_pattern", "kernel settings", "core dumps", check_core_pattern,
      "a program that the kernel starts as the host's root with the dump of whatever crashed",
      "sysctl -w kernel.core_pattern=core", "proc/sys/kernel/core_pattern", TEST_NONE, 0, DOCTOR_WARN },
    SYSCTL("kexec", "loading another kernel", "kernel/kexec_load_disabled", TEST_EQUALS, 1, DOCTOR_NOTE,
           "only root can; off, not even a stolen root", "sysctl -w kernel.kexec_load_disabled=1"),
    SYSCTL("modules", "loading modules", "kernel/modules_disabled", TEST_EQUALS, 1, DOCTOR_NOTE,
           "odd modules are where bugs are; off once all that is needed is loaded",
           "sysctl -w kernel.modules_disabled=1   (until the next boot)"),
    SYSCTL("route_localnet", "loopback routing", "net/ipv4/conf/all/route_localnet", TEST_EQUALS, 0, DOCTOR_WARN,
           "lets neighbours on the network reach services on 127.0.0.1", "sysctl -w net.ipv4.conf.all.route_localnet=0"),
    { "ksm", "kernel settings", "memory merging (KSM)", check_number,
      "sharing equal pages tells sandboxes about each other", "echo 0 > /sys/kernel/mm/ksm/run",
      "sys/kernel/mm/ksm/run", TEST_EQUALS, 0, DOCTOR_WARN },

    { "mitigations", "processor", "known flaws", check_vulnerabilities,
      "flaws of the processor without a mitigation let sandboxes read each other's memory",
      "boot without mitigations=off, and update the microcode",
      "sys/devices/system/cpu/vulnerabilities", TEST_NONE, 0, DOCTOR_WARN },
    { "smt", "processor", "hyper-threads", check_number,
      "two sandboxes on one core can time each other", "echo off > /sys/devices/system/cpu/smt/control",
      "sys/devices/system/cpu/smt/active", TEST_EQUALS, 0, DOCTOR_NOTE },

    LIMIT("pid_max", "process ids", "kernel/pid_max", 131072,
          "processes and threads of all sandboxes together", "sysctl -w kernel.pid_max=4194304"),
    LIMIT("threads_max", "threads", "kernel/threads-max", 131072,
          "processes and threads of all sandboxes together", "sysctl -w kernel.threads-max=4194304"),
    LIMIT("pty_max", "terminals", "kernel/pty/max", 16384,
          "terminals of all sandboxes together", "sysctl -w kernel.pty.max=65536"),
    LIMIT("max_user_namespaces", "user namespaces", "user/max_user_namespaces", 2048,
          "one for each sandbox", "sysctl -w user.max_user_namespaces=65536"),
    LIMIT("inotify_instances", "file watchers per user", "fs/inotify/max_user_instances", 128,
          "watchers of one sandbox", "sysctl -w fs.inotify.max_user_instances=1024"),
    LIMIT("inotify_watches", "watched files per user", "fs/inotify/max_user_watches", 65536,
          "files that one sandbox can watch", "sysctl -w fs.inotify.max_user_watches=1048576"),
    LIMIT("max_map_count", "mappings per process", "vm/max_map_count", 65530,
          "databases and large programs", "sysctl -w vm.max_map_count=262144"),
    LIMIT("maxkeys", "kernel keys of root", "kernel/keys/root_maxkeys", 2000,
          "one session keyring for each sandbox", "sysctl -w kernel.keys.root_maxkeys=1000000"),
    { "open_files", "limits", "open files of a process", check_open_files,
      "bounds how many sandboxes a keeper can hold, and what a sandbox's process may open",
      "raise LimitNOFILE= of the service, or 'ulimit -Hn 1048576' before 'cove up'",
      "proc/self/limits", TEST_LEAST, 65536, DOCTOR_NOTE },
    { "sys_resource", "limits", "CAP_SYS_RESOURCE", check_capability,
      "lets the keeper raise limits and protect itself from the out-of-memory killer",
      "give the container or service that cove runs in CAP_SYS_RESOURCE",
      "proc/self/status", TEST_NONE, 24, DOCTOR_NOTE },
    { "memory", "limits", "memory", check_memory, "shared by all sandboxes", NULL,
      "proc/meminfo", TEST_LEAST, 1ll << 30, DOCTOR_NOTE },
    { "disk", "limits", "free disk at the state directory", check_disk,
      "templates and large disks of sandboxes", "free some space, or move --state",
      NULL, TEST_LEAST, 4ll << 30, DOCTOR_WARN },

    { "criu", "pausing", "CRIU", check_criu,
      "pauses a sandbox to disk, and makes snapshots with memory; the other tiers work without",
      "tools/criu, or fetch-criu of the package (fetches one that works here into " CRIU_PREFIX ")",
      NULL, TEST_NONE, 0, DOCTOR_NOTE },
    { "swap_space", "pausing", "swap", check_swap_space,
      "the warm tier: a paused sandbox's memory goes to swap; without, warm is the same as hot",
      "fallocate -l 8G /swapfile && chmod 600 /swapfile && mkswap /swapfile && swapon /swapfile",
      "proc/meminfo", TEST_NONE, 0, DOCTOR_NOTE },
    { "lazy_restore", "pausing", "lazy restore", check_lazy_restore,
      "a large image's memory is read when it is first touched; without, all of it at once",
      "use Linux 6.1 or newer with CONFIG_USERFAULTFD, and a /dev that has it", "dev/userfaultfd",
      TEST_NONE, 0, DOCTOR_NOTE },

    { "kvm", "other drivers", "KVM", check_kvm, "isolation 'vm': sandboxes as virtual machines",
      "enable virtualisation in the firmware, or nested virtualisation of this machine",
      "dev/kvm", TEST_EXISTS, 0, DOCTOR_NOTE },
    { "gvisor", "other drivers", "gVisor", check_gvisor,
      "isolation 'gvisor': a kernel in user space between a sandbox and the host's",
      "install runsc of Debian 13, or of bookworm-backports: apt-get install -t bookworm-backports runsc",
      "runsc", TEST_NONE, 0, DOCTOR_NOTE },
    { "vm", "other drivers", "virtual machines", check_vm,
      "isolation 'vm', which needs KVM, too: QEMU and the kernel of its guests",
      "tools/vm, or fetch-vm of the package (fetches both into " VM_PREFIX ")",
      NULL, TEST_NONE, 0, DOCTOR_NOTE },
    PROGRAM("runc", "OCI containers (for comparison, and a later driver)"),
    { "program_bwrap", "other drivers", "bwrap", check_program, "for comparison in 'make bench'",
      "apt-get install bubblewrap", "bwrap", TEST_EXISTS, 0, DOCTOR_NOTE },
    { "program_mmdebstrap", "cove", "mmdebstrap", check_program, "builds the template 'base'",
      "apt-get install mmdebstrap", "mmdebstrap", TEST_EXISTS, 0, DOCTOR_NOTE },
    { "program_mkfs", "cove", "mkfs.ext4", check_program, "makes large disks of sandboxes",
      "apt-get install e2fsprogs", "mkfs.ext4", TEST_EXISTS, 0, DOCTOR_WARN },
    { "templates", "cove", "templates", check_templates, "what sandboxes start from",
      "cove template build base", NULL, TEST_NONE, 0, DOCTOR_NOTE },
    { "keeper", "cove", "keeper", check_keeper, "makes sandboxes", "cove up",
      NULL, TEST_NONE, 0, DOCTOR_NOTE },
};
/* clang-format on */
const size_t doctor_check_count = ARRAY_LEN(doctor_checks);

static const struct doctor_finding *finding_of(const struct doctor_finding *findings,
                                               const char *id)
{
    for (size_t i = 0; i < doctor_check_count; i++)
        if (strcmp(doctor_checks[i].id, id) == 0)
            return &findings[i];
    return NULL;
}

int doctor_can_run(const struct doctor_finding *findings)
{
    for (size_t i = 0; i < doctor_check_count; i++)
        if (findings[i].status == DOCTOR_FAIL)
            return 0;
    return 1;
}

void doctor_verdict(const struct doctor_finding *findings, char *out, size_t size)
{
    /* What makes up the isolation of a jail beyond what every sandbox must have. */
    static const struct {
        const char *id, *words;
    } layers[] = {
        { "landlock", "Landlock" },
        { "cgroup_devices", "device control" },
        { "cgroup_freezer", "freezer" },
        { "namespace_cgroup", "cgroup namespace" },
    };
    const char *separator = " without ";
    unsigned failed = 0, warned = 0;
    size_t len;

    for (size_t i = 0; i < doctor_check_count; i++) {
        failed += findings[i].status == DOCTOR_FAIL;
        warned += findings[i].status == DOCTOR_WARN;
    }
    if (failed) {
        (void) snprintf(out, size, "sandboxes cannot run on this host: %u check%s failed", failed,
                        failed == 1 ? "" : "s");
        return;
    }
    if (finding_of(findings, "root")->status != DOCTOR_OK) {
        (void) snprintf(out, size,
                        "nothing that this user can see keeps sandboxes from running here; "
                        "'sudo cove doctor' tries the rest");
        return;
    }
    len = (size_t) snprintf(
        out, size, "sandboxes run here as jails: own ids, namespaces, limits, seccomp filter");
    for (size_t i = 0; i < ARRAY_LEN(layers) && len < size; i++)
        if (finding_of(findings, layers[i].id)->status >= DOCTOR_WARN) {
            len += (size_t) snprintf(out + len, size - len, "%s%s", separator, layers[i].words);
            separator = ", ";
        }
    if (len < size && strcmp(separator, " without ") == 0)
        len += (size_t) snprintf(out + len, size - len, ", Landlock: every layer is there");
    if (len < size && warned)
        (void) snprintf(out + len, size - len, "; %u warning%s above", warned,
                        warned == 1 ? "" : "s");
}
