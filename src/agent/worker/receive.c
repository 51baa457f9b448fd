#include "agent/worker/receive.h"

#include "agent/worker/answer.h"
#include "agent/worker/path.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#define GATHER_MS   1000
#define GATHER_SIZE (256u * 1024)
#define PIPED_LEAST                                                                                \
    16384u /* a frame of fewer bytes is copied: two system calls cost more than that */

/* A worker is one process with one file under way at a time. The pipe is made for the first large frame, and stays. */
struct gathered {
    size_t len;   /* in data */
    size_t piped; /* in the pipe; never both */
    bool copies;  /* the pipe is of no use here */
    int from, to; /* of the pipe; 0: there is none yet */
    uint8_t data[GATHER_SIZE];
};

static int write_failed(const char *path, struct err *err)
{
    /* The greatest file that there may be is as large as the disk. */
    return path_err(err, errno == EFBIG ? ENOSPC : errno, path);
}

static int write_copied(struct gathered *g, int fd, const char *path, struct err *err)
{
    size_t done = 0;

    while (done < g->len) {
        ssize_t n = write(fd, g->data + done, g->len - done);

        if (n < 0 && errno != EINTR)
            return write_failed(path, err);
        done += n > 0 ? (size_t) n : 0;
    }
    g->len = 0;
    return 0;
}

/* What the file does not take from a pipe: O_APPEND is refused, and some file systems know no splice. */
static int write_drained(struct gathered *g, int fd, const char *path, struct err *err)
{
    g->copies = true;
    while (g->piped > 0) {
        ssize_t n = read(g->from, g->data, g->piped < sizeof g->data ? g->piped : sizeof g->data);

        if (n <= 0)
            return err_sys(err, n == 0 ? EPIPE : errno, "read from a pipe");
        g->piped -= (size_t) n;
        g->len = (size_t) n;
        if (write_copied(g, fd, path, err) < 0)
            return -1;
    }
    return 0;
}

static int write_piped(struct gathered *g, int fd, const char *path, struct err *err)
{
    while (g->piped > 0) {
        ssize_t n = splice(g->from, NULL, fd, NULL, g->piped, SPLICE_F_MOVE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
            return write_drained(g, fd, path, err);
        if (n <= 0)
            return write_failed(path, err);
        g->piped -= (size_t) n;
    }
    return 0;
}

static int write_gathered(struct gathered *g, int fd, const char *path, struct err *err)
{
    return g->piped > 0 ? write_piped(g, fd, path, err) : write_copied(g, fd, path, err);
}

/* Nothing more came for so long that what did is written now. */
static bool pauses(const struct worker *w)
{
    struct pollfd p = { .fd = w->sock, .events = POLLIN };

    return w->early_len == 0 && poll(&p, 1, GATHER_MS) == 0;
}

static bool must_write(const struct worker *w, const struct gathered *g)
{
    return g->len > sizeof g->data - FRAME_DATA_MAX || g->piped >= GATHER_SIZE ||
           ((g->len > 0 || g->piped > 0) && pauses(w));
}

/* Whether large frames can be taken by a pipe. */
static bool open_pipe(struct gathered *g)
{
    int pair[2];

    if (g->copies)
        return false;
    if (g->to > 0)
        return true;
    g->copies = pipe2(pair, O_CLOEXEC) < 0;
    if (g->copies)
        return false;
    g->from = pair[0];
    g->to = pair[1];
    (void) fcntl(g->to, F_SETPIPE_SZ, (int) GATHER_SIZE); /* or what it has does */
    return true;
}

/* Some of the frame into the pipe: how many bytes; 0: what is in the pipe must be written first; -1 with errno. An empty pipe has room,
 * so that call may wait for the caller. */
static ssize_t pipe_some(struct worker *w, struct gathered *g, size_t len)
{
    for (;;) {
        unsigned how = g->piped > 0 ? SPLICE_F_MOVE | SPLICE_F_NONBLOCK : SPLICE_F_MOVE;
        ssize_t n = splice(w->sock, NULL, g->to, NULL, len, how);
        struct pollfd p = { .fd = w->sock, .events = POLLIN };

        if (n > 0)
            return n;
        if (n == 0)
            errno = EPIPE;
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return -1;
        /* There is something, and no room for it; or there was nothing for a while. */
        if (errno == EAGAIN && (poll(&p, 1, 0) > 0 || pauses(w)))
            return 0;
    }
}

static int take_copied(struct worker *w, struct gathered *g, size_t len, struct err *err)
{
    if (answer_data_take(w, g->data + g->len, len, err) < 0)
        return -1;
    g->len += len;
    return 0;
}

/* The data of a large frame. */
static int take_piped(struct worker *w, struct gathered *g, int fd, const char *path, size_t len,
                      struct err *err)
{
    while (len > 0) {
        ssize_t n = pipe_some(w, g, len);

        if (n < 0 && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
            g->copies = true;
            return write_gathered(g, fd, path, err) < 0 ? -1 : take_copied(w, g, len, err);
        }
        if (n < 0)
            return answer_gone(err);
        if (n == 0 && write_piped(g, fd, path, err) < 0)
            return -1;
        if (n == 0 && g->copies)
            return take_copied(w, g, len, err);
        g->piped += (size_t) n;
        len -= (size_t) n;
    }
    return 0;
}

static int take_data(struct worker *w, struct gathered *g, int fd, const char *path, size_t len,
                     struct err *err)
{
    bool piped = len >= PIPED_LEAST && w->early_len == 0 && open_pipe(g);

    if ((piped ? g->len : g->piped) > 0 && write_gathered(g, fd, path, err) < 0)
        return -1;
    return piped ? take_piped(w, g, fd, path, len, err) : take_copied(w, g, len, err);
}

int receive_file(struct worker *w, int fd, const char *path, uint64_t *ret_bytes, struct err *err)
{
    static struct gathered g;
    struct frame_head head;
    struct err ignored;

    *ret_bytes = 0;
    for (;;) {
        if (must_write(w, &g) && write_gathered(&g, fd, path, err) < 0)
            return -1;
        if (answer_head(w, &head, err) < 0) {
            (void) write_gathered(&g, fd, path, &ignored);
            return -1;
        }
        if (head.type == FRAME_DATA_END)
            return write_gathered(&g, fd, path, err);
        if (head.type != FRAME_DATA)
            return err_set(err, ERR_PROTOCOL, "write: a %s frame", frame_name(head.type));
        if (take_data(w, &g, fd, path, head.len, err) < 0) {
            if (err->kind == ERR_UNAVAILABLE) /* the caller has gone: what came stays */
                (void) write_gathered(&g, fd, path, &ignored);
            return -1;
        }
        *ret_bytes += head.len;
    }
}
