/* rig.h - a cove of our own to measure: its state directory, its keeper, and lanes to it.
 *
 * Owns: a scratch directory with the state and the keeper's log, and the keeper's process.
 * A lane is one connection to the keeper and is used by one thread at a time. */
#ifndef COVE_BENCH_RIG_H
#define COVE_BENCH_RIG_H

#include "base/parse.h"
#include "client/sandbox.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rig {
    char dir[100];      /* scratch, removed by rig_done */
    char state[120];    /* <dir>/state */
    char programs[512]; /* where cove and cove-keeper are */
    char cove[560];
    pid_t up;     /* `cove up`, our child */
    pid_t keeper; /* as it says itself */
    int log;      /* the keeper's stderr */
};

/* Makes the scratch directory and starts cove; returns when the keeper answers. */
int rig_init(struct rig *rig, struct err *err);

/* kill -9 of the keeper. */
int rig_kill(struct rig *rig, struct err *err);

/* Starts cove again. The reply comes when the keeper answers; *ret_us is the time from before the
 * start until it says that it has `sandboxes` of them. */
int rig_start(struct rig *rig, size_t sandboxes, uint64_t *ret_us, struct err *err);

/* Ends the keeper (sandboxes stay). */
void rig_stop(struct rig *rig);

void rig_done(struct rig *rig);

struct lane {
    struct link link;
};

int lane_open(struct lane *lane, const struct rig *rig, struct err *err);
void lane_close(struct lane *lane);

int lane_hello(struct lane *lane, struct keeper_hello *ret, struct err *err);

/* From the template `host`, with these limits. */
int lane_create(struct lane *lane, const struct limits *limits, struct keeper_sandbox *ret,
                struct err *err);

/* Runs `/usr/bin/echo x` or `/usr/bin/true` to its end. *ret_first_us is the moment (io_now_us) of
 * the first byte of output. A command that fails is an error. */
int lane_echo(struct lane *lane, const char *id, uint64_t *ret_first_us, struct err *err);
int lane_true(struct lane *lane, const char *id, struct err *err);

/* `true` as the text of a command, which a login shell runs. */
int lane_shell_true(struct lane *lane, const char *id, struct err *err);

int lane_destroy(struct lane *lane, const char *id, struct err *err);

/* How many sandboxes a listing of all of them has. */
int lane_list(struct lane *lane, size_t *ret_count, struct err *err);

/* Waits until that many, made ahead, run and have no owner. */
int lane_await_pool(struct lane *lane, size_t count, struct err *err);

#endif
