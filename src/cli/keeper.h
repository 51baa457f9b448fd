/* keeper.h - `cove ps --keeper` and `cove kill --keeper`, which reach cove-host as verbs of their own that no list shows. */
#ifndef COVE_CLI_KEEPER_H
#define COVE_CLI_KEEPER_H

#include "cli/verbs.h"

extern const struct verb keeper_ps_verb, keeper_kill_verb;

int keeper_ps(int argc, char **argv);
int keeper_kill(int argc, char **argv);

#endif
