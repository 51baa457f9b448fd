/* The protocol is protobuf, of which a few dozen bytes are needed: fields with a number, each a varint or a
 * run of bytes. Messages are packets of a SOCK_SEQPACKET socket, so they come whole. */
#include "image/criu.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "image/image.h"
#include "image/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX   "/usr/local/lib/cove/criu/usr"
#define LIBS     PREFIX "/lib/x86_64-linux-gnu"
#define SYSTEM   "/usr/sbin/criu"
#define FD_RPC   3
#define FD_IDS   4
#define FD_LOCK  5
#define HANG_MS  120000 /* without a word */
#define END_MS   10000  /* without its socket it has only to undo what it did */
#define LOG_NAME "criu.log"

/* ---- messages ---- */

enum request_type { TYPE_DUMP = 1, TYPE_RESTORE = 2, TYPE_NOTIFY = 6 };

enum { REQ_TYPE = 1, REQ_OPTS = 2, REQ_NOTIFY_SUCCESS = 3 };
enum { RESP_TYPE = 1, RESP_SUCCESS = 2, RESP_RESTORE = 4, RESP_NOTIFY = 5 };
enum { RESTORE_PID = 1, NOTIFY_SCRIPT = 1, NOTIFY_PID = 2 };
enum {
    OPT_IMAGES_DIR_FD = 1,
    OPT_PID = 2,
    OPT_LEAVE_RUNNING = 3,
    OPT_TCP_ESTABLISHED = 5,
    OPT_FILE_LOCKS = 8,
    OPT_LOG_LEVEL = 9,
    OPT_LOG_FILE = 10,
    OPT_NOTIFY_SCRIPTS = 12,
    OPT_ROOT = 13,
    OPT_WORK_DIR_FD = 17,
    OPT_LINK_REMAP = 18,
    OPT_SKIP_MNT = 31,
    OPT_MANAGE_CGROUPS_MODE = 34, /* 0: ignore */
    OPT_GHOST_LIMIT = 35,
    OPT_EXTERNAL = 37,
    OPT_EMPTY_NS = 38,
    OPT_FREEZE_CGROUP = 44,
    OPT_LAZY_PAGES = 48,
    OPT_NETWORK_LOCK = 64,
    OPT_SKIP_FILE_RWX_CHECK = 66,
};
#define LOG_LEVEL   2u /* errors and warnings */
#define GHOST_LIMIT (512u << 20)
#define LOCK_NFT    2u /* nftables: no bytes move while sockets are saved, or half of them restored */

struct message {
    uint8_t data[6144];
    size_t len;
    bool full;
};

static void put_varint(struct message *m, uint64_t value)
{
    do {
        if (m->len == sizeof m->data) {
            m->full = true;
            return;
        }
        m->data[m->len++] = (uint8_t) ((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
}

static void put_number(struct message *m, unsigned field, uint64_t value)
{
    put_varint(m, (uint64_t) field << 3);
    put_varint(m, value);
}

static void put_bytes(struct message *m, unsigned field, const void *data, size_t len)
{
    put_varint(m, (uint64_t) field << 3 | 2u);
    put_varint(m, len);
    if (m->full || len > sizeof m->data - m->len) {
        m->full = true;
        return;
    }
    memcpy(m->data + m->len, data, len);
    m->len += len;
}

static void put_text(struct message *m, unsigned field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

static void read_part(const struct proto_field *part, unsigned pid_field, struct criu_response *ret)
{
    const uint8_t *at = part->data, *end = part->data + part->value;
    struct proto_field f;

    while (proto_next(&at, end, &f)) {
        if (f.number == pid_field && !f.data)
            ret->pid = (pid_t) f.value;
        if (f.number == NOTIFY_SCRIPT && f.data)
            (void) snprintf(ret->point, sizeof ret->point, "%.*s", (int) f.value,
                            (const char *) f.data);
    }
}

void criu_parse_response(const uint8_t *at, size_t len, struct criu_response *ret)
{
    const uint8_t *end = at + len;
    struct proto_field f;

    memset(ret, 0, sizeof *ret);
    while (proto_next(&at, end, &f)) {
        if (f.number == RESP_TYPE)
            ret->type = f.value;
        if (f.number == RESP_SUCCESS)
            ret->success = f.value;
        if (f.number == RESP_RESTORE && f.data)
            read_part(&f, RESTORE_PID, ret);
        if (f.number == RESP_NOTIFY && f.data)
            read_part(&f, NOTIFY_PID, ret);
    }
}

static int read_response(int sock, struct criu_response *ret, struct err *err)
{
    struct pollfd p = { .fd = sock, .events = POLLIN };
    struct message m;
    ssize_t n;

    memset(ret, 0, sizeof *ret);
    if (poll(&p, 1, HANG_MS) != 1)
        return err_set(err, ERR_TIMEOUT, "criu said nothing for %d s", HANG_MS / 1000);
    n = recv(sock, m.data, sizeof m.data, 0);
    if (n <= 0)
        return err_set(err, ERR_INTERNAL, "criu ended without an answer");
    criu_parse_response(m.data, (size_t) n, ret);
    return 0;
}

static int send_message(int sock, const struct message *m, struct err *err)
{
    if (m->full)
        return err_set(err, ERR_INTERNAL, "a request to criu is too long");
    if (send(sock, m->data, m->len, MSG_NOSIGNAL) != (ssize_t) m->len)
        return err_sys(err, errno, "ask criu");
    return 0;
}

static void fill_options(const struct criu_job *job, struct message *opts)
{
    put_number(opts, OPT_IMAGES_DIR_FD, (uint64_t) job->images_fd);
    put_number(opts, OPT_WORK_DIR_FD, (uint64_t) job->work_fd);
    put_number(opts, OPT_LOG_LEVEL, LOG_LEVEL);
    put_text(opts, OPT_LOG_FILE, LOG_NAME);
    put_number(opts, OPT_NOTIFY_SCRIPTS, 1);
    put_number(opts, OPT_TCP_ESTABLISHED, 1);
    put_number(opts, OPT_FILE_LOCKS, 1);
    put_number(opts, OPT_LINK_REMAP, 1);
    put_number(opts, OPT_GHOST_LIMIT, GHOST_LIMIT);
    put_number(opts, OPT_MANAGE_CGROUPS_MODE, 0);
    put_number(opts, OPT_NETWORK_LOCK, LOCK_NFT);
    put_number(opts, OPT_EMPTY_NS, CLONE_NEWNET);
    if (!job->restore) {
        put_number(opts, OPT_PID, (uint64_t) job->pid);
        put_number(opts, OPT_LEAVE_RUNNING, job->leave_running);
    }
    if (job->lazy)
        put_number(opts, OPT_LAZY_PAGES, 1);
    /* agents.h: readable for a restore, and not before */
    put_number(opts, OPT_SKIP_FILE_RWX_CHECK, 1);
    if (job->freezer)
        put_text(opts, OPT_FREEZE_CGROUP, job->freezer);
    if (job->root)
        put_text(opts, OPT_ROOT, job->root);
    for (size_t i = 0; i < job->external_count; i++)
        put_text(opts, OPT_EXTERNAL, job->external[i]);
    for (size_t i = 0; i < job->skip_count; i++)
        put_text(opts, OPT_SKIP_MNT, job->skip[i]);
}

/* ---- the process ---- */

/* Every capability that we have, kept over the change of ids and the exec. */
static int keep_capabilities(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];

    if (syscall(__NR_capget, &head, data) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(data); i++)
        data[i].effective = data[i].inheritable = data[i].permitted;
    if (syscall(__NR_capset, &head, data) < 0)
        return -1;
    for (unsigned cap = 0; cap < 64; cap++)
        if (data[cap / 32].permitted & 1u << cap % 32 &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
            return -1;
    return 0;
}

static int become(uint32_t owner)
{
    /* No fix-ups: a change of ids leaves the capabilities alone, here and in criu (src/criu/shim.c). */
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 ||
        syscall(__NR_setresuid, owner, owner, owner) < 0)
        return -1;
    return keep_capabilities();
}

/* Restored processes are born here, and stay. */
static int enter(const struct cgroup_entry *cgroup)
{
    for (size_t i = 0; i < cgroup->count; i++)
        if (write(cgroup->tasks_fd[i], "0", 1) != 1)
            return -1;
    return unshare(CLONE_NEWCGROUP);
}

static _Noreturn void exec_criu(void)
{
    char *const private[] = { (char *) LIBS "/ld-linux-x86-64.so.2",
                              (char *) "--preload",
                              (char *) "/proc/self/fd/4",
                              (char *) "--library-path",
                              (char *) LIBS,
                              (char *) PREFIX "/sbin/criu",
                              (char *) "swrk",
                              (char *) "3",
                              NULL };
    char *const system[] = { (char *) SYSTEM, (char *) "swrk", (char *) "3", NULL };
    /* Its TLS library would make ready for connections that there are none of. */
    char *const plain[] = { (char *) "PATH=/usr/sbin:/usr/bin",
                            (char *) "GNUTLS_NO_IMPLICIT_INIT=1", NULL };
    char *const preload[] = { (char *) "PATH=/usr/sbin:/usr/bin",
                              (char *) "GNUTLS_NO_IMPLICIT_INIT=1",
                              (char *) "LD_PRELOAD=/proc/self/fd/4", NULL };

    (void) execve(private[0], private, plain);
    (void) execve(system[0], system, preload);
    _exit(127);
}

/* Whether the host's own knows what we ask of it: Debian 12's does not, and would save what it cannot restore. false: it could
 * not be asked, for want of memory or processes. */
static bool ask_system(bool *ret_usable)
{
    char *const args[] = { (char *) SYSTEM, (char *) "--skip-file-rwx-check", (char *) "--version",
                           NULL };
    char *const none[] = { NULL };
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        for (int i = 0; i < 3; i++)
            (void) dup2(null, i);
        (void) execve(SYSTEM, args, none);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return false;
    *ret_usable = WEXITSTATUS(status) == 0;
    return true;
}

bool criu_there(void)
{
    static struct stat known; /* the file that was asked last */
    static bool usable;
    struct stat st;

    if (access(PREFIX "/sbin/criu", X_OK) == 0)
        return true;
    if (stat(SYSTEM, &st) < 0)
        return false;
    if (st.st_ino != known.st_ino || st.st_mtim.tv_sec != known.st_mtim.tv_sec) {
        if (!ask_system(&usable))
            return false; /* asked again the next time */
        known = st;
    }
    return usable;
}

static _Noreturn void run_criu(const struct criu_job *job, int sock)
{
    int null, rpc, ids, lock;
    sigset_t none;

    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) signal(SIGPIPE, SIG_DFL);
    (void) umask(022);
    if (setsid() < 0 || (job->cgroup && enter(job->cgroup) < 0))
        _exit(126);
    null = open("/dev/null", O_RDWR);
    rpc = fcntl(sock, F_DUPFD, 64);
    ids = fcntl(job->criu->ids_fd, F_DUPFD, 64);
    lock = fcntl(job->lock_fd, F_DUPFD, 64);
    if (null < 0 || rpc < 0 || ids < 0 || lock < 0)
        _exit(126);
    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            _exit(126);
    if (dup2(rpc, FD_RPC) < 0 || dup2(ids, FD_IDS) < 0 || dup2(lock, FD_LOCK) < 0 ||
        io_close_from(FD_LOCK + 1, false) < 0 || become(job->owner) < 0)
        _exit(126);
    exec_criu();
}

int criu_start(const struct criu_job *job, struct criu_process *ret, struct err *err)
{
    bool v2 = job->cgroup && job->cgroup->v2_fd >= 0;
    struct clone_args args = { .flags = v2 ? CLONE_INTO_CGROUP : 0,
                               .exit_signal = SIGCHLD,
                               .cgroup = v2 ? (uint64_t) job->cgroup->v2_fd : 0 };
    int pair[2];
    long pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "socketpair");
    pid = syscall(__NR_clone3, &args, sizeof args);
    if (pid == 0)
        run_criu(job, pair[1]);
    (void) close(pair[1]);
    if (pid < 0) {
        (void) close(pair[0]);
        return err_sys(err, errno, "start criu");
    }
    *ret = (struct criu_process){ .pid = (pid_t) pid, .sock = pair[0] };
    return 0;
}

/* False: it had to be killed. Without the socket it has nothing left to do; but to undo a dump it needs the processes' help. */
static bool end(struct criu_process *p, int *ret_status)
{
    auto_close int pidfd = p->pid > 0 ? (int) syscall(__NR_pidfd_open, p->pid, 0) : -1;
    bool ended = true;

    own_close(&p->sock);
    if (pidfd >= 0 && !io_wait_until(pidfd, POLLIN, io_now_ms() + END_MS)) {
        ended = false;
        (void) kill(p->pid, SIGKILL);
    }
    if (p->pid > 0)
        (void) waitpid(p->pid, ret_status, 0);
    p->pid = 0;
    return ended;
}

void criu_stop(struct criu_process *p)
{
    int status;

    if (p->pid > 0)
        (void) kill(p->pid, SIGKILL);
    (void) end(p, &status);
}

/* ---- why it failed ---- */

/* What criu writes about things it cannot save, and what that means to their user. */
/* clang-format off */
static const struct {
    const char *says;
    enum err_kind kind;
    const char *means;
} causes[] = {
    { "io_uring",               ERR_UNSUPPORTED, "a process uses io_uring" },
    { "nested user namespace",  ERR_UNSUPPORTED, "a process made a user namespace of its own" },
    { "nested pid namespace",   ERR_UNSUPPORTED, "a process made a process namespace of its own" },
    { "nested namespace",       ERR_UNSUPPORTED, "a process made namespaces of its own" },
    { "Unseizable",             ERR_UNSUPPORTED, "a process is being traced by another" },
    { "Can't dump ghost file",  ERR_UNSUPPORTED, "a deleted file that is still open is larger than 512 MiB" },
    { "Unix socket",            ERR_UNSUPPORTED, "a process holds a socket to a peer outside the sandbox" },
    { "external socket",        ERR_UNSUPPORTED, "a process holds a socket to a peer outside the sandbox" },
    { "Unsupported socket",     ERR_UNSUPPORTED, "a process holds a socket of a kind that cannot be saved" },
    { "In-flight connection",   ERR_UNSUPPORTED, "a connection waits at a listener and is not accepted yet" },
    { "in-flight socket",       ERR_UNSUPPORTED, "a connection waits at a listener and is not accepted yet" },
    { "Locking network failed", ERR_UNSUPPORTED, "the kernel has no nftables" },
    { "No space left",          ERR_DISK_FULL,   IMAGE_NO_ROOM },
    { "Disk quota exceeded",    ERR_DISK_FULL,   IMAGE_NO_ROOM },
};
/* clang-format on */

static void explain(const struct criu_job *job, struct err *err)
{
    const char *deed = job->restore ? "restore" : "save";
    int fd = openat(job->work_fd, LOG_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    auto_file FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
    char line[512], first[256] = "no reason given";
    bool have = false;

    while (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "Error (");

        if (!at || strstr(at, "RLIMIT_NOFILE") ||
            strstr(at, "tun: ")) /* harmless, and always there */
            continue;
        for (size_t i = 0; i < ARRAY_LEN(causes); i++)
            if (strstr(at, causes[i].says)) {
                (void) err_set(err, causes[i].kind, "%s", causes[i].means);
                return;
            }
        log_line(LOG_WARNING, "criu: %.*s", (int) strcspn(at, "\n"), at);
        if (!have)
            (void) snprintf(first, sizeof first, "%.*s", (int) strcspn(at, "\n"), at);
        have = true;
    }
    /* Not every failed write of criu's says why. */
    if (!job->restore && image_disk_full(job->images_fd))
        (void) err_set(err, ERR_DISK_FULL, "%s", IMAGE_NO_ROOM);
    else
        (void) err_set(err, ERR_UNSUPPORTED, "criu cannot %s it: %.120s", deed, first);
}

/* ---- one job ---- */

static int serve(const struct criu_job *job, int sock, struct criu_response *r, struct err *err)
{
    for (;;) {
        struct message answer = { .len = 0 };
        int rc;

        if (read_response(sock, r, err) < 0)
            return -1;
        if (r->type != TYPE_NOTIFY)
            return 0;
        rc = job->reached(job->arg, r->point, r->pid, err);
        put_number(&answer, REQ_TYPE, TYPE_NOTIFY);
        put_number(&answer, REQ_NOTIFY_SUCCESS, rc == 0);
        if (send_message(sock, &answer, err) < 0)
            return -1;
        if (rc < 0) { /* it undoes what it did, then answers; our own reason counts */
            struct err ignored;

            while (read_response(sock, r, &ignored) == 0 && r->type == TYPE_NOTIFY) {
                if (send_message(sock, &answer, &ignored) < 0)
                    break;
            }
            return -1;
        }
    }
}

static int ask(const struct criu_job *job, int sock, struct criu_response *r, struct err *err)
{
    struct message request = { .len = 0 }, opts = { .len = 0 };

    fill_options(job, &opts);
    put_number(&request, REQ_TYPE, job->restore ? TYPE_RESTORE : TYPE_DUMP);
    put_bytes(&request, REQ_OPTS, opts.data, opts.len);
    request.full = request.full || opts.full;
    return send_message(sock, &request, err) < 0 ? -1 : serve(job, sock, r, err);
}

int criu_run(const struct criu_job *job, pid_t *ret_pid, struct err *err)
{
    struct criu_process own = CRIU_NONE, *p = job->process ? job->process : &own;
    struct criu_response r = { .type = 0 };
    int rc, status = 0;
    bool ended;

    if (p == &own && criu_start(job, p, err) < 0)
        return -1;
    rc = ask(job, p->sock, &r, err);
    ended = end(p, &status);
    if (!ended && rc < 0)
        return err_set(err, ERR_TIMEOUT, "criu did not end within %d s", END_MS / 1000);
    if (rc < 0 && err->kind == ERR_TIMEOUT) /* it let the processes go after all */
        err->kind = ERR_UNSUPPORTED;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return err_set(err, ERR_UNSUPPORTED,
                       "there is no criu here, or it is too old: 'cove doctor' says more");
    if (rc == 0 && !r.success) {
        explain(job, err);
        return -1;
    }
    if (rc < 0)
        return -1;
    if (ret_pid)
        *ret_pid = r.pid;
    return 0;
}
