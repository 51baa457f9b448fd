/* private.h - private networks at work: what the store says of them is what the gateway knows, and when the gateway wants
 * a port of another sandbox, it is dialed here.
 *
 * Owns:    a thread that looks for changes that others made (the command line, the end of a sandbox), and one for each
 *          dial that is under way, within limits.
 * Callers: network.c, which starts it; ops_private.c, after its changes. */
#ifndef COVE_SERVER_NET_PRIVATE_H
#define COVE_SERVER_NET_PRIVATE_H

#include "egress/egress.h"
#include "server/app/app.h"
#include "store/private.h"

int private_start(struct app *app, struct err *err);

/* The networks of a tenant have changed: counts when it returns. */
int private_sync(struct app *app, const char *tenant, struct err *err);

/* A gateway is there again: members without rules get theirs. */
void private_restore(struct app *app);

#endif
