/* template_show.h - what templates there are, and what one of them is, for people and as JSON.
 *
 * Callers: the template verb. Both return the exit code. */
#ifndef COVE_CLI_TEMPLATE_SHOW_H
#define COVE_CLI_TEMPLATE_SHOW_H

#include <stdbool.h>

int template_show_all(bool as_json);
int template_show_one(const char *name, bool as_json);

#endif
