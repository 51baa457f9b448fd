/* abuse.c - takes as much as it gets, of one thing: for tests/e2e/abuse_test, inside a sandbox.
 *
 * What ends by itself prints `COUNT ERRNO-NAME`: how much it got and what it was told then. Everything
 * stops after ABUSE_SECONDS, so that a limit that does not hold does not hold the host up either. */
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ABUSE_SECONDS 20
#define MiB           (1024 * 1024)

static time_t deadline;

static int over(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec >= deadline;
}

static int report(long count, int errnum)
{
    printf("%ld %s\n", count, errnum ? strerrorname_np(errnum) : "none");
    (void) fflush(stdout);
    return 0;
}

/* Every process makes another as soon as it can, for as long as it may. */
static int bomb_fork(const char *arg)
{
    (void) arg;
    while (!over())
        if (fork() < 0)
            (void) usleep(1000);
    return 0;
}

static int bomb_memory(const char *arg)
{
    long want = atol(arg), got = 0;

    while (got < want && !over()) {
        char *at = mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (at == MAP_FAILED)
            return report(got, errno);
        memset(at, 'x', MiB);
        got++;
    }
    return report(got, 0);
}

/* Children that end and are not waited for. Stays, so that they stay. */
static int flood_zombies(const char *arg)
{
    long count = 0;

    for (pid_t pid; (pid = fork()) >= 0; count++)
        if (pid == 0)
            _exit(0);
        else if (count > 100000 || over())
            break;
    (void) report(count, errno);
    (void) sleep((unsigned) atoi(arg));
    return 0;
}

static int flood_open(const char *path, int seconds)
{
    long count = 0;

    while (count < 100000 && open(path, O_RDWR | O_NOCTTY) >= 0)
        count++;
    (void) report(count, errno);
    (void) sleep((unsigned) seconds);
    return 0;
}

static int flood_ptys(const char *arg)
{
    return flood_open("/dev/ptmx", atoi(arg));
}

static int flood_files(const char *arg)
{
    return flood_open("/dev/null", atoi(arg));
}

static int flood_watches(const char *arg)
{
    long count = 0;

    while (count < 100000 && inotify_init1(IN_CLOEXEC) >= 0)
        count++;
    (void) report(count, errno);
    (void) sleep((unsigned) atoi(arg));
    return 0;
}

/* Locked memory, in mebibytes. */
static int flood_locks(const char *arg)
{
    long count = 0;

    while (count < 4096) {
        void *at = mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (at == MAP_FAILED || mlock(at, MiB) < 0)
            break;
        count++;
    }
    (void) report(count, errno);
    (void) sleep((unsigned) atoi(arg));
    return 0;
}

/* Message queues: each takes some 80 KiB of a limit of its own. */
static int flood_queues(const char *arg)
{
    struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
    char name[32];
    long count = 0;

    for (; count < 4096; count++) {
        (void) snprintf(name, sizeof name, "/q%ld", count);
        (void) mq_unlink(name);
        if (mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr) == (mqd_t) -1)
            break;
    }
    (void) report(count, errno);
    (void) sleep((unsigned) atoi(arg));
    while (count-- > 0) {
        (void) snprintf(name, sizeof name, "/q%ld", count);
        (void) mq_unlink(name);
    }
    return 0;
}

/* Mebibytes that fit into a new file below `dir`. */
static int fill_bytes(const char *dir)
{
    static char block[MiB];
    char path[512];
    long bytes = 0, part = 0;
    ssize_t n;
    int fd = -1;

    (void) signal(SIGXFSZ, SIG_IGN);
    memset(block, 'x', sizeof block);
    while (!over()) {
        if (fd < 0) { /* a file may be smaller than the disk: many of them */
            (void) snprintf(path, sizeof path, "%s/fill%ld", dir, part++);
            fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        }
        n = fd < 0 ? -1 : write(fd, block, sizeof block);
        if (n < 0 && fd >= 0 && errno == EFBIG) {
            (void) close(fd);
            fd = -1;
        } else if (n < 0) {
            return report(bytes / MiB, errno);
        } else {
            bytes += n;
        }
    }
    return report(bytes / MiB, 0);
}

static int fill_inodes(const char *dir)
{
    char path[512];

    for (long count = 0; !over(); count++) {
        int fd;

        (void) snprintf(path, sizeof path, "%s/inode%ld", dir, count);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd < 0)
            return report(count, errno);
        (void) close(fd);
    }
    return report(-1, 0);
}

/* A tree that cannot be named from its root, and a wide directory beside it. */
static int grow_tree(const char *arg)
{
    long levels = atol(arg);
    char name[64];

    for (long i = 0; i < levels; i++) {
        (void) snprintf(name, sizeof name, "wide%ld", i);
        (void) close(open(name, O_WRONLY | O_CREAT, 0600));
    }
    for (long i = 0; i < levels; i++)
        if (mkdir("deep", 0755) < 0 || chdir("deep") < 0)
            return report(i, errno);
    return report(levels, 0);
}

/* Away from parent, session, process group and every signal that can be ignored, and then alive: a byte to
 * `path` every 20 ms. With a leading '!': ends everybody else first, shepherds too. */
static int dodge(const char *path)
{
    int fd, violent = path[0] == '!';

    path += violent;
    if (fork() == 0) {
        (void) setsid();
        if (fork() != 0)
            _exit(0);
        (void) setsid();
        for (int s = 1; s < 65; s++)
            (void) signal(s, SIG_IGN);
        (void) prctl(PR_SET_NAME, "kworker/0:1");
        if (violent)
            (void) kill(-1, SIGKILL);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
        while (!over()) {
            IGNORE(write(fd, ".", 1) < 0);
            (void) usleep(20 * 1000);
        }
        _exit(0);
    }
    (void) sleep(ABUSE_SECONDS);
    return 0;
}

static int spin(const char *arg)
{
    struct timespec now, end;

    for (int i = 1; i < 4; i++)
        if (fork() == 0)
            break;
    (void) clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += atoi(arg);
    do
        (void) clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < end.tv_sec);
    return 0;
}

static void *spin_when_told(void *arg)
{
    pthread_barrier_t *all = arg;

    if (all)
        (void) pthread_barrier_wait(all);
    for (;;)
        ;
    return NULL;
}

/* That many threads, none of which ever gives its processor back. They begin together: while they are made there is no crowd yet. Ends
 * only with the sandbox: what is tested is how it dies. */
static int starve(const char *arg)
{
    const unsigned count = (unsigned) atoi(arg);
    pthread_barrier_t all;
    pthread_attr_t small;

    if (pthread_barrier_init(&all, NULL, count + 1) != 0 || pthread_attr_init(&small) != 0 ||
        pthread_attr_setstacksize(&small, 65536) != 0)
        return 1;
    for (unsigned i = 0; i < count; i++) {
        pthread_t thread;
        int why = pthread_create(&thread, &small, spin_when_told, &all);

        if (why)
            return report((long) i, why);
    }
    (void) report((long) count, 0);
    (void) pthread_barrier_wait(&all);
    (void) spin_when_told(NULL);
    return 0;
}

static void *sleep_long(void *arg)
{
    for (;;)
        (void) pause();
    return arg;
}

/* A mixture of processes that are hard to kill: stopped, traced, in a vfork, among zombies, with threads, forking all the time. Each
 * says so in the directory by a file of its name, and stays. */
static void tell(const char *dir, const char *name)
{
    char path[128];

    (void) snprintf(path, sizeof path, "%s/%s", dir, name);
    (void) close(open(path, O_WRONLY | O_CREAT, 0666));
}

static void stay_stopped(const char *dir)
{
    tell(dir, "stopped");
    for (;;)
        (void) raise(SIGSTOP);
}

static void stay_traced(const char *dir)
{
    pid_t child = fork();

    if (child == 0) {
        (void) ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        for (;;)
            (void) raise(SIGSTOP);
    }
    (void) waitpid(child, NULL, 0);
    tell(dir, "traced");
    for (;;)
        (void) pause();
}

static void stay_in_vfork(const char *dir)
{
    if (vfork() == 0) {
        tell(dir, "vfork");
        for (;;)
            (void) pause();
    }
}

static void stay_with_threads(const char *dir)
{
    for (int i = 0; i < 100; i++) {
        pthread_t thread;

        (void) pthread_create(&thread, NULL, sleep_long, NULL);
    }
    tell(dir, "threads");
    (void) sleep_long(NULL);
}

static void fork_forever(const char *dir)
{
    tell(dir, "forks");
    for (;;) {
        pid_t child = fork();

        if (child == 0 && fork() >= 0)
            _exit(0);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}

static int hard_to_kill(const char *dir)
{
    static void (*const ways[])(const char *) = { stay_stopped, stay_traced, stay_in_vfork,
                                                  stay_with_threads, fork_forever };

    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        if (fork() == 0) {
            for (int s = 1; s < 65; s++)
                (void) signal(s, s == SIGCHLD ? SIG_DFL : SIG_IGN);
            ways[i](dir);
            _exit(0);
        }
    (void) sleep_long(NULL);
    return 0;
}

/* Names that are not there, each remembered by the kernel: twice, in the overlay and on the disk below it. */
static int ask_names(const char *arg)
{
    long count = atol(arg);
    char name[32];

    if (mkdir("/tmp/names", 0777) < 0 || chdir("/tmp/names") < 0)
        return 2;
    for (long i = 0; i < count; i++) {
        (void) snprintf(name, sizeof name, "%ld", i);
        (void) access(name, F_OK);
    }
    return report(count, 0);
}

static const struct {
    const char *name;
    int (*run)(const char *arg);
} kinds[] = {
    { "fork", bomb_fork },     { "memory", bomb_memory },  { "zombies", flood_zombies },
    { "ptys", flood_ptys },    { "files", flood_files },   { "watches", flood_watches },
    { "locks", flood_locks },  { "queues", flood_queues }, { "bytes", fill_bytes },
    { "inodes", fill_inodes }, { "tree", grow_tree },      { "dodge", dodge },
    { "spin", spin },          { "starve", starve },       { "hard-to-kill", hard_to_kill },
    { "names", ask_names },
};

static bool in_guest(void)
{
    char name[32] = "";
    FILE *file = fopen("/proc/1/comm", "re");

    if (file) {
        (void) fgets(name, sizeof name, file);
        (void) fclose(file);
    }
    return !strcmp(name, "cove-agent\n");
}

int main(int argc, char **argv)
{
    struct timespec now;

    /* In a guest there is no filter: its first process is the agent. */
    if ((prctl(PR_GET_SECCOMP) != 2 && !in_guest()) || argc != 3) {
        (void) fprintf(stderr, "abuse KIND ARGUMENT: only for the inside of a sandbox\n");
        return 2;
    }
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    deadline = now.tv_sec + ABUSE_SECONDS;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (!strcmp(kinds[i].name, argv[1]))
            return kinds[i].run(argv[2]);
    return 2;
}
