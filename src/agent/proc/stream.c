#include "agent/proc/stream.h"

#include "agent/proc/attach.h"
#include "agent/proc/tree.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

#define READ_MOST      65536u
#define READS_PER_TURN 4
#define TTY_GROUP      5 /* owner of terminals on Debian; only the name of it is at stake */

static void on_output(struct watch *watch, uint32_t events);
static void on_input(struct watch *watch, uint32_t events);

static int non_blocking(int fd)
{
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void set_size(int tty, uint32_t rows, uint32_t columns)
{
    struct winsize size = { .ws_row = (uint16_t) rows, .ws_col = (uint16_t) columns };

    (void) ioctl(tty, TIOCSWINSZ, &size);
}

/* The other side comes from the master itself: no name is looked up in the sandbox's /dev/pts. Kernels that cannot do that (gVisor's) are
 * asked for its number; what is opened under it must be a terminal's device node, as that number says. */
static int open_other_side(int master)
{
    int flags = O_RDWR | O_NOCTTY | O_CLOEXEC, fd = ioctl(master, TIOCGPTPEER, flags);
    struct stat st;
    unsigned number;
    char path[32];

    if (fd >= 0 || (errno != ENOTTY && errno != EINVAL && errno != ENOSYS))
        return fd;
    if (ioctl(master, TIOCGPTN, &number) < 0)
        return -1;
    (void) snprintf(path, sizeof path, "/dev/pts/%u", number);
    fd = open(path, flags | O_NOFOLLOW);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) || !isatty(fd))) {
        own_close(&fd);
        errno = ENOTTY;
    }
    return fd;
}

static int open_pty(struct proc *proc, const struct agent_request *request, const struct user *user,
                    int child[3], struct err *err)
{
    struct proc_live *live = proc->live;
    auto_close int slave = -1;
    int unlocked = 0;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    if (master < 0)
        return err_sys(err, errno, "open a terminal");
    live->streams[PROC_STDOUT].watch.fd = master;
    if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return err_sys(err, errno, "unlock the terminal");
    slave = open_other_side(master);
    if (slave < 0)
        return err_sys(err, errno, "open the terminal's other side");
    live->in.fd = fcntl(master, F_DUPFD_CLOEXEC, 0);
    if (live->in.fd < 0)
        return err_sys(err, errno, "terminal");
    /* Without its own terminal's rights a user could use it but not open it again by name. */
    if (fchown(slave, user->uid, TTY_GROUP) < 0)
        IGNORE(fchown(slave, user->uid, (gid_t) -1) < 0);
    (void) fchmod(slave, 0620);
    set_size(master, request->rows ? request->rows : 24, request->columns ? request->columns : 80);
    live->has_in = live->pty = true;
    child[0] = child[1] = child[2] = take_fd(&slave);
    return 0;
}

static int open_pipe(int *ours, int *theirs, bool we_read, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    *ours = ends[we_read ? 0 : 1];
    *theirs = ends[we_read ? 1 : 0];
    (void) non_blocking(*ours);
    return 0;
}

int stream_open(struct proc *proc, const struct agent_request *request, const struct user *user,
                int ret_child[3], struct err *err)
{
    struct proc_live *live = proc->live;

    if (request->flags & AGENT_PTY)
        return open_pty(proc, request, user, ret_child, err);
    live->has_in = request->flags & AGENT_STDIN;
    if (live->has_in && open_pipe(&live->in.fd, &ret_child[0], false, err) < 0)
        return -1;
    for (int i = 0; i < PROC_STREAMS; i++)
        if (open_pipe(&live->streams[i].watch.fd, &ret_child[i + 1], true, err) < 0)
            return -1;
    return 0;
}

int stream_start(struct proc *proc, struct err *err)
{
    for (int i = 0; i < PROC_STREAMS; i++) {
        struct watch *watch = &proc->live->streams[i].watch;

        watch->ready = on_output;
        if (watch->fd >= 0 && loop_watch(&proc->agent->loop, watch, EPOLLIN) < 0)
            return err_sys(err, errno, "watch a pipe");
    }
    proc->live->in.ready = on_input;
    return 0;
}

void stream_close_all(struct proc *proc)
{
    for (int i = 0; i < PROC_STREAMS; i++)
        proc_close(proc, &proc->live->streams[i].watch);
    proc_close(proc, &proc->live->in);
}

static void pump_readers(struct proc *proc)
{
    for (struct reader *reader = proc->live->readers, *next; reader; reader = next) {
        next = reader->next;
        attach_pump(reader);
    }
}

static uint64_t pin_of(const struct proc *proc, int stream)
{
    uint64_t pin = RING_NO_PIN;

    for (const struct reader *reader = proc->live->readers; reader; reader = reader->next)
        if (attach_pin(reader, stream) < pin)
            pin = attach_pin(reader, stream);
    return pin;
}

static uint32_t waiting_bytes(int fd)
{
    int n = 0;

    return ioctl(fd, FIONREAD, &n) == 0 && n > 0 ? (uint32_t) n : 0;
}

/* No reader will ever ask for these bytes: only their number counts. */
static ssize_t read_away(struct proc_stream *stream)
{
    char away[4096];
    ssize_t n = read(stream->watch.fd, away, sizeof away);

    if (n > 0)
        ring_put(&stream->ring, (uint32_t) n);
    return n;
}

/* The kernel says that nothing waits: the end, most likely, which should cost no ring and no kept byte. */
static ssize_t read_end(struct proc_stream *stream, uint64_t pin)
{
    struct iovec iov[2];
    uint8_t byte;
    int parts;
    ssize_t n;

    if (ring_full(&stream->ring, pin))
        return -2;
    n = read(stream->watch.fd, &byte, 1);
    if (n == 1 && ring_room(&stream->ring, 1, pin, iov, &parts) == 1) {
        *(uint8_t *) iov[0].iov_base = byte;
        ring_put(&stream->ring, 1);
    }
    return n;
}

/* One read. -2: no room, a reader has to read first. */
static ssize_t read_once(struct proc_stream *stream)
{
    uint64_t pin = pin_of(stream->proc, (int) (stream - stream->proc->live->streams));
    uint32_t waiting = waiting_bytes(stream->watch.fd);
    struct iovec iov[2];
    int parts;
    ssize_t n;

    if (stream->ring.forget)
        return read_away(stream);
    if (waiting == 0)
        return read_end(stream, pin);
    if (ring_room(&stream->ring, waiting < READ_MOST ? waiting : READ_MOST, pin, iov, &parts) ==
        0) {
        if (stream->ring.size > 0)
            return -2;
        ring_forget(&stream->ring); /* no memory even for the least */
        return read_away(stream);
    }
    n = readv(stream->watch.fd, iov, parts);
    if (n > 0)
        ring_put(&stream->ring, (uint32_t) n);
    return n;
}

static void on_output(struct watch *watch, uint32_t events)
{
    struct proc_stream *stream = CONTAINER(watch, struct proc_stream, watch);
    struct proc *proc = stream->proc;
    struct loop *loop = &proc->agent->loop;

    for (int i = 0; i < READS_PER_TURN; i++) {
        ssize_t n = read_once(stream);

        if (n == -2) {
            loop_pause(loop, watch);
            break;
        }
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            proc_close(proc, watch); /* EIO is how a terminal says it */
            break;
        }
        /* With a hang-up the end comes next, and costs no further turn. */
        if (n < 0 || !(events & EPOLLHUP))
            break;
    }
    pump_readers(proc);
    proc_output(proc);
}

void proc_drained(struct proc *proc)
{
    for (int i = 0; i < PROC_STREAMS; i++) {
        struct watch *watch = &proc->live->streams[i].watch;

        /* Only asked for, never read from here: this runs inside a write to the reader. */
        if (watch->fd >= 0 && !watch->added)
            (void) loop_watch(&proc->agent->loop, watch, EPOLLIN);
    }
}

void stream_settle(struct proc *proc)
{
    proc->live->settling = true;
    for (int i = 0; i < PROC_STREAMS; i++) {
        struct proc_stream *stream = &proc->live->streams[i];

        stream->until = stream->ring.end;
        if (stream->watch.fd >= 0)
            stream->until += waiting_bytes(stream->watch.fd);
    }
}

bool stream_whole(const struct proc *proc)
{
    for (int i = 0; i < PROC_STREAMS; i++) {
        const struct proc_stream *stream = &proc->live->streams[i];

        if (stream->watch.fd >= 0 && !(proc->live->settling && stream->ring.end >= stream->until))
            return false;
    }
    return true;
}

/* The process reads again, or never will. */
static void on_input(struct watch *watch, uint32_t events)
{
    struct proc_live *live = CONTAINER(watch, struct proc_live, in);

    (void) events;
    loop_pause(&live->proc->agent->loop, watch);
    for (struct reader *reader = live->readers, *next; reader; reader = next) {
        next = reader->next;
        conn_retry(reader->conn);
    }
}

uint32_t proc_stdin(struct proc *proc, const uint8_t *data, uint32_t len)
{
    struct proc_live *live = proc->live;
    ssize_t n;

    if (!live || live->in.fd < 0)
        return len;
    n = write(live->in.fd, data, len);
    if (n >= 0 && (uint32_t) n == len)
        return len;
    if (n >= 0 || errno == EAGAIN || errno == EINTR) {
        (void) loop_watch(&proc->agent->loop, &live->in, EPOLLOUT);
        return n > 0 ? (uint32_t) n : 0;
    }
    proc_close(proc, &live->in);
    return len;
}

bool proc_stdin_end(struct proc *proc)
{
    struct proc_live *live = proc->live;
    struct termios termios;
    uint8_t end = 4; /* ^D */

    if (!live || live->in.fd < 0)
        return true;
    if (!live->pty) {
        proc_close(proc, &live->in);
        return true;
    }
    if (tcgetattr(live->in.fd, &termios) == 0)
        end = termios.c_cc[VEOF];
    return proc_stdin(proc, &end, 1) == 1;
}

/* gVisor's kernel changes the size and sends no SIGWINCH, nor does it say which group of processes is in the foreground: the whole
 * session of the terminal is told. */
static void tell_size(const struct proc *proc)
{
    struct tree tree;

    if (tree_read(&tree, proc->live->shepherd) < 0)
        return;
    for (size_t i = 0; i < tree.count; i++)
        if (tree.nodes[i].below && getsid(tree.nodes[i].pid) == proc->pid)
            (void) kill(tree.nodes[i].pid, SIGWINCH);
    tree_done(&tree);
}

void proc_resize(struct proc *proc, uint16_t rows, uint16_t columns)
{
    struct proc_live *live = proc->live;
    struct winsize was;
    bool same;

    if (!live || !live->pty || live->in.fd < 0)
        return;
    same = ioctl(live->in.fd, TIOCGWINSZ, &was) == 0 && was.ws_row == rows && was.ws_col == columns;
    set_size(live->in.fd, rows, columns);
    if (proc->agent->gvisor && !same && live->shepherd && proc->phase == PROC_RUNNING)
        tell_size(proc);
}
