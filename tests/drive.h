/* drive.h - calls worker_main as the agent does, without the agent: a socketpair, a forked child that
 * drops to a user, one request. Used by tests/helpers/agent_*.c. */
#ifndef COVE_TESTS_DRIVE_H
#define COVE_TESTS_DRIVE_H

#include "agent/worker/worker.h"
#include "base/io.h"
#include "base/own.h"
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#define ROOT   0u
#define NOBODY 4242u
#define LOST   9999u /* instead of an err_kind: the worker said nothing, or nonsense */

static char dir[256]; /* where the tests may write; the user's home */

struct drive {
    int sock;
    pid_t pid;
    struct frame_head head;
    struct agent_reply reply; /* of the last record */
    uint8_t data[FRAME_REQUEST_MAX];
    const void *early; /* given with the request */
    size_t early_len;
    void (*prepare)(void); /* in the child, before it drops */
};

/* A path below the tests' directory; four at a time. */
static const char *at(const char *name)
{
    static char paths[4][600];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void) snprintf(path, sizeof paths[0], "%s%s%s", dir, name[0] ? "/" : "", name);
    return path;
}

static void drive_child(struct drive *d, int sock, const struct agent_request *r, uint32_t uid)
{
    static uint8_t bytes[FRAME_REQUEST_MAX];
    struct user user = { .name = "tester", .uid = uid, .gid = uid };
    struct agent_request request;
    struct worker w = { .sock = sock, .request = &request, .user = &user };
    struct err err;
    ssize_t len = agent_request_encode(r, bytes, sizeof bytes, &err);

    (void) snprintf(user.home, sizeof user.home, "%s", dir);
    (void) signal(SIGPIPE, SIG_IGN);
    (void) umask(022);
    (void) chdir("/");
    if (len < 0 || agent_request_decode(&request, bytes, (size_t) len, &err) < 0) {
        (void) fprintf(stderr, "request: %s\n", err.msg);
        _exit(99);
    }
    if (d->prepare)
        d->prepare();
    if (uid &&
        (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
        _exit(98);
    (void) prctl(PR_SET_DUMPABLE, 0);
    w.early = d->early;
    w.early_len = d->early_len;
    _exit(worker_main(&w));
}

static void drive_start(struct drive *d, struct agent_request r, uint32_t uid)
{
    struct timeval patience = { .tv_sec = 30 };
    int pair[2];

    r.version = AGENT_VERSION;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    (void) fflush(stdout);
    d->pid = fork();
    if (d->pid < 0) { /* never continue: -1 means everybody to kill and waitpid */
        (void) printf("not ok - no process can be made: %s\n", strerror(errno));
        exit(1);
    }
    if (d->pid == 0) {
        (void) close(pair[0]);
        drive_child(d, pair[1], &r, uid);
    }
    (void) close(pair[1]);
    d->sock = pair[0];
    (void) setsockopt(d->sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

/* The type of the next frame, 0 at the end. Records are in d->reply, DATA in d->data. */
static int drive_next(struct drive *d)
{
    uint8_t head[FRAME_HEAD];
    struct err err;

    memset(&d->reply, 0, sizeof d->reply);
    /* Not io_read_all: it waits for ever, and the socket has a timeout. */
    for (size_t got = 0; got < sizeof head;) {
        ssize_t n = recv(d->sock, head + got, sizeof head - got, 0);

        if (n <= 0)
            return 0;
        got += (size_t) n;
    }
    if (frame_head_get(head, &d->head, &err) < 0)
        return 0;
    if (d->head.len && recv(d->sock, d->data, d->head.len, MSG_WAITALL) != (ssize_t) d->head.len)
        return 0;
    if (d->head.type != FRAME_DATA && d->head.type != FRAME_DATA_END &&
        agent_reply_decode(&d->reply, d->data, d->head.len, &err) < 0)
        return 0;
    return (int) d->head.type;
}

static void drive_frame(struct drive *d, enum frame_type type, const void *data, size_t len)
{
    uint8_t head[FRAME_HEAD];

    frame_head_put(head, type, (uint32_t) len);
    (void) send(d->sock, head, sizeof head, MSG_NOSIGNAL);
    if (len)
        (void) send(d->sock, data, len, MSG_NOSIGNAL);
}

static void drive_end(struct drive *d)
{
    own_close(&d->sock);
    (void) waitpid(d->pid, NULL, 0);
}

/* Waits for the worker to end by itself; false after `ms`. */
static bool drive_ends_within(struct drive *d, unsigned ms)
{
    for (unsigned i = 0; i < ms; i++) {
        if (waitpid(d->pid, NULL, WNOHANG) == d->pid)
            return true;
        (void) usleep(1000);
    }
    (void) kill(d->pid, SIGKILL);
    (void) waitpid(d->pid, NULL, 0);
    return false;
}

static char last_error[ERR_MSG_MAX];

/* The kind of an ERROR frame, ERR_NONE for one of type `want`, else LOST. */
static uint32_t drive_kind(struct drive *d, int type, int want)
{
    last_error[0] = '\0';
    if (type == want)
        return ERR_NONE;
    if (type != FRAME_ERROR)
        return LOST;
    (void) snprintf(last_error, sizeof last_error, "%s", d->reply.message ? d->reply.message : "");
    return d->reply.kind;
}

static struct drive once; /* big: not on the stack */

/* An operation with one REPLY, which stays in once.reply. */
static uint32_t ask(struct agent_request r, uint32_t uid)
{
    uint32_t kind;

    drive_start(&once, r, uid);
    kind = drive_kind(&once, drive_next(&once), FRAME_REPLY);
    drive_end(&once);
    return kind;
}

/* WRITE of a text. */
static uint32_t put(const char *path, uint32_t flags, const char *text, uint32_t uid)
{
    uint32_t kind;

    drive_start(&once, (struct agent_request){ .op = AGENT_WRITE, .path = path, .flags = flags },
                uid);
    kind = drive_kind(&once, drive_next(&once), FRAME_REPLY);
    if (kind == ERR_NONE) {
        drive_frame(&once, FRAME_DATA, text, strlen(text));
        drive_frame(&once, FRAME_DATA_END, NULL, 0);
        kind = drive_kind(&once, drive_next(&once), FRAME_END);
    }
    drive_end(&once);
    return kind;
}

/* READ, at most `size` bytes of it kept; *ret_total is what came. */
static uint32_t get(struct agent_request r, uint32_t uid, char *out, size_t size,
                    uint64_t *ret_total)
{
    size_t used = 0;
    uint64_t total = 0;
    uint32_t kind;
    int type;

    r.op = AGENT_READ;
    drive_start(&once, r, uid);
    kind = drive_kind(&once, drive_next(&once), FRAME_REPLY);
    while (kind == ERR_NONE && (type = drive_next(&once)) != FRAME_DATA_END) {
        size_t n = once.head.len < size - 1 - used ? once.head.len : size - 1 - used;

        kind = drive_kind(&once, type, FRAME_DATA);
        memcpy(out + used, once.data, kind == ERR_NONE ? n : 0);
        used += kind == ERR_NONE ? n : 0;
        total += once.head.len;
    }
    out[used] = '\0';
    if (ret_total)
        *ret_total = total;
    drive_end(&once);
    return kind;
}

/* An operation of ITEMs and END, which stays in once.reply; each item is given to `each`. */
static uint32_t items(struct agent_request r, uint32_t uid,
                      void (*each)(const struct agent_reply *), uint64_t *ret_count)
{
    uint64_t count = 0;
    uint32_t kind;
    int type;

    drive_start(&once, r, uid);
    while ((type = drive_next(&once)) == FRAME_ITEM) {
        count++;
        if (each)
            each(&once.reply);
    }
    kind = drive_kind(&once, type, FRAME_END);
    if (ret_count)
        *ret_count = count;
    drive_end(&once);
    return kind;
}

/* The tests' own view of files. */
static void make_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    IGNORE(write(fd, text, strlen(text)) < 0);
    (void) fchmod(fd, mode);
    (void) close(fd);
}

static const char *content(const char *path)
{
    static char text[4096];
    ssize_t n = io_read_text(AT_FDCWD, path, text, sizeof text);

    return n < 0 ? "(none)" : text;
}

static unsigned entries_in(const char *path)
{
    DIR *d = opendir(path);
    unsigned count = 0;

    while (d && readdir(d))
        count++;
    if (d)
        (void) closedir(d);
    return count ? count - 2 : 0;
}

/* Each program gets its directory as its argument, in a mount namespace of its own. */
static int drive_setup(int argc, char **argv)
{
    if (argc != 2) {
        (void) fprintf(stderr, "usage: %s DIR (an empty directory)\n", argv[0]);
        return -1;
    }
    (void) snprintf(dir, sizeof dir, "%s", argv[1]);
    (void) chmod(dir, 0755);
    (void) chown(dir, NOBODY, NOBODY);
    return 0;
}

#endif
