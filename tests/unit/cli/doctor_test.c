#include "cli/doctor/doctor_checks.h"

#include "base/io.h"
#include "base/own.h"
#include "check.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* A made-up host: files below a directory of ours, and probes that answer what a test wants. */

static char root[] = "/tmp/cove-doctor.XXXXXX";
static int root_fd = -1;
static int answer; /* of every yes/no probe */
static int landlock = 7;

static int say(void)
{
    return answer;
}

static int say_state(const char *state)
{
    (void) state;
    return answer;
}

static int say_landlock(void)
{
    return landlock;
}

static int say_disk(const char *state, uint64_t *bytes, uint64_t *inodes)
{
    (void) state;
    *bytes = 100ull << 30;
    *inodes = 1000000;
    return 0;
}

static uint32_t say_runsc(const char *path)
{
    (void) path;
    return answer ? 20221219 : 20240729;
}

static uint32_t say_qemu(void)
{
    return answer ? 7 : 10;
}

static int say_criu(bool from_prefix, bool check, struct doctor_criu *ret)
{
    (void) snprintf(ret->version, sizeof ret->version, from_prefix ? "4.1.1" : "3.17.1");
    (void) snprintf(ret->said, sizeof ret->said, "bad bounds");
    return check ? answer : 0;
}

static int say_keeper(const char *state, struct doctor_keeper *ret, char *why, size_t size)
{
    (void) state;
    (void) snprintf(why, size, "no");
    ret->pid = 1;
    return answer ? -1 : 0;
}

static int say_templates(const char *state, char *out, size_t size)
{
    (void) state;
    (void) snprintf(out, size, "base");
    return 1;
}

static const char *say_kvm(void)
{
    return answer ? "it does not run code" : NULL;
}

static const struct doctor_probes probes = {
    .user_namespace = say,
    .idmapped_mount = say_state,
    .detached_clone = say,
    .overlay = say,
    .seccomp_notify = say,
    .landlock_abi = say_landlock,
    .kvm = say_kvm,
    .disk_free = say_disk,
    .runsc = say_runsc,
    .qemu = say_qemu,
    .criu = say_criu,
    .keeper = say_keeper,
    .templates = say_templates,
};

static void put(const char *path, const char *text)
{
    char part[256];
    struct err err;

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void) snprintf(part, sizeof part, "%.*s", (int) (slash - path), path);
        (void) mkdirat(root_fd, part, 0755);
    }
    (void) unlinkat(root_fd, path, 0);
    CHECK(tree_put(root_fd, path, text, strlen(text), 0755, getuid(), &err) == 0);
}

/* A host with cgroup v2 that has everything. */
static void make_host(void)
{
    static const struct {
        const char *path, *text;
    } files[] = {
        { "proc/sys/kernel/osrelease", "6.12.1-test\n" },
        { "proc/self/status", "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n" },
        { "proc/self/limits",
          "Limit  Soft Hard Units\nMax open files            1024 1048576 files\n" },
        { "proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n" },
        { "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n" },
        { "proc/swaps", "Filename\tType\n" },
        { "proc/filesystems", "nodev\ttmpfs\nnodev\toverlay\n\text4\n" },
        { "proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n" },
        { "proc/sys/kernel/seccomp/actions_avail", "kill_process errno user_notif allow\n" },
        { "proc/sys/kernel/kptr_restrict", "2\n" },
        { "proc/sys/kernel/pid_max", "4194304\n" },
        { "proc/sys/kernel/core_pattern", "core\n" },
        { "sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n" },
        { "dev/loop-control", "" },
        { "dev/kvm", "" },
        { "usr/local/lib/cove/vm/qemu", "" },
        { "usr/local/lib/cove/vm/vmlinuz", "" },
        { "usr/local/lib/cove/vm/version",
          "layout 1\nqemu 10.0.13\nkernel 6.12.107+deb13-cloud-amd64\n" },
        { "sys/module/loop/x", "" },
        { "usr/sbin/mkfs.ext4", "" },
        { "usr/sbin/criu", "" },
    };
    static const char *const namespaces[] = { "user", "pid", "mnt",    "net",
                                              "ipc",  "uts", "cgroup", "time" };
    char path[64];

    if (root_fd < 0) {
        CHECK(mkdtemp(root) != NULL);
        root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    answer = PROBE_YES;
    landlock = 7;
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        put(files[i].path, files[i].text);
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
        (void) snprintf(path, sizeof path, "proc/self/ns/%s", namespaces[i]);
        put(path, "");
    }
}

static struct doctor_finding findings[128];

static const struct doctor_finding *examine(const char *id)
{
    struct doctor_host host = { .root_fd = root_fd, .state = "/state", .probes = &probes };
    const struct doctor_finding *wanted = NULL;

    CHECK(doctor_check_count <= ARRAY_LEN(findings));
    memset(findings, 0, sizeof findings);
    for (size_t i = 0; i < doctor_check_count; i++) {
        doctor_checks[i].run(&host, &doctor_checks[i], &findings[i]);
        if (strcmp(doctor_checks[i].id, id) == 0)
            wanted = &findings[i];
    }
    CHECK(wanted != NULL);
    return wanted ? wanted : &findings[0];
}

static void every_row_is_whole_and_its_id_its_own(void)
{
    for (size_t i = 0; i < doctor_check_count; i++) {
        const struct doctor_check *check = &doctor_checks[i];

        CHECK(check->id && check->group && check->title && check->run && check->meaning);
        CHECK(strlen(check->title) <= 32);
        CHECK(check->otherwise != DOCTOR_OK);
        CHECK(check->otherwise < DOCTOR_WARN || check->fix || check->name);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(doctor_checks[k].id, check->id) != 0);
    }
}

static void a_host_with_everything_can_run_sandboxes(void)
{
    char verdict[256];

    make_host();
    CHECK_STR(examine("cgroup_memory")->value, "v2 at /sys/fs/cgroup");
    for (size_t i = 0; i < doctor_check_count; i++)
        if (findings[i].status >= DOCTOR_WARN) {
            CHECK_STR(doctor_checks[i].id, "fine");
            CHECK_STR(findings[i].value, "");
        }
    CHECK(doctor_can_run(findings));
    doctor_verdict(findings, verdict, sizeof verdict);
    CHECK_STR(verdict, "sandboxes run here as jails: own ids, namespaces, limits, seccomp filter, "
                       "Landlock: every layer is there");
}

static void controllers_are_found_one_by_one(void)
{
    make_host();
    put("proc/self/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
                            "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
                            "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n");
    put("sys/fs/cgroup/unified/cgroup.controllers", "pids\n");
    CHECK_STR(examine("cgroup_memory")->value, "v1 at /sys/fs/cgroup/memory");
    CHECK_STR(examine("cgroup_cpuacct")->value, "v1 at /sys/fs/cgroup/cpu,cpuacct");
    CHECK_STR(examine("cgroup_pids")->value, "v2 at /sys/fs/cgroup/unified");
    /* An empty v2 beside v1: nothing is there. */
    put("sys/fs/cgroup/unified/cgroup.controllers", "\n");
    CHECK_INT(examine("cgroup_pids")->status, DOCTOR_FAIL);
    CHECK_STR(examine("cgroup_freezer")->value, "missing");
}

static void what_sandboxes_need_is_a_failure_when_it_lacks(void)
{
    static const struct {
        const char *id, *path, *text; /* text NULL: the file goes */
    } rows[] = {
        { "kernel", "proc/sys/kernel/osrelease", "5.10.0\n" },
        { "kernel", "proc/sys/kernel/osrelease", "nonsense" },
        { "namespace_pid", "proc/self/ns/pid", NULL },
        { "namespace_user", "proc/sys/user/max_user_namespaces", "0\n" },
        { "cgroup_memory", "sys/fs/cgroup/cgroup.controllers", "cpu pids\n" },
        { "cgroup_memory", "proc/self/mounts", "" },
        { "tmpfs", "proc/filesystems", "ext4\noverlay\n" },
        { "overlayfs", "proc/filesystems", "ext4\ntmpfs\n" },
    };
    char verdict[256];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        make_host();
        if (rows[i].text)
            put(rows[i].path, rows[i].text);
        else
            CHECK(unlinkat(root_fd, rows[i].path, 0) == 0);
        CHECK_INT(examine(rows[i].id)->status, DOCTOR_FAIL);
        CHECK(!doctor_can_run(findings));
        doctor_verdict(findings, verdict, sizeof verdict);
        CHECK(strncmp(verdict, "sandboxes cannot run on this host: ", 35) == 0);
        (void) unlinkat(root_fd, "proc/sys/user/max_user_namespaces", 0);
    }
}

static void probes_that_fail_say_why(void)
{
    make_host();
    answer = EPERM;
    CHECK_STR(examine("namespace_user")->value, "cannot be made: Operation not permitted");
    CHECK_STR(examine("seccomp")->value, "refused: Operation not permitted");
    CHECK_INT(examine("idmapped_mounts")->status, DOCTOR_FAIL);
    CHECK_INT(examine("kvm")->status, DOCTOR_NOTE);
    CHECK_STR(examine("kvm")->value, "it does not run code");
    CHECK_INT(examine("keeper")->status, DOCTOR_NOTE);
    CHECK_STR(examine("criu")->value, "3.17.1, /usr/sbin/criu: 'criu check' says: bad bounds");
}

static void the_kernel_of_virtual_machines_is_named(void)
{
    make_host();
    CHECK_INT(examine("vm")->status, DOCTOR_OK);
    CHECK_STR(examine("vm")->value, "QEMU 10, Linux 6.12.107+deb13-cloud-amd64 (Debian's)");
    put("usr/local/lib/cove/vm/own/vmlinuz", "");
    CHECK_STR(examine("vm")->value, "QEMU 10, Linux of an unknown version (built here)");
    put("usr/local/lib/cove/vm/own/version", "kernel 6.12.107-cove\n");
    CHECK_STR(examine("vm")->value, "QEMU 10, Linux 6.12.107-cove (built here)");
    CHECK(unlinkat(root_fd, "usr/local/lib/cove/vm/vmlinuz", 0) == 0);
    CHECK_STR(examine("vm")->value, "QEMU 10, Linux 6.12.107-cove (built here)");
    CHECK(unlinkat(root_fd, "usr/local/lib/cove/vm/own/vmlinuz", 0) == 0);
    CHECK_INT(examine("vm")->status, DOCTOR_NOTE);
    CHECK_STR(examine("vm")->value, "there is no kernel in /usr/local/lib/cove/vm");
}

static void a_refusal_says_nothing_to_who_is_not_root(void)
{
    char verdict[256];

    make_host();
    put("proc/self/status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n");
    answer = EPERM;
    CHECK_STR(examine("idmapped_mounts")->value, "only root can try it");
    CHECK_STR(examine("overlayfs")->value, "only root can try it");
    CHECK_INT(examine("namespace_user")->status, DOCTOR_NOTE);
    answer = PROBE_YES;
    (void) examine("kernel");
    CHECK(doctor_can_run(findings));
    doctor_verdict(findings, verdict, sizeof verdict);
    CHECK(strncmp(verdict, "nothing that this user can see keeps sandboxes from running here",
                  64) == 0);
    answer = ENOSYS;
    CHECK_INT(examine("idmapped_mounts")->status, DOCTOR_FAIL);
}

static void a_switch_that_is_missing_is_not_a_feature_that_is_missing(void)
{
    make_host();
    (void) unlinkat(root_fd, "proc/sys/kernel/io_uring_disabled", 0);
    CHECK_STR(examine("io_uring")->value, "on: this kernel has no switch for it");
    CHECK_STR(examine("tiocsti")->value, "on: this kernel has no switch for it");
    CHECK_INT(examine("tiocsti")->status, DOCTOR_NOTE);
    CHECK(strstr(examine("io_uring")->fix, "none needed") != NULL);
}

static void an_older_way_to_mount_layers_is_no_failure(void)
{
    make_host();
    CHECK_STR(examine("layers")->value, "mounted nowhere");
    answer = EINVAL;
    CHECK_STR(examine("layers")->value, "attached in the keeper's own mounts, before Linux 6.15");
    CHECK_INT(examine("layers")->status, DOCTOR_OK);
    answer = ENOSYS;
    CHECK_INT(examine("layers")->status, DOCTOR_FAIL);
}

static void an_old_landlock_is_not_told_to_be_turned_on(void)
{
    make_host();
    landlock = 2;
    CHECK_STR(examine("landlock")->value, "ABI 2");
    CHECK(strstr(examine("landlock")->fix, "none needed: files are covered") != NULL);
}

static void kernels_before_the_least_are_refused(void)
{
    make_host();
    put("proc/sys/kernel/osrelease", "6.0.19\n");
    CHECK_INT(examine("kernel")->status, DOCTOR_FAIL);
    put("proc/sys/kernel/osrelease", "6.1.0-50-cloud-amd64\n");
    CHECK_INT(examine("kernel")->status, DOCTOR_OK);
    put("proc/sys/kernel/osrelease", "10.0\n");
    CHECK_INT(examine("kernel")->status, DOCTOR_OK);
}

static void the_criu_is_the_one_that_the_keeper_takes(void)
{
    make_host();
    CHECK_STR(examine("criu")->value, "3.17.1, /usr/sbin/criu: too old, 3.19 or newer is needed");
    CHECK_INT(examine("criu")->status, DOCTOR_NOTE);
    put("usr/local/lib/cove/criu/usr/sbin/criu", "");
    CHECK_STR(examine("criu")->value, "4.1.1, /usr/local/lib/cove/criu");
    answer = EPERM;
    CHECK_INT(examine("criu")->status, DOCTOR_NOTE);
    CHECK(strstr(examine("criu")->fix, "tools/criu --again") != NULL);
    put("proc/self/status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n");
    CHECK_STR(examine("criu")->value, "4.1.1, /usr/local/lib/cove/criu; only root can try it");
    CHECK(unlinkat(root_fd, "usr/local/lib/cove/criu/usr/sbin/criu", 0) == 0);
    CHECK(unlinkat(root_fd, "usr/sbin/criu", 0) == 0);
    CHECK_STR(examine("criu")->value, "neither in /usr/local/lib/cove/criu nor as /usr/sbin/criu");
}

static void what_pausing_uses_is_named(void)
{
    make_host();
    CHECK_STR(examine("swap_space")->value, "none");
    CHECK_STR(examine("lazy_restore")->value, "no userfaultfd in this kernel");
    put("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\nSwapTotal: 1048576 kB\n"
                        "SwapFree: 524288 kB\n");
    put("proc/sys/vm/unprivileged_userfaultfd", "0\n");
    CHECK_STR(examine("swap_space")->value, "1 GiB, 512 MiB free");
    CHECK_STR(examine("lazy_restore")->value, "no /dev/userfaultfd: all memory at once");
    CHECK_INT(examine("lazy_restore")->status, DOCTOR_NOTE);
    put("dev/userfaultfd", "");
    CHECK_INT(examine("lazy_restore")->status, DOCTOR_OK);
    CHECK(unlinkat(root_fd, "dev/userfaultfd", 0) == 0);
    CHECK(unlinkat(root_fd, "proc/sys/vm/unprivileged_userfaultfd", 0) == 0);
}

static void a_missing_layer_is_named_in_the_verdict(void)
{
    char verdict[256];

    make_host();
    landlock = 0;
    CHECK_INT(examine("landlock")->status, DOCTOR_WARN);
    doctor_verdict(findings, verdict, sizeof verdict);
    CHECK_STR(verdict, "sandboxes run here as jails: own ids, namespaces, limits, seccomp filter "
                       "without Landlock; 1 warning above");
    landlock = 4;
    CHECK_INT(examine("landlock")->status, DOCTOR_NOTE);
}

static void settings_that_weaken_are_warned_of_with_their_value(void)
{
    make_host();
    put("proc/sys/kernel/kptr_restrict", "0\n");
    put("proc/sys/kernel/pid_max", "32768\n");
    put("proc/sys/kernel/core_pattern", "|/usr/lib/crash %p\n");
    put("proc/sys/dev/tty/legacy_tiocsti", "rubbish\n");
    put("sys/devices/system/cpu/vulnerabilities/mds", "Vulnerable: no microcode\n");
    CHECK_INT(examine("kptr")->status, DOCTOR_WARN);
    CHECK_STR(examine("kptr")->value, "0, better at least 1");
    CHECK_INT(examine("pid_max")->status, DOCTOR_NOTE);
    CHECK_STR(examine("core_pattern")->value, "|/usr/lib/crash %p");
    CHECK_INT(examine("core_pattern")->status, DOCTOR_WARN);
    CHECK_STR(examine("tiocsti")->value, "'rubbish' is not a number");
    CHECK_STR(examine("mitigations")->value, "not mitigated: mds");
    CHECK_STR(examine("userfaultfd")->value, "not in this kernel");
    CHECK(doctor_can_run(findings));
    CHECK(unlinkat(root_fd, "proc/sys/dev/tty/legacy_tiocsti", 0) == 0);
    CHECK(unlinkat(root_fd, "sys/devices/system/cpu/vulnerabilities/mds", 0) == 0);
}

static void swap_counts_only_without_accounting(void)
{
    make_host();
    put("proc/swaps", "Filename\tType\n/swapfile file 1 2 3\n");
    CHECK_STR(examine("swap_accounting")->value, "swap, limited by cgroup v2");
    put("proc/self/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n");
    CHECK_INT(examine("swap_accounting")->status, DOCTOR_WARN);
    put("sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "1\n");
    CHECK_STR(examine("swap_accounting")->value, "swap, limited by cgroup v1");
}

static void rights_and_limits_of_the_caller_are_read(void)
{
    make_host();
    put("proc/self/status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
    put("proc/self/limits", "Max open files 1024 20000 files\n");
    CHECK_STR(examine("root")->value, "uid 1000");
    CHECK_INT(examine("sys_resource")->status, DOCTOR_NOTE);
    CHECK_STR(examine("open_files")->value, "20000, better at least 65536");
    put("proc/self/status", "");
    put("proc/self/limits", "");
    CHECK_STR(examine("open_files")->value, "unknown");
    CHECK_STR(examine("root")->value, "uid 1");
}

static void an_empty_host_is_examined_to_the_end(void)
{
    auto_close int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err err;

    CHECK(tree_remove(dir, root + 5, &err) == 0);
    CHECK(mkdirat(dir, root + 5, 0755) == 0);
    (void) close(root_fd);
    root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    answer = ENOSYS;
    landlock = 0;
    (void) examine("kernel");
    CHECK(!doctor_can_run(findings));
    for (size_t i = 0; i < doctor_check_count; i++)
        CHECK(findings[i].value[0] != '\0');
    CHECK(tree_remove(dir, root + 5, &err) == 0);
}

CHECK_MAIN(T(every_row_is_whole_and_its_id_its_own), T(a_host_with_everything_can_run_sandboxes),
           T(controllers_are_found_one_by_one), T(what_sandboxes_need_is_a_failure_when_it_lacks),
           T(probes_that_fail_say_why), T(the_kernel_of_virtual_machines_is_named),
           T(the_criu_is_the_one_that_the_keeper_takes),
           T(a_refusal_says_nothing_to_who_is_not_root),
           T(a_switch_that_is_missing_is_not_a_feature_that_is_missing),
           T(an_older_way_to_mount_layers_is_no_failure),
           T(an_old_landlock_is_not_told_to_be_turned_on), T(kernels_before_the_least_are_refused),
           T(what_pausing_uses_is_named), T(a_missing_layer_is_named_in_the_verdict),
           T(settings_that_weaken_are_warned_of_with_their_value),
           T(swap_counts_only_without_accounting), T(rights_and_limits_of_the_caller_are_read),
           T(an_empty_host_is_examined_to_the_end))
