/* ops_tie.h - a sandbox that ends with its maker.
 *
 * Two things hold it: a link to the keeper, which ends the sandbox when the link closes (also when this server is killed), and
 * a deadline a few minutes ahead, moved on for as long as the maker is there (should keeper and server be killed together).
 *
 * Owns:    the link, until ops_untie.
 * Callers: sessions (surface/v1). */
#ifndef COVE_SERVER_OPS_OPS_TIE_H
#define COVE_SERVER_OPS_OPS_TIE_H

#include "server/ops/ops.h"

#define OPS_TIE_MS       300000 /* lifetime that a create of a tied sandbox asks for */
#define OPS_TIE_EVERY_MS 60000  /* and how often it is moved on */

struct ops_tie {
    char sandbox[ID_LEN + 1];
    struct link link; /* fd -1: the keeper is away, and the sandbox is tied again when it is back */
    uint64_t renew_ms, retry_ms;
};
#define OPS_TIE_NONE ((struct ops_tie){ .link = { .fd = -1 } })

int ops_tie(struct ops *ops, const char *sandbox, struct ops_tie *ret, struct err *err);
/* The descriptor to poll for an end of the link; -1: none. */
int ops_tie_fd(const struct ops_tie *tie);
/* Now and then, and when the descriptor is ready. *ret_wait_ms: call again then, at the latest. */
void ops_tie_keep(struct ops *ops, struct ops_tie *tie, uint64_t *ret_wait_ms);
/* Ends the sandbox. */
void ops_untie(struct ops *ops, struct ops_tie *tie);

#endif
