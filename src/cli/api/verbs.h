/* verbs.h - the verbs that ask a server: all that the program cove does by itself. */
#ifndef COVE_CLI_API_VERBS_H
#define COVE_CLI_API_VERBS_H

#include "cli/verbs.h"

/* NULL: it is one of cove-host's, or there is none. */
const struct verb *api_verb_find(const char *name);

#endif
