/* bodies.h - how much memory large bodies of requests and answers may take at once: in all, and for a tenant.
 *
 * A body is in memory as a whole before it is read as JSON, and a compressed one costs its sender next to nothing; so is an answer with
 * the output of a command. Each takes room before it is there, and gives it back when its request has ended. Tenants share 256 counts by a hash of their names.
 *
 * Owns:    the counts. Any thread.
 * Callers: exchange_body.c. */
#ifndef COVE_SERVER_GUARD_BODIES_H
#define COVE_SERVER_GUARD_BODIES_H

#include "server/guard/caller.h"

#include <stdint.h>

#define BODIES_SMALL  (1u << 20)   /* up to here a body is not counted */
#define BODIES_TENANT (128u << 20) /* bytes at once */
#define BODIES_ALL    (512u << 20)

/* ERR_TOO_MANY with the rule `bodies`: nothing was taken. */
int bodies_take(struct caller *caller, uint64_t bytes, struct err *err);
void bodies_give(const struct caller *caller, uint64_t bytes);

#endif
