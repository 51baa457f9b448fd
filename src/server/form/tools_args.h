/* tools_args.h - the members of a JSON object, by a table: name, type, bounds, where to.
 *
 * What is not in the table is refused with its name, and so is a wrong type or a number out of bounds. null
 * counts as not given. Two rows may share a place: the same thing under two names. Texts and values that are
 * given out are borrowed from the object. */
#ifndef COVE_SERVER_FORM_TOOLS_ARGS_H
#define COVE_SERVER_FORM_TOOLS_ARGS_H

#include "server/guard/caller.h"

#include <jansson.h>

enum arg_type {
    ARG_TEXT,   /* const char * */
    ARG_NUMBER, /* uint64_t, from least to most */
    ARG_BOOL,   /* bool */
    ARG_OBJECT, /* json_t * */
    ARG_ARRAY,  /* json_t * */
    ARG_REAL,   /* double, from least to most */
    ARG_ID      /* uint64_t as ARG_NUMBER; also in a text, as agents have their ids */
};

struct arg {
    const char *name;
    enum arg_type type;
    void *out;
    uint64_t least, most; /* numbers; texts: bytes at most (0: any) */
};

/* `within`: "" or "resource_limits." - goes before the names in messages and in the answer's field. */
int args_read(struct caller *caller, json_t *object, const char *within, const struct arg *args,
              size_t count, struct err *err);

/* A member that cannot be: blames the field and sets the error. */
int args_bad(struct caller *caller, const char *within, const char *field, const char *why,
             struct err *err);

/* ERR_INVALID unless the text was given; an empty one counts as given only where it may be. */
int args_need(struct caller *caller, const char *text, const char *field, struct err *err);

#endif
