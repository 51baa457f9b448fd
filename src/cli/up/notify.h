/* notify.h - tells the service manager how cove is: systemd's sd_notify protocol, datagrams to $NOTIFY_SOCKET.
 *
 * Without that variable every call does nothing. A manager that does not read is not waited for.
 *
 * Owns:    the socket; the variables are taken out of the environment, so that no child speaks in our name.
 * Callers: supervise.c. */
#ifndef COVE_CLI_NOTIFY_H
#define COVE_CLI_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* -1: no supervisor */
    struct sockaddr_un to;
    socklen_t to_len;
    uint64_t watchdog_ms; /* how often a sign of life is owed; 0: never */
};

void notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/* Lines of NAME=VALUE. */
void notify_send(const struct notify *notify, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
