#include "server/form/form.h"

#include "base/parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 96
#define NUMBER_MOST    1e9

/* One value, on its way from the body to its place. */
struct reading {
    struct caller *caller;
    const struct form_field *row;
    const char *name; /* of the field, as messages have it */
    json_t *value;
    void *out;
    struct err *err;
};

int form_bad(struct caller *caller, struct err *err, const char *field, const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    err_set(err, ERR_INVALID, "%s: %s", field, text);
    return caller_blame(caller, field, NULL, NULL);
}

#define BAD(r, ...) form_bad((r)->caller, (r)->err, (r)->name, __VA_ARGS__)

/* "must be content, files_with_matches or count" */
static int bad_choice(const struct reading *r)
{
    const char *const *choices = r->row->choices;
    char list[160];
    size_t len = 0;

    for (size_t i = 0; choices[i] && len < sizeof list; i++)
        len += (size_t) snprintf(list + len, sizeof list - len, "%s%s",
                                 i == 0           ? ""
                                 : choices[i + 1] ? ", "
                                                  : " or ",
                                 choices[i]);
    return BAD(r, "must be %s", list);
}

static int read_text(const struct reading *r)
{
    const struct form_field *row = r->row;
    const char *text = json_string_value(r->value);
    size_t len = json_string_length(r->value);

    if (!text)
        return BAD(r, "must be a string");
    if (row->most > 0 && len > row->most)
        return BAD(r, "longer than %" PRIu64 " bytes", row->most);
    if (row->type == FORM_STRING) {
        *(json_t **) r->out = r->value;
        return 0;
    }
    if (strlen(text) != len)
        return BAD(r, "must not contain NUL");
    if (row->type == FORM_TEXT && len == 0)
        return BAD(r, "must not be empty");
    for (size_t i = 0; row->choices; i++) {
        if (!row->choices[i])
            return bad_choice(r);
        if (strcmp(row->choices[i], text) == 0)
            break;
    }
    *(const char **) r->out = text;
    return 0;
}

static int read_bool(const struct reading *r)
{
    if (!json_is_boolean(r->value))
        return BAD(r, "must be true or false");
    *(bool *) r->out = json_is_true(r->value);
    return 0;
}

static int read_count(const struct reading *r)
{
    json_int_t number = json_integer_value(r->value);
    double real = json_real_value(r->value);
    uint64_t id;

    if (json_is_real(r->value) && real >= 0 && real < 1e15 && real == (double) (json_int_t) real)
        number = (json_int_t) real; /* 60.0: some languages have no integers */
    else if (r->row->type == FORM_ID && json_is_string(r->value) &&
             parse_u64(json_string_value(r->value), &id, r->err) == 0 && id <= INT64_MAX)
        number = (json_int_t) id;
    else if (!json_is_integer(r->value))
        return BAD(r, "must be a whole number");
    if (number < 0 || (uint64_t) number < r->row->least || (uint64_t) number > r->row->most)
        return BAD(r, "%" JSON_INTEGER_FORMAT " is not between %" PRIu64 " and %" PRIu64, number,
                   r->row->least, r->row->most);
    *(uint64_t *) r->out = (uint64_t) number;
    return 0;
}

static int read_milli(const struct reading *r)
{
    const struct form_field *row = r->row;
    bool seconds = row->type == FORM_SECONDS;
    double number = json_number_value(r->value);
    uint64_t milli;

    if (!json_is_number(r->value) || !isfinite(number))
        return BAD(r, seconds ? "must be a number of seconds" : "must be a number");
    milli = number < 0 || number > NUMBER_MOST ? UINT64_MAX : (uint64_t) (number * 1000 + 0.5);
    if (milli < row->least || milli > row->most)
        return BAD(r, "%.15g%s is not between %.15g and %.15g", number, seconds ? " seconds" : "",
                   (double) row->least / 1000, (double) row->most / 1000);
    *(uint64_t *) r->out = milli;
    return 0;
}

static int read_array(const struct reading *r)
{
    size_t count = json_array_size(r->value);

    if (!json_is_array(r->value))
        return BAD(r, "must be an array");
    if (count < r->row->least)
        return BAD(r, "must have at least %" PRIu64 " item%s", r->row->least,
                   r->row->least == 1 ? "" : "s");
    if (r->row->most > 0 && count > r->row->most)
        return BAD(r, "must have at most %" PRIu64 " items", r->row->most);
    *(json_t **) r->out = r->value;
    return 0;
}

static int read_value(const struct reading *r)
{
    switch (r->row->type) {
    case FORM_TEXT:
    case FORM_CONTENT:
    case FORM_STRING:
        return read_text(r);
    case FORM_BOOL:
        return read_bool(r);
    case FORM_COUNT:
    case FORM_ID:
        return read_count(r);
    case FORM_SECONDS:
    case FORM_MILLI:
        return read_milli(r);
    case FORM_ARRAY:
        return read_array(r);
    case FORM_OBJECT:
        if (!json_is_object(r->value))
            return BAD(r, "must be an object");
        *(json_t **) r->out = r->value;
        return 0;
    case FORM_ANY:
        *(json_t **) r->out = r->value;
        return 0;
    case FORM_IGNORED:
        return 0;
    }
    return err_set(r->err, ERR_INTERNAL, "field '%s' has no type", r->row->name);
}

static int read_row(struct caller *caller, const char *within, const struct form_field *row,
                    json_t *value, void *out, struct err *err)
{
    char name[NAME_MAX_BYTES];
    struct reading r = { caller, row, row->name, value, (char *) out + row->at, err };

    if (within[0]) {
        (void) snprintf(name, sizeof name, "%s%s", within, row->name);
        r.name = name;
    }
    return read_value(&r);
}

/* Whether the object has the row's value, under any of its names. */
static bool is_given(const struct form *form, const struct form_field *row, const json_t *object)
{
    for (size_t i = 0; i < form->count; i++) {
        const struct form_field *other = &form->rows[i];
        const json_t *value;

        if (other != row && (other->at != row->at || other->type == FORM_IGNORED))
            continue;
        value = json_object_get(object, other->name);
        if (value && !json_is_null(value))
            return true;
    }
    return false;
}

static void set_fallback(const struct form_field *row, void *out)
{
    switch (row->type) {
    case FORM_TEXT:
    case FORM_CONTENT:
        *(const char **) out = row->fallback;
        break;
    case FORM_BOOL:
        *(bool *) out = row->fallback[0] == 't';
        break;
    case FORM_COUNT:
    case FORM_ID:
        *(uint64_t *) out = strtoull(row->fallback, NULL, 10);
        break;
    case FORM_SECONDS:
    case FORM_MILLI:
        *(uint64_t *) out = (uint64_t) (strtod(row->fallback, NULL) * 1000 + 0.5);
        break;
    case FORM_STRING:
    case FORM_ARRAY:
    case FORM_OBJECT:
    case FORM_ANY:
    case FORM_IGNORED:
        break; /* these have none */
    }
}

/* What was not given: refused, or its default. */
static int read_absent(struct caller *caller, const char *within, const json_t *object,
                       const struct form *form, void *out, struct err *err)
{
    char name[NAME_MAX_BYTES];

    for (size_t i = 0; i < form->count; i++) {
        const struct form_field *row = &form->rows[i];

        if ((!row->needed && !row->fallback) || is_given(form, row, object))
            continue;
        if (row->fallback) {
            set_fallback(row, (char *) out + row->at);
            continue;
        }
        (void) snprintf(name, sizeof name, "%s%s", within, row->name);
        return form_bad(caller, err, name, "is required");
    }
    return 0;
}

int form_read_within(struct caller *caller, const char *within, json_t *object,
                     const struct form *form, void *out, struct err *err)
{
    char name[NAME_MAX_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        const struct form_field *row = NULL;

        for (size_t i = 0; i < form->count && !row; i++)
            if (strcmp(form->rows[i].name, key) == 0)
                row = &form->rows[i];
        if (!row && form->open)
            continue;
        if (!row) {
            (void) snprintf(name, sizeof name, "%s%s", within, key);
            return form_bad(caller, err, name, "unknown field");
        }
        if (!json_is_null(value) && read_row(caller, within, row, value, out, err) < 0)
            return -1;
    }
    return read_absent(caller, within, object, form, out, err);
}

int form_read(struct caller *caller, json_t *object, const struct form *form, void *out,
              struct err *err)
{
    return form_read_within(caller, "", object, form, out, err);
}
