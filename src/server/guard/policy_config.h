/* policy_config.h - a `security` object, as a policy.
 *
 *   {"allowed_tools": [], "blocked_tools": [], "command_blacklist": [], "command_whitelist": [],
 *    "blocked_paths": [], "waived_rules": [], "allow_root": false, "network": false,
 *    "max_risk": "medium", "enable_audit_log": true, "preset": "standard"}
 *
 * Lists come on top of the preset's own. */
#ifndef COVE_SERVER_GUARD_POLICY_CONFIG_H
#define COVE_SERVER_GUARD_POLICY_CONFIG_H

#include "policy/policy.h"

#include <jansson.h>

/* Inits, fills and compiles; on failure nothing is left to be done, and ret_field (which may be NULL) names
 * the member that is wrong, or is NULL. `security` may be NULL: the preset alone. */
int policy_from_json(struct policy *ret, json_t *security, const char *preset,
                     const char **ret_field, struct err *err);

#endif
