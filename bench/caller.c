#include "caller.h"

#include "base/io.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLER_PATIENCE_S 120

int caller_open(struct caller *caller, uint16_t port, struct err *err)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval patience = { .tv_sec = CALLER_PATIENCE_S };
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *caller = (struct caller){ .fd = -1, .port = port };
    if (fd < 0)
        return err_sys(err, errno, "make a socket");
    (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    if (connect(fd, (struct sockaddr *) &to, sizeof to) < 0)
        return err_sys(err, errno, "connect to port %u", port);
    caller->room = malloc(CALLER_ROOM + 1);
    if (!caller->room)
        return err_sys(err, ENOMEM, "room for answers");
    caller->fd = take_fd(&fd);
    return 0;
}

void caller_close(struct caller *caller)
{
    own_close(&caller->fd);
    free(caller->room);
    caller->room = NULL;
}

/* The length that a head announces; 0 when it says none. */
static size_t announced(const char *head)
{
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, "content-length:", 15) == 0)
            return strtoul(line + 17, NULL, 10);
    return 0;
}

static int read_answer(struct caller *caller, struct err *err)
{
    size_t have = 0, head_len = 0, want = CALLER_ROOM;

    while (!head_len || have < want) {
        ssize_t got = have < want ? recv(caller->fd, caller->room + have, want - have, 0) : 0;
        char *end;

        if (got < 0)
            return err_sys(err, errno, "read an answer");
        if (got == 0)
            return err_set(err, ERR_UNAVAILABLE, "the answer ends after %zu bytes", have);
        have += (size_t) got;
        caller->room[have] = '\0';
        if (head_len || !(end = strstr(caller->room, "\r\n\r\n")))
            continue;
        head_len = (size_t) (end + 4 - caller->room);
        want = head_len + announced(caller->room);
        if (want > CALLER_ROOM)
            return err_set(err, ERR_INTERNAL, "an answer of %zu bytes", want);
    }
    caller->body = caller->room + head_len;
    caller->body_len = want - head_len;
    return 0;
}

int caller_ask(struct caller *caller, const char *method, const char *path, const char *body,
               int status, struct err *err)
{
    char request[1024];
    int len, got;

    len =
        body ? snprintf(request, sizeof request,
                        "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n%s",
                        method, path, caller->port, strlen(body), body)
             : snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                        method, path, caller->port);
    if (len < 0 || (size_t) len >= sizeof request)
        return err_set(err, ERR_INTERNAL, "the request is too long");
    if (io_write_all(caller->fd, request, (size_t) len) < 0)
        return err_sys(err, errno, "send a request");
    if (read_answer(caller, err) < 0)
        return err_wrap(err, "%s %s", method, path);
    got = (int) strtol(caller->room + strlen("HTTP/1.1 "), NULL, 10);
    if (got != status)
        return err_set(err, ERR_INTERNAL, "%s %s: %d instead of %d: %.200s", method, path, got,
                       status, caller->body);
    return 0;
}

int caller_text(const struct caller *caller, const char *name, char *out, size_t size,
                struct err *err)
{
    char quoted[64];
    const char *at, *end;

    (void) snprintf(quoted, sizeof quoted, "\"%s\":", name);
    at = strstr(caller->body, quoted);
    at = at ? strchr(at + strlen(quoted), '"') : NULL;
    end = at ? strchr(at + 1, '"') : NULL;
    if (!end || (size_t) (end - at) > size)
        return err_set(err, ERR_INTERNAL, "no %s in the answer: %.200s", name, caller->body);
    (void) snprintf(out, size, "%.*s", (int) (end - at - 1), at + 1);
    return 0;
}
