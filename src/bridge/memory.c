#include "bridge/memory.h"

#include "base/io.h"
#include "base/own.h"
#include "bridge/qemu.h"
#include "wire/boot.h"
#include "wire/qmp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOAD_MS   30000u
#define LINE_MOST 8192u
#define SEALS     (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* A QEMU, and our ends of its lines. */
struct qemu {
    pid_t pid;
    int trunk, starter;
    uint64_t until_ms;
};

static void end_qemu(struct qemu *q)
{
    if (q->pid > 0) {
        (void) kill(q->pid, SIGKILL);
        (void) waitpid(q->pid, NULL, 0);
    }
    q->pid = 0;
    own_close(&q->trunk);
    own_close(&q->starter);
}

/* ---- its monitor ---- */

/* A line of it; one that is too long has its beginning only. */
static int read_line(const struct qemu *q, char line[LINE_MOST], struct err *err)
{
    size_t len = 0;
    char byte = '\0';

    while (byte != '\n') {
        if (io_read_until(q->starter, &byte, 1, q->until_ms) < 0)
            return err_sys(err, errno, "hear from QEMU");
        if (len < LINE_MOST - 1)
            line[len++] = byte;
    }
    line[len] = '\0';
    return 0;
}

/* moves: done when QEMU says that the migration is. */
static int ask(const struct qemu *q, const char *command, int fd, bool moves, struct err *err)
{
    static char line[LINE_MOST];
    bool returned = false, moved = !moves;
    char why[160];

    if (io_send_fds(q->starter, command, strlen(command), &fd, fd >= 0) !=
        (ssize_t) strlen(command))
        return err_sys(err, errno, "ask QEMU");
    while (!returned || !moved) {
        enum qmp_said said;

        if (read_line(q, line, err) < 0)
            return -1;
        said = qmp_read(line, why, sizeof why);
        if (said == QMP_ERROR)
            return err_set(err, ERR_UNAVAILABLE, "QEMU refuses: %s", why);
        if (said == QMP_FAILED)
            return err_set(err, ERR_UNAVAILABLE, "QEMU could not move the machine's state");
        returned = returned || said == QMP_RETURN;
        moved = moved || said == QMP_MOVED;
    }
    return 0;
}

/* Memory that is a shared file is no part of the state. */
#define CAPABILITY(name, on) "{\"capability\":\"" name "\",\"state\":" on "}"
#define CAPABILITIES(list)                                                                         \
    "{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":[" list "]}}\n"
#define FILE_APART(on)                                                                             \
    CAPABILITIES(CAPABILITY("events", "true") "," CAPABILITY("x-ignore-shared", on))

static int greet(const struct qemu *q, struct err *err)
{
    return ask(q, "{\"execute\":\"qmp_capabilities\"}\n", -1, false, err) < 0
               ? -1
               : ask(q, FILE_APART("true"), -1, false, err);
}

/* Through a pipe, by a process of its own: QEMU and we wait for each other. */
static int move_state(const struct qemu *q, const char *command, int pipe_fd, struct err *err)
{
    return ask(q, "{\"execute\":\"getfd\",\"arguments\":{\"fdname\":\"pipe\"}}\n", pipe_fd, false,
               err) < 0
               ? -1
               : ask(q, command, -1, true, err);
}

/* ---- the state ---- */

/* From the beginning of one to the end of it: files are read and written at places, as others have the same descriptor. */
static int copy_bytes(int from, bool from_file, int to, bool to_file)
{
    static char data[65536];

    for (off_t at = 0;;) {
        ssize_t n = from_file ? pread(from, data, sizeof data, at) : read(from, data, sizeof data);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int) n;
        if (to_file ? pwrite(to, data, (size_t) n, at) != n
                    : io_write_all(to, data, (size_t) n) < 0)
            return -1;
        at += n;
    }
}

static int with_copier(const struct qemu *q, bool save, struct err *err)
{
    auto_close int from = -1, to = -1;
    int pair[2], status = 0, rc;
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "make a pipe");
    from = pair[0];
    to = pair[1];
    pid = fork();
    if (pid == 0) {
        own_close(save ? &to : &from);
        _exit(copy_bytes(save ? from : BOOT_FD_STATE, !save, save ? BOOT_FD_STATE : to, save) < 0);
    }
    if (pid < 0)
        return err_sys(err, errno, "start a copier");
    rc = save ? move_state(q, "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"fd:pipe\"}}\n", to,
                           err)
              : move_state(
                    q, "{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":\"fd:pipe\"}}\n",
                    from, err);
    own_close(&from);
    own_close(&to);
    if (rc < 0)
        (void) kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) < 0 || (rc == 0 && status != 0))
        rc = err_set(err, ERR_UNAVAILABLE, "the machine's state could not be copied");
    return rc;
}

/* ---- a machine ---- */

static int open_qemu(const struct guest_start *start, enum qemu_way way, int trunk, int monitor,
                     struct qemu *q, struct err *err)
{
    auto_close int theirs = -1;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "make a line to QEMU");
    q->starter = pair[0];
    theirs = pair[1];
    return qemu_start(start, way,
                      &(struct qemu_lines){ .trunk = trunk, .monitor = monitor, .starter = theirs },
                      &q->pid, err);
}

/* Not before the last process that could write is gone. */
static int seal(struct err *err)
{
    return fcntl(BOOT_FD_STATE, F_ADD_SEALS, SEALS) < 0 ||
                   fcntl(BOOT_FD_MEMORY, F_ADD_SEALS, SEALS) < 0
               ? err_sys(err, errno, "seal a machine's memory")
               : 0;
}

/* The byte by which it says that it waits. */
static int boot(const struct guest_start *start, struct qemu *q, struct err *err)
{
    auto_close int theirs = -1, monitor = -1, unused = -1;
    int pair[2];
    char byte;

    if (initrd_make(start, true, err) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "make a trunk");
    q->trunk = pair[0];
    theirs = pair[1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "make a line to QEMU");
    unused = pair[0];
    monitor = pair[1];
    if (open_qemu(start, QEMU_MAKE, theirs, monitor, q, err) < 0)
        return -1;
    own_close(&theirs); /* its end is QEMU's end */
    return io_read_until(q->trunk, &byte, 1, q->until_ms) < 0
               ? err_sys(err, errno, "wait for the machine's kernel")
               : 0;
}

int memory_make(const struct guest_start *start, struct err *err)
{
    struct qemu q = { .trunk = -1,
                      .starter = -1,
                      .until_ms = io_now_ms() + start->patience_ms / 2 };
    int rc = -1;

    if (boot(start, &q, err) == 0 && greet(&q, err) == 0 &&
        ask(&q, "{\"execute\":\"stop\"}\n", -1, false, err) == 0)
        rc = with_copier(&q, true, err);
    end_qemu(&q);
    return rc < 0 ? -1 : seal(err);
}

int memory_copy(const struct guest_start *start, struct err *err)
{
    struct qemu q = { .trunk = -1, .starter = -1, .until_ms = io_now_ms() + LOAD_MS };
    int rc = -1;

    if (open_qemu(start, QEMU_COPY, start->trunk, start->monitor, &q, err) == 0 &&
        greet(&q, err) == 0 && with_copier(&q, false, err) == 0 &&
        ask(&q, FILE_APART("false"), -1, false, err) == 0) /* it may be saved itself one day */
        rc = ask(&q, "{\"execute\":\"cont\"}\n", -1, false, err);
    if (rc < 0)
        end_qemu(&q);
    own_close(&q.starter);
    return rc;
}
