/* connect.h - connections to a jail's agent.
 *
 * Callers: jail.c for others; save.c, loader.c and posture.c, in workers, for the keeper's own talk (keeper/talk.h);
 *          driver/guest/order.c. */
#ifndef COVE_DRIVER_JAIL_CONNECT_H
#define COVE_DRIVER_JAIL_CONNECT_H

#include "driver/host.h"

/* After a check that it is this sandbox's PID 1 that listens. Does not wait. */
int jail_connect(struct keeper *keeper, const struct sandbox *sandbox, int *ret_fd,
                 struct err *err);

/* A connection to what the sandbox's PID 1 listens on under that name, in its network. In a worker. */
int connect_dial(const struct nets *nets, int pidfd, pid_t pid, const char *name, struct err *err);

/* Whether it listens there: 1, 0 if it lives and does not, -1 if that cannot be said. */
int connect_listens(const struct nets *nets, int pidfd, pid_t pid, const char *name,
                    struct err *err);

/* talk_quiesce and talk_resumed (keeper/talk.h) over a connection of their own. In a worker: they wait, though not for ever. */
int connect_quiesce(const struct nets *nets, int pidfd, pid_t pid, struct err *err);
int connect_resumed(const struct nets *nets, int pidfd, pid_t pid, const char *why,
                    uint64_t slept_ms, int listener, struct err *err);

#endif
