/* tools_rg.h - searching with the ripgrep of the sandbox, where its template has one.
 *
 * It knows more than the agent's own search, such as Unicode classes, lazy quantifiers, groups that capture nothing and
 * (?i), and it leaves out what .gitignore names, as coding agents expect.
 *
 * Callers: tools_find.c. What it prints is hostile: lines are bounded and read as JSON, field by field. */
#ifndef COVE_SURFACE_TOOLS_TOOLS_RG_H
#define COVE_SURFACE_TOOLS_TOOLS_RG_H

#include "server/ops/ops.h"

/* As ops_file_search with AGENT_GREP: matches and their neighbours come to `each`, files in the order of their names.
 * 1: done. 0: the sandbox has no ripgrep, and nothing was searched. -1: failed; a pattern that it does not take is
 * ERR_INVALID, in its own words. */
int tools_rg(struct ops *ops, const struct ops_file *file, const struct agent_request *request,
             exec_item_fn each, void *context, bool *ret_truncated, struct err *err);

#endif
