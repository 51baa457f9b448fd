/* A child for each connection: it has a connection to the server of its own, and goes with the client, or with us. */
#include "base/address.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/verbs.h"
#include "remote/talk.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CONNECTIONS_MAX 256
#define CHILD_GONE      3 /* exit code of a child whose sandbox is not there any more */

struct forward_options {
    const char *address, *tenant;
};

#define AT(field) offsetof(struct forward_options, field)

/* clang-format off */
static const struct option forward_options[] = {
    { 0, "address", OPTION_TEXT, AT(address), "ADDR", COMPLETE_NONE, "where to listen (127.0.0.1)" },
    { 0, "tenant",  OPTION_TEXT, AT(tenant),  "NAME", COMPLETE_NONE, "of that tenant: for the operator (your own)" },
};

const struct verb port_forward_verb = {
    .name = "port-forward",
    .synopsis = "[OPTION…] SANDBOX [LOCAL:]PORT",
    .summary = "reach a TCP port of a sandbox from here",
    .details =
        "Listens on LOCAL (the same number if not given; 0: any that is free) and passes every\n"
        "connection on to PORT inside, until Ctrl-C or the end of the sandbox.",
    .options = forward_options,
    .option_count = ARRAY_LEN(forward_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_port_forward,
};
/* clang-format on */

struct forward {
    const struct remote *remote;
    const char *path;   /* of the tunnel */
    const char *target; /* "port 80 of box", for messages */
    int listen_fd, child_fd;
};

/* ---- one connection, in the child ---- */

struct pipe {
    int client;
    struct talk *talk;
    struct talk_event out; /* what the client has not taken yet */
    size_t out_done;
    bool have_out;
    bool in_over; /* the client has ended its direction */
    bool end_due; /* … and the server is to know it */
    bool closed;  /* the server has closed */
    bool gone;    /* the client has */
    bool moved;   /* in this turn */
    bool failed;  /* err says why */
    struct err err;
};

static void take_text(struct pipe *p, json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));

    if (type && strcmp(type, "end") == 0) {
        (void) shutdown(p->client, SHUT_WR);
    } else if (type && strcmp(type, "error") == 0) {
        (void) ask_error(json_object_get(json, "error"), &p->err);
        p->failed = p->closed = true;
    }
}

static void read_server(struct pipe *p)
{
    int r = talk_next(p->talk, &p->out, &p->err);

    p->moved |= r != 0;
    p->failed |= r < 0;
    p->closed |= r < 0;
    if (r <= 0)
        return;
    switch (p->out.type) {
    case TALK_TEXT:
        take_text(p, p->out.json);
        json_decref(p->out.json);
        break;
    case TALK_CLOSED:
        p->closed = true;
        break;
    case TALK_STDOUT:
    case TALK_STDERR:
        p->have_out = true;
        p->out_done = 0;
    }
}

static void write_client(struct pipe *p)
{
    ssize_t n = send(p->client, p->out.data + p->out_done, p->out.len - p->out_done,
                     MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0) {
        p->gone = errno != EAGAIN && errno != EINTR;
        return;
    }
    p->moved = true;
    p->out_done += (size_t) n;
    p->have_out = p->out_done < p->out.len;
}

static void read_client(struct pipe *p)
{
    char data[TALK_PIECE];
    ssize_t n = recv(p->client, data, sizeof data, MSG_DONTWAIT);

    if (n < 0) {
        p->gone = errno != EAGAIN && errno != EINTR;
        return;
    }
    p->moved = true;
    if (n > 0)
        (void) talk_stdin(p->talk, data, (size_t) n);
    else
        p->in_over = p->end_due = true;
}

/* The server took no more: what it wrote says why, and is still to be read. */
static void flush_talk(struct pipe *p)
{
    struct err ignored;

    if (p->end_due && talk_end(p->talk))
        p->end_due = false;
    if (talk_flush(p->talk, &ignored) < 0) {
        p->talk->out_at = p->talk->out_len = 0;
        p->in_over = true;
        p->end_due = false;
    }
}

static void wait_for_more(const struct pipe *p)
{
    bool pending = talk_pending(p->talk);
    struct pollfd fds[] = { { .fd = p->client }, { .fd = talk_fd(p->talk) } };

    fds[0].events = (short) ((p->have_out ? POLLOUT : 0) | (p->in_over || pending ? 0 : POLLIN));
    fds[1].events = (short) ((p->have_out ? 0 : POLLIN) | (pending ? POLLOUT : 0));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (!fds[i].events)
            fds[i].fd = -1;
    (void) poll(fds, ARRAY_LEN(fds), -1);
}

static void pass(struct pipe *p)
{
    while (!p->gone && (!p->closed || p->have_out)) {
        p->moved = false;
        if (!p->in_over && !talk_pending(p->talk))
            read_client(p);
        flush_talk(p);
        if (p->have_out)
            write_client(p);
        else if (!p->closed)
            read_server(p);
        if (!p->moved && !p->gone)
            wait_for_more(p);
    }
}

/* A reset: the client must not take what it got for the whole. */
static void cut(int client)
{
    struct linger now = { .l_onoff = 1 };

    (void) setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

__attribute__((noreturn)) static void serve(const struct forward *forward, int client, pid_t parent)
{
    static struct talk talk;
    struct pipe p = { .client = client, .talk = &talk };

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    (void) close(forward->listen_fd);
    (void) close(forward->child_fd);
    if (talk_tunnel(&talk, forward->remote, forward->path, &p.err) < 0)
        p.failed = true;
    else
        pass(&p);
    talk_close(&talk);
    if (!p.failed)
        _exit(0);
    report_note("%s: %s", forward->target, p.err.msg);
    cut(client);
    _exit(p.err.kind == ERR_NO_SANDBOX ? CHILD_GONE : 1);
}

/* ---- all of them ---- */

/* true: a child found that the sandbox has gone. */
static bool reap(const struct forward *forward, size_t *running)
{
    struct signalfd_siginfo info;
    bool gone = false;
    int status;

    (void) !read(forward->child_fd, &info, sizeof info);
    while (*running > 0 && waitpid(-1, &status, WNOHANG) > 0) {
        gone |= WIFEXITED(status) && WEXITSTATUS(status) == CHILD_GONE;
        --*running;
    }
    return gone;
}

static int accept_all(const struct forward *forward, struct err *err)
{
    pid_t own = getpid();
    size_t running = 0;

    for (;;) {
        struct pollfd fds[] = {
            { .fd = running < CONNECTIONS_MAX ? forward->listen_fd : -1, .events = POLLIN },
            { .fd = forward->child_fd, .events = POLLIN },
        };
        auto_close int client = -1;
        pid_t pid;

        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        if (fds[1].revents && reap(forward, &running))
            return err_set(err, ERR_NO_SANDBOX, "port-forward: the sandbox has ended");
        if (!fds[0].revents)
            continue;
        client = accept4(forward->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        pid = client < 0 ? -1 : fork();
        if (pid == 0)
            serve(forward, client, own);
        if (client >= 0 && pid < 0)
            report_note("%s: no process for a connection: %s", forward->target, strerror(errno));
        running += pid > 0;
    }
}

static int open_children(int *ret_fd, struct err *err)
{
    sigset_t set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGCHLD);
    (void) sigprocmask(SIG_BLOCK, &set, NULL);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd < 0 ? err_sys(err, errno, "signalfd") : 0;
}

static int parse_port(const char *text, uint64_t least, uint16_t *ret, struct err *err)
{
    uint64_t value;

    if (parse_u64(text, &value, err) < 0 || value < least || value > UINT16_MAX)
        return err_set(err, ERR_USAGE, "port-forward: '%.20s' is not a port", text);
    *ret = (uint16_t) value;
    return 0;
}

/* "8080:3000", "3000" */
static int parse_ports(char *text, uint16_t *ret_local, uint16_t *ret_port, struct err *err)
{
    char *colon = strchr(text, ':');

    if (colon)
        *colon = '\0';
    if (parse_port(colon ? colon + 1 : text, 1, ret_port, err) < 0)
        return -1;
    return parse_port(text, 0, ret_local, err);
}

static int listen_at(const char *address, uint16_t port, char *at, size_t size, int *ret_fd,
                     struct err *err)
{
    struct address where;
    char text[128];

    (void) snprintf(text, sizeof text, strchr(address, ':') ? "[%.100s]:%u" : "%.100s:%u", address,
                    port);
    if (address_parse(text, &where, err) < 0 || address_listen(&where, ret_fd, err) < 0)
        return -1;
    address_print(&where, at, size);
    return 0;
}

static int run(const struct forward_options *options, const char *sandbox, char *ports,
               struct err *err)
{
    auto_close int listen_fd = -1, child_fd = -1;
    auto_free char *path = NULL;
    char at[128], target[160];
    struct forward forward = { .target = target };
    uint16_t local = 0, port = 0;
    json_t *found = NULL;
    const char *id;

    if (parse_ports(ports, &local, &port, err) < 0 || server_act_for(options->tenant, err) < 0 ||
        server_find(&forward.remote, err) < 0 ||
        server_ask("GET", NULL, &found, err, "/v1/sandboxes/%s", sandbox) < 0)
        return -1;
    id = json_string_value(json_object_get(found, "id"));
    path = ask_path("/v1/sandboxes/%s/tunnel/%u", id ? id : sandbox, (unsigned long long) port);
    json_decref(found);
    if (!path)
        return err_set(err, ERR_NO_MEMORY, "no memory for the request");
    if (listen_at(options->address, local, at, sizeof at, &listen_fd, err) < 0 ||
        open_children(&child_fd, err) < 0)
        return -1;
    (void) snprintf(target, sizeof target, "port %u of %.100s", port, sandbox);
    printf("%s goes to %s; Ctrl-C ends it\n", at, target);
    (void) fflush(stdout);
    forward.path = path;
    forward.listen_fd = listen_fd;
    forward.child_fd = child_fd;
    return accept_all(&forward, err);
}

int verb_port_forward(int argc, char **argv)
{
    struct forward_options options = { .address = "127.0.0.1" };
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&port_forward_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count < 2)
        return common_missing(&port_forward_verb, count == 0 ? "the sandbox" : "the port");
    if (count > 2)
        return common_excess(&port_forward_verb, operands[2]);
    return run(&options, operands[0], operands[1], &err) < 0 ? report_error(&err) : 0;
}
