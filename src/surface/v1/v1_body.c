#include "surface/v1/v1.h"

int v1_body(struct exchange *x, v1_body_fn *work, struct err *err)
{
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = work(x, json, err);
    json_decref(json);
    return r;
}

int v1_numbers(struct exchange *x, const struct form *form, void *ret, struct err *err)
{
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, form, ret, err);
    json_decref(json);
    return r;
}
