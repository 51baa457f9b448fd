#include "wire/isolation.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {
    [ISOLATION_JAIL] = "jail",
    [ISOLATION_GVISOR] = "gvisor",
    [ISOLATION_VM] = "vm",
    [ISOLATION_VM_EMULATED] = "vm-emulated",
};
_Static_assert(ARRAY_LEN(names) == ISOLATION_COUNT, "every isolation has a name");

bool isolation_known(uint32_t isolation)
{
    return isolation < ISOLATION_COUNT;
}

uint32_t isolation_level(uint32_t isolation)
{
    return isolation < ISOLATION_VM_EMULATED ? isolation : ISOLATION_JAIL;
}

const char *isolation_name(uint32_t isolation)
{
    return isolation_known(isolation) ? names[isolation] : "unknown";
}

int isolation_parse(const char *name, uint32_t *ret, struct err *err)
{
    char list[128] = "";

    for (uint32_t i = 0; i < ISOLATION_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret = i;
            return 0;
        }
        (void) snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
                        names[i]);
    }
    return err_set(err, ERR_INVALID, "isolation: unknown '%.40s', use one of: %s", name, list);
}
