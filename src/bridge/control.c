#include "bridge/control.h"

#include "base/io.h"
#include "base/own.h"
#include "wire/runsc.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

struct call {
    const char *text; /* NULL: the end */
    bool with_fd;
};

/* One stream, in which memory is as it is: without a file for pages, and without compression. The guest continues behind it. */
static const struct call saving[] = {
    { "{\"method\":\"containerManager.Checkpoint\",\"arg\":{\"metadata\":{\"compression\":\"none\"}"
      ","
      "\"have_pages_file\":false,\"Resume\":true}}",
      true },
    { NULL, false },
};

/* The loopback as runsc makes it, and with the addresses and routes of agent/egress_rules.c: sockets of theirs cannot be loaded
 * without. The agent sets the rules again. */
/* clang-format off */
static const struct call loading[] = {
    { "{\"method\":\"Network.CreateLinksAndRoutes\",\"arg\":{\"LoopbackLinks\":[{\"Name\":\"lo\","
      "\"Addresses\":["
      "{\"Address\":\"127.0.0.1\",\"PrefixLen\":8},"
      "{\"Address\":\"::1\",\"PrefixLen\":128},"
      "{\"Address\":\"10.0.0.1\",\"PrefixLen\":1},"
      "{\"Address\":\"192.0.2.2\",\"PrefixLen\":1},"
      "{\"Address\":\"192.0.2.1\",\"PrefixLen\":32},"
      "{\"Address\":\"2002:c000:202::1\",\"PrefixLen\":3},"
      "{\"Address\":\"fd63:6f76:6500::2\",\"PrefixLen\":7}],\"Routes\":["
      "{\"Destination\":{\"IP\":\"127.0.0.0\",\"Mask\":\"/wAAAA==\"}},"
      "{\"Destination\":{\"IP\":\"::1\",\"Mask\":\"/////////////////////w==\"}},"
      "{\"Destination\":{\"IP\":\"0.0.0.0\",\"Mask\":\"gAAAAA==\"}},"
      "{\"Destination\":{\"IP\":\"128.0.0.0\",\"Mask\":\"gAAAAA==\"}},"
      "{\"Destination\":{\"IP\":\"192.0.2.1\",\"Mask\":\"/////w==\"}},"
      "{\"Destination\":{\"IP\":\"2000::\",\"Mask\":\"4AAAAAAAAAAAAAAAAAAAAA==\"}},"
      "{\"Destination\":{\"IP\":\"fc00::\",\"Mask\":\"/gAAAAAAAAAAAAAAAAAAAA==\"}}]}]}}",
      false },
    { "{\"method\":\"containerManager.Restore\",\"arg\":{\"HavePagesFile\":false}}", true },
    { NULL, false },
};
/* clang-format on */

/* Of the last load the sentry keeps no connection: there is one for that, and one for all behind it. */
#define LINES 2

static struct {
    int line[LINES]; /* not connected yet; -1: taken */
    struct hub_watch watch;
    const struct call *call; /* NULL: nothing is asked */
    int fd;                  /* to be handed over; -1: none, or it was */
    orders_done *done;
    struct runsc_answer answer;
} control = { .line = { -1, -1 }, .watch = { .fd = -1 }, .fd = -1 };

int control_prepare(struct err *err)
{
    for (size_t i = 0; i < LINES; i++) {
        control.line[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (control.line[i] < 0)
            return err_sys(err, errno, "make a line to the guest's kernel");
    }
    return 0;
}

static void hang_up(struct hub *hub)
{
    hub_unwatch(hub, &control.watch);
    own_close(&control.watch.fd);
}

static void finish(struct hub *hub, const struct err *err)
{
    control.call = NULL;
    own_close(&control.fd);
    control.done(hub, err);
}

static void ask(struct hub *hub)
{
    size_t len;
    ssize_t sent;
    struct err err;

    if (!control.call->text) {
        finish(hub, NULL);
        return;
    }
    control.answer = (struct runsc_answer){ 0 };
    len = strlen(control.call->text);
    sent = io_send_fds(control.watch.fd, control.call->text, len, &control.fd,
                       control.call->with_fd ? 1 : 0);
    if (control.call->with_fd)
        own_close(&control.fd);
    if (sent != (ssize_t) len) { /* it reads at once, or not at all */
        err_sys(&err, sent < 0 ? errno : EAGAIN, "ask gVisor");
        finish(hub, &err);
    }
}

static void answered(struct hub *hub)
{
    struct err err;
    char why[160];

    if (runsc_read_answer(&control.answer, why, sizeof why)) {
        control.call++;
        ask(hub);
        return;
    }
    err_set(&err, ERR_UNSUPPORTED, "gVisor refuses: %s", why);
    finish(hub, &err);
}

static void on_words(struct hub *hub, struct hub_watch *watch, uint32_t events)
{
    char data[2048];
    struct err err;
    ssize_t n = recv(watch->fd, data, sizeof data, MSG_DONTWAIT);

    (void) events;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        hang_up(hub);
        if (control.call)
            finish(hub, (err_set(&err, ERR_UNAVAILABLE, "the guest's kernel hung up"), &err));
        return;
    }
    for (ssize_t i = 0; i < n && control.call; i++) /* what is not asked for is not read */
        if (runsc_take(&control.answer, data[i]))
            answered(hub);
}

static int dial(struct hub *hub, struct err *err)
{
    const struct sockaddr_un to = { .sun_family = AF_UNIX,
                                    .sun_path = CONTROL_DIR "/runsc-" CONTROL_GUEST ".sock" };
    auto_close int fd = -1;

    for (size_t i = 0; i < LINES && fd < 0; i++)
        fd = take_fd(&control.line[i]);
    if (fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "there is no line to the guest's kernel any more");
    if (connect(fd, (const struct sockaddr *) &to, sizeof to) < 0)
        return err_sys(err, errno, "reach the guest's kernel");
    control.watch = (struct hub_watch){ .fd = fd, .ready = on_words };
    if (hub_watch(hub, &control.watch, EPOLLIN) < 0) {
        control.watch.fd = -1;
        return err_sys(err, errno, "watch the guest's kernel");
    }
    (void) take_fd(&fd);
    return 0;
}

static void begin(struct hub *hub, const struct call *calls, int fd, orders_done *done)
{
    struct err err;

    control.call = calls;
    control.fd = fd;
    control.done = done;
    if (control.watch.fd < 0 && dial(hub, &err) < 0)
        finish(hub, &err);
    else
        ask(hub);
}

static void save(struct hub *hub, int fd, orders_done *done)
{
    begin(hub, saving, fd, done);
}

static void load(struct hub *hub, int fd, orders_done *done)
{
    begin(hub, loading, fd, done);
}

const struct orders_way control_orders = { save, load, NULL };
