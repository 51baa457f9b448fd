/* rights.h - what the gateway keeps of its rights: sockets of the Internet, what it is given, and the files that name servers
 * and certificates are read from.
 *
 * Callers: main.c, before the first thread and the first byte that it reads. */
#ifndef COVE_GATEWAY_RIGHTS_H
#define COVE_GATEWAY_RIGHTS_H

#include "base/err.h"

/* ERR_DENIED as root: the program that starts the gateway chooses another user. */
int rights_drop(struct err *err);

#endif
