/* main.c - cove-bridge: PID 1 of the jail around a guest. The keeper's connections become streams of the mux to the agent inside, and the
 * guest's connections to other hosts become sockets of the jail's network namespace.
 *
 * The order: start the guest, give up all rights, HELLO, wait for the guest's WELCOME, tell the keeper that the sandbox is ready. Every byte
 * of the guest's is read without rights. The end of the trunk is the guest's end, and ours: the jail's other processes go with us.
 *
 * A guest takes orders (orders.h) to be saved and loaded. One that is to be loaded is ready when it takes orders; its first HELLO
 * comes when it runs. Whenever one runs again there is another HELLO: time has passed, and a copy needs random bytes of its own.
 *
 * A hostile guest can end its bridge, and so itself; it gets no more than a jail's process has, which is less than it has inside. */
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "bridge/control.h"
#include "bridge/guest.h"
#include "bridge/initrd.h"
#include "bridge/orders.h"
#include "bridge/qmp.h"
#include "bridge/reach.h"
#include "bridge/rights.h"
#include "mux/hub.h"
#include "wire/boot.h"
#include "wire/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BACKLOG  512
#define PER_TURN 16
#define REST_MS  100 /* for who cannot be taken now */

static const struct guest {
    const char *isolation;
    int (*start)(struct guest_start *start, struct err *err);
    uint32_t welcome_ms; /* a guest that does not answer by then has failed to start */
    /* has a console, to which it writes as much as it likes; and a helper whose end is its own */
    bool machine;
} guests[] = {
    { "gvisor", guest_start_gvisor, 60000, false },
    { "vm", guest_start_vm, VM_START_MS, true },
    { "vm-emulated", guest_start_vm_emulated, 300000, true },
};

static struct {
    struct hub hub;
    struct hub_watch listener;
    struct hub_watch helper[GUEST_HELPERS];
    size_t helpers;
    struct mux_state told; /* what the guest knows */
    bool full;             /* the listener rests */
    bool welcomed;         /* the guest has answered once: the keeper's line is closed */
    int log;               /* what the guest's program says: a file, or a pipe */
    int orders;            /* a socket for who gives them */
    int monitor;           /* of a virtual machine */
    enum guest_way way;    /* one that is to be loaded has nothing to be greeted yet */
    uint64_t until_ms;     /* when the guest's WELCOME must be here; 0: none is waited for */
    uint32_t welcome_ms;
} bridge;

void guest_last_words(char *out, size_t size)
{
    char text[2048], *line;
    off_t end = lseek(bridge.log, 0, SEEK_END);
    ssize_t n = 0, more;

    if (end >= 0)
        n = pread(bridge.log, text, sizeof text - 1,
                  end > (off_t) sizeof text ? end - (off_t) sizeof text + 1 : 0);
    while (end < 0 && (more = read(bridge.log, text, sizeof text - 1)) > 0)
        n = more;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    text[n > 0 ? n : 0] = '\0';
    line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    /* A machine's kernel has the last word; its first process knows better. */
    for (char *at = text; (at = strstr(at, "cove-init: ")); at++)
        line = at;
    line[strcspn(line, "\r\n")] = '\0';
    (void) snprintf(out, size, "%s", line[0] ? line : "nothing");
    for (char *at = out; *at; at++)
        if ((unsigned char) *at < ' ' || (unsigned char) *at > '~')
            *at = '?';
}

/* Before the guest has answered, the keeper hears why; later that number is another's. */
static int fail(const struct err *err)
{
    if (!bridge.welcomed)
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
    bridge.until_ms = io_now_ms() + bridge.welcome_ms;
    hub_unwatch(hub, &bridge.listener); /* they wait in the queue */
    mux_begin(&hub->mux, &hello);
    return hub_flush(hub, err);
}

/* The guest runs, for the first time or again. */
static void on_go(struct hub *hub)
{
    struct err err;

    if (say_hello(hub, &err) < 0)
        _exit(1);
}

/* ---- the keeper's connections ---- */

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
        if (rights_is_outside(fd) && hub_open(hub, &operation, fd) == 0)
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

/* Once: those numbers are others' afterwards. */
static void say_ready(void)
{
    static bool said;

    if (said)
        return;
    if (io_write_all(BOOT_FD_READY, "1", 1) < 0) /* the keeper is gone, or gave up */
        _exit(1);
    (void) close(BOOT_FD_READY);
    said = true;
}

static void on_welcome(struct hub *hub)
{
    bridge.until_ms = 0;
    bridge.full = false;
    if (hub_watch(hub, &bridge.listener, EPOLLIN) < 0)
        _exit(1);
    say_ready();
    if (!bridge.welcomed)
        (void) close(BOOT_FD_CONTROL);
    bridge.welcomed = true;
    orders_gone(hub, NULL);
}

static void on_monitor(struct hub *hub, const struct err *err)
{
    struct err why;

    if (err) {
        (void) fail(err);
        _exit(1);
    }
    if (orders_open(hub, bridge.orders, &qmp_orders, on_go, &why) < 0) {
        (void) fail(&why);
        _exit(1);
    }
    if (bridge.way == GUEST_LOAD)
        say_ready();
}

static int open_control(struct hub *hub, struct err *err)
{
    if (orders_open(hub, bridge.orders, &control_orders, on_go, err) < 0)
        return -1;
    if (bridge.way == GUEST_LOAD)
        say_ready();
    return 0;
}

static const struct hub_calls calls = { .welcome = on_welcome, .opened = on_opened };

/* ---- life ---- */

/* A guest that ends before it answered may have said why. */
static int explain(struct err *err)
{
    char words[200];

    guest_last_words(words, sizeof words);
    return err_set(err, ERR_UNAVAILABLE, "the guest ended before it answered; it said: %s", words);
}

static int open_orders(const struct guest *guest, struct hub *hub, struct err *err)
{
    return guest->machine ? qmp_open(hub, bridge.monitor, on_monitor, err) : open_control(hub, err);
}

static int open_all(const struct guest *guest, int trunk, struct err *err)
{
    struct hub *hub = &bridge.hub;

    bridge.welcome_ms = guest->welcome_ms;
    bridge.listener = (struct hub_watch){ .fd = BOOT_FD_LISTEN, .ready = on_listener };
    if (hub_init(hub, trunk, true, &calls, NULL, err) < 0)
        return -1;
    for (size_t i = 0; i < bridge.helpers; i++)
        if (hub_watch(hub, &bridge.helper[i], EPOLLIN) < 0)
            return err_sys(err, errno, "watch the guest's helpers");
    if (open_orders(guest, hub, err) < 0)
        return -1;
    return bridge.way == GUEST_LOAD ? 0 : say_hello(hub, err);
}

static int serve(const struct guest *guest, int trunk, struct err *err)
{
    struct hub *hub = &bridge.hub;

    if (open_all(guest, trunk, err) < 0)
        return -1;
    for (;;) {
        uint64_t now = io_now_ms();
        int wait = bridge.full ? REST_MS : -1;

        if (bridge.until_ms)
            wait = (int) (now < bridge.until_ms ? bridge.until_ms - now : 0);
        if (wait == 0) {
            err_set(err, ERR_TIMEOUT, "the guest did not answer in %u s", guest->welcome_ms / 1000);
            orders_gone(hub, err);
            return -1;
        }
        if (hub_turn(hub, wait, err) < 0)
            return hub->mux.ready ? -1 : explain(err);
        if (bridge.full) {
            bridge.full = false;
            (void) hub_watch(hub, &bridge.listener, EPOLLIN);
        }
    }
}

static void on_helper(struct hub *hub, struct hub_watch *watch, uint32_t events)
{
    struct err err;

    (void) watch, (void) events;
    if (!hub->mux.ready)
        (void) fail((explain(&err), &err));
    _exit(1);
}

/* What is written to a console must not wait for us, and must not fill a file. */
static int open_log(const struct guest *guest, int *ret_write, struct err *err)
{
    int pair[2];

    if (!guest->machine) {
        bridge.log = open("/run/guest.log", O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        *ret_write = bridge.log;
        return bridge.log < 0 ? err_sys(err, errno, "make the guest's log") : 0;
    }
    if (pipe2(pair, O_NONBLOCK | O_CLOEXEC) < 0)
        return err_sys(err, errno, "make the guest's console");
    bridge.log = pair[0];
    *ret_write = pair[1];
    return 0;
}

static int read_limits(char **argv, struct guest_start *ret, struct err *err)
{
    uint64_t cpus;

    ret->processes = argv[3];
    ret->volumes = argv[5];
    ret->roots = argv[7];
    if (strlen(ret->roots) > BOOT_ROOTS_MAX)
        return err_set(err, ERR_INVALID, "arguments: too many files of a template");
    if (parse_u64(argv[2], &cpus, err) < 0 || parse_u64(argv[4], &ret->inodes, err) < 0 ||
        parse_u64(argv[BOOT_BRIDGE_AGENT + 4], &ret->memory, err) < 0)
        return err_wrap(err, "arguments");
    ret->cpus = cpus < UINT32_MAX ? (uint32_t) cpus : UINT32_MAX;
    return 0;
}

static int open_helpers(struct guest_start *with, struct err *err)
{
    const bool wanted[GUEST_HELPERS] = {
        [GUEST_TEMPLATE] = !with->roots[0], [GUEST_VOLUMES] = with->volumes[0]
    };
    int pair[2];

    for (size_t i = 0; i < GUEST_HELPERS; i++) {
        if (!wanted[i])
            continue;
        if (pipe2(pair, O_CLOEXEC) < 0)
            return err_sys(err, errno, "make a line to the guest's helper");
        bridge.helper[bridge.helpers++] = (struct hub_watch){ .fd = pair[0], .ready = on_helper };
        with->helper[i] = pair[1];
    }
    return 0;
}

static int open_monitor(int *ret_theirs, struct err *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "make a line to QEMU");
    bridge.monitor = pair[0];
    *ret_theirs = pair[1];
    return 0;
}

static int start(const struct guest *guest, char **argv, char **envp, int *ret_trunk,
                 struct err *err)
{
    struct guest_start with = {
        .argv = argv + BOOT_BRIDGE_AGENT, .envp = envp, .helper = { -1, -1 }, .monitor = -1
    };
    auto_close int ours = -1, theirs = -1, monitor = -1;
    int pair[2];

    if (listen(BOOT_FD_LISTEN, BACKLOG) < 0 || fcntl(BOOT_FD_LISTEN, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, errno, "listen");
    if (read_limits(argv, &with, err) < 0 || open_log(guest, &with.log, err) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "make the trunk");
    ours = pair[0];
    with.trunk = theirs = pair[1];
    if (guest->machine && open_helpers(&with, err) < 0)
        return -1;
    with.way = bridge.way;
    with.patience_ms = guest->welcome_ms;
    if (orders_listen(&bridge.orders, err) < 0 ||
        (guest->machine ? open_monitor(&monitor, err) : control_prepare(err)) < 0)
        return -1;
    with.monitor = monitor;
    if (guest->start(&with, err) < 0 ||
        (guest->machine && with.way != GUEST_LOAD && initrd_tell(&with, ours, err) < 0))
        return -1;
    for (size_t i = 0; i < GUEST_HELPERS; i++)
        own_close(&with.helper[i]);
    for (size_t i = 0; with.roots[i]; i++)
        (void) close(BOOT_FD_ROOT + (int) i);
    if (with.way == GUEST_MAKE || with.way == GUEST_COPY) {
        (void) close(BOOT_FD_MEMORY);
        (void) close(BOOT_FD_STATE);
    }
    if (guest->machine)
        (void) close(with.log);
    *ret_trunk = take_fd(&ours);
    return 0;
}

static const struct guest *find(const char *isolation, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(guests); i++)
        if (strcmp(guests[i].isolation, isolation) == 0)
            return &guests[i];
    err_set(err, ERR_UNSUPPORTED, "isolation '%.40s' has no bridge", isolation);
    return NULL;
}

static enum guest_way find_way(const char *name)
{
    static const char *const names[] = { [GUEST_START] = BOOT_BRIDGE_START,
                                         [GUEST_LOAD] = BOOT_BRIDGE_LOAD,
                                         [GUEST_MAKE] = BOOT_BRIDGE_MAKE,
                                         [GUEST_COPY] = BOOT_BRIDGE_COPY };
    size_t way = ARRAY_LEN(names) - 1;

    while (way > 0 && strcmp(names[way], name) != 0)
        way--;
    return (enum guest_way) way;
}

int main(int argc, char **argv, char **envp)
{
    const struct guest *guest;
    struct err err;
    int trunk = -1;

    if (getpid() != 1 || argc != BOOT_BRIDGE_ARG_COUNT) {
        (void) fprintf(stderr,
                       "cove-bridge " COVE_VERSION ": started by cove-keeper, as process 1\n");
        return 2;
    }
    guest = find(argv[1], &err);
    bridge.way = find_way(argv[6]);
    if (!guest || start(guest, argv, envp, &trunk, &err) < 0)
        return fail(&err);
    (void) signal(SIGCHLD, SIG_IGN); /* what ends in the jail is reaped by the kernel */
    if (rights_drop(&err) < 0)
        return fail(&err);
    return serve(guest, trunk, &err) < 0 ? fail(&err) : 1;
}
