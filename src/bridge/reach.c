#include "bridge/reach.h"

#include "base/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define DNS_PORT 53

/* As jail/gateway.c has them: what the sandbox sees as its own addresses, and as its name server. */
static const uint8_t own4[4] = { 192, 0, 2, 2 };
static const uint8_t server4[4] = { 192, 0, 2, 1 };
static const uint8_t own6[16] = { 0xfd, 0x63, 0x6f, 0x76, 0x65, [15] = 2 };

/* The bridge's own namespace has nothing for the guest but the ways out. */
static bool is_own4(const uint8_t a[4])
{
    return a[0] == 127 || a[0] == 0 || memcmp(a, own4, sizeof own4) == 0;
}

static bool is_own6(const uint8_t a[16])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    static const uint8_t low[15];

    return memcmp(a, low, sizeof low) == 0 /* :: and ::1 */ || memcmp(a, own6, sizeof own6) == 0 ||
           memcmp(a, mapped, sizeof mapped) == 0;
}

/* From the guest's own port, if it is free here, so that the owner of a connection can be found by it. */
static int connect_from(int fd, const struct sockaddr *from, const struct sockaddr *to,
                        socklen_t len)
{
    const int yes = 1;

    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    (void) bind(fd, from, len);
    return connect(fd, to, len) < 0 && errno != EINPROGRESS ? -1 : 0;
}

static int open_tcp4(const struct mux_open *open)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(open->port) };
    struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(open->source_port) };
    auto_close int fd = -1;

    if (is_own4(open->address))
        return -1;
    memcpy(&to.sin_addr, open->address, sizeof to.sin_addr);
    memcpy(&from.sin_addr, own4, sizeof own4);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        connect_from(fd, (struct sockaddr *) &from, (struct sockaddr *) &to, sizeof to) < 0)
        return -1;
    return take_fd(&fd);
}

static int open_tcp6(const struct mux_open *open)
{
    struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(open->port) };
    struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_port = htons(open->source_port) };
    auto_close int fd = -1;

    if (is_own6(open->address))
        return -1;
    memcpy(&to.sin6_addr, open->address, sizeof to.sin6_addr);
    memcpy(&from.sin6_addr, own6, sizeof own6);
    fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        connect_from(fd, (struct sockaddr *) &from, (struct sockaddr *) &to, sizeof to) < 0)
        return -1;
    return take_fd(&fd);
}

static int open_questions(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(DNS_PORT) };
    auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(&to.sin_addr, server4, sizeof server4);
    if (fd < 0 || connect(fd, (struct sockaddr *) &to, sizeof to) < 0)
        return -1;
    return take_fd(&fd);
}

int reach_open(const struct mux_open *open, bool *ret_datagrams)
{
    *ret_datagrams = open->kind == MUX_QUESTION;
    switch (open->kind) {
    case MUX_TCP4:
        return open_tcp4(open);
    case MUX_TCP6:
        return open_tcp6(open);
    case MUX_QUESTION:
        return open_questions();
    default: /* an operation is never the guest's to ask for */
        return -1;
    }
}

/* The gateway brings the route with it; connecting a datagram socket sends nothing. */
bool reach_network(void)
{
    auto_close int fd = open_questions();

    return fd >= 0;
}
