/* escape.c - runs the attempts, each in a process of its own, and prints a line for each:
 *   name <TAB> held|escaped|impossible|broken <TAB> class <TAB> detail
 *
 *   escape try key=value…      inside: as whoever started it
 *   escape outside key=value…  on the host, as root
 *   escape bait|neighbour key=value…   lays out what there is to find, until stdin ends
 *   escape list                the table itself, with what each would lose */
#include "escape.h"

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTEMPT_SECONDS 10

struct bait bait = { .token = "none" };

static const struct attempt_class *classes(size_t *ret_count)
{
    static struct attempt_class all[7];

    all[0] = (struct attempt_class){ "manager", manager_attempts, manager_attempt_count };
    all[1] = (struct attempt_class){ "leak", leak_attempts, leak_attempt_count };
    all[2] = (struct attempt_class){ "files", file_attempts, file_attempt_count };
    all[3] = (struct attempt_class){ "root", root_attempts, root_attempt_count };
    all[4] = (struct attempt_class){ "mounts", mount_attempts, mount_attempt_count };
    all[5] = (struct attempt_class){ "kernel", kernel_attempts, kernel_attempt_count };
    all[6] = (struct attempt_class){ "resources", resource_attempts, resource_attempt_count };
    *ret_count = ARRAY_LEN(all);
    return all;
}

#define OUTCOME(verdict_, errnum_)                                                                 \
    struct outcome outcome = { .verdict = (verdict_), .errnum = (errnum_) };                       \
    va_list args;                                                                                  \
    va_start(args, fmt);                                                                           \
    (void) vsnprintf(outcome.detail, sizeof outcome.detail, fmt, args);                            \
    va_end(args);                                                                                  \
    return outcome

struct outcome escaped(const char *fmt, ...)
{
    OUTCOME(ESCAPED, 0);
}

struct outcome held(int errnum, const char *fmt, ...)
{
    OUTCOME(HELD, errnum);
}

struct outcome impossible(const char *fmt, ...)
{
    OUTCOME(IMPOSSIBLE, 0);
}

struct outcome by_call(long rc, const char *what)
{
    int errnum = errno;

    if (rc >= 0)
        return escaped("%s worked", what);
    return held(errnum, "%s: %s", what, strerror(errnum));
}

struct outcome past_check(long rc, const char *what)
{
    int errnum = errno;

    if (rc < 0 && (errnum == EPERM || errnum == EACCES || errnum == ENOSYS))
        return held(errnum, "%s: %s", what, strerror(errnum));
    return escaped("%s got past the permission check: %s", what,
                   rc < 0 ? strerror(errnum) : "done");
}

bool has_cap(int cap)
{
    char line[256];
    unsigned long long set = 0;
    FILE *file = fopen("/proc/self/status", "re");

    if (!file)
        return false;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "CapEff: %llx", &set) == 1)
            break;
    (void) fclose(file);
    return set >> cap & 1;
}

int copy_self(const char *name, mode_t mode)
{
    char buf[65536];
    int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int out = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    ssize_t n = -1;

    if (in >= 0 && out >= 0)
        while ((n = read(in, buf, sizeof buf)) > 0)
            if (write(out, buf, (size_t) n) != n)
                break;
    if (out >= 0)
        (void) fchmod(out, mode);
    (void) close(in);
    (void) close(out);
    return n == 0 ? 0 : -1;
}

int run_child(uid_t uid, char *const argv[])
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (uid && getuid() == 0)
            if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
                _exit(100);
        execv(argv[0], argv);
        _exit(101);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* What a runtime that leaks would leave: a directory of the host as descriptor 7, a file of the
 * host as stdin, a group of the host. Only outside, so that the attempts that look for them have
 * something to find. */
static void leak_descriptors(void)
{
    int dir = open("/", O_PATH | O_DIRECTORY), file = open("/etc/hostname", O_RDONLY);
    gid_t group = 0;

    if (dir >= 0 && dir != 7)
        (void) dup2(dir, 7);
    if (file >= 0)
        (void) dup2(file, STDIN_FILENO);
    (void) setgroups(1, &group);
}

static void on_term(int signal)
{
    (void) signal;
    (void) prctl(PR_SET_NAME, "signalled");
}

static void write_outcome(int fd, const struct outcome *outcome)
{
    if (write(fd, outcome, sizeof *outcome) != (ssize_t) sizeof *outcome)
        _exit(1);
}

/* PID 1 of the throw-away namespaces: like many an init it has a handler for TERM, and a socket. */
static void stand_in(const struct attempt *attempt, int fd)
{
    struct sigaction action = { .sa_handler = on_term };
    struct outcome outcome;
    pid_t pid;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void) sigaction(SIGTERM, &action, NULL);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", 0, NULL) < 0)
        _exit(1);
    pid = fork();
    if (pid == 0) {
        outcome = attempt->run(attempt);
        write_outcome(fd, &outcome);
        _exit(0);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    _exit(0);
}

static void attempt_child(const struct attempt *attempt, int fd)
{
    struct outcome outcome;
    int status;
    pid_t pid;

    (void) alarm(ATTEMPT_SECONDS);
    if (mkdir(attempt->name, 0755) < 0 || chdir(attempt->name) < 0)
        _exit(1);
    if (bait.outside)
        leak_descriptors();
    if (bait.outside && attempt->outside == IN_SPACES) {
        if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC |
                    0x02000000 /* NEWCGROUP */) < 0)
            _exit(1);
        pid = fork();
        if (pid == 0)
            stand_in(attempt, fd);
        (void) waitpid(pid, &status, 0);
        _exit(0);
    }
    outcome = attempt->run(attempt);
    write_outcome(fd, &outcome);
    _exit(0);
}

/* Outside, a HELD needs a reason: the errno of the row's list, or the row's own word. */
static void judge_outside(const struct attempt *attempt, struct outcome *outcome)
{
    char was[sizeof outcome->detail];
    bool lacks = attempt->outside == NOT_AT_ALL;

    if (outcome->verdict != HELD)
        return;
    for (size_t i = 0; i < ARRAY_LEN(attempt->lacking); i++)
        lacks |= attempt->lacking[i] && attempt->lacking[i] == outcome->errnum;
    if (!lacks || !attempt->reason)
        return;
    (void) snprintf(was, sizeof was, "%.90s", outcome->detail);
    (void) snprintf(outcome->detail, sizeof outcome->detail, "%.90s (%s)", attempt->reason, was);
    outcome->verdict = IMPOSSIBLE;
}

static void run_attempt(const char *class, const struct attempt *attempt)
{
    static const char *const words[] = { "held", "escaped", "impossible" };
    struct outcome outcome;
    const char *word = "broken";
    int ends[2], status = 0;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        _exit(1);
    pid = fork();
    if (pid == 0) {
        (void) close(ends[0]);
        attempt_child(attempt, ends[1]);
    }
    (void) close(ends[1]);
    (void) snprintf(outcome.detail, sizeof outcome.detail, "no answer");
    if (read(ends[0], &outcome, sizeof outcome) == (ssize_t) sizeof outcome) {
        if (bait.outside)
            judge_outside(attempt, &outcome);
        word = words[outcome.verdict];
    }
    (void) close(ends[0]);
    (void) waitpid(pid, &status, 0);
    if (!strcmp(word, "broken") && WIFSIGNALED(status))
        (void) snprintf(outcome.detail, sizeof outcome.detail, "ended by signal %d",
                        WTERMSIG(status));
    for (char *c = outcome.detail; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = ' ';
    printf("%s\t%s\t%s\t%s\n", attempt->name, word, class, outcome.detail);
    (void) fflush(stdout);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void) st;
    (void) flag;
    (void) ftw;
    (void) remove(path);
    return 0;
}

/* Whether a list of names with commas has this one. */
static bool listed(const char *names, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = names; at && (at = strstr(at, name)); at += len)
        if ((at == names || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

static int run_all(const char *only, const char *without)
{
    char scratch[] = "/tmp/escape-XXXXXX";
    size_t count;
    const struct attempt_class *class = classes(&count);

    if (!mkdtemp(scratch) || chmod(scratch, 0755) < 0 || chdir(scratch) < 0) {
        perror("escape: scratch directory");
        return 1;
    }
    for (size_t c = 0; c < count; c++)
        for (size_t i = 0; i < class[c].count; i++)
            if ((!only || !strcmp(only, class[c].attempts[i].name)) &&
                !listed(without, class[c].attempts[i].name))
                run_attempt(class[c].name, &class[c].attempts[i]);
    (void) chdir("/");
    (void) nftw(scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}

static int list(void)
{
    size_t count;
    const struct attempt_class *class = classes(&count);

    for (size_t c = 0; c < count; c++)
        for (size_t i = 0; i < class[c].count; i++)
            printf("%s\t%s\t%s\n", class[c].name, class[c].attempts[i].name,
                   class[c].attempts[i].why);
    return 0;
}

static void take_argument(const char *arg, const char **ret_only, const char **ret_without)
{
    const char *value = strchr(arg, '=');
    size_t len;

    if (!value)
        return;
    len = (size_t) (value++ - arg);
#define IS(key) (len == sizeof(key) - 1 && !memcmp(arg, key, len))
    if (IS("token"))
        bait.token = value;
    else if (IS("state"))
        bait.state = value;
    else if (IS("host"))
        bait.host = value;
    else if (IS("port"))
        bait.port = atoi(value);
    else if (IS("neighbour_port"))
        bait.neighbour_port = atoi(value);
    else if (IS("pid"))
        bait.pid = atoi(value);
    else if (IS("shadow"))
        bait.shadow = strtoul(value, NULL, 10);
    else if (IS("machine"))
        bait.machine = strtoul(value, NULL, 10);
    else if (IS("disk_mib"))
        bait.disk_mib = strtoul(value, NULL, 10);
    else if (IS("only"))
        *ret_only = value;
    else if (IS("without"))
        *ret_without = value;
#undef IS
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "list", *only = NULL, *without = NULL;

    for (int i = 2; i < argc; i++)
        take_argument(argv[i], &only, &without);
    if (!strcmp(word, WORD_EUID))
        return geteuid() == 0 ? SAID_YES : 0;
    if (!strcmp(word, WORD_CAPS))
        return has_cap(21) ? SAID_YES : 0;
    if (!strcmp(word, WORD_STARTED))
        return SAID_YES;
    if (!strcmp(word, "bait"))
        return bait_serve(true);
    if (!strcmp(word, "neighbour"))
        return bait_serve(false);
    if (!strcmp(word, "list"))
        return list();
    bait.outside = !strcmp(word, "outside");
    if (bait.outside && getuid() != 0) {
        (void) fprintf(stderr, "escape: outside needs root\n");
        return 1;
    }
    return run_all(only, without);
}
