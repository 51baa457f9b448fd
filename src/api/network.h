/* network.h - the way out of sandboxes: their rules as JSON, the gateway that keeps them, and what it saw.
 *
 * Rules are kept with the sandbox's record; at start the gateway of every sandbox that has some is opened again. What
 * was refused or let out is an audit record, and one of the last NETWORK_EVENTS that a tenant can ask for.
 *
 * Owns:    the gateway (egress/egress.h) and the events, from network_start to the end of the process.
 * Callers: ops*.c; deadline.c, when a sandbox has ended. */
#ifndef COVE_API_NETWORK_H
#define COVE_API_NETWORK_H

#include "api/app.h"
#include "api/exchange.h"
#include "egress/egress.h"

#define NETWORK_EVENTS 4096

int network_start(struct app *app, struct err *err);
/* NULL: no sandbox has a network. */
struct egress *network_egress(struct app *app);
int network_unsupported(struct err *err);

/* {"mode": "off" | "public" | "list", "allow": […], "deny": […], "proxy": {…}}; without a mode it is "list" if something is allowed,
 * else "public". Blames `field`, or what is below it. */
int network_read(struct exchange *x, const char *field, json_t *object, struct reach *ret,
                 struct err *err);
json_t *network_json(const struct reach *rules);

/* As they are kept in the store; NULL when memory is short. The caller's to free. */
char *network_text(const struct reach *rules);
int network_from_text(const char *text, struct reach *ret, struct err *err);

/* Opens the gateway of a sandbox whose rules are written down already. */
int network_open(struct app *app, const char *sandbox, const struct reach *rules, struct err *err);
/* Writes them down, opens the gateway if it is not open, and tells it. ERR_UNSUPPORTED where there is none. */
int network_apply(struct app *app, const char *sandbox, const struct reach *rules, struct err *err);
/* One rule more; ret: what there is then. */
int network_allow(struct app *app, const char *sandbox, const char *rule, struct reach *ret,
                  struct err *err);
/* Opens the gateway also if the rules let nothing out: it is in a private network. */
int network_hold(struct app *app, const char *sandbox, struct err *err);
/* What is written down; mode off if nothing is. */
int network_get(struct app *app, const char *sandbox, struct reach *ret, struct err *err);
/* Secrets of a tenant (NULL: of any) have changed, or headers of one sandbox. */
int network_secrets_changed(struct app *app, const char *tenant, struct err *err);
int network_secrets_of(struct app *app, const char *sandbox, struct err *err);
/* Looks whether somebody else has changed them. For one thread. */
void network_secrets_poll(struct app *app);
void network_ended(struct app *app, const char *sandbox);
/* Whether it has a connection to the outside open, or waits for a name. */
bool network_busy(struct app *app, const char *sandbox);

struct network_event {
    uint64_t seq, time_ms;
    bool told; /* by network_refusals */
    struct egress_event event;
};
/* Of one sandbox, oldest first, behind `after`: how many were put into out. */
/* All zero where there is no gateway. */
void network_counts(struct app *app, struct egress_counts *ret);
size_t network_events(struct app *app, const char *sandbox, uint64_t after,
                      struct network_event *out, size_t most);
/* What was refused since somebody last asked for it here, as a list for an agent to read; NULL: nothing. */
json_t *network_refusals(struct app *app, const char *sandbox);
json_t *network_event_json(const struct network_event *event);

#endif
