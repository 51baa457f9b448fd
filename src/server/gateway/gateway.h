/* gateway.h - coved's side of the gateway, which is a program of its own (cove-gateway): what it is told, and what it says.
 *
 * A thread connects to it, tells it the settings and all private networks, and reads what it says; when it is gone, the thread connects
 * again, and every owner of rules is told so (`up`). Sandboxes lose their connections then, and nothing else.
 *
 * The gateway reads what attackers write, so what it says may be an attacker's word: it is checked (egress/message.h), an
 * event or a question counts only for a sandbox that has a gateway, and a dial only from a member of a private network to a
 * port of another that is open to it. A gateway that says anything else is cut off.
 *
 * Owns:    the connection, and what is known of it: which sandboxes have a gateway, who is in which private network.
 * Callers: network*.c, private*.c, from any thread. Calls wait for an answer, a few seconds at most: ERR_UNAVAILABLE. */
#ifndef COVE_SERVER_GATEWAY_GATEWAY_H
#define COVE_SERVER_GATEWAY_GATEWAY_H

#include "egress/message.h"

struct gateway;

struct gateway_config {
    const char *directory;       /* of the socket, see client/gateway_start.h; copied */
    struct egress_config egress; /* callbacks are called by the thread that reads */
    void (*up)(
        void *context); /* connected, with no sandbox; must not wait. context: egress.context */
};

int gateway_start(const struct gateway_config *config, struct gateway **ret, struct err *err);

/* Starts cove-gateway, and what keeps it up, for a coved that was started alone. The directory must be there. Before the
 * first thread. */
int gateway_child(const char *directory, struct err *err);

/* As egress_set. secrets: taken in any case. fds: taken in any case. */
int gateway_set(struct gateway *gateway, const char *sandbox, const char *tenant,
                const struct reach *rules, struct message_secrets *secrets,
                const int fds[EGRESS_FDS], struct err *err);
/* As egress_set_ranges, but soon, and without waiting for the gateway. One that is down is told when it is back. */
void gateway_set_ranges(struct gateway *gateway, const char *ranges);
/* What is told of the sandbox is told before this returns. */
void gateway_drop(struct gateway *gateway, const char *sandbox);
bool gateway_has(struct gateway *gateway, const char *sandbox);
/* 0 also if it is not known. */
size_t gateway_open(struct gateway *gateway, const char *sandbox);
void gateway_answer(struct gateway *gateway, uint64_t ticket, const struct egress_process *process);

/* As egress_nets_*. */
int gateway_nets_set(struct gateway *gateway, const char *tenant, const struct egress_net *nets,
                     size_t count, struct err *err);
int gateway_nets_without(struct gateway *gateway, const char *tenant, char (**ret)[EGRESS_ID_MAX],
                         size_t *ret_count, struct err *err);
bool gateway_nets_member(struct gateway *gateway, const char *sandbox);
void gateway_dialed(struct gateway *gateway, const struct egress_dial *dial, int fd,
                    const struct err *why);

/* Zero while it is down. */
void gateway_counts(struct gateway *gateway, struct egress_counts *ret);

struct gateway_state {
    bool up;
    /* since coved started: 1, and one more each time that the gateway was lost */
    uint64_t connects;
    uint64_t ignored; /* messages of the gateway that were not taken */
};
void gateway_state(struct gateway *gateway, struct gateway_state *ret);

#endif
