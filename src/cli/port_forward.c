/* A child for each connection: it has a link to the keeper of its own, and goes with its connection, or with us. */
#include "base/address.h"
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/verbs.h"
#include "client/exec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CONNECTIONS_MAX 256
#define PIECE           65536

struct forward_options {
    const char *address;
};

#define AT(field) offsetof(struct forward_options, field)

/* clang-format off */
static const struct option forward_options[] = {
    { 0, "address", OPTION_TEXT, AT(address), "ADDR", COMPLETE_NONE, "where to listen (127.0.0.1)" },
};

const struct verb port_forward_verb = {
    .name = "port-forward",
    .synopsis = "[OPTION…] SANDBOX [LOCAL:]PORT",
    .summary = "reach a TCP port of a sandbox from here",
    .details =
        "Listens on LOCAL (the same number if not given; 0: any that is free) and passes every\n"
        "connection on to PORT inside, until Ctrl-C.",
    .options = forward_options,
    .option_count = ARRAY_LEN(forward_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_port_forward,
};
/* clang-format on */

/* One direction: what was read waits here until it was written. */
struct lane {
    int from, to;
    size_t at, len;
    bool over;
    char data[PIECE];
};

static void lane_move(struct lane *lane)
{
    ssize_t n;

    if (lane->len == 0) {
        n = recv(lane->from, lane->data, sizeof lane->data, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            lane->over = true;
            (void) shutdown(lane->to, SHUT_WR);
        }
        lane->at = 0;
        lane->len = n > 0 ? (size_t) n : 0;
    }
    if (lane->len == 0)
        return;
    n = send(lane->to, lane->data + lane->at, lane->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        lane->over = true;
        lane->len = 0;
        (void) shutdown(lane->from, SHUT_RD);
    } else if (n > 0) {
        lane->at += (size_t) n;
        lane->len -= (size_t) n;
    }
}

static void pump(int client, int port)
{
    static struct lane in, out;

    in = (struct lane){ .from = client, .to = port };
    out = (struct lane){ .from = port, .to = client };
    while (!in.over || !out.over) {
        struct pollfd fds[] = { { .fd = client }, { .fd = port } };

        fds[0].events = (short) ((in.over || in.len ? 0 : POLLIN) | (out.len ? POLLOUT : 0));
        fds[1].events = (short) ((out.over || out.len ? 0 : POLLIN) | (in.len ? POLLOUT : 0));
        for (size_t i = 0; i < ARRAY_LEN(fds); i++)
            if (!fds[i].events)
                fds[i].fd = -1;
        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            return;
        if (!in.over)
            lane_move(&in);
        if (!out.over)
            lane_move(&out);
    }
}

/* In the child. */
__attribute__((noreturn)) static void serve(int listen_fd, int client, const char *sandbox,
                                            uint16_t port)
{
    int fd = -1;
    struct link link;
    struct err err;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void) close(listen_fd);
    if (common_open(&link, &err) < 0 || exec_dial(&link, sandbox, port, &fd, &err) < 0) {
        report_note("%s", err.msg);
        _exit(1);
    }
    pump(client, fd);
    _exit(0);
}

static void forward(int listen_fd, const char *sandbox, uint16_t port)
{
    size_t running = 0;

    for (;;) {
        struct pollfd p = { .fd = running < CONNECTIONS_MAX ? listen_fd : -1, .events = POLLIN };
        auto_close int client = -1;
        pid_t pid;

        (void) poll(&p, 1, running > 0 ? 1000 : -1);
        while (running > 0 && waitpid(-1, NULL, WNOHANG) > 0)
            running--;
        if (!(p.revents & POLLIN))
            continue;
        client = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        pid = client < 0 ? -1 : fork();
        if (pid == 0)
            serve(listen_fd, client, sandbox, port);
        running += pid > 0;
    }
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

static int run(const char *address, char *sandbox, char *ports, struct err *err)
{
    auto_close int fd = -1;
    char text[128], at[128];
    uint16_t local = 0, port = 0;
    struct address where;
    struct keeper_sandbox found;
    struct link link;

    if (parse_ports(ports, &local, &port, err) < 0)
        return -1;
    (void) snprintf(text, sizeof text, strchr(address, ':') ? "[%.100s]:%u" : "%.100s:%u", address,
                    local);
    if (common_open(&link, err) < 0 || saved_resolve(&link, &sandbox, err) < 0 ||
        sandbox_get(&link, sandbox, &found, err) < 0 || address_parse(text, &where, err) < 0 ||
        address_listen(&where, &fd, err) < 0)
        return -1;
    link_close(&link);
    address_print(&where, at, sizeof at);
    printf("%s goes to port %u of %s; Ctrl-C ends it\n", at, port, sandbox);
    (void) fflush(stdout);
    forward(fd, found.id, port);
    return 0;
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
    return run(options.address, operands[0], operands[1], &err) < 0 ? report_error(&err) : 0;
}
