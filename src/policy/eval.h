/* eval.h - runs a tree in the head. */
#ifndef COVE_POLICY_EVAL_H
#define COVE_POLICY_EVAL_H

#include "policy/ast.h"

/* Parses and runs a text. `in` is what it reads, `out` takes what it prints; NULL: not read. */
void eval_source(struct analysis *an, const struct source *src, const struct flow *in,
                 struct sink *out);

/* The same for a text that was made up on the way: positions are those of `at`. */
void eval_text(struct analysis *an, const char *text, size_t len, struct span at,
               const struct flow *in, struct sink *out);

void eval_node(struct analysis *an, const struct node *node, const struct flow *in,
               struct sink *out);

/* Runs a function's body with these arguments; false: no such function. */
bool eval_function(struct analysis *an, const struct field *argv, size_t argc,
                   const struct flow *in, struct sink *out);

/* $1 to $9, $@ and $# from argv[1] on. */
void eval_arguments(struct analysis *an, const struct field *argv, size_t argc);

#endif
