/* egress.h - a guest's connections to other hosts become streams of the mux.
 *
 * A guest has a loopback and no other device. Its kernel is told that every address is on the loopback, and to redirect connections that
 * are not to its own addresses to a listener of the agent's; SO_ORIGINAL_DST says where a connection was meant to go. Questions for names go
 * to the address of the sandbox's name server, at which the agent listens. Nothing here decides what may be reached: that is the gateway's,
 * outside.
 *
 * Needs BOOT_GUEST_CAPS. Callers: trunk.c, when the host says that the sandbox has a network. */
#ifndef COVE_AGENT_EGRESS_H
#define COVE_AGENT_EGRESS_H

#include "mux/hub.h"

/* Once; again is nothing. On failure the guest has no network, and continues. */
int egress_open(struct hub *hub, struct err *err);

/* Before gVisor is saved: connections to other hosts are reset, and what is bound to an address of egress_rules.h is closed. A kernel that
 * was loaded has those addresses, and no rules: egress_renew() sets both again, and listens again; where egress is not open it
 * removes the addresses, of which a sandbox without a network has none. */
void egress_close_outside(struct hub *hub);
void egress_renew(struct hub *hub);

/* For struct hub_calls: an answer, and the end of a question. */
void egress_answer(struct hub *hub, struct mux_stream *stream, const uint8_t *data, size_t len);
void egress_gone(struct hub *hub, void *owner);

/* Questions without an answer are given up; about once a second. */
void egress_tick(struct hub *hub);

#endif
