/* upkeep.h - what the server does by itself, in a thread of its own: measures what tenants store, ends requests whose key
 * has expired, and forgets audit records that are older than config.audit_days, or more than config.audit_bytes has room for.
 *
 * Owns:    the thread.
 * Callers: main.c. */
#ifndef COVE_SERVER_LIFE_UPKEEP_H
#define COVE_SERVER_LIFE_UPKEEP_H

#include "base/err.h"

struct app;

int upkeep_start(struct app *app, struct err *err);
void upkeep_stop(void);

#endif
