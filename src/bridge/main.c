/* main.c - cove-bridge: PID 1 of the jail around a guest. The keeper's connections become streams of the mux to the agent inside, and the
 * guest's connections to other hosts become sockets of the jail's network namespace.
 *
 * The order: start the guest, give up all rights, HELLO, wait for the guest's WELCOME, tell the keeper that the sandbox is ready. Every byte
 * of the guest's is read without rights. The end of the trunk is the guest's end, and ours: the jail's other processes go with us.
 *
 * A hostile guest can end its bridge, and so itself; it gets no more than a jail's process has, which is less than it has inside. */
#include "base/io.h"
#include "base/own.h"
#include "bridge/guest.h"
#include "bridge/reach.h"
#include "bridge/rights.h"
#include "mux/hub.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BACKLOG    512
#define PER_TURN   16
#define REST_MS    100   /* for who cannot be taken now */
#define WELCOME_MS 60000 /* a guest that does not answer by then has failed to start */

static const struct {
    const char *isolation;
    int (*start)(const struct guest_start *start, struct err *err);
} guests[] = {
    { "gvisor", guest_start_gvisor },
};

static struct {
    struct hub hub;
    struct hub_watch listener;
    struct mux_state told; /* what the guest knows */
    bool full;             /* the listener rests */
} bridge;

void guest_last_words(int log, char *out, size_t size)
{
    char text[2048], *line;
    off_t end = lseek(log, 0, SEEK_END);
    ssize_t n = pread(log, text, sizeof text - 1,
                      end > (off_t) sizeof text ? end - (off_t) sizeof text + 1 : 0);

    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n > 0 ? n : 0] = '\0';
    line = strrchr(text, '\n');
    (void) snprintf(out, size, "%s", line ? line + 1 : text[0] ? text : "nothing");
    for (char *at = out; *at; at++)
        if ((unsigned char) *at < ' ' || (unsigned char) *at > '~')
            *at = '?';
}

/* Before the guest has answered, the keeper hears why. */
static int fail(const struct err *err)
{
    (void) send(BOOT_FD_CONTROL, err, sizeof *err, MSG_NOSIGNAL);
    return 1;
}

/* ---- what the guest is told ---- */

static void look_around(struct mux_state *ret)
{
    struct utsname names;

    memset(ret, 0, sizeof *ret); /* it is compared as a whole */
    ret->flags = reach_network() ? MUX_NETWORK : 0;
    if (uname(&names) == 0)
        (void) snprintf(ret->name, sizeof ret->name, "%.63s", names.nodename);
}

/* The keeper gives a sandbox its name and its network from outside. What changed is told before the next operation, which may need it. */
static void tell_changes(struct hub *hub)
{
    struct mux_state now;

    look_around(&now);
    if (memcmp(&now, &bridge.told, sizeof now) == 0)
        return;
    bridge.told = now;
    mux_tell(&hub->mux, &now);
}

static int say_hello(struct hub *hub, struct err *err)
{
    struct mux_hello hello = { .time_ms = io_real_ms() };

    if (getrandom(&hello.epoch, sizeof hello.epoch, 0) != sizeof hello.epoch ||
        getrandom(hello.seed, sizeof hello.seed, 0) != sizeof hello.seed)
        return err_sys(err, errno, "random bytes");
    hello.epoch |= 1; /* never 0 */
    look_around(&hello.state);
    bridge.told = hello.state;
    mux_begin(&hub->mux, &hello);
    return hub_flush(hub, err);
}

/* ---- the keeper's connections ---- */

/* Whoever comes from inside the jail has a pid here; the keeper has none. */
static bool is_outside(int fd)
{
    struct ucred peer = { .pid = -1 };
    socklen_t len = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid == 0;
}

static void on_listener(struct hub *hub, struct hub_watch *watch, uint32_t events)
{
    static const struct mux_open operation = { .kind = MUX_AGENT };

    (void) events;
    tell_changes(hub);
    for (int i = 0; i < PER_TURN; i++) {
        auto_close int fd = -1;

        if (hub->mux.count[1] >= MUX_STREAMS || !mux_reads(&hub->mux)) {
            hub_unwatch(hub, watch); /* they wait in the queue */
            bridge.full = true;
            return;
        }
        fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
            hub_unwatch(hub, watch);
            bridge.full = true;
        }
        if (fd < 0)
            return;
        if (is_outside(fd) && hub_open(hub, &operation, fd) == 0)
            (void) take_fd(&fd);
    }
}

/* ---- the guest's ---- */

static int on_opened(struct hub *hub, struct mux_stream *stream, const struct mux_open *open)
{
    bool datagrams = false;
    auto_close int fd = reach_open(open, &datagrams);

    if (fd < 0 || hub_join(hub, stream, fd, datagrams, NULL) < 0)
        return -1;
    (void) take_fd(&fd);
    return 0;
}

static void on_welcome(struct hub *hub)
{
    bridge.listener = (struct hub_watch){ .fd = BOOT_FD_LISTEN, .ready = on_listener };
    if (hub_watch(hub, &bridge.listener, EPOLLIN) < 0 ||
        io_write_all(BOOT_FD_READY, "1", 1) < 0) /* the keeper is gone, or gave up */
        _exit(1);
    (void) close(BOOT_FD_READY);
    (void) close(BOOT_FD_CONTROL);
}

static const struct hub_calls calls = { .welcome = on_welcome, .opened = on_opened };

/* ---- life ---- */

/* A guest that ends before it answered may have said why. */
static int explain(int log, struct err *err)
{
    char words[200];

    guest_last_words(log, words, sizeof words);
    return err_set(err, ERR_UNAVAILABLE, "the guest ended before it answered; it said: %s", words);
}

static int serve(int trunk, int log, struct err *err)
{
    struct hub *hub = &bridge.hub;
    uint64_t until = io_now_ms() + WELCOME_MS;

    if (hub_init(hub, trunk, true, &calls, NULL, err) < 0 || say_hello(hub, err) < 0)
        return -1;
    for (;;) {
        uint64_t now = io_now_ms();
        int wait =
            hub->mux.ready ? (bridge.full ? REST_MS : -1) : (int) (now < until ? until - now : 0);

        if (!hub->mux.ready && now >= until)
            return err_set(err, ERR_TIMEOUT, "the guest did not answer in %d s", WELCOME_MS / 1000);
        if (hub_turn(hub, wait, err) < 0)
            return hub->mux.ready ? -1 : explain(log, err);
        if (bridge.full) {
            bridge.full = false;
            (void) hub_watch(hub, &bridge.listener, EPOLLIN);
        }
    }
}

static int start(char **argv, char **envp, int log, int *ret_trunk, struct err *err)
{
    struct guest_start guest = { .argv = argv + 2, .envp = envp, .log = log };
    auto_close int ours = -1, theirs = -1;
    int pair[2];

    if (listen(BOOT_FD_LISTEN, BACKLOG) < 0 || fcntl(BOOT_FD_LISTEN, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, errno, "listen");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "make the trunk");
    ours = pair[0];
    guest.trunk = theirs = pair[1];
    for (size_t i = 0; i < ARRAY_LEN(guests); i++) {
        if (strcmp(guests[i].isolation, argv[1]) != 0)
            continue;
        if (guests[i].start(&guest, err) < 0)
            return -1;
        *ret_trunk = take_fd(&ours);
        return 0;
    }
    return err_set(err, ERR_UNSUPPORTED, "isolation '%.40s' has no bridge", argv[1]);
}

int main(int argc, char **argv, char **envp)
{
    struct err err;
    int trunk = -1, log;

    if (getpid() != 1 || argc != BOOT_BRIDGE_ARG_COUNT) {
        (void) fprintf(stderr,
                       "cove-bridge " COVE_VERSION ": started by cove-keeper, as process 1\n");
        return 2;
    }
    log = open("/run/guest.log", O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0)
        err_sys(&err, errno, "make the guest's log");
    if (log < 0 || start(argv, envp, log, &trunk, &err) < 0)
        return fail(&err);
    (void) signal(SIGCHLD, SIG_IGN); /* whoever ends in the jail is reaped by the kernel */
    if (rights_drop(&err) < 0 || serve(trunk, log, &err) < 0)
        return fail(&err);
    return 0;
}
