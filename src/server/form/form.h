/* form.h - one table for each request: its fields by name, type, bounds, meaning, default.
 *
 *   struct body { const char *path; uint64_t limit; };
 *   static const struct form_field rows[] = {
 *       { "path",  FORM_TEXT,  .at = offsetof(struct body, path),  .help = "directory to list", .needed = true },
 *       { "limit", FORM_COUNT, .at = offsetof(struct body, limit), 1, 100, "entries at most", .fallback = "20" },
 *   };
 *   const struct form list_form = FORM_OF(rows);
 *
 * The same rows read a JSON object (form_read), make the errors, and are the JSON Schema that GET /tools and MCP show and that
 * spec/openapi.yaml has (form_schema; tests/static/spec_test compares). A field that has no row, a wrong type and a
 * value out of bounds are refused with the field's name, in the same words on every surface. null counts as not given.
 *
 * Callers: surfaces, and what reads a part of a body for them (network_rules.h, preview_rules.h).
 * Never:   reads a request: the body is JSON already (exchange_json). */
#ifndef COVE_SERVER_FORM_FORM_H
#define COVE_SERVER_FORM_FORM_H

#include "base/own.h"
#include "server/guard/caller.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the table ---- */

/* What is stored at a row's place. Texts and json_t are borrowed from the body. */
enum form_type {
    FORM_TEXT,    /* const char *; not empty, without NUL */
    FORM_CONTENT, /* const char *; without NUL */
    FORM_STRING,  /* json_t *: a string with any characters */
    FORM_BOOL,    /* bool */
    FORM_COUNT,   /* uint64_t */
    FORM_ID,      /* uint64_t; also as a text, because models send ids as texts */
    FORM_SECONDS, /* uint64_t milliseconds, from seconds with a fraction; bounds in milliseconds */
    FORM_MILLI,   /* uint64_t thousandths, from a number with a fraction; bounds in thousandths */
    FORM_ARRAY,   /* json_t * */
    FORM_OBJECT,  /* json_t * */
    FORM_ANY,     /* json_t *; the caller checks the type */
    FORM_IGNORED  /* nothing: a field of other servers' tools that has no meaning here */
};

struct form;

struct form_field {
    const char *name;
    enum form_type type;
    size_t at; /* offset of the value in what form_read fills */
    /* numbers; bytes of a text and items of an array, where most 0 is no bound */
    uint64_t least, most;
    const char *help; /* what the field means; NULL: another name of the row with the same place */
    bool needed;      /* refused if no row with this place was given */
    /* value if none was given: a text as it is, others as JSON; NULL: the place stays as it is */
    const char *fallback;
    const char *const *choices; /* of a text; ends with NULL. NULL: any */
    const struct form *items;   /* fields of an object, or of an array's items; NULL: texts */
    const char *schema;         /* JSON object: what else its JSON Schema says, such as a pattern */
    json_t *(*describe)(void);  /* JSON Schema of an object that has a table of another kind */
    bool nullable;              /* null has a meaning of its own */
    bool unlisted;              /* not shown to models */
};

struct form {
    const struct form_field *rows;
    size_t count;
    const char *help; /* of the object as a whole; NULL: none */
    /* Fields without a row are passed over: for dialects whose clients may know more than this server does. */
    bool open;
    /* more fields of the same object, which are taken out of it first; NULL: none */
    const struct form *beside;
};
#define FORM_OF(table, ...)                                                                        \
    {                                                                                              \
        .rows = (table), .count = ARRAY_LEN(table), ##__VA_ARGS__                                  \
    }

/* ---- reading ---- */

/* On failure, out may be filled in part. `beside` is not read. */
int form_read(struct caller *caller, json_t *object, const struct form *form, void *out,
              struct err *err);

/* Of an object within a body: `within`, such as "network.", goes before the names of fields in messages. */
int form_read_within(struct caller *caller, const char *within, json_t *object,
                     const struct form *form, void *out, struct err *err);

/* -1: "<field>: <text>", blamed on that field. */
int form_bad(struct caller *caller, struct err *err, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* An array of texts; the array is the caller's to free, the texts are borrowed. */
int form_texts(struct caller *caller, const char *field, json_t *array, const char ***ret,
               size_t *ret_count, struct err *err);
/* An object of texts as K=V: one block, the caller's to free. */
int form_assignments(struct caller *caller, const char *field, json_t *object, const char ***ret,
                     size_t *ret_count, struct err *err);

/* ---- showing ---- */

/* JSON Schema of the object. FORM_LISTED: for models, without other names and unlisted rows. FORM_WHOLE: everything that
 * is read, as in spec/openapi.yaml. */
enum form_view { FORM_LISTED, FORM_WHOLE };
json_t *form_schema(const struct form *form, enum form_view view);

/* ---- values in answers ---- */

/* Any bytes as a JSON text: what is no UTF-8 becomes U+FFFD. */
json_t *form_text(const char *text, size_t len);
/* "2026-01-02T03:04:05.678Z"; 0: null */
json_t *form_time(uint64_t ms);

#endif
