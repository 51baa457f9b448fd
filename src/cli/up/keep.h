/* keep.h - starts cove-keeper, and knows whether it answers.
 *
 * Callers: up.c. */
#ifndef COVE_CLI_KEEP_H
#define COVE_CLI_KEEP_H

#include "base/err.h"
#include "client/sandbox.h"

#include <stdbool.h>
#include <sys/types.h>

struct keep {
    /* As they were given; NULL: not. */
    const char *group, *max_sandboxes, *slots, *disk_reserve;
    bool vm_emulated;
    bool verbose;
    struct keeper_hello hello; /* of the last that answered */
};

/* For supervise.h; `with` is the struct keep. */
int keep_start(void *with, pid_t *ret, struct err *err);
bool keep_is_ready(void *with);

#endif
