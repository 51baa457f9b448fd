/* calls.h - system calls by name, and the errors each may plausibly meet. */
#ifndef COVE_FAULT_CALLS_H
#define COVE_FAULT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define CALL_ERRORS 2

struct call {
    uint64_t nr;
    const char *name;
    int errors[CALL_ERRORS];
};

/* NULL: not in the table; then it fails with ENOMEM. */
const struct call *call_find(uint64_t nr);

/* False for calls that cannot fail, or whose failure would be the injector's and not the kernel's. */
bool call_can_fail(uint64_t nr, const uint64_t args[6]);

#endif
