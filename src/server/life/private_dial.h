/* private_dial.h - a connection between two sandboxes of a private network: the other one is woken, and its agent dialled.
 *
 * Each dial has a thread of its own, within limits for each sandbox and tenant; the gateway gets the stream that comes of it.
 *
 * Callers: main.c, for network_start. */
#ifndef COVE_SERVER_LIFE_PRIVATE_DIAL_H
#define COVE_SERVER_LIFE_PRIVATE_DIAL_H

#include "egress/egress.h"

void private_dial(void *app, const struct egress_dial *dial);

#endif
