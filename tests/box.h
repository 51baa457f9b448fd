/* box.h - an agent for tests: PID 1 of scratch namespaces, without keeper, filter or cgroups.
 *
 * The ids 0..65535 inside are BOX_IDS.. outside, /proc is its own, /etc, /home, /mnt and /tmp are
 * fresh. /mnt/sudo is the agent's own program. Linked with src/client, whose streams speak to it.
 */
#ifndef COVE_TESTS_BOX_H
#define COVE_TESTS_BOX_H

#include "base/io.h"
#include "base/own.h"
#include "client/stream.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define BOX_IDS         1879048192u
#define BOX_PATIENCE_MS 60000

struct box {
    char dir[64];
    struct sockaddr_un addr;
    pid_t pid;
};

static inline void box_die(const char *what)
{
    (void) fprintf(stderr, "box: %s: %s\n", what, strerror(errno));
    _exit(99);
}

static inline void box_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0 || fchmod(fd, mode) < 0)
        box_die(path);
    (void) close(fd);
}

static inline void box_copy(int from, const char *path)
{
    char buf[65536];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    ssize_t n;

    if (fd < 0 || lseek(from, 0, SEEK_SET) < 0)
        box_die(path);
    while ((n = read(from, buf, sizeof buf)) > 0)
        if (io_write_all(fd, buf, (size_t) n) < 0)
            box_die(path);
    (void) close(fd);
}

static inline void box_mounts(int program)
{
    static const char *const fresh[] = { "/etc", "/home", "/mnt", "/tmp", "/root" };

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        box_die("private mounts");
    for (size_t i = 0; i < ARRAY_LEN(fresh); i++)
        if (mount("tmpfs", fresh[i], "tmpfs", 0, "mode=0755") < 0)
            box_die(fresh[i]);
    (void) chmod("/tmp", 01777);
    if (mount("proc", "/proc", "proc", 0, NULL) < 0)
        box_die("/proc");
    if (mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620") < 0 ||
        mount("/dev/pts/ptmx", "/dev/ptmx", NULL, MS_BIND, NULL) < 0)
        box_die("/dev/pts");
    box_file("/etc/passwd",
             "root:x:0:0:root:/root:/bin/sh\n"
             "user:x:1000:1000:,,,:/home/user:/bin/sh\n"
             "other:x:1001:1001::/home/nowhere:/usr/sbin/nologin\n",
             0644);
    box_file("/etc/group", "root:x:0:\nuser:x:1000:\nstaff:x:50:user,other\naudio:x:29:user\n",
             0644);
    if (mkdir("/home/user", 0755) < 0 || chown("/home/user", 1000, 1000) < 0)
        box_die("/home/user");
    box_copy(program, "/mnt/sudo");
}

/* A filter that refuses one call, unshare, by asking the agent. */
static inline int box_filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };
    int fd;

    (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    fd = (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                       &program);
    if (fd < 0)
        box_die("filter");
    return fd;
}

/* Descriptors 3 to 5 as boot.h says; everything else is closed by exec. */
static inline void box_child(int go, int listener, int ready, const char *flags, int program)
{
    char *argv[] = { (char *) "cove-agent",
                     (char *) flags,
                     (char *) "user",
                     (char *) "",
                     (char *) "0",
                     (char *) "0",
                     NULL };
    char *envp[] = { (char *) "PATH=/mnt:/usr/local/bin:/usr/bin:/bin", (char *) "FROM=template",
                     NULL };
    int null = open("/dev/null", O_RDWR);
    char byte;

    if (io_read_all(go, &byte, 1) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
        box_die("become root inside");
    box_mounts(program);
    if (chdir("/") < 0 || null < 0)
        box_die("/");
    listener = fcntl(listener, F_DUPFD_CLOEXEC, 50);
    ready = fcntl(ready, F_DUPFD_CLOEXEC, 50);
    program = fcntl(program, F_DUPFD_CLOEXEC, 50);
    for (int i = 0; i < 2; i++)
        (void) dup2(null, i);
    (void) dup2(listener, BOOT_FD_LISTEN);
    (void) dup2(ready, BOOT_FD_READY);
    (void) syscall(SYS_close_range, 5u, 49u, 0u);
    (void) syscall(SYS_close_range, 50u, ~0u, 4u);
    if (atoi(flags) & BOOT_NOTIFY) {
        (void) dup2(box_filter(), BOOT_FD_NOTIFY);
        (void) fcntl(BOOT_FD_NOTIFY, F_SETFD, 0); /* it may have had that number already */
    }
    (void) syscall(SYS_execveat, program, "", argv, envp, AT_EMPTY_PATH);
    box_die("exec the agent");
}

static inline void box_map(pid_t pid, const char *file)
{
    char path[64], text[64];

    (void) snprintf(path, sizeof path, "/proc/%d/%s", (int) pid, file);
    (void) snprintf(text, sizeof text, "0 %u 65536\n", BOX_IDS);
    if (io_write_text(AT_FDCWD, path, text) < 0)
        box_die(path);
}

static inline void box_stop(struct box *box)
{
    if (box->pid > 0) {
        (void) kill(box->pid, SIGKILL);
        (void) waitpid(box->pid, NULL, 0);
        (void) unlink(box->addr.sun_path);
        (void) rmdir(box->dir);
    }
    box->pid = 0;
}

/* Exits the test program when it cannot. */
static inline void box_start(struct box *box, const char *agent, unsigned boot_flags)
{
    int go[2], ready[2], listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int program = open(agent, O_RDONLY | O_CLOEXEC);
    char flags[16], byte;

    *box = (struct box){ .dir = "/tmp/cove-box-XXXXXX", .addr.sun_family = AF_UNIX };
    if (program < 0)
        box_die(agent);
    if (!mkdtemp(box->dir) || pipe2(go, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
        box_die(box->dir);
    (void) snprintf(box->addr.sun_path, sizeof box->addr.sun_path, "%s/agent.sock", box->dir);
    (void) snprintf(flags, sizeof flags, "%u", boot_flags);
    if (bind(listener, (struct sockaddr *) &box->addr, sizeof box->addr) < 0)
        box_die("bind");
    box->pid = (pid_t) syscall(SYS_clone,
                               CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                   CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD,
                               0, 0, 0, 0);
    if (box->pid < 0)
        box_die("clone");
    if (box->pid == 0)
        box_child(go[0], listener, ready[1], flags, program);
    box_map(box->pid, "uid_map");
    box_map(box->pid, "gid_map");
    IGNORE(write(go[1], "1", 1) < 0);
    (void) close(ready[1]);
    if (io_read_all(ready[0], &byte, 1) < 0)
        box_die("the agent did not start");
    (void) close(go[0]), (void) close(go[1]), (void) close(ready[0]);
    (void) close(listener), (void) close(program);
}

static inline int box_connect(const struct box *box)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (const struct sockaddr *) &box->addr, sizeof box->addr) < 0)
        box_die("connect");
    return fd;
}

/* Lists of texts, for args and env: each with its NUL, the last one's by the compiler. */
#define TEXTS(s) ((struct texts){ .data = (s), .len = sizeof(s) })

/* A command and all that came of it. */
struct ran {
    struct err err; /* kind 0: it ran */
    char out[2][65536];
    size_t len[2];
    uint64_t total[2]; /* bytes received, kept or not */
    uint64_t jumped[2];
    struct agent_reply end;
    uint32_t proc, pid;
};

static inline int box_ask(struct box *box, struct stream *s, struct agent_request request,
                          struct err *err)
{
    request.version = AGENT_VERSION;
    *s = STREAM_NONE;
    return stream_start(s, box_connect(box), BOX_PATIENCE_MS, &request, err);
}

/* Everything up to EXIT or ERROR. */
static inline void box_collect(struct stream *s, struct ran *ran)
{
    struct frame frame;

    while (stream_next(s, &frame, &ran->err) == 1) {
        int i = frame.type == FRAME_STDERR;

        if (frame.type == FRAME_STDOUT || frame.type == FRAME_STDERR) {
            uint64_t offset = frame_get_u64(frame.data);
            size_t n = frame.len - 8;

            ran->jumped[i] += offset - (ran->total[i] + ran->jumped[i]);
            ran->total[i] += n;
            if (n > sizeof ran->out[i] - 1 - ran->len[i])
                n = sizeof ran->out[i] - 1 - ran->len[i];
            memcpy(ran->out[i] + ran->len[i], frame.data + 8, n);
            ran->len[i] += n;
            ran->out[i][ran->len[i]] = '\0';
        } else if (frame.type == FRAME_REPLY || frame.type == FRAME_EXIT) {
            struct agent_reply reply;

            if (agent_reply_decode(&reply, frame.data, frame.len, &ran->err) < 0)
                return;
            if (frame.type == FRAME_REPLY) {
                ran->proc = reply.proc;
                ran->pid = reply.pid;
                continue;
            }
            ran->end = reply;
            ran->err.kind = ERR_NONE;
            return;
        }
    }
}

static inline struct ran *box_run(struct box *box, struct agent_request request)
{
    static struct ran ran;
    struct stream s;

    memset(&ran, 0, sizeof ran);
    if (request.op == AGENT_NONE)
        request.op = AGENT_EXEC;
    if (box_ask(box, &s, request, &ran.err) == 0)
        box_collect(&s, &ran);
    stream_close(&s);
    return &ran;
}

/* Starts a command and reads its REPLY. */
static inline uint32_t box_begin(struct box *box, struct stream *s, struct agent_request request)
{
    struct agent_reply reply;
    struct err err;

    request.op = AGENT_EXEC;
    if (box_ask(box, s, request, &err) < 0 || stream_reply(s, FRAME_REPLY, &reply, &err) < 0) {
        (void) fprintf(stderr, "begin: %s\n", err.msg);
        return 0;
    }
    return reply.proc;
}

/* One request with one REPLY. */
static inline int box_simple(struct box *box, struct agent_request request, struct agent_reply *ret,
                             struct err *err)
{
    struct stream s;
    int r = -1;

    memset(ret, 0, sizeof *ret);
    if (box_ask(box, &s, request, err) == 0)
        r = stream_reply(&s, FRAME_REPLY, ret, err);
    stream_close(&s);
    return r;
}

#endif
