#include "policy/policy.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>

#define ENTRIES_MAX 12

/* What the ready-made configurations of sandboxes bring along. None has regexes: those see
 * texts in quotes too, where the built-in rules know what is only said. */
static const struct {
    const char *name;
    bool allow_root, network;
    enum policy_risk max_risk;
    const char *lists[POLICY_LIST_COUNT][ENTRIES_MAX];
} presets[] = {
    {
        .name = "minimal",
        .max_risk = POLICY_RISK_LOW,
        .lists = {
            [POLICY_BLOCKED_TOOLS] = { "WebFetch", "WebSearch" },
            [POLICY_BLOCKED_PATHS] = { "/etc/shadow", "/etc/sudoers", "/root", "~/.ssh", "/boot",
                                       "/dev/mem", "/proc/kcore" },
        },
    },
    {
        .name = "standard",
        .max_risk = POLICY_RISK_MEDIUM,
        .lists = {
            [POLICY_BLOCKED_PATHS] = { "/etc/shadow", "/etc/sudoers", "/proc/kcore" },
        },
    },
    {
        .name = "development",
        .network = true,
        .max_risk = POLICY_RISK_MEDIUM,
        .lists = {
            [POLICY_BLOCKED_PATHS] = { "/etc/shadow", "/etc/sudoers", "/proc/kcore" },
        },
    },
    {
        /* Judged, counted and shown, and let pass: for users who were promised a machine of their own. */
        .name = "open",
        .allow_root = true,
        .network = true,
        .max_risk = POLICY_RISK_CRITICAL,
    },
};

const char *policy_preset_name(size_t n)
{
    return n < ARRAY_LEN(presets) ? presets[n].name : NULL;
}

int policy_preset(struct policy *policy, const char *name, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(presets); i++) {
        if (strcmp(presets[i].name, name) != 0)
            continue;
        policy->allow_root = presets[i].allow_root;
        policy->network = presets[i].network;
        policy->max_risk = presets[i].max_risk;
        for (int list = 0; list < POLICY_LIST_COUNT; list++)
            for (size_t k = 0; k < ENTRIES_MAX && presets[i].lists[list][k]; k++)
                if (policy_add(policy, (enum policy_list) list, presets[i].lists[list][k], err) < 0)
                    return err_wrap(err, "preset '%s'", name);
        return 0;
    }
    return err_set(err, ERR_INVALID,
                   "preset '%.40s': must be minimal, standard, development or open", name);
}
