#include "surface/v1/v1.h"

#include "base/own.h"

#include <stdlib.h>
#include <string.h>

#define AT(field)    offsetof(struct volume_body, field)
#define SIZE_DEFAULT (1024 * VOLUME_MIB)

static json_t *volume_json(const struct ops_volume *v)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:o}", "id", v->id, "name", v->name,
                     "tenant", v->tenant, "size", (json_int_t) v->bytes, "inodes",
                     (json_int_t) v->inodes, "stored_bytes", (json_int_t) v->stored, "readers",
                     (int) v->readers, "writers", (int) v->writers, "created_at",
                     form_time(v->created_ms));
}

/* A number, or a text such as "512m". */
static int read_size(struct exchange *x, json_t *value, uint64_t *ret, struct err *err)
{
    if (json_is_integer(value) && json_integer_value(value) > 0)
        *ret = (uint64_t) json_integer_value(value);
    else if (!json_is_string(value) || parse_size(json_string_value(value), ret, err) < 0)
        return form_bad(exchange_caller(x), err, "size",
                        "must be a number of bytes, or a string such as '512m'");
    return 0;
}

struct volume_body {
    const char *name;
    json_t *size;
    uint64_t inodes;
};

/* clang-format off */
static const struct form_field volume_fields[] = {
    { "name", FORM_TEXT, .at = AT(name), .help = "unique in the tenant", .needed = true, .schema = V1_NAME_PATTERN },
    { "size", FORM_ANY, .at = AT(size),
      .help = "what it can hold, its file system included; rounded up to whole MiB, at least 16",
      .schema = "{\"default\": \"1g\", \"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"string\", \"examples\": [\"512m\"]}]}" },
    { "inodes", FORM_COUNT, .at = AT(inodes), VOLUME_INODES_LEAST, VOLUME_BYTES_MOST, "files that it can hold; default: one per 16 KiB, at most one per 8 KiB" },
};
/* clang-format on */
const struct form v1_volume_form = FORM_OF(volume_fields);

static int make(struct exchange *x, json_t *json, struct ops_volume *ret, struct err *err)
{
    struct volume_body body = { .name = NULL };
    struct ops ops = ops_of(exchange_caller(x));
    uint64_t bytes = SIZE_DEFAULT;

    if (form_read(exchange_caller(x), json, &v1_volume_form, &body, err) < 0)
        return -1;
    if (body.size && read_size(x, body.size, &bytes, err) < 0)
        return -1;
    return ops_volume_create(&ops, body.name, bytes, body.inodes, ret, err);
}

int v1_volume_create(struct exchange *x, struct err *err)
{
    struct ops_volume volume;
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = make(x, json, &volume, err);
    json_decref(json);
    return r < 0 ? -1 : exchange_reply_json(x, 201, volume_json(&volume), err);
}

int v1_volume_list(struct exchange *x, struct err *err)
{
    auto_free struct ops_volume *list = NULL;
    struct ops ops = ops_of(exchange_caller(x));
    json_t *array;
    size_t count = 0;

    if (ops_volume_list(&ops, &list, &count, err) < 0)
        return -1;
    array = json_array();
    for (size_t i = 0; i < count; i++)
        (void) json_array_append_new(array, volume_json(&list[i]));
    return exchange_reply_json(x, 200, json_pack("{s:o}", "volumes", array), err);
}

int v1_volume_get(struct exchange *x, struct err *err)
{
    auto_free struct volume_user *users = NULL;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_volume volume;
    json_t *json, *array;
    size_t count = 0;

    if (ops_volume_get(&ops, exchange_param(x, "name"), &volume, &users, &count, err) < 0)
        return -1;
    array = json_array();
    for (size_t i = 0; i < count; i++)
        (void) json_array_append_new(
            array, json_pack("{s:s, s:s, s:b}", "sandbox", users[i].sandbox, "path", users[i].path,
                             "read_only", users[i].flags & VOLUME_READ_ONLY));
    json = volume_json(&volume);
    (void) json_object_set_new(json, "users", array);
    return exchange_reply_json(x, 200, json, err);
}

int v1_volume_remove(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_volume_remove(&ops, exchange_param(x, "name"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}
