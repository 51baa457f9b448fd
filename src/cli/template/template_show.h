/* template_show.h - what templates there are, and what one of them is, for people and as JSON.
 *
 * This host's files are read, and a server is asked for what it built. With --tenant, or when another server is in use, the server
 * alone is asked.
 *
 * Callers: the template verb. All return the exit code. */
#ifndef COVE_CLI_TEMPLATE_SHOW_H
#define COVE_CLI_TEMPLATE_SHOW_H

#include <stdbool.h>

int template_show_all(bool as_json, const char *tenant);
int template_show_one(const char *name, bool as_json, const char *tenant);
/* The recipes that can be built. */
int template_show_recipes(bool as_json);

#endif
