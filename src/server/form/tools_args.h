/* tools_args.h - the members of a JSON object, by a table: name, type, bounds, where to, and what it means.
 *
 *   struct wish { const char *path; uint64_t limit; };
 *   static const struct arg rows[] = {
 *       { "path",  ARG_TEXT,   offsetof(struct wish, path),  .help = "directory to list", .needed = true },
 *       { "limit", ARG_NUMBER, offsetof(struct wish, limit), .least = 1, .most = 100, .help = "entries at most" },
 *   };
 *
 * What is not in the table is refused with its name, and so is a wrong type or a number out of bounds. null
 * counts as not given. Two rows may share a place: the same thing under two names. Texts and values that are
 * given out are borrowed from the object. The same table is the JSON Schema that agents are shown (args_schema). */
#ifndef COVE_SERVER_FORM_TOOLS_ARGS_H
#define COVE_SERVER_FORM_TOOLS_ARGS_H

#include "base/own.h"
#include "server/guard/caller.h"

#include <jansson.h>
#include <stddef.h>

enum arg_type {
    ARG_TEXT,   /* const char * */
    ARG_NUMBER, /* uint64_t, from least to most */
    ARG_BOOL,   /* bool */
    ARG_OBJECT, /* json_t * */
    ARG_ARRAY,  /* json_t * */
    ARG_REAL,   /* double, from least to most */
    ARG_ID,     /* uint64_t as ARG_NUMBER; also in a text, as agents have their ids */
    ARG_IGNORED /* any value: known from other servers' tools, and without a meaning here */
};

struct args;

struct arg {
    const char *name;
    enum arg_type type;
    size_t at;            /* offset of the value in what args_read fills */
    uint64_t least, most; /* numbers; texts: bytes at most (0: any) */
    const char *help;     /* NULL: another name for a row above, understood and not shown */
    bool needed;          /* texts, arrays, ids: "is missing" if no row with this place was given */
    const char *const *choices; /* of a text, ends with NULL; NULL: any */
    const struct args *items;   /* members of an array's items, or of an object; NULL: texts */
};

/* A table, for those who only pass it on. */
struct args {
    const struct arg *rows;
    size_t count;
};
#define ARGS_OF(table)                                                                             \
    {                                                                                              \
        (table), ARRAY_LEN(table)                                                                  \
    }

/* `within`: "" or "resource_limits." - goes before the names in messages and in the answer's field. `out` keeps what was in it
 * where nothing was given. */
int args_read(struct caller *caller, json_t *object, const char *within, const struct args *args,
              void *out, struct err *err);

/* A member that cannot be: blames the field and sets the error. */
int args_bad(struct caller *caller, const char *within, const char *field, const char *why,
             struct err *err);

/* {"type": "object", "properties": {…}, "required": […]}: the rows that have a help. */
json_t *args_schema(const struct args *args);

#endif
