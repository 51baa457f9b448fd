/* form.h - fields of JSON bodies: read by a table, and values as answers have them.
 *
 * Callers: surfaces, and what reads a part of a body for them (network_rules.h, preview_rules.h).
 * Never:   reads a request: the body is JSON already (exchange_json). */
#ifndef COVE_SERVER_FORM_FORM_H
#define COVE_SERVER_FORM_FORM_H

#include "server/guard/caller.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* ---- reading ---- */

enum form_type {
    FORM_TEXT,    /* const char *, borrowed from the body; not empty */
    FORM_BOOL,    /* bool */
    FORM_COUNT,   /* uint64_t */
    FORM_SECONDS, /* uint64_t milliseconds, from seconds with a fraction; bounds in milliseconds */
    FORM_ARRAY,   /* json_t *, borrowed */
    FORM_OBJECT,  /* json_t *, borrowed */
    FORM_ANY      /* json_t *, borrowed */
};

struct form_field {
    const char *name;
    enum form_type type;
    size_t offset;
    uint64_t least, most; /* of FORM_COUNT and FORM_SECONDS */
};

/* Every key of the object has a row, and the row's type; others are refused by their name. Fields that are absent or
 * null stay as they are in out. */
int form_read(struct caller *caller, json_t *object, const struct form_field *rows, size_t count,
              void *out, struct err *err);

/* The same, but fields without a row are passed over: for dialects whose clients may know more than we do. */
int form_read_known(struct caller *caller, json_t *object, const struct form_field *rows,
                    size_t count, void *out, struct err *err);

/* -1: "<field>: <text>", blamed on that field. */
int form_bad(struct caller *caller, struct err *err, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* An array of texts; the array is the caller's to free, the texts are borrowed. */
int form_texts(struct caller *caller, const char *field, json_t *array, const char ***ret,
               size_t *ret_count, struct err *err);
/* An object of texts as K=V: one block, the caller's to free. */
int form_assignments(struct caller *caller, const char *field, json_t *object, const char ***ret,
                     size_t *ret_count, struct err *err);

/* ---- writing ---- */

/* Any bytes as a JSON text: what is no UTF-8 becomes U+FFFD. */
json_t *form_text(const char *text, size_t len);
/* "2026-01-02T03:04:05.678Z"; 0: null */
json_t *form_time(uint64_t ms);

#endif
