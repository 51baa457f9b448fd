/* slots.h - exchanges with the ports of one sandbox at once: no more than the setting relay_most, so that one that is
 * busy, or whose clients never hang up, leaves threads to the others.
 *
 * Owns:    a count for every sandbox that has one at the moment.
 * Callers: relay.c. */
#ifndef COVE_SERVER_PREVIEW_SLOTS_H
#define COVE_SERVER_PREVIEW_SLOTS_H

#include "server/serve/exchange.h"

/* Visitors of a public port, who are unknown, have half of them: the other half is left to those with a token or a key.
 * ERR_TOO_MANY, with Retry-After and the rule "relay_most" or "visitors". After 0, slots_give is owed. */
int slots_take(struct exchange *x, const char *sandbox, struct err *err);
void slots_give(const struct exchange *x, const char *sandbox);

#endif
