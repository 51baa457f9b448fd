/* peers.h - the other ways to run a command apart: bwrap, runc, crun, runsc.
 *
 * One row per peer says how it is called. What they share: the host's /usr read-only, a fresh
 * /proc, /dev and /tmp, no network, the same /usr/bin/echo and /usr/bin/true. Where that leaves a
 * choice, the peer gets the cheaper one (runc has no user namespace and no seccomp filter here).
 *
 * Owns: the OCI bundles and the peers' state below the scratch directory, and every container made
 * with it, until peers_done. */
#ifndef COVE_BENCH_PEERS_H
#define COVE_BENCH_PEERS_H

#include "series.h"

#include <stdbool.h>
#include <stddef.h>

struct peer {
    const char *name;
    const char *program;
    unsigned every;       /* takes part in one round of so many: slow ones in fewer */
    const char *variants; /* options that may be needed here, best first, separated by '|' */
    const char *run;      /* the command of a bundle, in the foreground, nothing left behind */
    const char *keep;     /* the same, in the background; NULL: it cannot */
    const char *exec;     /* `true` in what `keep` made */
    const char *stop;     /* ends and removes what `keep` made */
};

/* What a peer measured. */
struct peer_times {
    const struct peer *peer;
    bool works;
    char note[200];       /* how it was called, or why it does not start */
    char variant[100];    /* the options of its row that worked */
    char living[32];      /* id of the container that exec is measured in, or "" */
    struct series first;  /* create to the first byte of echo */
    struct series whole;  /* create, true, removed */
    struct series exec;   /* true in the living one */
    struct series remove; /* of a living one */
    unsigned failures;
};

#define PEERS_MAX 8

struct peers {
    char dir[200];
    size_t count;
    unsigned next_id;
    struct peer_times times[PEERS_MAX];
};

/* Makes bundles below dir, finds out which peers start here, and starts their living containers. */
void peers_init(struct peers *peers, const char *dir);

/* One measurement of everything that the peer can do. */
void peers_round(struct peers *peers, struct peer_times *times);

void peers_done(struct peers *peers);

#endif
