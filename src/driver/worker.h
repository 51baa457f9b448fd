/* worker.h - a process that does one long thing for one sandbox, so that the keeper never waits.
 *
 * It is a fork of the keeper with a copy of the sandbox, and continues when the keeper dies: what it does must
 * end well by itself. It answers with one message. It is in a cgroup of its own (cgroup_work_open), with all that it starts, so that
 * kill.c finds it; who kills the sandbox kills it first. Every wait of a worker has an end, and so has the worker (tick.c).
 *
 * Owns:    nothing; the descriptor to it is the sandbox's control watch.
 * Callers: drivers. */
#ifndef COVE_DRIVER_WORKER_H
#define COVE_DRIVER_WORKER_H

#include "driver/host.h"

#include <sys/types.h>

/* What a worker and all that it starts may take, beside the sandbox's own memory limit. */
#define WORKER_EXTRA_MEMORY (128ull << 20)
#define WORKER_PROCESSES    64
#define WORKER_CPU_MILLI    2000

struct worker_result {
    struct err err; /* ERR_NONE: done */
    /* the sandbox could not be put back as it was: it must not continue; err says why */
    bool unconfined;
    struct keeper_image image;        /* save */
    struct layers layers;             /* save */
    pid_t pid;                        /* load */
    uint64_t pid_started;             /* load */
    unsigned char filter[SHA256_LEN]; /* load */
    uint64_t reclaimed;               /* reclaim */
};

struct worker {
    struct keeper *keeper; /* without its table of sandboxes, which is not inherited */
    struct sandbox sandbox;
    int scratch_fd; /* a directory in memory, for logs; gone with the worker's end */
    struct worker_result result;
};

typedef int worker_deed(struct worker *w, const struct keeper_request *request, struct err *err);
typedef void worker_end(struct keeper *keeper, struct sandbox *sandbox,
                        struct worker_result *result);

int worker_start(struct keeper *keeper, struct sandbox *sandbox, const char *name,
                 worker_deed *deed, const struct keeper_request *request, worker_end *end,
                 struct err *err);

/* True: in a process whose end is not waited for, a child's child. */
bool worker_fork_apart(void);

/* Removes what images_clear does. Does not wait. */
void worker_clear_images(struct keeper *keeper);

/* True: in a process that no caller waits for, a child's child. */
bool worker_fork_apart(void);

#endif
