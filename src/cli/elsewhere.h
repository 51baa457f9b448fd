/* elsewhere.h - verbs of cove-host are about this host. Asked of another, they say so. */
#ifndef COVE_CLI_ELSEWHERE_H
#define COVE_CLI_ELSEWHERE_H

#include "base/err.h"

/* -1 with a sentence: a server is named, or chosen by 'cove context use', and the verb would not ask it. */
int elsewhere_check(const char *verb, struct err *err);

#endif
