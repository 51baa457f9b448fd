/* network_events.h - what the gateway refused and let out: an audit record each, and one of the last NETWORK_EVENTS that a
 * tenant can ask for.
 *
 * Owns:    app->network_log, from network_log_start to the end of the process.
 * Callers: network.c, ops_network.c, v1_network.c, tools.c. */
#ifndef COVE_SERVER_NET_NETWORK_EVENTS_H
#define COVE_SERVER_NET_NETWORK_EVENTS_H

#include "egress/egress.h"
#include "server/app/app.h"
#include "store/store.h"

#include <jansson.h>

#define NETWORK_EVENTS 4096

int network_log_start(struct app *app, struct err *err);
/* The gateway's, on its thread; context: the app. */
void network_log_event(void *context, const struct egress_event *event);

/* Whose a sandbox is. */
int network_tenant(struct app *app, const char *sandbox, char ret[STORE_TENANT_MAX],
                   struct err *err);

struct network_event {
    uint64_t seq, time_ms;
    bool told;      /* by network_refusals */
    unsigned count; /* how many equal refusals it stands for; seq and time are the newest one's */
    struct egress_event event;
};
/* Of one sandbox, oldest first, behind `after`: how many were put into out. Equal refusals in a row are one, with a count: a
 * resolver asks for two kinds of addresses, and asks again. */
size_t network_events(struct app *app, const char *sandbox, uint64_t after,
                      struct network_event *out, size_t most);
/* What was refused since the last call of this function, as a list for an agent to read; NULL: nothing. */
json_t *network_refusals(struct app *app, const char *sandbox);
json_t *network_event_json(const struct network_event *event);

#endif
