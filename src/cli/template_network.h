/* template_network.h - what sandboxes of a template may reach when their create says nothing: kept in the server's store,
 * by the template's name, so that it outlives a rebuild of the tree.
 *
 * Callers: the template verb. */
#ifndef COVE_CLI_TEMPLATE_NETWORK_H
#define COVE_CLI_TEMPLATE_NETWORK_H

#include "cli/network_option.h"

/* Of a template that is there. */
int template_network_set(const char *name, const struct network_values *values, struct err *err);
/* The template is gone. A state directory without a server's store has nothing to forget. */
int template_network_forget(const char *name, struct err *err);
/* JSON, for the caller to free; NULL: none, or no store. */
char *template_network_get(const char *name);

#endif
