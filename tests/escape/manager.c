/* manager.c - tricks on whoever runs the sandbox: PID 1, its descriptors, its signals, its
 * terminal, and the sockets and files of the manager outside. */
#include "escape.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_kcmp
#define SYS_kcmp 312
#endif

/* The stand-in for PID 1 outside is a fork of this program: same image, same addresses. */
static char target_memory[64] = "what PID 1 keeps to itself";

static struct outcome open_read(const struct attempt *attempt)
{
    char byte;
    int fd = open(attempt->path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return by_call(-1, attempt->path);
    n = read(fd, &byte, 1);
    if (n < 0)
        return by_call(-1, "read");
    return n ? escaped("read %s", attempt->path) : held(0, "%s is empty", attempt->path);
}

static struct outcome open_mode(const struct attempt *attempt)
{
    int fd = open(attempt->path, (int) attempt->number | O_CLOEXEC);

    return by_call(fd, attempt->path);
}

static struct outcome list_directory(const struct attempt *attempt)
{
    DIR *dir = opendir(attempt->path);
    struct dirent *entry;

    if (!dir)
        return by_call(-1, attempt->path);
    errno = 0;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            return escaped("%s has %s", attempt->path, entry->d_name);
    return held(errno, "%s shows nothing", attempt->path);
}

static struct outcome follow_link(const struct attempt *attempt)
{
    return by_call(chdir(attempt->path), attempt->path);
}

/* CVE-2019-5736: a script whose interpreter is the manager's own program. */
static struct outcome run_exe_of_init(const struct attempt *attempt)
{
    static const char script[] = "#!/proc/1/exe " WORD_STARTED "\n";
    char *argv[] = { (char *) "./script", NULL };
    int fd = open("script", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

    (void) attempt;
    if (fd < 0 || write(fd, script, sizeof script - 1) < 0)
        return held(errno, "cannot write a script");
    (void) fchmod(fd, 0755);
    (void) close(fd);
    if (run_child(0, argv) == SAID_YES)
        return escaped("the program of PID 1 runs as the interpreter of a script");
    return held(0, "the kernel refuses it as an interpreter");
}

static struct outcome ptrace_init(const struct attempt *attempt)
{
    if (ptrace((int) attempt->number, 1, NULL, NULL) < 0)
        return by_call(-1, "ptrace of PID 1");
    if (attempt->number == PTRACE_ATTACH) { /* leave the stand-in running */
        (void) waitpid(1, NULL, __WALL);
        (void) ptrace(PTRACE_DETACH, 1, NULL, NULL);
    }
    return escaped("traced PID 1");
}

static struct outcome vm_of_init(const struct attempt *attempt)
{
    char mine[sizeof target_memory] = "written from outside";
    struct iovec local = { mine, sizeof mine };
    struct iovec remote = { target_memory, sizeof target_memory };
    long call = attempt->number;

    return by_call(syscall(call, 1L, &local, 1L, &remote, 1L, 0L), attempt->name);
}

static struct outcome steal_descriptor(const struct attempt *attempt)
{
    long pidfd = syscall(SYS_pidfd_open, 1L, 0L), fd;
    int last = 0;

    (void) attempt;
    if (pidfd < 0)
        return by_call(-1, "pidfd_open");
    for (long i = 0; i < 64; i++) {
        fd = syscall(SYS_pidfd_getfd, pidfd, i, 0L);
        if (fd >= 0)
            return escaped("took descriptor %ld of PID 1", i);
        last = errno;
    }
    return held(last, "pidfd_getfd: %s", strerror(last));
}

static struct outcome compare_with_init(const struct attempt *attempt)
{
    (void) attempt;
    return by_call(syscall(SYS_kcmp, (long) getpid(), 1L, 1L /* KCMP_VM */, 0L, 0L), "kcmp");
}

/* Who started this program: the first ancestor that is not it, or else PID 1. */
static int starter(void)
{
    char path[64], text[1024], *at;
    int pid = (int) getppid(), parent;

    for (int depth = 0; pid > 1 && depth < 64; depth++, pid = parent) {
        ssize_t n;
        int fd;

        (void) snprintf(path, sizeof path, "/proc/%d/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        (void) close(fd);
        text[n > 0 ? n : 0] = '\0';
        at = strrchr(text, ')');
        if (!at || sscanf(at, ") %*c %d", &parent) != 1)
            return 1;
        if (!strstr(text, "(escape)"))
            return pid;
    }
    return 1;
}

static struct outcome starter_file(const struct attempt *attempt)
{
    char path[64];
    struct attempt row = *attempt;

    (void) snprintf(path, sizeof path, attempt->path, starter());
    row.path = path;
    return attempt->number == O_DIRECTORY ? list_directory(&row) : open_mode(&row);
}

static struct outcome starter_ptrace(const struct attempt *attempt)
{
    (void) attempt;
    return by_call(ptrace(0x4206 /* SEIZE */, starter(), NULL, NULL), "ptrace of the starter");
}

static struct outcome comm_of_init(char *out, size_t size)
{
    int fd = open("/proc/1/comm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

    out[n > 0 ? n : 0] = '\0';
    (void) close(fd);
    return held(0, "%zd", n);
}

/* Handlers of PID 1 run for signals from inside. The stand-in renames itself in its handler; a
 * manager that falls takes the whole sandbox along, which the test notices. */
static struct outcome signal_init(const struct attempt *attempt)
{
    char before[64], after[64];

    (void) attempt;
    (void) comm_of_init(before, sizeof before);
    for (int s = 1; s <= 64; s++)
        (void) kill(1, s);
    (void) usleep(100 * 1000);
    (void) comm_of_init(after, sizeof after);
    if (!after[0] || strcmp(before, after) != 0)
        return escaped("PID 1 reacted: %s", after);
    return held(0, "PID 1 took 64 signals and did not react");
}

static struct outcome stop_init(const struct attempt *attempt)
{
    char text[512] = "";
    int fd;

    (void) attempt;
    (void) kill(1, SIGSTOP);
    (void) usleep(50 * 1000);
    fd = open("/proc/1/stat", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    if (strstr(text, ") T "))
        return escaped("PID 1 is stopped");
    return held(EPERM, "PID 1 continues");
}

static struct outcome inherited_descriptors(const struct attempt *attempt)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    char target[256];
    ssize_t n;

    (void) attempt;
    if (!dir)
        return held(errno, "/proc/self/fd");
    while ((entry = readdir(dir))) {
        int fd = atoi(entry->d_name);

        /* Ours: the listing itself, and the pipe that takes the answer. */
        if (entry->d_name[0] == '.' || fd <= 2 || fd == dirfd(dir) ||
            (fcntl(fd, F_GETFD) & FD_CLOEXEC))
            continue;
        n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        return escaped("descriptor %d is %.100s", fd, target);
    }
    return held(0, "only stdin, stdout and stderr");
}

/* CVE-2024-21626: a working directory that is a descriptor of the host. */
static struct outcome leaked_directory(const struct attempt *attempt)
{
    char path[64], name[256], up[400];

    (void) attempt;
    for (int fd = 3; fd < 1024; fd++) {
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (chdir(path) < 0)
            continue;
        bait_name(name, sizeof name, "", "");
        (void) snprintf(up, sizeof up, "tmp/%s", name);
        if (bait_readable(up))
            return escaped("%s is a directory of the host", path);
    }
    return held(0, "no descriptor is a directory of the host");
}

static struct outcome working_directory(const struct attempt *attempt)
{
    char path[4096] = "";

    (void) attempt;
    if (bait.outside && chdir("/proc/self/fd/7") == 0 && chdir("tmp") == 0)
        (void) chdir("..");
    /* A cwd outside the root shows as "(unreachable)"; so do the bait's files below it. */
    if (syscall(SYS_getcwd, path, sizeof path) < 0)
        return held(errno, "getcwd");
    if (strncmp(path, "(unreachable)", 13) == 0)
        return escaped("cwd is %s", path);
    if (bait.outside)
        return escaped("cwd is %s of the host, by a descriptor", path);
    return held(0, "cwd is below the sandbox's root");
}

/* A regular file of the host as stdio can be opened again for writing, whatever its mount says. */
static struct outcome stdio_is_file(const struct attempt *attempt)
{
    struct stat st;

    (void) attempt;
    for (int fd = 0; fd <= 2; fd++)
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            return escaped("descriptor %d is a regular file of the host", fd);
    return held(0, "stdio has no file of the host");
}

static struct outcome environment(const struct attempt *attempt)
{
    extern char **environ;

    (void) attempt;
    for (char **e = environ; *e; e++)
        if (strstr(*e, bait.token))
            return escaped("the manager's environment has %.40s", *e);
    return held(0, "nothing of the manager's environment");
}

static struct outcome outer_groups(const struct attempt *attempt)
{
    gid_t groups[256];
    int n = getgroups(256, groups);
    unsigned long first = 0, outer = 0, len = 0;
    FILE *map = fopen("/proc/self/gid_map", "re");

    (void) attempt;
    if (!map || fscanf(map, "%lu %lu %lu", &first, &outer, &len) != 3)
        return held(errno, "no gid_map");
    (void) fclose(map);
    for (int i = 0; i < n; i++)
        if (groups[i] == 65534 || outer + groups[i] - first < 65536)
            return escaped("still a member of a group of the host (%u)", (unsigned) groups[i]);
    return held(0, "%d groups, none of the host", n);
}

static struct outcome keeper_socket(const struct attempt *attempt)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (!bait.state)
        return held(ENOENT, "no state directory was named");
    (void) snprintf(addr.sun_path, sizeof addr.sun_path, "%s/%s", bait.state, attempt->path);
    return by_call(connect(fd, (struct sockaddr *) &addr, sizeof addr), "connect to the keeper");
}

/* A terminal of our own, as controlling terminal. Returns its descriptor or -1. */
static int own_terminal(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), number = -1, unlocked = 0;
    char path[64];

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0 ||
        ioctl(master, TIOCGPTN, &number) < 0)
        return -1;
    (void) snprintf(path, sizeof path, "/dev/pts/%d", number);
    (void) setsid();
    return open(path, O_RDWR | O_CLOEXEC);
}

/* CVE-2017-5226: pushing characters into the terminal of whoever started the sandbox. `number` is
 * what stands in the upper half of the request, which the kernel does not look at. */
static struct outcome push_terminal(const struct attempt *attempt)
{
    int fd = own_terminal();

    if (fd < 0)
        return held(errno, "no terminal");
    return by_call(syscall(SYS_ioctl, (long) fd, attempt->number << 32 | TIOCSTI, "x"), "TIOCSTI");
}

static struct outcome paste_console(const struct attempt *attempt)
{
    static const char *const consoles[] = { "/dev/tty0", "/dev/tty1", "/dev/console" };
    char subcode = 6; /* the shift state: reads only */
    int fd = -1, errnum = 0;

    for (size_t i = 0; i < ARRAY_LEN(consoles); i++) {
        fd = open(consoles[i], O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (syscall(SYS_ioctl, (long) fd, attempt->number << 32 | TIOCLINUX, &subcode) >= 0)
            return escaped("TIOCLINUX on %s", consoles[i]);
        errnum = errno;
    }
    if (fd < 0 && (fd = own_terminal()) >= 0)
        return by_call(syscall(SYS_ioctl, (long) fd, attempt->number << 32 | TIOCLINUX, &subcode),
                       "TIOCLINUX");
    return held(errnum, "TIOCLINUX: %s", strerror(errnum));
}

#define NO_VT .lacking = { ENOTTY, ENXIO, EIO }, .reason = "this host has no virtual terminal"

/* clang-format off */
const struct attempt manager_attempts[] = {
    { "init-exe-read",    "a copy of the manager's program to study or to start again", open_read, .path = "/proc/1/exe", .outside = IN_SPACES },
    { "init-exe-run",     "CVE-2019-5736: the manager's program started by the sandbox", run_exe_of_init, .outside = IN_SPACES },
    { "init-mem",         "code in PID 1", open_mode, .path = "/proc/1/mem", .number = O_RDWR, .outside = IN_SPACES },
    { "init-environ",     "secrets in the environment of PID 1", open_read, .path = "/proc/1/environ", .outside = IN_SPACES },
    { "init-maps",        "addresses of PID 1", open_read, .path = "/proc/1/maps", .outside = IN_SPACES },
    { "init-auxv",        "addresses of PID 1", open_read, .path = "/proc/1/auxv", .outside = IN_SPACES },
    { "init-fd-list",     "descriptors of PID 1", list_directory, .path = "/proc/1/fd", .outside = IN_SPACES },
    { "init-root",        "the root that PID 1 sees", follow_link, .path = "/proc/1/root", .outside = IN_SPACES },
    { "init-cwd",         "the directory that PID 1 stands in", follow_link, .path = "/proc/1/cwd", .outside = IN_SPACES },
    { "init-ns",          "handles of PID 1's namespaces", open_mode, .path = "/proc/1/ns/mnt", .number = O_RDONLY, .outside = IN_SPACES },
    { "init-ptrace-seize","control of PID 1", ptrace_init, .number = 0x4206 /* SEIZE */, .outside = IN_SPACES },
    { "init-ptrace-attach","control of PID 1", ptrace_init, .number = PTRACE_ATTACH, .outside = IN_SPACES },
    { "init-vm-read",     "memory of PID 1", vm_of_init, .number = SYS_process_vm_readv, .outside = IN_SPACES },
    { "init-vm-write",    "code in PID 1", vm_of_init, .number = SYS_process_vm_writev, .outside = IN_SPACES },
    { "init-take-fd",     "the manager's sockets", steal_descriptor, .outside = IN_SPACES },
    { "init-kcmp",        "order of kernel pointers", compare_with_init, .outside = IN_SPACES },
    { "init-signals",     "handlers of PID 1 run on demand", signal_init, .outside = IN_SPACES },
    { "init-stop",        "a sandbox that cannot be talked to", stop_init, .outside = NOT_AT_ALL, .reason = "the kernel keeps STOP and KILL from inside away from a namespace's PID 1" },
    { "starter-mem",      "code in whoever starts commands", starter_file, .path = "/proc/%d/mem", .number = O_RDWR, .outside = IN_SPACES },
    { "starter-environ",  "secrets of whoever starts commands", starter_file, .path = "/proc/%d/environ", .number = O_RDONLY, .outside = IN_SPACES },
    { "starter-fd-list",  "descriptors of whoever starts commands", starter_file, .path = "/proc/%d/fd", .number = O_DIRECTORY, .outside = IN_SPACES },
    { "starter-ptrace",   "control of whoever starts commands", starter_ptrace, .outside = IN_SPACES },
    { "inherited-fds",    "descriptors that the manager forgot", inherited_descriptors, .outside = ON_HOST },
    { "leaked-directory", "CVE-2024-21626: a descriptor of a host directory as cwd", leaked_directory, .outside = ON_HOST },
    { "cwd-outside-root", "CVE-2024-21626: a cwd that is not below the root", working_directory, .outside = ON_HOST },
    { "stdio-file",       "a file of the host reopened for writing", stdio_is_file, .outside = ON_HOST },
    { "environment",      "secrets of the manager", environment, .outside = ON_HOST },
    { "outer-groups",     "rights of a group of the host", outer_groups, .outside = ON_HOST },
    { "keeper-socket",    "orders to the keeper", keeper_socket, .path = "keeper.sock", .outside = ON_HOST },
    { "terminal-push",    "CVE-2017-5226: typing into the caller's shell", push_terminal, .outside = IN_SPACES, .lacking = { EIO }, .reason = "sysctl dev.tty.legacy_tiocsti is 0" },
    { "terminal-push-high", "the same with bits that a filter may compare and the kernel does not", push_terminal, .number = 1, .outside = IN_SPACES, .lacking = { EIO }, .reason = "sysctl dev.tty.legacy_tiocsti is 0" },
    { "console-paste",    "typing into the console", paste_console, .outside = ON_HOST, NO_VT },
    { "console-paste-high", "the same with upper bits set", paste_console, .number = 1, .outside = ON_HOST, NO_VT },
};
/* clang-format on */
const size_t manager_attempt_count = ARRAY_LEN(manager_attempts);
