/* Volumes, as far as E2B's control plane knows them: made, listed, looked at and removed. What is in them is reached from
 * sandboxes; the API for their content from outside is not offered. */
#include "surface/e2b/control.h"

#include "base/own.h"

#define SIZE (1024 * VOLUME_MIB) /* SDKs do not say any */

/* The token is for the API of contents, and opens nothing here; SDKs want one. */
static json_t *volume_json(const struct ops_volume *volume, bool token)
{
    json_t *json = json_pack("{s:s, s:s}", "volumeID", volume->id, "name", volume->name);

    if (token)
        (void) json_object_set_new(json, "token", json_string(volume->id));
    return json;
}

int control_volume_create(struct exchange *x, struct err *err)
{
    static const struct form_field rows[] = { { "name", FORM_TEXT, .needed = true } };
    static const struct form form = FORM_OF(rows, .open = true);
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_volume volume;
    const char *name = NULL;
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &form, &name, err);
    if (r == 0)
        r = ops_volume_create(&ops, name, SIZE, 0, &volume, err);
    json_decref(json);
    return r < 0 ? -1 : exchange_reply_json(x, 201, volume_json(&volume, true), err);
}

int control_volume_list(struct exchange *x, struct err *err)
{
    auto_free struct ops_volume *list = NULL;
    struct ops ops = ops_of(exchange_caller(x));
    size_t count = 0;
    json_t *array;

    if (ops_volume_list(&ops, &list, &count, err) < 0)
        return -1;
    array = json_array();
    for (size_t i = 0; i < count; i++)
        (void) json_array_append_new(array, volume_json(&list[i], false));
    return exchange_reply_json(x, 200, array, err);
}

int control_volume_get(struct exchange *x, struct err *err)
{
    auto_free struct volume_user *users = NULL;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_volume volume;
    size_t count = 0;

    if (ops_volume_get(&ops, exchange_param(x, "volume"), &volume, &users, &count, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, volume_json(&volume, exchange_caller(x)->scope >= SCOPE_RUN),
                               err);
}

int control_volume_remove(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    return ops_volume_remove(&ops, exchange_param(x, "volume"), err) < 0
               ? -1
               : exchange_reply_json(x, 204, NULL, err);
}
