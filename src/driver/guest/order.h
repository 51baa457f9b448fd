/* order.h - orders to the bridge of a guest (wire/bridge.h), and what the agent inside is told behind them.
 *
 * Callers: save.c and loader.c, in workers: each waits, though not for ever. */
#ifndef COVE_DRIVER_GUEST_ORDER_H
#define COVE_DRIVER_GUEST_ORDER_H

#include "driver/host.h"
#include "wire/bridge.h"

/* A word of the bridge, or the end of a pipe, may take so long. */
#define ORDER_MS 120000u

/* ERR_UNSUPPORTED: the bridge takes none, because an earlier version started it. */
int order_possible(const struct keeper *keeper, const struct sandbox *sandbox, struct err *err);

/* Gives an order, with a descriptor or -1. The answer comes on *ret_answer. */
int order_give(const struct keeper *keeper, const struct sandbox *sandbox, enum bridge_op op,
               int with_fd, int *ret_answer, struct err *err);
/* Gives BRIDGE_SAVE or BRIDGE_LOAD, with one end of a new pipe; ours is *ret_pipe. */
int order_begin(const struct keeper *keeper, const struct sandbox *sandbox, enum bridge_op op,
                int *ret_pipe, int *ret_answer, struct err *err);
int order_end(int fd, uint64_t patience_ms, struct err *err);

/* The guest runs, and its agent has answered. */
int order_run(const struct keeper *keeper, const struct sandbox *sandbox, struct err *err);
/* The agent is told why the guest runs (keeper/talk.h): only then its commands run, too. */
int order_tell(const struct keeper *keeper, const struct sandbox *sandbox, const char *why,
               uint64_t slept_ms, struct err *err);
/* Both. */
int order_go(const struct keeper *keeper, const struct sandbox *sandbox, const char *why,
             uint64_t slept_ms, struct err *err);

#endif
