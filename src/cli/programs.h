/* programs.h - where cove's other programs are: beside this one, or in ../libexec/cove. */
#ifndef COVE_CLI_PROGRAMS_H
#define COVE_CLI_PROGRAMS_H

#include "base/err.h"

#include <stddef.h>

/* The path of `name` ("cove-keeper", "cove-agent"); ERR_UNAVAILABLE when it is in neither place. */
int program_find(const char *name, char *out, size_t size, struct err *err);

#endif
