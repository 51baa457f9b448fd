#include "server/serve/dump.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_MOST 1e15 /* greater ones are left to jansson */

/* Where the next `size` bytes go; NULL: no memory. */
static char *room_for(struct dump *dump, size_t size)
{
    if (size > dump->room - dump->len) {
        size_t room = 2 * (dump->len + size);
        char *more = realloc(dump->large, room);

        if (!more)
            return NULL;
        if (!dump->large)
            memcpy(more, dump->small, dump->len);
        dump->large = more;
        dump->room = room;
    }
    return (dump->large ? dump->large : dump->small) + dump->len;
}

static int put(const char *text, size_t len, void *arg)
{
    struct dump *dump = arg;
    char *at = room_for(dump, len);

    if (!at)
        return -1;
    memcpy(at, text, len);
    dump->len += len;
    return 0;
}

static int put_by_jansson(struct dump *dump, const json_t *json)
{
    return json_dump_callback(json, put, dump, JSON_COMPACT | JSON_ENCODE_ANY);
}

static bool plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) text[i] < 0x20 || (unsigned char) text[i] > 0x7e || text[i] == '"' ||
            text[i] == '\\')
            return false;
    return true;
}

static int put_plain(struct dump *dump, const char *text, size_t len)
{
    char *at = room_for(dump, len + 2);

    if (!at)
        return -1;
    at[0] = '"';
    memcpy(at + 1, text, len);
    at[len + 1] = '"';
    dump->len += len + 2;
    return 0;
}

static int put_key(struct dump *dump, const char *key)
{
    size_t len = strlen(key);
    json_t *text;
    int r;

    if (plain(key, len))
        return put_plain(dump, key, len);
    text = json_stringn_nocheck(key, len);
    r = text ? put_by_jansson(dump, text) : -1;
    json_decref(text);
    return r;
}

static int put_number(struct dump *dump, json_int_t value)
{
    char text[24];
    size_t at = sizeof text;
    /* INT64_MIN has no positive counterpart but this one. */
    uint64_t left = value < 0 ? 0 - (uint64_t) value : (uint64_t) value;

    do {
        text[--at] = (char) ('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0)
        text[--at] = '-';
    return put(text + at, sizeof text - at, dump);
}

static int put_real(struct dump *dump, const json_t *json)
{
    double value = json_real_value(json);

    /* Negative zero keeps its sign there. */
    if (!(value > 0 && value < WHOLE_MOST) || value != (double) (json_int_t) value)
        return put_by_jansson(dump, json);
    return put_number(dump, (json_int_t) value) < 0 ? -1 : put(".0", 2, dump);
}

static int put_value(struct dump *dump, const json_t *json, unsigned depth);

static int put_array(struct dump *dump, const json_t *array, unsigned depth)
{
    size_t count = json_array_size(array);

    if (put("[", 1, dump) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if ((i > 0 && put(",", 1, dump) < 0) ||
            put_value(dump, json_array_get(array, i), depth) < 0)
            return -1;
    return put("]", 1, dump);
}

static int put_object(struct dump *dump, json_t *object, unsigned depth)
{
    bool more = false;

    if (put("{", 1, dump) < 0)
        return -1;
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        if ((more && put(",", 1, dump) < 0) || put_key(dump, json_object_iter_key(at)) < 0 ||
            put(":", 1, dump) < 0 || put_value(dump, json_object_iter_value(at), depth) < 0)
            return -1;
        more = true;
    }
    return put("}", 1, dump);
}

static int put_value(struct dump *dump, const json_t *json, unsigned depth)
{
    if (!json || depth == DUMP_DEPTH)
        return -1;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return put_object(dump, (json_t *) (uintptr_t) json, depth + 1);
    case JSON_ARRAY:
        return put_array(dump, json, depth + 1);
    case JSON_STRING:
        if (!plain(json_string_value(json), json_string_length(json)))
            return put_by_jansson(dump, json);
        return put_plain(dump, json_string_value(json), json_string_length(json));
    case JSON_INTEGER:
        return put_number(dump, json_integer_value(json));
    case JSON_REAL:
        return put_real(dump, json);
    case JSON_TRUE:
        return put("true", 4, dump);
    case JSON_FALSE:
        return put("false", 5, dump);
    case JSON_NULL:
        return put("null", 4, dump);
    }
    return -1;
}

int dump_json(struct dump *dump, const json_t *json)
{
    dump->len = 0;
    dump->room = sizeof dump->small;
    dump->large = NULL;
    return put_value(dump, json, 0);
}

void dump_done(struct dump *dump)
{
    free(dump->large);
    dump->large = NULL;
}
