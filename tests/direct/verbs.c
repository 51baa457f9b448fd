#include "cli/verbs.h"

#include "base/own.h"

#include <string.h>

/* In the order of the help. */
const struct verb *const verbs[] = {
    &run_verb,     &shell_verb,  &exec_verb,       &create_verb,   &ps_verb,      &kill_verb,
    &pause_verb,   &resume_verb, &snapshot_verb,   &fork_verb,     &gc_verb,      &cp_verb,
    &logs_verb,    &stats_verb,  &up_verb,         &template_verb, &volume_verb,  &tenant_verb,
    &key_verb,     &audit_verb,  &cert_verb,       &backup_verb,   &restore_verb, &doctor_verb,
    &version_verb, &help_verb,   &completion_verb,
};
const size_t verb_count = ARRAY_LEN(verbs);

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < verb_count; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}
