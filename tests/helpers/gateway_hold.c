/* gateway_hold STATE SANDBOX [KIND] - holds the egress of a sandbox and plays the server: answers every connection with the
 * address that was meant, and every datagram with itself. Addresses of that kind are open. What the program at the socket
 * look-up refused is printed at the end. For tests of the keeper alone. */
#include "base/own.h"
#include "base/special.h"
#include "client/link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void answer_connection(int listener)
{
    auto_close int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct sockaddr_in6 meant;
    socklen_t len = sizeof meant;
    char text[INET6_ADDRSTRLEN] = "?", byte;

    if (fd < 0 || getsockname(fd, (struct sockaddr *) &meant, &len) < 0)
        return;
    (void) inet_ntop(AF_INET6, &meant.sin6_addr, text, sizeof text);
    (void) dprintf(fd, "meant %s port %u\n", text, ntohs(meant.sin6_port));
    (void) shutdown(fd, SHUT_WR);
    while (read(fd, &byte, 1) > 0)
        ;
}

/* From the address that was asked: the control message of the question is that of the answer. */
static void answer_datagram(int fd)
{
    struct sockaddr_in6 from;
    char data[1500], control[256];
    struct iovec iov = { data, sizeof data };
    struct msghdr msg = { .msg_name = &from,
                          .msg_namelen = sizeof from,
                          .msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control,
                          .msg_controllen = sizeof control };
    ssize_t n = recvmsg(fd, &msg, 0);

    if (n < 0)
        return;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO)
            ((struct in6_pktinfo *) (void *) CMSG_DATA(c))->ipi6_ifindex = 0;
    iov.iov_len = (size_t) n;
    if (sendmsg(fd, &msg, 0) < 0)
        perror("sendmsg");
}

static struct special_table *table;

static void open_kind(const char *kind)
{
    for (size_t i = 0; i < special_count; i++)
        table->open[i] = strcmp(specials[i].kind, kind) == 0;
}

static void print_refused(void)
{
    for (uint32_t i = 0; i < table->refused_count && i < SPECIAL_REFUSED; i++) {
        const struct special_refused *r = &table->refused[i];
        char text[INET6_ADDRSTRLEN] = "?";

        (void) inet_ntop((int) r->family, r->family == AF_INET ? r->four : r->six, text,
                         sizeof text);
        (void) printf("refused %u %s port %u\n", r->number, text, r->port);
    }
    (void) fflush(stdout);
}

static volatile sig_atomic_t ended;

static void on_end(int signal)
{
    (void) signal;
    ended = 1;
}

int main(int argc, char **argv)
{
    int fds[GATEWAY_FDS], on = 1;
    struct sigaction end = { .sa_handler = on_end };
    struct pollfd p[2];
    struct link link;
    struct err err;

    if (argc < 3 || link_open(&link, argv[1], &err) < 0 ||
        link_gateway(&link, argv[2], fds, &err) < 0) {
        (void) fprintf(stderr, "%s\n", argc >= 3 ? err.msg : "gateway_hold STATE SANDBOX [KIND]");
        return 1;
    }
    (void) setsockopt(fds[GATEWAY_DNS], IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fds[GATEWAY_TABLE], 0);
    if (table == MAP_FAILED || sigaction(SIGTERM, &end, NULL) < 0) {
        perror("gateway_hold");
        return 1;
    }
    if (argc > 3)
        open_kind(argv[3]);
    (void) puts("holding");
    (void) fflush(stdout);
    p[0] = (struct pollfd){ .fd = fds[GATEWAY_TCP], .events = POLLIN };
    p[1] = (struct pollfd){ .fd = fds[GATEWAY_DNS], .events = POLLIN };
    while (!ended && poll(p, 2, -1) > 0) {
        if (p[0].revents)
            answer_connection(p[0].fd);
        if (p[1].revents)
            answer_datagram(p[1].fd);
    }
    print_refused();
    return 0;
}
