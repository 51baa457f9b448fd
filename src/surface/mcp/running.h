/* running.h - calls that run now, so that `notifications/cancelled` can end one.
 *
 * Owns:    a list of entries that are their callers' own, each from running_add to running_remove.
 * Callers: call.c; mcp.c for the notification. */
#ifndef COVE_SURFACE_MCP_RUNNING_H
#define COVE_SURFACE_MCP_RUNNING_H

#include "server/guard/caller.h"

#include <jansson.h>
#include <stdbool.h>

/* Whose call it is. Another tenant, key or session cannot name it. */
struct running_name {
    const struct caller *caller;
    const char *session; /* header Mcp-Session-Id; "": none, and no other can cancel it */
    json_t *id;          /* of the request */
};

struct running {
    struct running_name name;
    bool cancelled;
    struct running *next;
};

void running_add(struct running *running);
void running_remove(struct running *running);
/* The caller of the named call counts as gone from now on, which ends what runs for it; an answer can still be sent. */
void running_cancel(const struct running_name *name);
bool running_cancelled(const struct running *running);

#endif
