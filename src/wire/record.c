#include "wire/record.h"

#include <string.h>

#define FIELD_HEAD 6u
#define FIELDS_MAX 64u /* a bit each in `seen` */

static void put_le(uint8_t *out, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        out[i] = (uint8_t) (value >> (8 * i));
}

static uint64_t get_le(const uint8_t *in, size_t width)
{
    uint64_t value = 0;

    for (size_t i = 0; i < width; i++)
        value |= (uint64_t) in[i] << (8 * i);
    return value;
}

/* What the wire carries of a field: bytes at *data, or a number in *number. */
static uint32_t field_load(const struct field *field, const void *object, const void **data,
                           uint64_t *number)
{
    const char *at = (const char *) object + field->offset;

    *data = NULL;
    *number = 0;
    switch (field->type) {
    case FIELD_U32: {
        uint32_t value;

        memcpy(&value, at, sizeof value);
        *number = value;
        return value ? 4 : 0;
    }
    case FIELD_U64:
    case FIELD_I64:
        memcpy(number, at, sizeof *number);
        return *number ? 8 : 0;
    case FIELD_TEXT: {
        const char *text;

        memcpy(&text, at, sizeof text);
        *data = text;
        return text ? (uint32_t) strlen(text) + 1 : 0;
    }
    case FIELD_BYTES: {
        const struct bytes *bytes = (const void *) at;

        *data = bytes->data;
        return bytes->len;
    }
    case FIELD_LIST: {
        const struct texts *texts = (const void *) at;

        *data = texts->data;
        return texts->len;
    }
    }
    return 0;
}

ssize_t record_length(const struct field *fields, size_t count, const void *object, struct err *err)
{
    size_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        const void *data;
        uint64_t number;
        uint32_t len = field_load(&fields[i], object, &data, &number);

        if (data && fields[i].most && len > fields[i].most)
            return err_set(err, ERR_TOO_BIG, "%s: too long", fields[i].name);
        sum += len ? FIELD_HEAD + len : 0;
    }
    return (ssize_t) sum;
}

ssize_t record_encode(const struct field *fields, size_t count, const void *object, void *out,
                      size_t size, struct err *err)
{
    uint8_t *at = out;
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        const void *data;
        uint64_t number;
        uint32_t len = field_load(&fields[i], object, &data, &number);

        if (len == 0)
            continue;
        if (size - used < FIELD_HEAD || size - used - FIELD_HEAD < len ||
            (data && fields[i].most && len > fields[i].most))
            return err_set(err, ERR_TOO_BIG, "%s: too long", fields[i].name);
        put_le(at + used, fields[i].tag, 2);
        put_le(at + used + 2, len, 4);
        used += FIELD_HEAD;
        if (data)
            memcpy(at + used, data, len);
        else
            put_le(at + used, number, len);
        used += len;
    }
    return (ssize_t) used;
}

static int store_text(const struct field *field, char *at, const char *text, uint32_t len,
                      struct err *err)
{
    if (len == 0 || memchr(text, '\0', len) != text + len - 1)
        return err_set(err, ERR_PROTOCOL, "%s: not one text", field->name);
    memcpy(at, &text, sizeof text);
    return 0;
}

static int store_list(const struct field *field, char *at, const char *data, uint32_t len,
                      struct err *err)
{
    struct texts texts = { .data = data, .len = len };

    if (len == 0 || data[len - 1] != '\0')
        return err_set(err, ERR_PROTOCOL, "%s: not a list of texts", field->name);
    for (uint32_t i = 0; i < len; i++)
        texts.count += data[i] == '\0';
    memcpy(at, &texts, sizeof texts);
    return 0;
}

static int field_store(const struct field *field, void *object, const uint8_t *data, uint32_t len,
                       struct err *err)
{
    char *at = (char *) object + field->offset;

    switch (field->type) {
    case FIELD_U32: {
        uint32_t value;

        if (len != 4)
            return err_set(err, ERR_PROTOCOL, "%s: not a number", field->name);
        value = (uint32_t) get_le(data, 4);
        if (field->most && value > field->most)
            return err_set(err, ERR_INVALID, "%s: %u is over %u", field->name, value, field->most);
        memcpy(at, &value, sizeof value);
        return 0;
    }
    case FIELD_U64:
    case FIELD_I64: {
        uint64_t value;

        if (len != 8)
            return err_set(err, ERR_PROTOCOL, "%s: not a number", field->name);
        value = get_le(data, 8);
        memcpy(at, &value, sizeof value);
        return 0;
    }
    case FIELD_TEXT:
    case FIELD_BYTES:
    case FIELD_LIST:
        break;
    }
    if (field->most && len > field->most)
        return err_set(err, ERR_TOO_BIG, "%s: longer than %u bytes", field->name, field->most);
    if (field->type == FIELD_TEXT)
        return store_text(field, at, (const char *) data, len, err);
    if (field->type == FIELD_LIST)
        return store_list(field, at, (const char *) data, len, err);
    *(struct bytes *) (void *) at = (struct bytes){ .data = data, .len = len };
    return 0;
}

/* Zeroes what the table covers and nothing else of the object. */
static void clear_fields(const struct field *fields, size_t count, void *object)
{
    static const size_t sizes[] = {
        [FIELD_U32] = sizeof(uint32_t),       [FIELD_U64] = sizeof(uint64_t),
        [FIELD_I64] = sizeof(int64_t),        [FIELD_TEXT] = sizeof(const char *),
        [FIELD_BYTES] = sizeof(struct bytes), [FIELD_LIST] = sizeof(struct texts),
    };

    for (size_t i = 0; i < count; i++)
        memset((char *) object + fields[i].offset, 0, sizes[fields[i].type]);
}

int record_decode(const struct field *fields, size_t count, void *object, const void *data,
                  size_t len, struct err *err)
{
    const uint8_t *at = data;
    uint64_t seen = 0;

    if (count > FIELDS_MAX)
        return err_set(err, ERR_INTERNAL, "a record of %zu fields", count);
    clear_fields(fields, count, object);
    while (len > 0) {
        uint32_t tag, size;
        size_t i;

        if (len < FIELD_HEAD)
            return err_set(err, ERR_PROTOCOL, "a field is cut off");
        tag = (uint32_t) get_le(at, 2);
        size = (uint32_t) get_le(at + 2, 4);
        if (size > len - FIELD_HEAD)
            return err_set(err, ERR_PROTOCOL, "field %u is cut off", tag);
        for (i = 0; i < count && fields[i].tag != tag; i++)
            ;
        if (i == count)
            return err_set(err, ERR_PROTOCOL, "unknown field %u", tag);
        if (seen & (1ull << i))
            return err_set(err, ERR_PROTOCOL, "%s: given twice", fields[i].name);
        seen |= 1ull << i;
        if (field_store(&fields[i], object, at + FIELD_HEAD, size, err) < 0)
            return -1;
        at += FIELD_HEAD + size;
        len -= FIELD_HEAD + size;
    }
    return 0;
}

const char *texts_next(const struct texts *texts, const char *at)
{
    const char *next = at ? at + strlen(at) + 1 : texts->data;

    return texts->len > 0 && next < texts->data + texts->len ? next : NULL;
}
