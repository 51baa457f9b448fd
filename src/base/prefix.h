/* prefix.h - lists of internet addresses: "127.0.0.0/8, ::1, 10.1.2.3". No names are looked up. */
#ifndef COVE_BASE_PREFIX_H
#define COVE_BASE_PREFIX_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/socket.h>

/* Whether every item is an address or a prefix; an empty list is fine, and holds nothing. */
int prefix_list_check(const char *list, struct err *err);
/* IPv4 addresses mapped into IPv6 count as what they are. */
bool prefix_list_has(const char *list, const struct sockaddr *address);

#endif
