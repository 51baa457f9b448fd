#include "server/form/form.h"

#include "base/own.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECONDS_MOST 1e9

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

static int read_count(struct caller *caller, const struct form_field *row, json_t *value,
                      uint64_t *out, struct err *err)
{
    json_int_t n = json_integer_value(value);

    if (!json_is_integer(value))
        return form_bad(caller, err, row->name, "a whole number is needed");
    if (n < 0 || (uint64_t) n < row->least || (uint64_t) n > row->most)
        return form_bad(caller, err, row->name,
                        "%" JSON_INTEGER_FORMAT " is not between %" PRIu64 " and %" PRIu64, n,
                        row->least, row->most);
    *out = (uint64_t) n;
    return 0;
}

static int read_seconds(struct caller *caller, const struct form_field *row, json_t *value,
                        uint64_t *out, struct err *err)
{
    double seconds = json_number_value(value);
    uint64_t ms;

    if (!json_is_number(value) || !isfinite(seconds))
        return form_bad(caller, err, row->name, "a number of seconds is needed");
    ms = seconds < 0 || seconds > SECONDS_MOST ? UINT64_MAX : (uint64_t) (seconds * 1000 + 0.5);
    if (ms < row->least || ms > row->most)
        return form_bad(caller, err, row->name, "%.15g seconds is not between %.15g and %.15g",
                        seconds, (double) row->least / 1000, (double) row->most / 1000);
    *out = ms;
    return 0;
}

static int read_one(struct caller *caller, const struct form_field *row, json_t *value, void *out,
                    struct err *err)
{
    switch (row->type) {
    case FORM_TEXT:
        if (!json_is_string(value) || json_string_length(value) == 0 ||
            strlen(json_string_value(value)) != json_string_length(value))
            return form_bad(caller, err, row->name, "a text is needed, not empty, without NUL");
        *(const char **) out = json_string_value(value);
        return 0;
    case FORM_BOOL:
        if (!json_is_boolean(value))
            return form_bad(caller, err, row->name, "true or false is needed");
        *(bool *) out = json_is_true(value);
        return 0;
    case FORM_COUNT:
        return read_count(caller, row, value, out, err);
    case FORM_SECONDS:
        return read_seconds(caller, row, value, out, err);
    case FORM_ARRAY:
        if (!json_is_array(value))
            return form_bad(caller, err, row->name, "an array is needed");
        *(json_t **) out = value;
        return 0;
    case FORM_OBJECT:
        if (!json_is_object(value))
            return form_bad(caller, err, row->name, "an object is needed");
        *(json_t **) out = value;
        return 0;
    case FORM_ANY:
        *(json_t **) out = value;
        return 0;
    }
    return err_set(err, ERR_INTERNAL, "field '%s' has no type", row->name);
}

int form_read(struct caller *caller, json_t *object, const struct form_field *rows, size_t count,
              void *out, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        const struct form_field *row = NULL;

        for (size_t i = 0; i < count && !row; i++)
            if (strcmp(rows[i].name, key) == 0)
                row = &rows[i];
        if (!row)
            return form_bad(caller, err, key, "unknown field");
        if (!json_is_null(value) &&
            read_one(caller, row, value, (char *) out + row->offset, err) < 0)
            return -1;
    }
    return 0;
}

int form_read_known(struct caller *caller, json_t *object, const struct form_field *rows,
                    size_t count, void *out, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_object_get(object, rows[i].name);

        if (value && !json_is_null(value) &&
            read_one(caller, &rows[i], value, (char *) out + rows[i].offset, err) < 0)
            return -1;
    }
    return 0;
}

int form_texts(struct caller *caller, const char *field, json_t *array, const char ***ret,
               size_t *ret_count, struct err *err)
{
    size_t count = json_array_size(array);
    auto_free const char **list = calloc(count + 1, sizeof *list);

    if (!list)
        return err_set(err, ERR_NO_MEMORY, "no memory for '%s'", field);
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(array, i);

        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
            return form_bad(caller, err, field, "item %zu is not a text without NUL", i);
        list[i] = json_string_value(item);
    }
    *ret = take_ptr(&list);
    *ret_count = count;
    return 0;
}

static bool assignment_ok(const char *key, json_t *value)
{
    return key[0] && !strchr(key, '=') && json_is_string(value) &&
           strlen(json_string_value(value)) == json_string_length(value);
}

int form_assignments(struct caller *caller, const char *field, json_t *object, const char ***ret,
                     size_t *ret_count, struct err *err)
{
    size_t count = json_object_size(object), bytes = 0, i = 0;
    auto_free char *block = NULL;
    const char **list, *key;
    json_t *value;
    char *at;

    json_object_foreach(object, key, value)
    {
        if (!assignment_ok(key, value))
            return form_bad(caller, err, field, "'%.40s' is not a name with a text", key);
        bytes += strlen(key) + json_string_length(value) + 2;
    }
    block = malloc((count + 1) * sizeof *list + bytes);
    if (!block)
        return err_set(err, ERR_NO_MEMORY, "no memory for '%s'", field);
    list = (const char **) (void *) block;
    at = block + (count + 1) * sizeof *list;
    json_object_foreach(object, key, value)
    {
        list[i++] = at;
        at += sprintf(at, "%s=%s", key, json_string_value(value)) + 1;
    }
    list[count] = NULL;
    (void) take_ptr(&block);
    *ret = list;
    *ret_count = count;
    return 0;
}

/* ---- writing ---- */

json_t *form_text(const char *text, size_t len)
{
    json_t *json = text ? json_stringn(text, len) : json_null();
    auto_free char *out = NULL;
    size_t used = 0;

    if (json)
        return json;
    out = malloc(3 * len + 1);
    for (size_t i = 0; out && i < len;) {
        int n = utf8_first(text + i, len - i);

        if (n > 0) {
            memcpy(out + used, text + i, (size_t) n);
            used += (size_t) n;
            i += (size_t) n;
        } else {
            memcpy(out + used, "\xef\xbf\xbd", 3);
            used += 3;
            i++;
        }
    }
    return out ? json_stringn(out, used) : NULL;
}

json_t *form_time(uint64_t ms)
{
    char out[80];
    time_t seconds = (time_t) (ms / 1000);
    struct tm tm;

    if (ms == 0 || !gmtime_r(&seconds, &tm))
        return json_null();
    (void) snprintf(out, sizeof out, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900,
                    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                    (unsigned) (ms % 1000));
    return json_string(out);
}
