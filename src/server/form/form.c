/* Values: how they look in answers, and those that are lists. */
#include "server/form/form.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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
            return form_bad(caller, err, field, "item %zu must be a string without NUL", i);
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
            return form_bad(caller, err, field, "'%.40s' must be a name with a string", key);
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
