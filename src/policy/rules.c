#include "policy/rules.h"

#include "policy/report.h"

#include "base/own.h"

#include <string.h>

const struct policy_rule policy_rules[RULE_COUNT] = {
#define RULE(name, text_id, level, text)                                                           \
    [RULE_##name] = { text_id, POLICY_RISK_##level, text,                                          \
                      RULE_##name >= RULE_BLACKLIST && RULE_##name <= RULE_REGEX_FAILED },
    POLICY_RULES(RULE)
#undef RULE
};

static const char *const risk_names[] = {
    [POLICY_RISK_NONE] = "none",         [POLICY_RISK_LOW] = "low",
    [POLICY_RISK_MEDIUM] = "medium",     [POLICY_RISK_HIGH] = "high",
    [POLICY_RISK_CRITICAL] = "critical",
};
_Static_assert(ARRAY_LEN(risk_names) == POLICY_RISK_COUNT, "every risk has a name");

enum rule policy_rule_find(const char *id)
{
    for (int i = RULE_NONE + 1; i < RULE_COUNT; i++)
        if (strcmp(policy_rules[i].id, id) == 0)
            return (enum rule) i;
    return RULE_NONE;
}

const char *policy_risk_name(enum policy_risk risk)
{
    return (unsigned) risk < POLICY_RISK_COUNT ? risk_names[risk] : "critical";
}

enum policy_risk policy_risk_find(const char *name)
{
    for (int i = 0; i < POLICY_RISK_COUNT; i++)
        if (strcmp(risk_names[i], name) == 0)
            return (enum policy_risk) i;
    return POLICY_RISK_COUNT;
}
