#include "cli/api/verbs.h"

#include "base/own.h"

#include <string.h>

/* Each has a file in this folder. */
static const struct verb *const api_verbs[] = {
    &run_verb,   &shell_verb,  &exec_verb,         &create_verb,   &ps_verb,     &info_verb,
    &kill_verb,  &pause_verb,  &resume_verb,       &snapshot_verb, &fork_verb,   &logs_verb,
    &stats_verb, &login_verb,  &context_verb,      &version_verb,  &volume_verb, &tenant_verb,
    &key_verb,   &secret_verb, &network_verb,      &pool_verb,     &audit_verb,  &preview_verb,
    &cp_verb,    &mcp_verb,    &port_forward_verb,
};

/* Other words for the same. */
static const struct {
    const char *word;
    const struct verb *verb;
} also[] = { { "rm", &kill_verb }, { "inspect", &info_verb } };

const struct verb *api_verb_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(api_verbs); i++)
        if (strcmp(api_verbs[i]->name, name) == 0)
            return api_verbs[i];
    for (size_t i = 0; i < ARRAY_LEN(also); i++)
        if (strcmp(also[i].word, name) == 0)
            return also[i].verb;
    return NULL;
}
