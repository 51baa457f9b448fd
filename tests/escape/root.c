/* root.c - power over the machine: helpers that the kernel starts, modules, clocks, reboot, swap,
 * ports, capabilities, cgroups. Nothing here changes anything when it works: files are opened and
 * closed, calls get arguments that are refused behind the permission check. */
#include "escape.h"

#include <fcntl.h>
#include <glob.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <unistd.h>

static struct outcome open_writable(const struct attempt *attempt)
{
    struct stat st;
    int fd = open(attempt->path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
        return held(0, "/dev/null lies over %s", attempt->path);
    return by_call(fd, attempt->path);
}

static struct outcome open_any_writable(const struct attempt *attempt)
{
    glob_t found;
    int errnum = ENOENT;

    if (glob(attempt->path, 0, NULL, &found) != 0)
        return held(ENOENT, "no %s", attempt->path);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int fd = open(found.gl_pathv[i], O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
            return escaped("%s can be written", found.gl_pathv[i]);
        errnum = errno;
    }
    return held(errnum, "%s: %s", attempt->path, strerror(errnum));
}

static struct outcome register_binfmt(const struct attempt *attempt)
{
    if (bait.outside) {
        (void) mount("none", "/proc/sys/fs/binfmt_misc", "binfmt_misc", 0, NULL);
    }
    return open_writable(attempt);
}

/* The raw call with up to three arguments that can do no harm. */
static struct outcome call_checked(const struct attempt *attempt)
{
    return past_check(syscall(attempt->number, attempt->path, 0L, 0L, 0L), attempt->name);
}

static struct outcome call_reboot(const struct attempt *attempt)
{
    (void) attempt;
    return past_check(syscall(SYS_reboot, 1L, 2L, 3L, NULL), "reboot with a wrong magic");
}

static struct outcome call_init_module(const struct attempt *attempt)
{
    (void) attempt;
    return past_check(syscall(SYS_init_module, NULL, 0L, ""), "init_module of nothing");
}

static struct outcome call_finit_module(const struct attempt *attempt)
{
    (void) attempt;
    return past_check(syscall(SYS_finit_module, -1L, "", 0L), "finit_module of no file");
}

static struct outcome call_kexec(const struct attempt *attempt)
{
    return past_check(syscall(attempt->number, 0L, ~0ul, NULL, ~0ul, ~0ul), attempt->name);
}

/* Permission comes first, then the time zone's bounds: nothing is set. */
static struct outcome set_clock(const struct attempt *attempt)
{
    struct timezone zone = { .tz_minuteswest = 100000 };

    (void) attempt;
    return past_check(syscall(SYS_settimeofday, NULL, &zone), "settimeofday");
}

/* The status that the clock has already. */
static struct outcome adjust_clock(const struct attempt *attempt)
{
    struct timex now = { .modes = 0 };
    long rc = attempt->number ? syscall(SYS_clock_adjtime, 0L, &now) : syscall(SYS_adjtimex, &now);

    if (rc < 0)
        return by_call(-1, "reading the clock's state");
    now.modes = ADJ_STATUS;
    rc = attempt->number ? syscall(SYS_clock_adjtime, 0L, &now) : syscall(SYS_adjtimex, &now);
    return by_call(rc, attempt->name);
}

static struct outcome name_host(const struct attempt *attempt)
{
    return by_call(syscall(attempt->number, "renamed", 7L), attempt->name);
}

#ifdef __x86_64__
static struct outcome io_ports(const struct attempt *attempt)
{
    if (attempt->number)
        return by_call(syscall(SYS_ioperm, 0x80L, 1L, 1L), "ioperm");
    return by_call(syscall(SYS_iopl, 3L), "iopl");
}
#else
static struct outcome io_ports(const struct attempt *attempt)
{
    (void) attempt;
    return bait.outside ? impossible("no port instructions here") : held(ENOSYS, "no ports here");
}
#endif

static struct outcome hang_up(const struct attempt *attempt)
{
    (void) attempt;
    (void) setsid(); /* no terminal: it has nothing to hang up */
    return by_call(syscall(SYS_vhangup), "vhangup");
}

/* Asks for all of them, then looks what it has. */
static struct outcome raise_capabilities(const struct attempt *attempt)
{
    static const int dangerous[] = {
        CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SYS_RAWIO,       CAP_NET_ADMIN,
        CAP_NET_RAW,   CAP_MKNOD,      CAP_SYS_BOOT,   CAP_DAC_READ_SEARCH, CAP_SYS_TIME,
    };
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct all[2] = { { ~0u, ~0u, ~0u }, { 0x1ff, 0x1ff, 0x1ff } };

    (void) attempt;
    (void) syscall(SYS_capset, &head, all);
    for (size_t i = 0; i < ARRAY_LEN(dangerous); i++)
        if (has_cap(dangerous[i]))
            return escaped("has capability %d", dangerous[i]);
    return held(EPERM, "none of the dangerous capabilities");
}

static struct outcome bounding_set(const struct attempt *attempt)
{
    (void) attempt;
    for (int cap = 0; cap < 64; cap++)
        if ((cap == CAP_SYS_ADMIN || cap == CAP_SYS_PTRACE || cap == CAP_NET_ADMIN) &&
            prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
            return escaped("capability %d can be had by exec", cap);
    return held(0, "the bounding set has none of the dangerous ones");
}

static struct outcome ambient(const struct attempt *attempt)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct set[2];

    (void) attempt;
    if (syscall(SYS_capget, &head, set) < 0)
        return by_call(-1, "capget");
    set[0].inheritable |= 1u << CAP_SYS_ADMIN;
    if (syscall(SYS_capset, &head, set) < 0)
        return by_call(-1, "inheritable CAP_SYS_ADMIN");
    return by_call(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0), "ambient");
}

static struct outcome no_filter(const struct attempt *attempt)
{
    (void) attempt;
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0 ? escaped("there is no filter")
                                                  : held(0, "there is a filter");
}

static struct outcome may_gain(const struct attempt *attempt)
{
    (void) attempt;
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? escaped("exec may give more rights")
                                                       : held(0, "exec gives nothing");
}

static struct outcome become_host_root(const struct attempt *attempt)
{
    unsigned long first, outer, len;
    FILE *map;

    (void) attempt;
    if (setresuid(0, 0, 0) < 0)
        return by_call(-1, "setresuid");
    map = fopen("/proc/self/uid_map", "re");
    if (!map || fscanf(map, "%lu %lu %lu", &first, &outer, &len) != 3)
        return held(errno, "no uid_map");
    (void) fclose(map);
    return outer == 0 ? escaped("uid 0 of the host") : held(0, "uid %lu of the host", outer);
}

static struct outcome quota(const struct attempt *attempt)
{
    (void) attempt;
    return past_check(syscall(SYS_quotactl, 0x80000800L /* GETFMT, user */, "/dev/null", 0L, NULL),
                      "quotactl");
}

#define HOST       .outside = ON_HOST
#define WITHOUT    .lacking = { ENOENT, ENOSYS }, .reason = "this kernel does not have it"
#define KNOB(file) open_writable, .path = (file), HOST, WITHOUT

/* clang-format off */
const struct attempt root_attempts[] = {
    { "core-pattern",     "a program run by the kernel as root", KNOB("/proc/sys/kernel/core_pattern") },
    { "modprobe-path",    "a program run by the kernel as root", KNOB("/proc/sys/kernel/modprobe") },
    { "hotplug-path",     "a program run by the kernel as root", KNOB("/proc/sys/kernel/hotplug") },
    { "uevent-helper",    "a program run by the kernel as root", KNOB("/sys/kernel/uevent_helper") },
    { "poweroff-cmd",     "a program run by the kernel as root", KNOB("/proc/sys/kernel/poweroff_cmd") },
    { "usermodehelper",   "capabilities of such programs", KNOB("/proc/sys/kernel/usermodehelper/bset") },
    { "binfmt-register",  "a program run for everybody's files", register_binfmt, .path = "/proc/sys/fs/binfmt_misc/register", .outside = IN_SPACES, WITHOUT },
    { "sysrq-trigger",    "reboot, crash, kill", KNOB("/proc/sysrq-trigger") },
    { "sysctl-kernel",    "settings of the machine", KNOB("/proc/sys/kernel/randomize_va_space") },
    { "sysctl-vm",        "memory settings of the machine", KNOB("/proc/sys/vm/overcommit_memory") },
    { "sysctl-fs",        "limits of the machine", KNOB("/proc/sys/fs/file-max") },
    { "sysctl-tiocsti",   "hardening switched off", KNOB("/proc/sys/dev/tty/legacy_tiocsti") },
    { "sysctl-forward",   "packets through the host", KNOB("/proc/sys/net/ipv4/ip_forward") },
    { "proc-irq",         "interrupts moved", KNOB("/proc/irq/default_smp_affinity") },
    { "proc-mtrr",        "memory types", KNOB("/proc/mtrr") },
    { "sys-power",        "suspending the host", KNOB("/sys/power/state") },
    { "sys-cpu-online",   "processors switched off", open_any_writable, .path = "/sys/devices/system/cpu/cpu*/online", HOST, WITHOUT },
    { "release-agent",    "CVE-2022-0492: a program run as root", open_any_writable, .path = "/sys/fs/cgroup/*/release_agent", HOST, WITHOUT },
    { "cgroup-procs",     "leaving the limits", open_any_writable, .path = "/sys/fs/cgroup/*/cgroup.procs", HOST, WITHOUT },
    { "cgroup-memory",    "raising the limits", open_any_writable, .path = "/sys/fs/cgroup/memory*/memory.*limit_in_bytes", HOST, WITHOUT },
    { "device-rules",     "every device", open_any_writable, .path = "/sys/fs/cgroup/devices/*/devices.allow", HOST, WITHOUT },
    { "swapon",           "memory on the host's disk", call_checked, .path = "/nowhere", .number = SYS_swapon, HOST },
    { "swapoff",          "memory pressure on the host", call_checked, .path = "/nowhere", .number = SYS_swapoff, HOST },
    { "acct",             "a file written by the kernel", call_checked, .path = "/nowhere/at/all", .number = SYS_acct, HOST, WITHOUT },
    { "delete-module",    "hardening unloaded", call_checked, .path = "no_such_module", .number = SYS_delete_module, HOST, WITHOUT },
    { "init-module",      "code in the kernel", call_init_module, HOST, WITHOUT },
    { "finit-module",     "code in the kernel", call_finit_module, HOST, WITHOUT },
    { "kexec-load",       "another kernel", call_kexec, .number = SYS_kexec_load, HOST, WITHOUT },
    { "kexec-file-load",  "another kernel", call_kexec, .number = 320, HOST, WITHOUT },
    { "reboot",           "the machine", call_reboot, HOST },
    { "quotactl",         "quotas of the host", quota, HOST, WITHOUT },
    { "settimeofday",     "the host's clock", set_clock, HOST },
    { "adjtimex",         "the host's clock", adjust_clock, .number = 0, HOST },
    { "clock-adjtime",    "the host's clock", adjust_clock, .number = 1, HOST },
    { "sethostname",      "a name that others trust", name_host, .number = SYS_sethostname, .outside = IN_SPACES },
    { "setdomainname",    "a name that others trust", name_host, .number = SYS_setdomainname, .outside = IN_SPACES },
    { "iopl",             "hardware", io_ports, .number = 0, HOST, WITHOUT },
    { "ioperm",           "hardware", io_ports, .number = 1, HOST, WITHOUT },
    { "vhangup",          "terminals of others", hang_up, .outside = IN_SPACES },
    { "capset-all",       "rights over the machine", raise_capabilities, HOST },
    { "capability-bounds","rights by exec", bounding_set, HOST },
    { "capability-ambient","rights kept over exec", ambient, HOST },
    { "no-filter",        "every call of the kernel", no_filter, HOST },
    { "new-privileges",   "setuid programs", may_gain, HOST },
    { "host-root",        "files and helpers of the host", become_host_root, HOST },
};
/* clang-format on */
const size_t root_attempt_count = ARRAY_LEN(root_attempts);
