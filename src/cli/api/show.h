/* show.h - lists as tables for people and as JSON for programs, from what the API answers. */
#ifndef COVE_CLI_API_SHOW_H
#define COVE_CLI_API_SHOW_H

#include "base/err.h"
#include "cli/table.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Of an object; "" and 0 where there is no such field. */
const char *show_text(json_t *json, const char *name);
uint64_t show_number(json_t *json, const char *name);
/* A line with the id of what a server made or has. ERR_PROTOCOL: what it calls an id is not one. */
int show_id(json_t *json, const char *name, struct err *err);
/* "2026-01-02T03:04:05.678Z" as milliseconds since 1970; 0: none. */
uint64_t show_time(json_t *json, const char *name);
uint64_t show_age(uint64_t since_ms);

/* A list as a table, with a row for each item, or as JSON. The reference is taken. Headings as in table.h. */
typedef void show_row(struct table *table, json_t *item);
void show_list(json_t *take_list, bool as_json, size_t columns, const char *const *headings,
               show_row *row);

/* The reference is taken. Indented, and the end of a line. */
void show_json(json_t *take_json);

#endif
