/* users.h - the system users that our programs run as.
 *
 * Callers: serve.c, gate.c. */
#ifndef COVE_CLI_USERS_H
#define COVE_CLI_USERS_H

#include "base/err.h"

#include <sys/types.h>

/* Made with useradd if it is not there. ERR_DENIED if it is root. */
int user_ensure(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct err *err);

#endif
