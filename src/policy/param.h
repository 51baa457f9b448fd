/* param.h - ${name...}: defaults, pieces, trims, replacements. */
#ifndef COVE_POLICY_PARAM_H
#define COVE_POLICY_PARAM_H

#include "policy/ast.h"

/* The value of what stands between the braces. *ret_array: "${a[@]}", which splits in quotes too. */
struct flow param_value(struct analysis *an, const struct source *src, const char *text, size_t len,
                        bool *ret_array);

#endif
