/* connect.h - what is said to an HTTP proxy, and what it answers: CONNECT (RFC 9110, 9.3.6) with a Basic login.
 *
 * Pure; what is read is hostile. Fuzzed. */
#ifndef COVE_EGRESS_CONNECT_H
#define COVE_EGRESS_CONNECT_H

#include "egress/ip.h"
#include "egress/upstream.h"
#include "http/reply.h"

#define CONNECT_SAY_MAX   2048
#define CONNECT_REPLY_MAX 8192 /* no head of a proxy is longer than that */

/* To the name, which the proxy looks up; NULL: to the address. */
size_t connect_request(const struct upstream *upstream, const char *name, const struct ip *ip,
                       uint16_t port, char out[CONNECT_SAY_MAX]);
/* All bytes so far, perhaps more than the head; `reply` from reply_init, the same for all calls. 1: agreed, the head
 * took *ret_used. 0: more are needed. -1: refused, or no HTTP, with a sentence. */
int connect_reply(struct reply *reply, const uint8_t *data, size_t len, size_t *ret_used,
                  struct err *err);

#endif
