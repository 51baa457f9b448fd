/* egress_rules.h - the guest's kernel: addresses on the loopback, and rules that redirect. By netlink and by the legacy interface of
 * iptables, whose structures are laid out here: the kernel's headers and musl's do not go together.
 *
 * Callers: egress.c. */
#ifndef COVE_AGENT_EGRESS_RULES_H
#define COVE_AGENT_EGRESS_RULES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EGRESS_OWN4                                                                                \
    {                                                                                              \
        192, 0, 2, 2                                                                               \
    } /* as jail/gateway.c has it */
#define EGRESS_SERVER4                                                                             \
    {                                                                                              \
        192, 0, 2, 1                                                                               \
    }

/* Before the agent cuts its rights down: gVisor takes CAP_NET_RAW from a process that sets its capabilities, so what rules are set through is
 * opened now. Failure shows later. keep: it stays open, for rules that are to be set again. */
void egress_rules_prepare(bool keep);

/* Every IPv4 address is the loopback's, and that of the name server can be listened at. */
int egress_addresses4(struct err *err);
/* The same for IPv6. */
int egress_addresses6(struct err *err);

/* In gVisor, which takes its routes with an address: what a kernel that was loaded begins with. */
void egress_remove_addresses(void);

/* TCP to addresses that are not the guest's own arrives at that port. */
int egress_redirect4(uint16_t port, struct err *err);
int egress_redirect6(uint16_t port, struct err *err);

#endif
