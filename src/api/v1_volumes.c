#include "api/v1.h"

#include "base/own.h"

#include <stdlib.h>
#include <string.h>

#define AT(type, field) offsetof(struct type, field)
#define SIZE_PRESET     (1024 * VOLUME_MIB)

static json_t *volume_json(const struct ops_volume *v)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:o}", "id", v->id, "name", v->name,
                     "size", (json_int_t) v->bytes, "inodes", (json_int_t) v->inodes,
                     "stored_bytes", (json_int_t) v->stored, "readers", (int) v->readers, "writers",
                     (int) v->writers, "created_at", v1_time(v->created_ms));
}

/* ---- of a sandbox ---- */

struct mount_body {
    const char *name, *path;
    bool read_only;
};

int v1_volumes_read(struct exchange *x, const char *field, json_t *list,
                    struct ops_mount mounts[VOLUMES_MAX], size_t *ret_count, struct err *err)
{
    static const struct v1_field fields[] = {
        { "name", V1_TEXT, AT(mount_body, name), 0, 0 },
        { "path", V1_TEXT, AT(mount_body, path), 0, 0 },
        { "read_only", V1_BOOL, AT(mount_body, read_only), 0, 0 },
    };
    size_t count = json_array_size(list);

    if (count > VOLUMES_MAX)
        return v1_bad(x, err, field, "at most %d", VOLUMES_MAX);
    for (size_t i = 0; i < count; i++) {
        struct mount_body body = { .name = NULL };
        json_t *item = json_array_get(list, i);

        if (!json_is_object(item))
            return v1_bad(x, err, field, "is a list of objects");
        if (v1_read(x, item, fields, ARRAY_LEN(fields), &body, err) < 0)
            return -1;
        if (!body.name || !body.path)
            return v1_bad(x, err, field, "name and path are needed");
        if (!name_ok(body.name) || strlen(body.name) >= sizeof mounts[i].name) {
            err_set(err, ERR_NO_VOLUME, "there is no volume '%.63s'", body.name);
            return exchange_blame(x, field, NULL, NULL);
        }
        if (volume_path_check(body.path, err) < 0)
            return exchange_blame(x, field, NULL, NULL);
        (void) snprintf(mounts[i].name, sizeof mounts[i].name, "%s", body.name);
        (void) snprintf(mounts[i].path, sizeof mounts[i].path, "%s", body.path);
        mounts[i].read_only = body.read_only;
    }
    *ret_count = count;
    return 0;
}

/* ---- /v1/volumes ---- */

/* A number, or a text such as "512m". */
static int read_size(struct exchange *x, json_t *value, uint64_t *ret, struct err *err)
{
    if (json_is_integer(value) && json_integer_value(value) > 0)
        *ret = (uint64_t) json_integer_value(value);
    else if (!json_is_string(value) || parse_size(json_string_value(value), ret, err) < 0)
        return v1_bad(x, err, "size", "a number of bytes, or a text such as '512m', is needed");
    return 0;
}

struct volume_body {
    const char *name;
    json_t *size;
    uint64_t inodes;
};

static int make(struct exchange *x, json_t *json, struct ops_volume *ret, struct err *err)
{
    static const struct v1_field fields[] = {
        { "name", V1_TEXT, AT(volume_body, name), 0, 0 },
        { "size", V1_ANY, AT(volume_body, size), 0, 0 },
        { "inodes", V1_COUNT, AT(volume_body, inodes), 1, VOLUME_BYTES_MOST },
    };
    struct volume_body body = { .name = NULL };
    struct ops ops = ops_of(x);
    uint64_t bytes = SIZE_PRESET;

    if (v1_read(x, json, fields, ARRAY_LEN(fields), &body, err) < 0)
        return -1;
    if (!body.name)
        return v1_bad(x, err, "name", "is needed");
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
    struct ops ops = ops_of(x);
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
    struct ops ops = ops_of(x);
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
    struct ops ops = ops_of(x);

    if (ops_volume_remove(&ops, exchange_param(x, "name"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}
