/* template_built.h - templates that a server built for a tenant, as GET /v1/templates tells of them.
 *
 * Callers: the template verb and template_show.c. */
#ifndef COVE_CLI_TEMPLATE_BUILT_H
#define COVE_CLI_TEMPLATE_BUILT_H

#include "base/err.h"
#include "base/json.h"
#include "cli/table.h"

#include <jansson.h>
#include <stdbool.h>

/* Whether a server tells of templates rather than this host's files: with --tenant, or when another server is in use. The tenant's
 * name is in force from then on. -1: an error. */
int built_by_server(const char *tenant, struct err *err);

/* What GET /v1/templates answers; the caller's to decref. */
int built_list(json_t **ret, struct err *err);
/* The cells of template_show_all: a row for each tag. */
void built_rows(struct table *table, json_t *template);
void built_json(struct json_out *json, json_t *template);

/* Prints one; ERR_NO_TEMPLATE without one. */
int built_show(const char *name, bool as_json, struct err *err);
/* NAME, or the tag of NAME:TAG. */
int built_remove(const char *name, struct err *err);

#endif
