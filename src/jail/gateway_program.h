/* gateway_program.h - what decides, at the socket look-up of a sandbox, what reaches the gateway at all.
 *
 * Owns:    nothing: maps and program go into struct gateways.
 * Callers: gateway.c.
 * Never:   lets anything out. What it hands over is for the gateway to decide on. */
#ifndef COVE_JAIL_GATEWAY_PROGRAM_H
#define COVE_JAIL_GATEWAY_PROGRAM_H

#include "jail/gateway.h"

/* What programs inside see as their own. */
extern const uint8_t gateway_own4[4], gateway_own6[16];

/* A program for one sandbox, with its map and its table, into g. */
int gateway_program_make(struct gateways *g, struct err *err);

#endif
