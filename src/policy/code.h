/* code.h - code of other languages, searched for what leaves them: commands that they start, files
 * that they name, sockets with shells. No parser: strings and call names. */
#ifndef COVE_POLICY_CODE_H
#define COVE_POLICY_CODE_H

#include "policy/command.h"

void code_run(struct analysis *an, const char *language, struct flow code, const struct command *c);

#endif
