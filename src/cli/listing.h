/* listing.h - things one below the other: columns for people, JSON for programs, or names alone.
 *
 * Owns:    the table or the JSON array, from init to end.
 * Callers: verbs that list. Each item is given in the form that is asked for: cells into `table`, an object
 *          into `json`, or a name and a line break to stdout.
 * Never:   decides what an item looks like. */
#ifndef COVE_CLI_LISTING_H
#define COVE_CLI_LISTING_H

#include "base/json.h"
#include "cli/table.h"

enum listing_form { LISTING_TABLE, LISTING_JSON, LISTING_NAMES };

struct listing {
    enum listing_form form;
    struct table table;
    struct json_out json;
};

/* Headings as in table.h. */
void listing_init(struct listing *listing, enum listing_form form, size_t columns,
                  const char *const *headings);

/* Prints what was given, and returns `result`. A list that broke off (-1) gives no table, but JSON that can be
 * read. */
int listing_end(struct listing *listing, int result);

static inline enum listing_form listing_form_of(bool json)
{
    return json ? LISTING_JSON : LISTING_TABLE;
}

#endif
