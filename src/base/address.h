/* address.h - where to listen: "127.0.0.1:8000", "localhost:0", "[::1]:8000". No names are looked up. */
#ifndef COVE_BASE_ADDRESS_H
#define COVE_BASE_ADDRESS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct address {
    struct sockaddr_storage at;
    socklen_t len;
    bool loopback;
};

int address_parse(const char *text, struct address *ret, struct err *err);
/* As address_parse takes it. */
void address_print(const struct address *address, char *out, size_t size);

/* A listening socket, O_CLOEXEC and O_NONBLOCK; *address gets the port that 0 became. A port that is taken is
 * ERR_STATE. */
int address_listen(struct address *address, int *ret_fd, struct err *err);

#endif
