#include "bridge/qmp.h"

#include "base/io.h"
#include "base/own.h"
#include "wire/qmp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_MAX_BYTES 8192u

struct step {
    const char *command; /* NULL: the end */
    bool with_fd;
    bool moves; /* done when QEMU says that the migration is, not before */
};

/* Of 10.0, without ids: an answer has one member. */
#define PIPE "\"arguments\":{\"fdname\":\"pipe\"}"
static const struct step greeting[] = {
    { "{\"execute\":\"qmp_capabilities\"}\n", false, false },
    { "{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":"
      "[{\"capability\":\"events\",\"state\":true}]}}\n",
      false, false },
    { "{\"execute\":\"migrate-set-parameters\",\"arguments\":{\"max-bandwidth\":"
      "1099511627776}}\n",
      false, false },
    { NULL, false, false },
};
static const struct step saving[] = {
    { "{\"execute\":\"stop\"}\n", false, false },
    { "{\"execute\":\"getfd\"," PIPE "}\n", true, false },
    { "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"fd:pipe\"}}\n", false, true },
    { NULL, false, false },
};
static const struct step loading[] = {
    { "{\"execute\":\"getfd\"," PIPE "}\n", true, false },
    { "{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":\"fd:pipe\"}}\n", false, true },
    { NULL, false, false },
};
static const struct step going[] = {
    { "{\"execute\":\"cont\"}\n", false, false },
    { NULL, false, false },
};

static struct {
    struct hub_watch watch;
    const struct step *step; /* NULL: nothing is asked */
    bool returned, moved;    /* of the step */
    int pipe_fd;             /* to be handed over; -1: none, or it was */
    orders_done *done;
    char line[LINE_MAX_BYTES];
    size_t len;
    bool too_long; /* the line is skipped to its end */
} qmp = { .pipe_fd = -1 };

static void finish(struct hub *hub, const struct err *err)
{
    qmp.step = NULL;
    own_close(&qmp.pipe_fd);
    qmp.done(hub, err);
}

static void ask(struct hub *hub)
{
    size_t len;
    ssize_t sent;
    struct err err;

    qmp.returned = qmp.moved = false;
    if (!qmp.step->command) {
        finish(hub, NULL);
        return;
    }
    len = strlen(qmp.step->command);
    sent =
        io_send_fds(qmp.watch.fd, qmp.step->command, len, &qmp.pipe_fd, qmp.step->with_fd ? 1 : 0);
    if (qmp.step->with_fd)
        own_close(&qmp.pipe_fd);
    if (sent != (ssize_t) len) { /* it reads at once, or not at all */
        err_sys(&err, sent < 0 ? errno : EAGAIN, "ask QEMU");
        finish(hub, &err);
    }
}

static void step_done(struct hub *hub)
{
    if (!qmp.returned || (qmp.step->moves && !qmp.moved))
        return;
    qmp.step++;
    ask(hub);
}

static void fail(struct hub *hub, const char *what, const char *why)
{
    struct err err;

    err_set(&err, ERR_UNAVAILABLE, "%s%s", what, why);
    finish(hub, &err);
}

static void take_line(struct hub *hub, const char *line)
{
    char why[160];
    enum qmp_said said = qmp_read(line, why, sizeof why);

    if (!qmp.step) /* events, of which none is waited for */
        return;
    qmp.returned = qmp.returned || said == QMP_RETURN;
    qmp.moved = qmp.moved || said == QMP_MOVED;
    if (said == QMP_ERROR)
        fail(hub, "QEMU refuses: ", why);
    else if (said == QMP_FAILED && qmp.step->moves)
        fail(hub, "QEMU could not move the machine's state", "");
    else
        step_done(hub);
}

static void on_words(struct hub *hub, struct hub_watch *watch, uint32_t events)
{
    char data[2048];
    ssize_t n = recv(watch->fd, data, sizeof data, MSG_DONTWAIT);

    (void) events;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) { /* the trunk's end follows */
        hub_unwatch(hub, watch);
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (data[i] != '\n') {
            qmp.too_long = qmp.too_long || qmp.len == sizeof qmp.line - 1;
            if (!qmp.too_long)
                qmp.line[qmp.len++] = data[i];
            continue;
        }
        qmp.line[qmp.len] = '\0';
        qmp.len = 0;
        if (!qmp.too_long)
            take_line(hub, qmp.line);
        qmp.too_long = false;
    }
}

static void begin(struct hub *hub, const struct step *steps, int pipe_fd, orders_done *done)
{
    qmp.step = steps;
    qmp.pipe_fd = pipe_fd;
    qmp.done = done;
    ask(hub);
}

int qmp_open(struct hub *hub, int fd, orders_done *done, struct err *err)
{
    qmp.watch = (struct hub_watch){ .fd = fd, .ready = on_words };
    if (hub_watch(hub, &qmp.watch, EPOLLIN) < 0)
        return err_sys(err, errno, "watch QEMU");
    begin(hub, greeting, -1, done);
    return 0;
}

static void save(struct hub *hub, int pipe_fd, orders_done *done)
{
    begin(hub, saving, pipe_fd, done);
}

static void load(struct hub *hub, int pipe_fd, orders_done *done)
{
    begin(hub, loading, pipe_fd, done);
}

static void go(struct hub *hub, orders_done *done)
{
    begin(hub, going, -1, done);
}

const struct orders_way qmp_orders = { save, load, go };
