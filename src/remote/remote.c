#include "remote/remote.h"

#include "base/address.h"
#include "base/admin_socket.h"
#include "base/own.h"
#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

static int bad_url(const char *url, const char *why, struct err *err)
{
    return err_set(err, ERR_USAGE, "'%.100s' is not the address of a server: %s", url, why);
}

/* *rest is behind the host afterwards. */
static int parse_host(const char *url, const char **rest, struct remote *ret, struct err *err)
{
    bool bracket = **rest == '[';
    const char *begin = *rest + bracket;
    size_t len = strcspn(begin, bracket ? "]" : ":/?#@\\ ");

    if (len == 0 || len >= sizeof ret->host || (bracket && begin[len] != ']') ||
        strspn(begin,
               bracket ? "0123456789abcdefABCDEF:."
                       : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") < len)
        return bad_url(url, "the host is missing or invalid", err);
    memcpy(ret->host, begin, len);
    ret->host[len] = '\0';
    *rest = begin + len + bracket;
    return 0;
}

static int parse_port(const char *url, const char **rest, struct remote *ret, struct err *err)
{
    char digits[8];
    size_t len;
    uint64_t port;
    struct err ignored;

    ret->port = ret->kind == REMOTE_HTTPS ? 443 : 80;
    if (**rest != ':')
        return 0;
    len = strspn(*rest + 1, "0123456789");
    if (len == 0 || len >= sizeof digits)
        return bad_url(url, "the port is invalid", err);
    memcpy(digits, *rest + 1, len);
    digits[len] = '\0';
    if (parse_u64(digits, &port, &ignored) < 0 || port == 0 || port > 65535)
        return bad_url(url, "the port is invalid", err);
    ret->port = (uint16_t) port;
    *rest += 1 + len;
    return 0;
}

int remote_parse(const char *url, struct remote *ret, struct err *err)
{
    bool tls = strncasecmp(url, "https://", 8) == 0;
    const char *rest = url + (tls ? 8 : 7);
    size_t len;

    if (!tls && strncasecmp(url, "http://", 7) != 0)
        return bad_url(url, "it begins with http:// or https://", err);
    ret->kind = tls ? REMOTE_HTTPS : REMOTE_HTTP;
    if (parse_host(url, &rest, ret, err) < 0 || parse_port(url, &rest, ret, err) < 0)
        return -1;
    for (len = strlen(rest); len > 0 && rest[len - 1] == '/'; len--)
        ;
    if ((len > 0 && rest[0] != '/') || len >= sizeof ret->prefix)
        return bad_url(url, "unexpected text behind the port", err);
    for (size_t i = 0; i < len; i++)
        if (rest[i] <= ' ' || rest[i] > '~' || strchr("?#\\\"<>", rest[i]))
            return bad_url(url, "the path is invalid", err);
    memcpy(ret->prefix, rest, len);
    ret->prefix[len] = '\0';
    return 0;
}

/* An address that is one already: no name to look up, no TLS. */
static int dial_plain(const struct remote *remote, int *ret_fd, struct err *err)
{
    auto_close int fd = -1;
    struct address address;
    char text[300];
    int one = 1;

    (void) snprintf(text, sizeof text, strchr(remote->host, ':') ? "[%s]:%u" : "%s:%u",
                    remote->host, remote->port);
    if (address_parse(text, &address, err) < 0)
        return -1;
    fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *) &address.at, address.len) < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot connect to %s: %s", text, strerror(errno));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *ret_fd = take_fd(&fd);
    return 0;
}

static bool is_address(const struct remote *remote)
{
    return strchr(remote->host, ':') ||
           strspn(remote->host, "0123456789.") == strlen(remote->host) ||
           strcasecmp(remote->host, "localhost") == 0;
}

/* Its first byte says that the connection stands; anything else is a sentence about why not. */
static int await_dialer(int fd, struct err *err)
{
    char text[ERR_MSG_MAX];
    size_t have = 0;
    ssize_t n = read(fd, text, 1);

    if (n == 1 && text[0] == '+')
        return 0;
    while (n > 0 && have + (size_t) n < sizeof text - 1) {
        have += (size_t) n;
        n = read(fd, text + have, sizeof text - 1 - have);
    }
    text[have] = '\0';
    return err_set(err, ERR_UNAVAILABLE, "%s", have > 0 ? text : "cove-dial ended without a word");
}

static int dial_helper(const struct remote *remote, int *ret_fd, struct err *err)
{
    auto_close int ours = -1, theirs = -1;
    char port[8], seconds[16], name[] = "cove-dial";
    char tls[] = "tls", plain[] = "plain", tls_public[] = "tls-public",
         plain_public[] = "plain-public";
    char *argv[] = { name,
                     remote->kind == REMOTE_HTTPS ? (remote->public_only ? tls_public : tls)
                     : remote->public_only        ? plain_public
                                                  : plain,
                     (char *) (uintptr_t) remote->host,
                     port,
                     (char *) (uintptr_t) remote->cacert,
                     (char *) (uintptr_t) remote->proxy,
                     remote->seconds ? seconds : NULL,
                     NULL };
    int ends[2];
    pid_t pid;

    (void) snprintf(port, sizeof port, "%u", remote->port);
    (void) snprintf(seconds, sizeof seconds, "%u", remote->seconds);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, errno, "make a pair of sockets");
    ours = ends[0];
    theirs = ends[1];
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "start cove-dial");
    if (pid == 0) {
        if (dup2(theirs, STDIN_FILENO) == STDIN_FILENO)
            (void) execv(remote->dialer, argv);
        _exit(127);
    }
    own_close(&theirs);
    if (await_dialer(ours, err) < 0)
        return -1;
    *ret_fd = take_fd(&ours);
    return 0;
}

int remote_dial(const struct remote *remote, int *ret_fd, struct err *err)
{
    if (remote->kind == REMOTE_LOCAL)
        return admin_connect(remote->state, ret_fd, err);
    if (remote->kind == REMOTE_HTTP && is_address(remote) && !remote->public_only &&
        !remote->proxy[0] && !remote->seconds)
        return dial_plain(remote, ret_fd, err);
    return dial_helper(remote, ret_fd, err);
}
