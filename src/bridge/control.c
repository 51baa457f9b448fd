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

/* The loopback as runsc makes it, and with the addresses and routes of wire/loopback.h: sockets of theirs cannot be loaded without.
 * The agent sets the rules again, or removes the addresses. */
static char links[RUNSC_LINKS_MAX];
static const struct call loading[] = {
    { links, false },
    { "{\"method\":\"containerManager.Restore\",\"arg\":{\"HavePagesFile\":false}}", true },
    { NULL, false },
};

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
    runsc_put_links(links);
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
    if (sent != (ssize_t) len) { /* it reads at once, or not at all */
        err_sys(&err, sent < 0 ? errno : EAGAIN, "ask gVisor");
        finish(hub, &err);
    } else if (control.call->with_fd) {
        own_close(&control.fd);
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
    int *line = control.line;

    while (line < control.line + LINES && *line < 0)
        line++;
    if (line == control.line + LINES)
        return err_set(err, ERR_UNAVAILABLE, "there is no line to the guest's kernel any more");
    /* One that did not reach it is there for the next order: no other can be made. */
    if (connect(*line, (const struct sockaddr *) &to, sizeof to) < 0)
        return err_sys(err, errno, "reach the guest's kernel");
    control.watch = (struct hub_watch){ .fd = take_fd(line), .ready = on_words };
    if (hub_watch(hub, &control.watch, EPOLLIN) < 0) {
        err_sys(err, errno, "watch the guest's kernel");
        own_close(&control.watch.fd);
        return -1;
    }
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
