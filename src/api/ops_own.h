/* ops_own.h - what the parts of the operations layer share: ops.c, ops_exec.c, ops_files.c. */
#ifndef COVE_API_OPS_OWN_H
#define COVE_API_OPS_OWN_H

#include "api/ops.h"

#include <jansson.h>

/* The sandbox is the caller's, and a link to the keeper for one use. ret_env may be NULL; else it is an array of
 * K=V texts that every command in the sandbox gets, or NULL, for the caller to json_decref. */
int ops_box_open(struct ops *ops, const char *sandbox, struct link *ret_link, json_t **ret_env,
                 struct err *err);
void ops_box_close(struct ops *ops, struct link *link, int result, const struct err *err);

/* Whether the caller's policy lets this command run; a refusal blames the rule. */
int ops_policy_command(struct ops *ops, const char *command, struct err *err);

/* One record of the audit. err: why it was refused, or NULL. */
void ops_audit(struct ops *ops, const char *action, const char *sandbox, const struct err *err);

#endif
