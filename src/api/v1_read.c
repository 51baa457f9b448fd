#include "api/v1.h"

#include "base/own.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#define SECONDS_MOST 1e9

int v1_bad(struct exchange *x, struct err *err, const char *field, const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    err_set(err, ERR_INVALID, "%s: %s", field, text);
    return exchange_blame(x, field, NULL, NULL);
}

static int read_count(struct exchange *x, const struct v1_field *row, json_t *value, uint64_t *out,
                      struct err *err)
{
    json_int_t n = json_integer_value(value);

    if (!json_is_integer(value))
        return v1_bad(x, err, row->name, "a whole number is needed");
    if (n < 0 || (uint64_t) n < row->least || (uint64_t) n > row->most)
        return v1_bad(x, err, row->name,
                      "%" JSON_INTEGER_FORMAT " is not between %" PRIu64 " and %" PRIu64, n,
                      row->least, row->most);
    *out = (uint64_t) n;
    return 0;
}

static int read_seconds(struct exchange *x, const struct v1_field *row, json_t *value,
                        uint64_t *out, struct err *err)
{
    double seconds = json_number_value(value);
    uint64_t ms;

    if (!json_is_number(value) || !isfinite(seconds))
        return v1_bad(x, err, row->name, "a number of seconds is needed");
    ms = seconds < 0 || seconds > SECONDS_MOST ? UINT64_MAX : (uint64_t) (seconds * 1000 + 0.5);
    if (ms < row->least || ms > row->most)
        return v1_bad(x, err, row->name, "%.15g seconds is not between %.15g and %.15g", seconds,
                      (double) row->least / 1000, (double) row->most / 1000);
    *out = ms;
    return 0;
}

static int read_one(struct exchange *x, const struct v1_field *row, json_t *value, void *out,
                    struct err *err)
{
    switch (row->type) {
    case V1_TEXT:
        if (!json_is_string(value) || json_string_length(value) == 0 ||
            strlen(json_string_value(value)) != json_string_length(value))
            return v1_bad(x, err, row->name, "a text is needed, not empty, without NUL");
        *(const char **) out = json_string_value(value);
        return 0;
    case V1_BOOL:
        if (!json_is_boolean(value))
            return v1_bad(x, err, row->name, "true or false is needed");
        *(bool *) out = json_is_true(value);
        return 0;
    case V1_COUNT:
        return read_count(x, row, value, out, err);
    case V1_SECONDS:
        return read_seconds(x, row, value, out, err);
    case V1_ARRAY:
        if (!json_is_array(value))
            return v1_bad(x, err, row->name, "an array is needed");
        *(json_t **) out = value;
        return 0;
    case V1_OBJECT:
        if (!json_is_object(value))
            return v1_bad(x, err, row->name, "an object is needed");
        *(json_t **) out = value;
        return 0;
    case V1_ANY:
        *(json_t **) out = value;
        return 0;
    }
    return err_set(err, ERR_INTERNAL, "field '%s' has no type", row->name);
}

int v1_read(struct exchange *x, json_t *object, const struct v1_field *rows, size_t count,
            void *out, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        const struct v1_field *row = NULL;

        for (size_t i = 0; i < count && !row; i++)
            if (strcmp(rows[i].name, key) == 0)
                row = &rows[i];
        if (!row)
            return v1_bad(x, err, key, "there is no such field here");
        if (!json_is_null(value) && read_one(x, row, value, (char *) out + row->offset, err) < 0)
            return -1;
    }
    return 0;
}

int v1_read_known(struct exchange *x, json_t *object, const struct v1_field *rows, size_t count,
                  void *out, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_object_get(object, rows[i].name);

        if (value && !json_is_null(value) &&
            read_one(x, &rows[i], value, (char *) out + rows[i].offset, err) < 0)
            return -1;
    }
    return 0;
}

int v1_texts(struct exchange *x, const char *field, json_t *array, const char ***ret,
             size_t *ret_count, struct err *err)
{
    size_t count = json_array_size(array);
    auto_free const char **list = calloc(count + 1, sizeof *list);

    if (!list)
        return err_set(err, ERR_NO_MEMORY, "no memory for '%s'", field);
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(array, i);

        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
            return v1_bad(x, err, field, "item %zu is not a text without NUL", i);
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

int v1_assignments(struct exchange *x, const char *field, json_t *object, const char ***ret,
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
            return v1_bad(x, err, field, "'%.40s' is not a name with a text", key);
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

/* ---- the query ---- */

int v1_query_count(struct exchange *x, const char *name, uint64_t least, uint64_t most,
                   uint64_t *ret, struct err *err)
{
    const char *text = exchange_query(x, name);
    uint64_t value;

    if (!text)
        return 0;
    if (parse_u64(text, &value, err) < 0)
        return v1_bad(x, err, name, "a whole number is needed");
    if (value < least || value > most)
        return v1_bad(x, err, name, "%" PRIu64 " is not between %" PRIu64 " and %" PRIu64, value,
                      least, most);
    *ret = value;
    return 0;
}

int v1_query_bool(struct exchange *x, const char *name, bool *ret, struct err *err)
{
    const char *text = exchange_query(x, name);
    bool yes = text && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0);

    if (!text)
        return 0;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return v1_bad(x, err, name, "true or false is needed");
    *ret = yes;
    return 0;
}

int v1_query_mode(struct exchange *x, const char *name, uint32_t *ret, struct err *err)
{
    const char *text = exchange_query(x, name);

    if (!text)
        return 0;
    if (parse_mode(text, ret, err) < 0)
        return v1_bad(x, err, name, "octal permission bits are needed, such as 644");
    return 0;
}

int v1_query_file(struct exchange *x, struct ops_file *ret, struct err *err)
{
    const char *path = exchange_query(x, "path");

    if (!path || !path[0])
        return v1_bad(x, err, "path", "a path is needed in the query: ?path=/home/user/file");
    if (strlen(path) >= AGENT_PATH_MAX)
        return v1_bad(x, err, "path", "longer than %u bytes", AGENT_PATH_MAX - 1);
    *ret = (struct ops_file){ .sandbox = exchange_param(x, "id"),
                              .user = exchange_query(x, "user"),
                              .path = path };
    return 0;
}
