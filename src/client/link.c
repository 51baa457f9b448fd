#include "client/link.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SOCKET_NAME "keeper.sock"
#define LIST_MOST   1000000 /* a list that does not end is a fault of the keeper */

/* A socket address holds 108 bytes, a state directory may be longer: the address goes through a
 * descriptor of the directory. */
static int address_of(int dir_fd, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    return snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" SOCKET_NAME,
                    dir_fd);
}

static int explain(struct err *err, int errnum, const char *state_dir)
{
    if (errnum == EACCES || errnum == EPERM)
        return err_set(err, ERR_DENIED,
                       "no permission to reach the keeper at %s/" SOCKET_NAME
                       ": be root, or in the group of 'cove up --group'",
                       state_dir);
    return err_set(err, ERR_UNAVAILABLE,
                   "no keeper answers at %s/" SOCKET_NAME ": start it with 'cove up'", state_dir);
}

int link_open(struct link *link, const char *state_dir, struct err *err)
{
    auto_close int dir = -1;
    auto_close int fd = -1;
    struct sockaddr_un address;

    *link = (struct link){ .fd = -1, .patience_ms = LINK_PATIENCE_MS };
    dir = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return explain(err, errno, state_dir);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_sys(err, errno, "make a socket");
    (void) address_of(dir, &address);
    if (connect(fd, (const struct sockaddr *) &address, sizeof address) < 0)
        return explain(err, errno, state_dir);
    link->fd = take_fd(&fd);
    return 0;
}

void link_close(struct link *link)
{
    own_close(&link->fd);
}

int link_send(struct link *link, const struct keeper_request *request, struct err *err)
{
    ssize_t n = io_send_fds(link->fd, request, sizeof *request, NULL, 0);

    if (n == (ssize_t) sizeof *request)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "the keeper went away (%s)",
                   n < 0 ? strerror(errno) : "short write");
}

static int wait_for_reply(struct link *link, enum keeper_op op, struct err *err)
{
    struct pollfd p = { .fd = link->fd, .events = POLLIN };
    uint64_t begin = io_now_ms();
    int left = link->patience_ms;

    for (;;) {
        int n = poll(&p, 1, left);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_sys(err, errno, "wait for the keeper");
        if (link->patience_ms >= 0) {
            uint64_t gone = io_now_ms() - begin;

            if (gone >= (uint64_t) link->patience_ms)
                return err_set(err, ERR_UNAVAILABLE, "the keeper did not answer '%s' within %d s",
                               keeper_ops[op].name, link->patience_ms / 1000);
            left = link->patience_ms - (int) gone;
        }
    }
}

int link_receive_fds(struct link *link, enum keeper_op op, struct keeper_reply *reply, int *ret_fds,
                     size_t want, struct err *err)
{
    int fds[KEEPER_FDS_MAX] = { -1, -1, -1, -1 };
    size_t fd_count = 0;
    int rc = -1;
    ssize_t n;

    if (wait_for_reply(link, op, err) < 0)
        goto broken;
    n = io_recv_fds(link->fd, reply, sizeof *reply, fds, KEEPER_FDS_MAX, &fd_count);
    if (n <= 0) {
        err_set(err, ERR_UNAVAILABLE, "the keeper went away (%s)",
                n < 0 ? strerror(errno) : "closed");
        goto broken;
    }
    if (keeper_reply_check(reply, (size_t) n, op, err) < 0)
        goto broken;
    if (reply->err.kind != ERR_NONE) {
        *err = reply->err;
        goto out;
    }
    if (fd_count < want) {
        err_set(err, ERR_PROTOCOL, "the keeper sent %zu descriptors, not %zu", fd_count, want);
        goto out;
    }
    for (size_t i = 0; i < want; i++)
        ret_fds[i] = take_fd(&fds[i]);
    rc = 0;
    goto out;

broken:
    /* An answer that comes after all would be taken for the next question's. */
    link_close(link);
out:
    for (size_t i = 0; i < KEEPER_FDS_MAX; i++)
        own_close(&fds[i]);
    return rc;
}

int link_receive(struct link *link, enum keeper_op op, struct keeper_reply *reply, int *ret_fd,
                 struct err *err)
{
    return link_receive_fds(link, op, reply, ret_fd, ret_fd ? 1 : 0, err);
}

int link_call(struct link *link, const struct keeper_request *request, struct keeper_reply *reply,
              int *ret_fd, struct err *err)
{
    if (link_send(link, request, err) < 0)
        return -1;
    return link_receive(link, (enum keeper_op) request->op, reply, ret_fd, err);
}

int link_list(struct link *link, struct keeper_request *request, struct keeper_reply *reply,
              const void *entries, size_t size, void **ret, size_t *ret_count, struct err *err)
{
    auto_free char *list = NULL;
    size_t count = 0;

    do {
        char *longer;

        if (link_call(link, request, reply, NULL, err) < 0)
            return -1;
        longer = realloc(list, (count + reply->count + 1) * size);
        if (!longer)
            return err_set(err, ERR_NO_MEMORY, "no memory for the list");
        list = longer;
        memcpy(list + count * size, entries, reply->count * size);
        count += reply->count;
        if (count > LIST_MOST || (reply->next && !reply->count))
            return err_set(err, ERR_PROTOCOL, "the keeper's list does not end");
        request->cursor = reply->next;
    } while (reply->next);
    *ret = take_ptr(&list);
    *ret_count = count;
    return 0;
}

int link_name(char out[KEEPER_NAME_MAX], const char *what, const char *name, struct err *err)
{
    if (!name_ok(name))
        return err_set(err, ERR_INVALID,
                       "%s: '%.40s' is not a name (a-z, 0-9, inner '-', '_', '.', at most 63)",
                       what, name);
    memset(out, 0, KEEPER_NAME_MAX);
    memcpy(out, name, strlen(name));
    return 0;
}

static int connect_with(struct link *link, const char *sandbox, uint32_t flags,
                        struct keeper_reply *reply, int *ret_fd, struct err *err)
{
    struct keeper_request request;

    keeper_request_init(&request, KEEPER_CONNECT);
    request.flags = flags;
    if (link_name(request.sandbox, "sandbox", sandbox, err) < 0)
        return -1;
    return link_call(link, &request, reply, ret_fd, err);
}

int link_connect(struct link *link, const char *sandbox, int *ret_fd, struct err *err)
{
    struct keeper_reply reply;

    return connect_with(link, sandbox, 0, &reply, ret_fd, err);
}

int link_connect_counted(struct link *link, const char *sandbox, int *ret_fd,
                         struct keeper_connected *ret, struct err *err)
{
    struct keeper_reply reply;

    if (connect_with(link, sandbox, KEEPER_STATS_BRIEF, &reply, ret_fd, err) < 0)
        return -1;
    *ret = reply.connected;
    return 0;
}

int link_gateway(struct link *link, const char *sandbox, int ret_fds[GATEWAY_FDS], struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    keeper_request_init(&request, KEEPER_GATEWAY);
    if (link_name(request.sandbox, "sandbox", sandbox, err) < 0 ||
        link_send(link, &request, err) < 0)
        return -1;
    return link_receive_fds(link, KEEPER_GATEWAY, &reply, ret_fds, GATEWAY_FDS, err);
}
