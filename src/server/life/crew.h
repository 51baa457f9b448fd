/* crew.h - threads that pause and end sandboxes for deadlines and idleness, so that no request waits for a slow one.
 *
 * Ends come before pauses, pauses before saves. Each kind has a share of the threads, and each tenant a share of each kind: sandboxes of
 * one tenant that do not stand still, or do not die, are waited for by that tenant's share alone. Of two tasks, the one whose
 * tenant has fewer under way is begun first.
 *
 * Owns:    the threads and the queue, from start to stop. Threads are started as they are needed.
 * Callers: deadline.c, idle.c.
 * Never:   tries again. A task that fails says so in the log, and its giver finds out in the next round. */
#ifndef COVE_SERVER_LIFE_CREW_H
#define COVE_SERVER_LIFE_CREW_H

#include "base/err.h"
#include "base/parse.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct app;

enum crew_kind {
    CREW_END,
    CREW_PAUSE, /* to stand still, in memory */
    CREW_SAVE,  /* to disk: takes as long as there is memory */
    CREW_KINDS
};

struct crew_task {
    enum crew_kind kind;
    char id[ID_LEN + 1];
    char tenant[STORE_TENANT_MAX];
    uint64_t deadline_ms; /* that passed; 0: it is not about one */
    int how;              /* for the function that runs it */
    void (*run)(struct app *app, const struct crew_task *task);
};

void crew_start(struct app *app);
/* false: the same is under way or waits already, or too much waits. */
bool crew_add(const struct crew_task *task);
/* What waits is forgotten; returns when what is under way has ended. */
void crew_stop(void);

/* How many are under way, and wait, of a kind. */
void crew_count(enum crew_kind kind, unsigned *ret_running, unsigned *ret_waiting);

#endif
