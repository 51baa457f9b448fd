#include "base/lockdown.h"

#include "base/own.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const struct lockdown_call own_calls[] = {
    CALL_IF(socket, CALL_IS, 0, AF_UNIX), CALL_IF(socket, CALL_IS, 0, AF_INET),
    CALL_IF(kill, CALL_HAS, 0, 6), CALL_IF(unshare, CALL_HAS_NONE, 0, ~0u), /* nothing to unshare */
};
static const struct lockdown_rows own = { "for the test", own_calls, ARRAY_LEN(own_calls) };
static const struct lockdown plain = {
    .program = "plain",
    .rows = { &lockdown_runtime, &lockdown_threads, &lockdown_bytes, &lockdown_names,
              &lockdown_data_only, &own },
};

#define SANDBOXED_OR_SKIP()                                                                        \
    do {                                                                                           \
        if (!lockdown_filters()) {                                                                 \
            SKIP("built with a sanitizer");                                                        \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* The status of a child that is locked down and then does this; 200: it could not be. */
static int after(const struct lockdown *l, const struct lockdown_path *paths, size_t count,
                 int (*fn)(void))
{
    struct err err;
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(lockdown_enter(l, paths, count, &err) < 0 ? 200 : fn());
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int plain_after(int (*fn)(void))
{
    return after(&plain, NULL, 0, fn);
}

/* errno of a call as an exit code; 0: it was done. */
static int why(long rc)
{
    return rc < 0 ? errno : 0;
}

static int ask_sysfs(void)
{
    return why(syscall(__NR_sysfs, 3));
}

static void calls_without_a_row_do_not_exist(void)
{
    SANDBOXED_OR_SKIP();
    CHECK_INT(WEXITSTATUS(plain_after(ask_sysfs)), ENOSYS);
}

static int ask_tomorrow(void)
{
    return why(syscall(511)) == ENOSYS && why(syscall(5000)) == ENOSYS ? 0 : 1;
}

static void calls_that_are_not_invented_yet_do_not_exist(void)
{
    SANDBOXED_OR_SKIP();
    CHECK_INT(plain_after(ask_tomorrow), 0);
}

static int run_program(void)
{
    return why(execl("/bin/true", "true", (char *) NULL));
}

static int trace_parent(void)
{
    return why(syscall(__NR_ptrace, 16 /* attach */, getppid(), 0, 0));
}

static int load_module(void)
{
    return why(syscall(__NR_init_module, 0, 0, 0));
}

static int call_x32(void)
{
    return why(syscall(0x40000000 | __NR_getpid));
}

static int call_32_bits(void)
{
    long rc = 20; /* getpid there */

    __asm__ volatile("int $0x80" : "+a"(rc)::"memory");
    return rc < 0;
}

static void calls_of_a_hijacked_program_end_it(void)
{
    int (*const calls[])(void) = { run_program, trace_parent, load_module, call_x32, call_32_bits };

    SANDBOXED_OR_SKIP();
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        int status = plain_after(calls[i]);

        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    }
}

static int make_sockets(void)
{
    return why(socket(AF_UNIX, SOCK_STREAM, 0)) != 0 || why(socket(AF_INET, SOCK_STREAM, 0)) != 0 ||
           why(socket(AF_NETLINK, SOCK_RAW, 0)) != ENOSYS;
}

static int kill_some(void)
{
    return why(kill(7, 0)) == ENOSYS || why(kill(14, 0)) == ENOSYS || why(kill(8, 0)) != ENOSYS ||
           why(kill(4, 0)) != ENOSYS;
}

static int map_some(void)
{
    void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return data == MAP_FAILED || why(mprotect(data, 4096, PROT_READ | PROT_EXEC)) != ENOSYS ||
           mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
           mprotect(data, 4096, PROT_READ) < 0;
}

static void arguments_are_compared_where_a_row_says_so(void)
{
    SANDBOXED_OR_SKIP();
    CHECK_INT(plain_after(make_sockets), 0);
    CHECK_INT(plain_after(kill_some), 0);
    CHECK_INT(plain_after(map_some), 0);
}

static int unshare_mounts(void)
{
    return why(unshare(CLONE_NEWNS));
}

static void a_row_of_a_deadly_call_still_kills_for_other_arguments(void)
{
    int status;

    SANDBOXED_OR_SKIP();
    status = plain_after(unshare_mounts);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

static int make_process(void)
{
    return why(fork()) == ENOSYS ? 0 : 1;
}

static const struct lockdown_call few_calls[] = {
    CALL(execve),
    CALL_IF(clone, CALL_HAS_NONE, 0, CLONE_NEWUSER | CLONE_NEWNET),
    CALL_IF(socket, CALL_IS, 0, AF_INET),
};
static const struct lockdown_rows few = { "for the test", few_calls, ARRAY_LEN(few_calls) };
static const struct lockdown runs_others = { .program = "runs others",
                                             .any_call = true,
                                             .rows = { &few } };

static int clone_a_namespace(void)
{
    return why(syscall(__NR_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

static int clone_by_struct(void)
{
    return why(syscall(__NR_clone3, NULL, 0));
}

static int another_socket(void)
{
    return why(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int ordinary_calls(void)
{
    return why(eventfd(0, EFD_CLOEXEC)) || why(socket(AF_INET, SOCK_STREAM, 0)) || fork() < 0;
}

static void a_program_that_runs_others_keeps_ordinary_calls_alone(void)
{
    SANDBOXED_OR_SKIP();
    CHECK_INT(after(&runs_others, NULL, 0, ordinary_calls), 0);
    CHECK_INT(WEXITSTATUS(after(&runs_others, NULL, 0, clone_a_namespace)), ENOSYS);
    CHECK_INT(WEXITSTATUS(after(&runs_others, NULL, 0, clone_by_struct)), ENOSYS);
    CHECK_INT(WEXITSTATUS(after(&runs_others, NULL, 0, another_socket)), ENOSYS);
    CHECK(WIFSIGNALED(after(&runs_others, NULL, 0, unshare_mounts)));
}

static void no_process_is_made(void)
{
    SANDBOXED_OR_SKIP();
    CHECK_INT(plain_after(make_process), 0);
}

/* ---- the rest of the posture ---- */

static uint64_t status_bits(const char *key)
{
    auto_file FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long value = 77;

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            (void) sscanf(line + strlen(key), ": %llx", &value);
    return value;
}

static int look_at_self(void)
{
    uint64_t kept = LOCKDOWN_CAP(CAP_KILL);

    if (status_bits("NoNewPrivs") != 1 || (lockdown_filters() && status_bits("Seccomp") != 2))
        return 1;
    if (lockdown_filters() && prctl(PR_GET_DUMPABLE) != 0)
        return 2;
    if (status_bits("CapEff") & ~kept || status_bits("CapPrm") & ~kept || status_bits("CapInh") ||
        status_bits("CapAmb"))
        return 3;
    if (getuid() == 0 && (status_bits("CapBnd") != kept || status_bits("CapEff") != kept))
        return 4;
    return 0;
}

static void privilege_is_gone_but_for_what_is_kept(void)
{
    struct lockdown keeps_one = plain;

    keeps_one.capabilities = LOCKDOWN_CAP(CAP_KILL);
    keeps_one.any_file = true;
    CHECK_INT(WEXITSTATUS(after(&keeps_one, NULL, 0, look_at_self)), 0);
}

static char place[64];

static int touch(const char *name)
{
    char path[128];
    auto_close int fd = -1;

    (void) snprintf(path, sizeof path, "%s/%s", place, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return why(fd);
}

static int use_files(void)
{
    char path[128];
    int fd;

    if (touch("own/new") != 0 || touch("new") != EACCES || touch("read/new") != EACCES)
        return 1;
    (void) snprintf(path, sizeof path, "%s/read/file", place);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
        return 2;
    if (why(unlink(path)) != EACCES || why(open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)) != EACCES)
        return 3;
    return 0;
}

static void files_are_those_that_were_named(void)
{
    char own_dir[96], read_dir[96], file[128];
    int fd;

    if (!lockdown_filters() || lockdown_landlock_version() < 3) {
        SKIP("no Landlock of Linux 6.2 here, or a sanitizer");
        return;
    }
    (void) snprintf(place, sizeof place, "/tmp/lockdown-test-%d", (int) getpid());
    (void) snprintf(own_dir, sizeof own_dir, "%s/own", place);
    (void) snprintf(read_dir, sizeof read_dir, "%s/read", place);
    (void) snprintf(file, sizeof file, "%s/file", read_dir);
    CHECK(mkdir(place, 0700) == 0 && mkdir(own_dir, 0700) == 0 && mkdir(read_dir, 0700) == 0);
    CHECK_INT(touch("read/file"), 0);
    fd = open(read_dir, O_PATH | O_CLOEXEC);
    CHECK_INT(WEXITSTATUS(after(&plain,
                                (const struct lockdown_path[]){
                                    { LOCKDOWN_WRITE, -1, own_dir },
                                    { LOCKDOWN_READ, fd, NULL },
                                    { LOCKDOWN_READ, -1, "/nowhere/at/all" },
                                },
                                3, use_files)),
              0);
    (void) close(fd);
    (void) unlink(file);
    (void) snprintf(file, sizeof file, "%s/new", own_dir);
    (void) unlink(file);
    CHECK(rmdir(own_dir) == 0 && rmdir(read_dir) == 0 && rmdir(place) == 0);
}

static int forget_fd = -1;

static int read_of_proc(void)
{
    auto_close int memory = -1, number = -1;

    if (write(forget_fd, "2", 1) != 1)
        return 1;
    memory = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    number = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
    return memory < 0 ? 2 : number < 0 ? 3 : 0;
}

/* As after a while of too little memory. */
static void files_of_proc_stay_allowed_when_the_kernel_forgets_them(void)
{
    const struct lockdown_path paths[] = { { LOCKDOWN_READ, -1, "/proc/meminfo" },
                                           { LOCKDOWN_READ, -1, "/proc/sys/kernel" } };

    forget_fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (forget_fd < 0) {
        SKIP("needs root");
        return;
    }
    CHECK_INT(WEXITSTATUS(after(&plain, paths, ARRAY_LEN(paths), read_of_proc)), 0);
    own_close(&forget_fd);
}

/* ---- the report ---- */

static void a_refused_call_is_reported_on_request(void)
{
    char text[256] = "";
    int ends[2], status = -1;
    pid_t pid;

    SANDBOXED_OR_SKIP();
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid = fork();
    if (pid == 0) {
        struct err err;

        (void) dup2(ends[1], STDERR_FILENO);
        (void) setenv("COVE_LOCKDOWN", "report", 1);
        _exit(lockdown_enter(&plain, NULL, 0, &err) < 0 ? 200 : ask_sysfs());
    }
    (void) close(ends[1]);
    CHECK(read(ends[0], text, sizeof text - 1) > 0);
    (void) close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(WEXITSTATUS(status), ENOSYS);
    CHECK_STR(text, "plain: lockdown refused system call 139\n");
}

static void common_rows_have_reasons_and_no_doubles(void)
{
    const struct lockdown_rows *const all[] = { &lockdown_runtime, &lockdown_threads,
                                                &lockdown_bytes,   &lockdown_names,
                                                &lockdown_sockets, &lockdown_data_only };

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        CHECK(all[i]->reason[0] && all[i]->count > 0);
        for (size_t j = 0; j < all[i]->count; j++)
            for (size_t k = 0; k < ARRAY_LEN(all); k++)
                for (size_t l = 0; l < all[k]->count; l++)
                    CHECK((i == k && j == l) ||
                          all[i]->calls[j].number != all[k]->calls[l].number ||
                          all[i]->calls[j].test != CALL_ANY);
    }
}

CHECK_MAIN(T(calls_without_a_row_do_not_exist), T(calls_that_are_not_invented_yet_do_not_exist),
           T(calls_of_a_hijacked_program_end_it), T(arguments_are_compared_where_a_row_says_so),
           T(a_row_of_a_deadly_call_still_kills_for_other_arguments), T(no_process_is_made),
           T(a_program_that_runs_others_keeps_ordinary_calls_alone),
           T(privilege_is_gone_but_for_what_is_kept), T(files_are_those_that_were_named),
           T(files_of_proc_stay_allowed_when_the_kernel_forgets_them),
           T(a_refused_call_is_reported_on_request), T(common_rows_have_reasons_and_no_doubles))
