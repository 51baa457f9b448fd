/* sleep_own.h - what the parts of sleeping share: sleep.c, sleep_settle.c, ops_snapshot.c, ops_fork.c. */
#ifndef COVE_SERVER_LIFE_SLEEP_OWN_H
#define COVE_SERVER_LIFE_SLEEP_OWN_H

#include "server/life/sleep.h"
#include "server/life/turn.h"

/* if_free: ERR_STATE rather than waiting. */
int sleep_turn(struct turn *turn, const char *sandbox, bool if_free, struct err *err);

/* Whether the keeper said that there is no such image. */
bool sleep_no_image(const struct err *err);
/* Gives a link back, or drops it after a failure that leaves it in the middle of an answer. */
void sleep_close(struct app *app, struct link *link, int result, const struct err *err);
/* Opens the egress that a sandbox's record has. */
int sleep_network(struct app *app, const char *sandbox, struct err *err);
/* Whether the tenant may store what an image of the sandbox would take, as far as can be told. ERR_TOO_MANY. */
int sleep_room(struct app *app, struct link *link, const struct store_sandbox *record, bool memory,
               bool recorded, struct err *err);
/* A snapshot's image, then its record. What is gone already is no error. */
int sleep_drop(struct app *app, const char *snapshot, struct err *err);

#endif
