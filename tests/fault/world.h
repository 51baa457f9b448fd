/* world.h - one keeper on a state of its own, and what may be left of it in the kernel.
 *
 * Owns:    the keeper process. Callers say which of its sandboxes are meant to be there.
 * Callers: fault_inject.c, posture.c. */
#ifndef COVE_FAULT_WORLD_H
#define COVE_FAULT_WORLD_H

#include "client/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HIERARCHIES_MAX 16

struct world {
    char program[512]; /* of the keeper */
    char state[256];
    char log[300];
    pid_t keeper;
    char instance[64];
    char cgroups[HIERARCHIES_MAX][192]; /* <mount>/<instance>, those that exist */
    size_t cgroup_count;
    /* healthy, made before, with an image disk; must outlive everything */
    struct keeper_sandbox neighbour;
    bool spare; /* the keeper makes a child ahead (driver/jail/spare.h) */
    int fd_base; /* the keeper's descriptors at rest, less those of its pool and of its spare child */
};

int world_open(struct world *w, const char *build, const char *state, struct err *err);
/* Starts a keeper and waits until it answers. */
int world_start(struct world *w, struct err *err);
void world_stop(struct world *w, int signal);

pid_t world_maker(const struct world *w);
/* The child that waits for the next create; 0: none. */
pid_t world_spare(const struct world *w);
/* Waits until there is one, but no longer. */
pid_t world_await_spare(const struct world *w, unsigned patience_ms);
/* How many disks there are, beside the neighbour's and those that are made ahead. */
int world_disks(const struct world *w);

int world_ask(const struct world *w, const char *sandbox, struct err *err);
/* Its disk is an image: of a size that is kept ready, or not. */
int world_create(const struct world *w, const char *id, bool ready, struct keeper_sandbox *ret,
                 struct err *err);
/* Destroys whatever is there, but the neighbour. */
int world_clear(const struct world *w, struct err *err);

/* Nothing but the neighbour is left: polls, because the kernel takes its time. err says what is. */
int world_check(const struct world *w, struct err *err);
/* Sets fd_base. */
int world_rest(struct world *w, struct err *err);

/* What a running PID 1 looks like from outside, less what differs between any two sandboxes. */
char *posture_read(const struct keeper_sandbox *sandbox);
/* NULL when they are alike, else a text that says where they differ first. */
const char *posture_differs(const char *wanted, const char *got);

#endif
