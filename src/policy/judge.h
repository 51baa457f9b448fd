/* judge.h - the built-in rules and the policy's lists, applied to one command, path or variable. */
#ifndef COVE_POLICY_JUDGE_H
#define COVE_POLICY_JUDGE_H

#include "policy/command.h"

/* Everything that can be said about a command from its name and arguments. */
void judge_command(struct analysis *an, const struct command *c);

/* A path that is read or written; reported and held against the rules. */
void judge_path(struct analysis *an, const struct field *path, enum policy_access access,
                struct span at, const char *shown);

/* An assignment, before a command or on its own. */
void judge_assign(struct analysis *an, const char *name, const struct field *value);

/* The blacklist against a text; the whitelist against a program's name. */
void judge_blacklist(struct analysis *an, const char *text, size_t len, struct span at,
                     const char *shown);
void judge_whitelist(struct analysis *an, const char *name, struct span at, const char *shown);

/* Rules whose paths hold secrets: what is read from them taints. */
bool judge_is_secret(enum rule rule);

/* The families, called by judge_command for the programs in their tables. */
void judge_files(struct analysis *an, const struct command *c);
void judge_system(struct analysis *an, const struct command *c);
void judge_network(struct analysis *an, const struct command *c);

/* A name that some rule knows, for programs that are named by a glob ("/bin/r?"). */
const char *judge_known_program(const char *pattern);

#endif
