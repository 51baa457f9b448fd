/* command.h - one program with its arguments: judged, then followed into what it would run.
 *
 * Callers: eval.c for what the text says; wrap.c, shells.c and code.c for what they find inside. */
#ifndef COVE_POLICY_COMMAND_H
#define COVE_POLICY_COMMAND_H

#include "policy/ast.h"

struct command {
    const struct field *argv;
    size_t argc;
    const char *name;      /* argv[0] without directory and version */
    const char *shown;     /* all of it, for people */
    const struct flow *in; /* NULL: nothing in particular */
    struct sink *out;      /* NULL: not read */
    struct span at;
};

/* argv[0] is the program. */
void command_run(struct analysis *an, const struct field *argv, size_t argc, struct span at,
                 const struct flow *in, struct sink *out);

/* Options. Short ones may be clustered; "--" ends them. */
bool command_flag(const struct command *c, char letter, const char *word);
/* The value of -x V, -xV, --word V or --word=V; NULL: not given. */
const struct field *command_value(struct analysis *an, const struct command *c, char letter,
                                  const char *word);
/* The n-th argument (from 0) that is no option; NULL behind the last. */
const struct field *command_operand(const struct command *c, size_t n);
/* Whether an argument is exactly this. */
bool command_has(const struct command *c, const char *text);

/* All arguments from argv[from] on, with blanks between. */
struct flow command_join(struct analysis *an, const struct command *c, size_t from);

/* Builtins that change the shell itself: variables, directory, functions. True: it was one. */
bool builtin_run(struct analysis *an, const struct command *c);

/* Wrappers. True: *ret_inner is what they would run, and has no name yet; argc 0: nothing. */
bool wrap_open(struct analysis *an, const struct command *c, struct command *ret_inner);

/* sh -c, sh file, eval, source. True: it was one. */
bool shell_run(struct analysis *an, const struct command *c);
bool shell_is(const char *name);
/* Code that reaches a shell or interpreter: where it came from is judged, then what it says. The
 * language is "sh" or one of code.h's. */
void shell_run_flow(struct analysis *an, const struct command *c, const char *language,
                    struct flow flow);

/* python -c, perl -e, node script.js ... True: it was one. */
bool interpreter_run(struct analysis *an, const struct command *c);

/* What a program prints, as far as it can be known. */
void flow_run(struct analysis *an, const struct command *c);

#endif
