#include "server/guard/caller.h"

#include <stdio.h>
#include <string.h>

int caller_blame(struct caller *caller, const char *field, const char *rule, const char *layer)
{
    struct blame *blame = &caller->blame;

    (void) snprintf(blame->field, sizeof blame->field, "%s", field ? field : "");
    (void) snprintf(blame->rule, sizeof blame->rule, "%s", rule ? rule : "");
    (void) snprintf(blame->layer, sizeof blame->layer, "%s", layer ? layer : "");
    return -1;
}

const char *caller_blamed_rule(const struct caller *caller, const char *layer)
{
    const struct blame *blame = &caller->blame;

    return blame->rule[0] && strcmp(blame->layer, layer) == 0 ? blame->rule : NULL;
}
