/* One connection is one order, and has two processes: one that does the work, and one that watches both the work and the connection.
 * Whichever ends first ends the other. Only the watcher cleans up, after the worker is gone: so it does not matter where
 * the work was, or whether coved was killed, or the worker. The last report is the watcher's, too: when coved has it, the worker is gone
 * and what coved does next cannot end it. What is left when all of them are killed goes at the next start. */
#include "cli/up/pulls.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/up/supervise.h"
#include "cli/users.h"
#include "client/local_socket.h"
#include "template/image_import.h"
#include "template/image_pull.h"
#include "template/image_store.h"
#include "template/template_store.h"
#include "template/tree.h"
#include "wire/pull.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LISTEN_FD    3
#define AT_ONCE      8
#define REAP_MS      1000  /* between two looks which of them have ended */
#define ORDER_MS     10000 /* for a connection to say what it wants */
#define STEP_PERCENT 10    /* between two reports of one step */
/* For all that is no download. cove-import limits its own processor time, but one that a layer has taken over could just wait. */
#define WORK_MS 3600000
#define GONE_MS 10000 /* for programs that were killed to be gone */

int pulls_users(struct pulls *pulls, struct err *err)
{
    return user_ensure("cove-import", &pulls->import_uid, &pulls->import_gid, err) < 0
               ? -1
               : user_ensure("cove-pull", &pulls->pull_uid, &pulls->pull_gid, err);
}

int pulls_listen(struct pulls *pulls, uid_t server, struct err *err)
{
    pulls->server = server;
    return local_listen(report_state(), PULL_SOCKET, SOCK_SEQPACKET, server, &pulls->listen_fd,
                        err);
}

/* ---- reports ---- */

struct order {
    const struct pulls *pulls;
    int conn, archive_fd;
    struct pull_order order;
    struct pull_report *last; /* both processes see it */
    struct template_maker maker;
    char agent[PATH_MAX];
    /* what was told last */
    char step[64];
    unsigned percent;
};

/* false: coved is gone. */
static bool say(const struct order *o, const struct pull_report *report)
{
    struct pull_report said = *report;

    said.magic = PULL_MAGIC;
    return send(o->conn, &said, sizeof said, MSG_NOSIGNAL) == (ssize_t) sizeof said;
}

static void tell(const struct order *o, const struct pull_report *report)
{
    if (!say(o, report))
        _exit(1);
}

static void tell_note(void *context, const char *text)
{
    struct pull_report report = { .word = PULL_NOTE };

    (void) snprintf(report.text, sizeof report.text, "%s", text);
    tell(context, &report);
}

static void tell_step(void *context, unsigned percent, const char *step, const char *detail)
{
    struct pull_report report = { .word = PULL_STEP, .percent = percent };
    struct order *o = context;

    if (strcmp(o->step, step) == 0 && percent >= o->percent && percent < o->percent + STEP_PERCENT)
        return;
    (void) snprintf(o->step, sizeof o->step, "%s", step);
    o->percent = percent;
    (void) snprintf(report.text, sizeof report.text, "%s: %u %%%s%.100s", step, percent,
                    detail ? ", " : "", detail ? detail : "");
    tell(o, &report);
}

static int fail(const struct order *o, const struct err *err)
{
    *o->last = (struct pull_report){ .word = PULL_FAILED, .kind = err->kind };
    (void) snprintf(o->last->text, sizeof o->last->text, "%s", err->msg);
    return 1;
}

/* ---- the worker ---- */

static bool is_known(const struct pull_order *order, const char *digest)
{
    for (size_t i = 0; i < PULL_KNOWN_MAX; i++)
        if (order->known[i][0] && strcmp(order->known[i], digest) == 0)
            return true;
    return false;
}

static int import(struct order *o, struct image_spec *spec, struct err *err)
{
    struct pull_report report = { .word = PULL_DONE };
    struct image_result result = { 0 };
    char program[PATH_MAX];

    if (program_find("cove-import", program, sizeof program, err) < 0)
        return -1;
    spec->name = o->order.name;
    spec->program = program;
    spec->uid = o->pulls->import_uid;
    spec->gid = o->pulls->import_gid;
    spec->layout_fd = -1;
    spec->alone = true;
    spec->bytes_most = o->order.bytes_most;
    if (template_import(&o->maker, report_state(), spec, &result, err) < 0)
        return -1;
    report.bytes = result.bytes;
    report.files = result.files;
    (void) snprintf(report.digest, sizeof report.digest, "%s",
                    spec->manifest ? spec->manifest : "");
    *o->last = report;
    return 0;
}

static int pull(struct order *o, struct image_pull *p, struct err *err)
{
    struct image_spec spec = { .archive_fd = -1,
                               .manifest = p->digest,
                               .open_blob = image_pull_blob,
                               .context = p,
                               .from = o->order.reference };
    int r = image_pull_begin(p, &o->order, err);

    explicit_bzero(o->order.basic, sizeof o->order.basic);
    if (r < 0)
        return -1;
    if (is_known(&o->order, p->digest)) {
        struct pull_report report = { .word = PULL_KNOWN };

        memcpy(report.digest, p->digest, sizeof report.digest);
        *o->last = report;
        return 0;
    }
    return import(o, &spec, err);
}

static int on_image(struct order *o, struct err *err)
{
    char program[PATH_MAX], dialer[PATH_MAX];
    auto_close int templates_fd = -1;
    struct image_pull p = { .maker = &o->maker,
                            .program = program,
                            .dialer = dialer,
                            .uid = o->pulls->pull_uid,
                            .gid = o->pulls->pull_gid,
                            .manifest_fd = -1,
                            .sock = -1 };
    int r;

    if (program_find("cove-pull", program, sizeof program, err) < 0 ||
        program_find("cove-dial", dialer, sizeof dialer, err) < 0 ||
        template_store_open(report_state(), &templates_fd, err) < 0)
        return -1;
    p.templates_fd = templates_fd;
    r = pull(o, &p, err);
    image_pull_end(&p);
    return r;
}

static int on_archive(struct order *o, struct err *err)
{
    struct image_spec spec = { .archive_fd = o->archive_fd,
                               .tag = o->order.tag[0] ? o->order.tag : NULL,
                               .from = "an archive" };
    struct stat st;

    if (o->archive_fd < 0 || fstat(o->archive_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_PROTOCOL, "an import without an archive");
    return import(o, &spec, err);
}

static int on_remove(struct order *o, struct err *err)
{
    auto_close int templates_fd = -1, lock_fd = -1;

    if (template_store_open(report_state(), &templates_fd, err) < 0 ||
        template_lock(&o->maker, templates_fd, o->order.name, &lock_fd, err) < 0)
        return -1;
    if (template_remove(report_state(), templates_fd, o->order.name, err) < 0 &&
        err->kind != ERR_NO_TEMPLATE)
        return -1;
    *o->last = (struct pull_report){ .word = PULL_DONE };
    return 0;
}

static int work(struct order *o)
{
    static int (*const ops[])(struct order * o, struct err * err) = {
        [PULL_IMAGE] = on_image, [PULL_ARCHIVE] = on_archive, [PULL_REMOVE] = on_remove
    };
    struct err err;

    o->maker = (struct template_maker){
        .context = o, .note = tell_note, .step = tell_step, .agent = NULL
    };
    if (program_find("cove-agent", o->agent, sizeof o->agent, &err) == 0)
        o->maker.agent = o->agent;
    return ops[o->order.op](o, &err) < 0 ? fail(o, &err) : 0;
}

/* ---- what is left ---- */

/* Builds and locks of a name; NULL: of all names that are ours. Then images of no template, which a build may have had the last
 * link to, and files that were being written. */
static void sweep(const char *name)
{
    static const char *const kinds[] = { ".build-", ".lock-" };
    auto_close int templates_fd = -1;
    auto_dir DIR *dir = NULL;
    const struct dirent *entry;
    struct err err;
    int fd;

    if (template_store_open(report_state(), &templates_fd, &err) < 0)
        return;
    fd = openat(templates_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    while (dir && (entry = readdir(dir)))
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            const char *rest = entry->d_name + strlen(kinds[i]);

            if (strncmp(entry->d_name, kinds[i], strlen(kinds[i])) == 0 && pull_name_is(rest) &&
                (!name || strncmp(rest, name, strlen(name)) == 0))
                (void) tree_remove(templates_fd, entry->d_name, &err);
        }
    if (image_store_prune(templates_fd, &err) < 0)
        log_line(LOG_WARNING, "%s", err.msg);
}

/* After a worker that failed: what it had put in place already. */
static void tidy(const struct order *o, bool failed)
{
    auto_close int templates_fd = -1;
    struct err err;

    if (template_store_open(report_state(), &templates_fd, &err) < 0)
        return;
    if (failed && o->order.op != PULL_REMOVE)
        (void) template_remove(report_state(), templates_fd, o->order.name, &err);
    sweep(o->order.name);
}

/* ---- the watcher ---- */

static int receive(struct order *o, struct err *err)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    size_t fds = 0;
    ssize_t n;

    if (getsockopt(o->conn, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
        (peer.uid != 0 && peer.uid != o->pulls->server))
        return err_set(err, ERR_DENIED, "an order for an image of user %u", (unsigned) peer.uid);
    if (!io_wait_until(o->conn, POLLIN, io_now_ms() + ORDER_MS))
        return err_set(err, ERR_TIMEOUT, "a connection without an order for an image");
    n = io_recv_fds(o->conn, &o->order, sizeof o->order, &o->archive_fd, 1, &fds);
    return n <= 0 ? err_set(err, ERR_PROTOCOL, "a connection without an order for an image")
                  : pull_order_check(&o->order, (size_t) n, err);
}

/* The wait status of the worker; -1: coved went away first, or it took too long. Programs that it started end with it, and are waited
 * for: cove-import holds the lock of the file that it writes. */
static int watch(const struct order *o, pid_t pid)
{
    auto_close int pid_fd = (int) syscall(SYS_pidfd_open, pid, 0);
    struct pollfd fds[] = { { .fd = pid_fd, .events = POLLIN },
                            { .fd = o->conn, .events = POLLIN | POLLRDHUP } };
    int status = -1;

    while (poll(fds, 2, (int) pull_order_limit(&o->order) + WORK_MS) < 0 && errno == EINTR)
        ;
    (void) kill(-pid, SIGKILL); /* its id is taken until it is waited for */
    if (waitpid(pid, &status, 0) != pid)
        status = -1;
    for (int i = 0, gone = 0; i < GONE_MS / 10 && gone >= 0; i += gone == 0) {
        gone = waitpid(-1, NULL, WNOHANG);
        if (gone == 0)
            (void) poll(NULL, 0, 10);
    }
    return fds[0].revents & POLLIN ? status : -1;
}

/* Nothing is left when coved hears that it failed; and an image that coved does not hear of does not stay. */
static void end(const struct order *o, int status)
{
    struct err err;

    tidy(o, status != 0);
    if (status != 0 && o->last->word != PULL_FAILED) {
        err_set(&err, ERR_INTERNAL, "the import ended before it was done, or took too long");
        (void) fail(o, &err);
    }
    if (!say(o, o->last) && status == 0)
        tidy(o, true);
}

static void serve_one(const struct pulls *pulls, int conn)
{
    static struct order o; /* large */
    struct err err;
    pid_t pid;

    o.pulls = pulls;
    o.conn = conn;
    o.archive_fd = -1;
    if (receive(&o, &err) < 0) {
        log_line(LOG_WARNING, "%s", err.msg);
        return;
    }
    o.last = mmap(NULL, sizeof *o.last, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (o.last == MAP_FAILED)
        return;
    (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid = fork();
    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) setpgid(0, 0);
        _exit(work(&o));
    }
    (void) setpgid(pid, pid); /* whichever is first */
    explicit_bzero(o.order.basic, sizeof o.order.basic);
    end(&o, pid < 0 ? -1 : watch(&o, pid));
}

/* ---- the process ---- */

__attribute__((noreturn)) static void serve(const struct pulls *pulls)
{
    size_t running = 0;

    sweep(NULL);
    for (;;) {
        struct pollfd more = { .fd = LISTEN_FD, .events = POLLIN };
        int conn;
        pid_t pid;

        while (running > 0 && waitpid(-1, NULL, running < AT_ONCE ? WNOHANG : 0) > 0)
            running--;
        if (poll(&more, 1, running > 0 ? REAP_MS : -1) == 0)
            continue;
        conn = accept4(LISTEN_FD, NULL, NULL, SOCK_CLOEXEC);
        if (conn < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (conn < 0)
            _exit(1);
        pid = fork();
        if (pid == 0) {
            (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void) close(LISTEN_FD);
            serve_one(pulls, conn);
            _exit(0);
        }
        running += pid > 0;
        (void) close(conn);
    }
}

int pulls_start(void *with, pid_t *ret, struct err *err)
{
    const struct pulls *pulls = with;
    pid_t pid = fork();

    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (pid == 0) {
        supervise_enter();
        (void) prctl(PR_SET_NAME, "cove-pulls");
        if (dup2(pulls->listen_fd, LISTEN_FD) < 0)
            _exit(126);
        (void) syscall(__NR_close_range, LISTEN_FD + 1, ~0u, 0);
        log_init("cove-pulls", LOG_INFO);
        serve(pulls);
    }
    *ret = pid;
    return 0;
}

/* Its socket is there before it, and orders wait. */
bool pulls_are_ready(void *with)
{
    (void) with;
    return true;
}
