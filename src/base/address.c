#include "base/address.h"

#include "base/own.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define BACKLOG 1024

static bool parse_v6(const char *host, uint16_t port, struct address *ret)
{
    struct sockaddr_in6 *v6 = (void *) &ret->at;

    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    ret->len = sizeof *v6;
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
        return false;
    ret->loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    return true;
}

static bool parse_v4(const char *host, uint16_t port, struct address *ret)
{
    struct sockaddr_in *v4 = (void *) &ret->at;

    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    ret->len = sizeof *v4;
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &v4->sin_addr) != 1)
        return false;
    ret->loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return true;
}

int address_parse(const char *text, struct address *ret, struct err *err)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t) (colon - text) : 0;
    char host[64];
    uint64_t port;
    bool v6 = text[0] == '[' && len > 2 && text[len - 1] == ']';

    *ret = (struct address){ .len = 0 };
    if (!colon || len >= sizeof host || parse_u64(colon + 1, &port, err) < 0 || port > 65535)
        return err_set(err, ERR_USAGE, "listen: '%.60s' is not ADDRESS:PORT", text);
    memcpy(host, text + v6, len - 2 * v6);
    host[len - 2 * v6] = '\0';
    if (v6 ? parse_v6(host, (uint16_t) port, ret) : parse_v4(host, (uint16_t) port, ret))
        return 0;
    return err_set(err, ERR_USAGE, "listen: '%s' is not an address", host);
}

void address_print(const struct address *address, char *out, size_t size)
{
    const struct sockaddr_in *v4 = (const void *) &address->at;
    const struct sockaddr_in6 *v6 = (const void *) &address->at;
    bool is_v6 = address->at.ss_family == AF_INET6;
    char host[INET6_ADDRSTRLEN] = "";

    (void) inet_ntop(address->at.ss_family,
                     is_v6 ? (const void *) &v6->sin6_addr : (const void *) &v4->sin_addr, host,
                     sizeof host);
    (void) snprintf(out, size, is_v6 ? "[%s]:%u" : "%s:%u", host,
                    ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
}

int address_listen(struct address *address, int *ret_fd, struct err *err)
{
    auto_close int fd = -1;
    char text[80];
    int one = 1;

    address_print(address, text, sizeof text);
    fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0)
        return err_sys(err, errno, "listen on %s", text);
    if (bind(fd, (const struct sockaddr *) &address->at, address->len) < 0 ||
        listen(fd, BACKLOG) < 0)
        return errno == EADDRINUSE
                   ? err_set(err, ERR_STATE, "port in use: another program listens on %s", text)
                   : err_sys(err, errno, "listen on %s", text);
    address->len = sizeof address->at;
    if (getsockname(fd, (struct sockaddr *) &address->at, &address->len) < 0)
        return err_sys(err, errno, "look at the socket");
    *ret_fd = take_fd(&fd);
    return 0;
}
