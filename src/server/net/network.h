/* network.h - egress of sandboxes: the gateway, and the rules that it is told.
 *
 * Rules (network_rules.h) are kept with the sandbox's record; at start the gateway of every sandbox that has some is opened
 * again. What the gateway saw is in network_events.h.
 *
 * Owns:    the connection to the gateway (gateway.h), from network_start to the end of the process.
 * Callers: ops*.c; deadline.c, when a sandbox has ended. */
#ifndef COVE_SERVER_NET_NETWORK_H
#define COVE_SERVER_NET_NETWORK_H

#include "egress/egress.h"
#include "server/app/app.h"

/* Starts cove-gateway where `cove up` did not. Before the first thread, and before rights are dropped. */
int network_prepare(const struct config *config, struct err *err);
/* dial: connects sandboxes of private networks, for the gateway (struct egress_config); its context is the app. */
typedef void network_dial(void *app, const struct egress_dial *dial);
int network_start(struct app *app, network_dial *dial, struct err *err);
/* Settings have changed: network_ranges. */
void network_reload(struct app *app);
/* The user who owns the gateway's connections, and no other program's: by this server/serve/peer_owner.h knows them. */
uint32_t network_uid(struct app *app);
/* NULL: no sandbox has a network. */
struct gateway *network_gateway(struct app *app);
int network_unsupported(struct err *err);

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
/* Looks whether another process has changed them. For one thread. */
void network_secrets_poll(struct app *app);
void network_ended(struct app *app, const char *sandbox);
/* Whether it has a connection to the outside open, or waits for a name. */
bool network_busy(struct app *app, const char *sandbox);

/* What the gateway has to tell of the sandbox by now is told when this returns: the next reader sees it. */
void network_catch_up(struct app *app, const char *sandbox);

/* All zero where there is no gateway. */
void network_counts(struct app *app, struct egress_counts *ret);

#endif
