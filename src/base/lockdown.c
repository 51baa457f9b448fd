/* Order: no_new_privs, without which the rest needs privilege; Landlock, which needs to open files; capabilities, which dropping some needs
 * others for; the filter last, because it forbids all of these.
 *
 * The filter is a binary search over runs of numbers with the same answer, as jail/seccomp.c has it: the kernel walks the
 * program once for every number there is. A call that is allowed whatever its arguments is never looked at again. */
#include "base/lockdown.h"

#include "base/own.h"
#include "base/sanitized.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the tables of system calls are for x86-64"
#endif

#define X32_BIT 0x40000000u
#define CALLS_MOST                                                                                 \
    512u /* beyond every number that is known; what is above answers as the last does */
#define FILTER_MOST 1200

/* ---- capabilities ---- */

int lockdown_bounds(uint64_t keep, struct err *err)
{
    for (int cap = 0; cap < 64; cap++) {
        if (keep & LOCKDOWN_CAP(cap))
            continue;
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            /* Past the last one that this kernel knows; or who has no CAP_SETPCAP, and with no_new_privs can get none. */
            if (errno == EINVAL || errno == EPERM)
                break;
            return err_sys(err, errno, "drop capability %d", cap);
        }
    }
    return 0;
}

int lockdown_capabilities(uint64_t keep, struct err *err)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];

    if (syscall(__NR_capget, &head, data) < 0)
        return err_sys(err, errno, "read capabilities");
    if (lockdown_bounds(keep, err) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        uint32_t word = (uint32_t) (keep >> (32 * i));

        data[i].effective &= word;
        data[i].permitted &= word;
        data[i].inheritable = 0;
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        syscall(__NR_capset, &head, data) < 0)
        return err_sys(err, errno, "drop capabilities");
    return 0;
}

/* ---- Landlock ---- */

/* By number: the headers of Debian 12 end with Linux 6.1. */
#define FS_EXECUTE     (1ull << 0)
#define FS_WRITE_FILE  (1ull << 1)
#define FS_READ_FILE   (1ull << 2)
#define FS_READ_DIR    (1ull << 3)
#define FS_REMOVE_DIR  (1ull << 4)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_DIR    (1ull << 7)
#define FS_MAKE_REG    (1ull << 8)
#define FS_MAKE_OTHERS (1ull << 6 | 15ull << 9) /* devices, sockets, pipes, symbolic links */
#define FS_REFER       (1ull << 13)
#define FS_TRUNCATE    (1ull << 14)
#define FS_IOCTL_DEV   (1ull << 15)
#define FS_OF_FILES    (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

static const struct {
    int version; /* that brought it */
    uint64_t fs, net, scope;
} landlock_news[] = {
    { 1, (1ull << 13) - 1, 0, 0 }, { 2, FS_REFER, 0, 0 },
    { 3, FS_TRUNCATE, 0, 0 },      { 4, 0, 3 /* bind, connect */, 0 },
    { 5, FS_IOCTL_DEV, 0, 0 },     { 6, 0, 0, 3 /* abstract sockets, signals */ },
};

#define RIGHTS_READ (FS_READ_FILE | FS_READ_DIR)
#define RIGHTS_WRITE                                                                               \
    (RIGHTS_READ | FS_WRITE_FILE | FS_TRUNCATE | FS_MAKE_REG | FS_MAKE_DIR | FS_REMOVE_FILE |      \
     FS_REMOVE_DIR | FS_REFER)

static const uint64_t rights[] = {
    [LOCKDOWN_READ] = RIGHTS_READ,
    [LOCKDOWN_CHANGE] = RIGHTS_READ | FS_WRITE_FILE | FS_TRUNCATE,
    [LOCKDOWN_WRITE] = RIGHTS_WRITE,
    [LOCKDOWN_FILL] = RIGHTS_WRITE | FS_MAKE_OTHERS,
    [LOCKDOWN_REMOVE] = FS_REMOVE_FILE,
    [LOCKDOWN_RUN] = RIGHTS_READ | FS_EXECUTE,
};

int lockdown_landlock_version(void)
{
    long version = syscall(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return version < 0 ? 0 : (int) version;
}

/* A rule is tied to an inode. procfs makes another one for the same name once the kernel, short of memory, has forgotten the
 * name: it is kept open, for the program's life. */
static bool is_forgotten(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static int allow_path(int rules, const struct lockdown_path *path, uint64_t known, struct err *err)
{
    auto_close int own = path->path ? open(path->path, O_PATH | O_CLOEXEC) : -1;
    struct landlock_path_beneath_attr rule = { .parent_fd = path->path ? own : path->fd,
                                               .allowed_access = rights[path->right] & known };
    struct stat st;

    if (path->path && own < 0)
        return 0; /* not there, or not for this user: not needed */
    if (fstat(rule.parent_fd, &st) < 0)
        return err_sys(err, errno, "look at %s", path->path ? path->path : "a directory");
    if (!S_ISDIR(st.st_mode))
        rule.allowed_access &= FS_OF_FILES;
    if (syscall(__NR_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_sys(err, errno, "Landlock: %s", path->path ? path->path : "a descriptor");
    if (own >= 0 && is_forgotten(own))
        (void) take_fd(&own);
    return 0;
}

static int restrict_files(const struct lockdown *lockdown, const struct lockdown_path *paths,
                          size_t count, struct err *err)
{
    struct {
        uint64_t fs, net, scope;
    } handled = { 0 };
    int version = lockdown_landlock_version();
    auto_close int rules = -1;

    for (size_t i = 0; i < ARRAY_LEN(landlock_news); i++) {
        if (version < landlock_news[i].version)
            break;
        handled.fs |= landlock_news[i].fs;
        handled.net |= lockdown->no_tcp ? landlock_news[i].net : 0;
        handled.scope |= lockdown->alone ? landlock_news[i].scope : 0;
    }
    if (version == 0 || lockdown->any_file)
        return 0;
    rules = (int) syscall(__NR_landlock_create_ruleset, &handled,
                          version >= 6   ? sizeof handled
                          : version >= 4 ? 16
                                         : 8,
                          0);
    if (rules < 0)
        return err_sys(err, errno, "Landlock");
    for (size_t i = 0; i < count; i++)
        if (allow_path(rules, &paths[i], handled.fs, err) < 0)
            return -1;
    return syscall(__NR_landlock_restrict_self, rules, 0) < 0 ? err_sys(err, errno, "Landlock") : 0;
}

/* ---- the filter ---- */

/* Refused with death, unless the program has a row for them. */
static const uint32_t never[] = {
    /* other programs and processes */
    __NR_execve,
    __NR_execveat,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_pidfd_getfd,
    __NR_kcmp,
    __NR_process_madvise,
    /* mounts, namespaces, files past their names */
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_move_mount,
    __NR_open_tree,
    __NR_fsopen,
    __NR_fsconfig,
    __NR_fsmount,
    __NR_fspick,
    __NR_mount_setattr,
    __NR_unshare,
    __NR_setns,
    __NR_open_by_handle_at,
    __NR_mknod,
    __NR_mknodat,
    /* surfaces of the kernel that exploits are made of */
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_io_uring_setup,
    __NR_io_uring_enter,
    __NR_io_uring_register,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_modify_ldt,
    /* the machine */
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_kexec_file_load,
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_acct,
    __NR_iopl,
    __NR_ioperm,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_sethostname,
};

/* Refused without a report: each thread is first tried this way, while all signals are blocked. */
#define QUIET __NR_clone3

/* A device that does not know the command, or a kernel that does not know the call. */
static int errno_of(uint32_t number)
{
    return number == __NR_ioctl ? ENOTTY : ENOSYS;
}

struct filter {
    struct sock_filter code[FILTER_MOST];
    unsigned short len;
    bool reports;
    const struct lockdown *lockdown;
};

/* A run begins at `from` and ends where the next one begins. Tested calls are a run of their own. */
struct run {
    uint32_t from;
    uint32_t answer;
    bool tested;
};

static void put(struct filter *f, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
    assert(f->len < FILTER_MOST);
    f->code[f->len++] = (struct sock_filter){ code, jt, jf, k };
}

static void load(struct filter *f, size_t offset)
{
    put(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t) offset);
}

static bool is_deadly(uint32_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        if (never[i] == number)
            return true;
    return false;
}

static uint32_t refusal_of(const struct filter *f, uint32_t number)
{
    if (is_deadly(number))
        return SECCOMP_RET_KILL_PROCESS;
    if (number == QUIET)
        return SECCOMP_RET_ERRNO | ENOSYS;
    return f->reports ? SECCOMP_RET_TRAP : (uint32_t) (SECCOMP_RET_ERRNO | errno_of(number));
}

/* Calls fn for each row of that number; false: there is none. */
static bool each_row(struct filter *f, uint32_t number,
                     void (*fn)(struct filter *f, const struct lockdown_call *call, void *arg),
                     void *arg)
{
    bool any = false;

    for (size_t i = 0; i < LOCKDOWN_ROWS_MAX && f->lockdown->rows[i]; i++)
        for (size_t j = 0; j < f->lockdown->rows[i]->count; j++)
            if (f->lockdown->rows[i]->calls[j].number == number) {
                fn(f, &f->lockdown->rows[i]->calls[j], arg);
                any = true;
            }
    return any;
}

static void note_untested(struct filter *f, const struct lockdown_call *call, void *arg)
{
    (void) f;
    if (call->test == CALL_ANY)
        *(bool *) arg = true;
}

static struct run run_of(struct filter *f, uint32_t number)
{
    bool untested = false, any = each_row(f, number, note_untested, &untested);
    bool free = f->lockdown->any_call && !any && !is_deadly(number) && number != QUIET;

    return (struct run){ number, untested || free ? SECCOMP_RET_ALLOW : refusal_of(f, number),
                         any && !untested };
}

static size_t find_runs(struct filter *f, struct run *runs)
{
    size_t count = 0;

    for (uint32_t number = 0; number < CALLS_MOST; number++) {
        struct run now = run_of(f, number);

        if (count == 0 || now.tested || runs[count - 1].tested ||
            runs[count - 1].answer != now.answer)
            runs[count++] = now;
    }
    return count;
}

static void put_test(struct filter *f, const struct lockdown_call *call, void *arg)
{
    (void) arg;
    load(f, offsetof(struct seccomp_data, args) + call->arg * sizeof(uint64_t));
    switch ((enum lockdown_test) call->test) {
    case CALL_ANY:
        return;
    case CALL_IS:
        put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call->value);
        break;
    case CALL_HAS:
        put(f, BPF_ALU | BPF_AND | BPF_K, 0, 0, call->value);
        put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call->value);
        break;
    case CALL_HAS_NONE:
        put(f, BPF_JMP | BPF_JSET | BPF_K, 1, 0, call->value);
        break;
    }
    put(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

/* Comparisons jump 255 instructions at most, a plain jump as far as it likes. */
static void put_search(struct filter *f, const struct run *runs, size_t count)
{
    size_t half = count / 2;
    unsigned jump;

    if (count == 1) {
        if (runs[0].tested)
            (void) each_row(f, runs[0].from, put_test, NULL);
        put(f, BPF_RET | BPF_K, 0, 0, runs[0].answer);
        return;
    }
    put(f, BPF_JMP | BPF_JGE | BPF_K, 0, 1, runs[half].from);
    jump = f->len;
    put(f, BPF_JMP | BPF_JA, 0, 0, 0);
    put_search(f, runs, half);
    f->code[jump].k = f->len - jump - 1;
    put_search(f, runs + half, count - half);
}

static void compile(struct filter *f)
{
    struct run runs[CALLS_MOST];

    load(f, offsetof(struct seccomp_data, arch));
    put(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
    put(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    load(f, offsetof(struct seccomp_data, nr));
    put(f, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT);
    put(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    put_search(f, runs, find_runs(f, runs));
}

/* ---- COVE_LOCKDOWN=report ---- */

static const char *reporter = "";

/* In a signal handler: no stdio. */
static void report(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    char line[96] = "", digits[12];
    size_t n = sizeof digits - 1;
    int call = info->si_syscall;

    (void) number;
    digits[n] = '\0';
    do
        digits[--n] = (char) ('0' + call % 10);
    while ((call /= 10) > 0);
    (void) strncat(line, reporter, 40);
    (void) strcat(line, ": lockdown refused system call ");
    (void) strcat(strcat(line, digits + n), "\n");
    IGNORE(write(STDERR_FILENO, line, strlen(line)) < 0);
    at->uc_mcontext.gregs[REG_RAX] = -errno_of((uint32_t) info->si_syscall);
}

static bool wants_report(const char *program)
{
    const char *value = getenv("COVE_LOCKDOWN");
    struct sigaction action = { .sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_NODEFER };

    reporter = program;
    return value && strcmp(value, "report") == 0 && sigaction(SIGSYS, &action, NULL) == 0;
}

static int install(const struct lockdown *lockdown, struct err *err)
{
    static struct filter f;
    struct sock_fprog program = { .filter = f.code };

    f.len = 0;
    f.lockdown = lockdown;
    f.reports = wants_report(lockdown->program);
    compile(&f);
    program.len = f.len;
    /* SPEC_ALLOW: kernels before 5.16 would else slow down all of the program's own code. Not FLAG_LOG: the kernel would log
     * each new thread (QUIET). */
    if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) <
        0)
        return err_sys(err, errno, "seccomp");
    return 0;
}

bool lockdown_filters(void)
{
    return !SANITIZED;
}

int lockdown_enter(const struct lockdown *lockdown, const struct lockdown_path *paths, size_t count,
                   struct err *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        err_sys(err, errno, "no_new_privs");
        goto fail;
    }
    if (!SANITIZED &&
        (prctl(PR_SET_DUMPABLE, 0) < 0 || restrict_files(lockdown, paths, count, err) < 0))
        goto fail;
    if (lockdown_capabilities(lockdown->capabilities, err) < 0 ||
        (!SANITIZED && install(lockdown, err) < 0))
        goto fail;
    return 0;

fail:
    return err_wrap(err, "lock down %s", lockdown->program);
}
