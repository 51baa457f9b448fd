#include "agent/door.h"

#include "agent/ops.h"
#include "base/own.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BACKLOG  512 /* an SDK may ask two hundred things at once */
#define PER_TURN 16
#define REST_MS  100

static void say_full(int fd, size_t most)
{
    char text[64];
    struct agent_reply reply = { .kind = ERR_TOO_MANY, .message = text };
    uint8_t frame[FRAME_HEAD + 128];
    struct err err;
    ssize_t len;

    (void) snprintf(text, sizeof text, "%zu connections are open already", most);
    len = agent_reply_encode(&reply, frame + FRAME_HEAD, sizeof frame - FRAME_HEAD, &err);
    if (len < 0)
        return;
    frame_head_put(frame, FRAME_ERROR, (uint32_t) len);
    (void) send(fd, frame, FRAME_HEAD + (size_t) len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* -1: unknown, and so no user's */
static pid_t peer_of(int fd)
{
    struct ucred cred = { .pid = -1 };
    socklen_t len = sizeof cred;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : -1;
}

/* Clients that are gone make way for those that are there: first the one that came first. */
static void make_room(struct agent *agent)
{
    struct conn *oldest = NULL;

    for (struct conn *conn = agent->conns.first; conn; conn = conn->next)
        if (conn->left && !conn->sudo && (!oldest || conn->id < oldest->id))
            oldest = conn;
    if (oldest)
        conn_close(oldest);
}

/* NULL: the descriptor is still the caller's. */
static struct conn *admit(struct agent *agent, int fd, bool sudo)
{
    size_t most = sudo ? CONN_SUDO_MAX : CONN_OUTSIDE_MAX;

    if (!sudo && agent->conns.outside >= most)
        make_room(agent);
    if ((sudo ? agent->conns.sudo : agent->conns.outside) < most)
        return conn_new(agent, fd, sudo, &ops_request_kind);
    say_full(fd, most);
    return NULL;
}

uint64_t door_admit(struct agent *agent, int fd)
{
    const struct conn *conn = admit(agent, fd, false);

    return conn ? conn->id : 0;
}

static void let_in(struct agent *agent, int fd, bool sudo)
{
    pid_t peer = peer_of(fd);
    struct conn *conn = NULL;

    if (sudo || peer == 0) /* others come from inside: see wire/boot.h */
        conn = admit(agent, fd, sudo);
    if (!conn)
        (void) close(fd);
    else if (sudo)
        conn->peer = peer;
}

static void on_rest(struct timer *timer)
{
    struct agent *agent = CONTAINER(timer, struct agent, door_timer);

    if (agent->listener.fd >= 0)
        (void) loop_watch(&agent->loop, &agent->listener, EPOLLIN);
    if (agent->sudo_listener.fd >= 0)
        (void) loop_watch(&agent->loop, &agent->sudo_listener, EPOLLIN);
}

static void accept_some(struct agent *agent, struct watch *listener, bool sudo)
{
    for (int i = 0; i < PER_TURN; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            let_in(agent, fd, sudo);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            /* They stay in the queue; without a rest, the loop would spin on them. */
            loop_pause(&agent->loop, listener);
            loop_arm(&agent->loop, &agent->door_timer, REST_MS, on_rest);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void on_listener(struct watch *watch, uint32_t events)
{
    (void) events;
    accept_some(CONTAINER(watch, struct agent, listener), watch, false);
}

static void on_sudo_listener(struct watch *watch, uint32_t events)
{
    (void) events;
    accept_some(CONTAINER(watch, struct agent, sudo_listener), watch, true);
}

void door_turn_away(struct agent *agent)
{
    for (int i = 0; agent->listener.fd >= 0 && i < 2 * BACKLOG; i++) {
        auto_close int fd = accept4(agent->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return;
    }
}

/* The name lives in the sandbox's own network namespace. */
static int listen_for_sudo(void)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(addr.sun_path + 1, BOOT_SUDO_SOCKET, sizeof BOOT_SUDO_SOCKET - 1);
    if (fd < 0 ||
        bind(fd, (struct sockaddr *) &addr,
             (socklen_t) (offsetof(struct sockaddr_un, sun_path) + sizeof BOOT_SUDO_SOCKET)) < 0 ||
        listen(fd, BACKLOG) < 0)
        return -1;
    return take_fd(&fd);
}

int door_open(struct agent *agent, int listener, struct err *err)
{
    agent->listener = (struct watch){ .fd = listener, .ready = on_listener };
    /* Where no process may be root there is no door: a process that can knock can keep us busy. Without it
     * everything else still works. */
    agent->sudo_listener = (struct watch){ .fd = agent->base.root_profile ? listen_for_sudo() : -1,
                                           .ready = on_sudo_listener };
    if (agent->sudo_listener.fd >= 0)
        (void) loop_watch(&agent->loop, &agent->sudo_listener, EPOLLIN);
    if (listener < 0)
        return 0;
    if (fcntl(listener, F_SETFD, FD_CLOEXEC) < 0 || fcntl(listener, F_SETFL, O_NONBLOCK) < 0 ||
        listen(listener, BACKLOG) < 0 || loop_watch(&agent->loop, &agent->listener, EPOLLIN) < 0)
        return err_sys(err, errno, "listen");
    return 0;
}
