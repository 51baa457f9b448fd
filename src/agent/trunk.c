#include "agent/trunk.h"

#include "agent/door.h"
#include "agent/egress.h"
#include "agent/renew.h"
#include "base/own.h"
#include "mux/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS 1000
#define LOST_MS 100 /* a trunk that ended is looked at again: its host's end may come back */

static struct hub hub;           /* static: its buffers are larger than a stack frame should be */
static struct watch hub_watched; /* the hub's epoll in the agent's loop */
static struct timer lost_timer, tick_timer;

static void on_tick(struct timer *timer)
{
    struct agent *agent = hub.owner;

    egress_tick(&hub);
    loop_arm(&agent->loop, timer, TICK_MS, on_tick);
}

static void on_state(struct hub *p, const struct mux_state *state)
{
    struct agent *agent = p->owner;
    struct err ignored; /* without a network the sandbox has everything else */

    if (state->flags & MUX_NETWORK && !tick_timer.at_ms && egress_open(p, &ignored) == 0)
        loop_arm(&agent->loop, &tick_timer, TICK_MS, on_tick);
    if (state->name[0])
        IGNORE(sethostname(state->name, strlen(state->name)) < 0);
}

/* What a guest that was copied must not share with its copies, and what has changed while it was away. */
static void on_hello(struct hub *p, const struct mux_hello *hello)
{
    struct agent *agent = p->owner;

    renew_random(hello->seed, sizeof hello->seed);
    renew_time(hello->time_ms);
    if (agent->gvisor) {
        hub_renew(p); /* first: the loop waits for the hub's epoll, too */
        loop_renew(&agent->loop);
        egress_renew(p);
    }
    on_state(p, &hello->state);
}

/* An operation: one end of a pair is a connection like any other, the mux has the other one. */
static int on_opened(struct hub *p, struct mux_stream *stream, const struct mux_open *open)
{
    struct agent *agent = p->owner;
    uint64_t id;
    int pair[2];

    if (open->kind != MUX_AGENT ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    id = door_admit(agent, pair[0]);
    if (!id) /* why is on its way already, if there are too many */
        (void) close(pair[0]);
    if (hub_join(p, stream, pair[1], false, (void *) (uintptr_t) id) == 0)
        return 0;
    (void) close(pair[1]); /* the connection's end, too */
    return -1;
}

/* As a client that closes its connection to the socket of a jail. A worker's connection is not ours any more: it ends
 * when the client's bytes do. */
static void on_left(struct hub *p, void *owner)
{
    struct conn *conn = conn_by_id(p->owner, (uintptr_t) owner);

    if (conn)
        conn_leave(conn);
}

static const struct hub_calls calls = {
    .hello = on_hello,
    .state = on_state,
    .opened = on_opened,
    .left = on_left,
    .datagram = egress_answer,
    .gone = egress_gone,
};

static void on_lost(struct timer *timer)
{
    struct agent *agent = hub.owner;

    (void) timer;
    (void) loop_watch(&agent->loop, &hub_watched, EPOLLIN);
}

static void on_port(struct watch *watch, uint32_t events)
{
    struct agent *agent = hub.owner;
    struct err err;

    (void) events;
    if (hub_turn(&hub, 0, &err) == 0)
        return;
    loop_pause(&agent->loop, watch);
    loop_arm(&agent->loop, &lost_timer, LOST_MS, on_lost);
}

int trunk_open(struct agent *agent, int fd, struct err *err)
{
    if (hub_init(&hub, fd, false, &calls, agent, err) < 0)
        return -1;
    hub_watched = (struct watch){ .fd = hub.epoll, .ready = on_port };
    if (loop_watch(&agent->loop, &hub_watched, EPOLLIN) < 0)
        return err_sys(err, errno, "wait for the trunk");
    return 0;
}

void trunk_close_outside(void)
{
    egress_close_outside(&hub);
}
