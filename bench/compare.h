/* compare.h - create, exec and destroy, side by side with the peers.
 *
 * Rounds are interleaved and begin with another contender each time, so that whatever else the
 * machine does hits all of them alike. */
#ifndef COVE_BENCH_COMPARE_H
#define COVE_BENCH_COMPARE_H

#include "peers.h"
#include "rig.h"
#include "server.h"

/* One way to use cove through the client library. */
struct cove_times {
    const char *name;
    struct limits limits;
    char living[KEEPER_NAME_MAX];
    struct series create;  /* until the keeper's reply */
    struct series first;   /* create to the first byte of echo */
    struct series whole;   /* create, true, destroyed */
    struct series exec;    /* true in the living one */
    struct series destroy; /* until the keeper's reply */
    unsigned failures;
    struct err why; /* of the last failure */
};

enum compare_cove { COVE_DISK, COVE_MEMORY, COVE_WAYS };

/* `cove run`, fork to exit, with a cove of its own to ask. */
struct cli_times {
    const char *name, *pool; /* coved's setting */
    struct rig rig;
    struct server server;
    struct lane lane; /* to see how full the pool is */
    struct series first, whole;
    unsigned failures;
    char why[160]; /* of the last failure */
};

enum compare_cli { CLI_MADE, CLI_POOL, CLI_WAYS };

struct compare {
    const struct rig *rig; /* borrowed */
    struct lane lane;
    struct cove_times cove[COVE_WAYS];
    struct cli_times cli[CLI_WAYS];
    struct series fork_true, spawn_true; /* without any sandbox */
    struct peers *peers;                 /* borrowed; NULL: cove alone */
};

int compare_init(struct compare *compare, const struct rig *rig, struct peers *peers,
                 struct err *err);
void compare_round(struct compare *compare, unsigned round);
void compare_report(struct compare *compare);

/* Failures of cove, in whichever way it was used; *ret_why says what the last one was. */
unsigned compare_failures(const struct compare *compare, const char **ret_why);

void compare_done(struct compare *compare);

#endif
