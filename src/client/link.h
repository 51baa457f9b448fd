/* link.h - a connection to the keeper of a state directory.
 *
 * Owns:    one connected SOCK_SEQPACKET descriptor. Sandboxes that were made or tied with the
 *          flag TIED on this connection end when it closes.
 * Callers: client/sandbox.c and users of an agent connection. One thread at a time per link;
 *          links share nothing.
 * Never:   retries. A keeper that went away is ERR_UNAVAILABLE; open a new link. */
#ifndef COVE_CLIENT_LINK_H
#define COVE_CLIENT_LINK_H

#include "base/err.h"
#include "wire/keeper.h"

#include <stdint.h>

/* How long a keeper or an agent may leave a question unanswered. A create waits for disks and a
 * destroy for the kernel, so this is a bound on hanging, not on being slow. */
#define LINK_PATIENCE_MS 120000

struct link {
    int fd;
    int patience_ms; /* per question; -1: for ever. Handed on to agent streams */
};

int link_open(struct link *link, const char *state_dir, struct err *err);
void link_close(struct link *link);
/* auto_link: closed with its scope; { .fd = -1 } until it is opened. */
#define auto_link __attribute__((cleanup(link_close)))

/* One question and its answer. A refusal by the keeper is -1 with the keeper's own error. ret_fd
 * may be NULL; a descriptor that was not asked for is closed. */
int link_call(struct link *link, const struct keeper_request *request, struct keeper_reply *reply,
              int *ret_fd, struct err *err);

/* All pages of a list whose entries have this size and begin at `entries` of the reply. The list is the
 * caller's to free. */
int link_list(struct link *link, struct keeper_request *request, struct keeper_reply *reply,
              const void *entries, size_t size, void **ret, size_t *ret_count, struct err *err);

/* link_call in two halves, for callers that poll link->fd. */
int link_send(struct link *link, const struct keeper_request *request, struct err *err);
int link_receive(struct link *link, enum keeper_op op, struct keeper_reply *reply, int *ret_fd,
                 struct err *err);

/* `want` descriptors, or none and -1. */
int link_receive_fds(struct link *link, enum keeper_op op, struct keeper_reply *reply, int *ret_fds,
                     size_t want, struct err *err);

/* A connection to the agent of a sandbox: one operation. */
int link_connect(struct link *link, const char *sandbox, int *ret_fd, struct err *err);
/* The same, with the brief figures of the sandbox: one question instead of two. */
int link_connect_counted(struct link *link, const char *sandbox, int *ret_fd,
                         struct keeper_connected *ret, struct err *err);

/* The egress of a sandbox, in the caller's hands: see enum keeper_gateway. */
int link_gateway(struct link *link, const char *sandbox, int ret_fds[GATEWAY_FDS], struct err *err);

/* Puts an id or name into a request; ERR_INVALID when it is neither. */
int link_name(char out[KEEPER_NAME_MAX], const char *what, const char *name, struct err *err);

#endif
