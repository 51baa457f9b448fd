#include "surface/v1/v1.h"

#include "base/own.h"

#include <string.h>

struct secret_body {
    const char *value;
    json_t *hosts;
};

/* clang-format off */
static const struct form_field secret_fields[] = {
    { "value", FORM_TEXT, .at = offsetof(struct secret_body, value), .help = "one line; never returned", .needed = true,
      .schema = "{\"maxLength\": 8192}" },
    { "hosts", FORM_ARRAY, .at = offsetof(struct secret_body, hosts),
      .help = "where requests may carry it; docs/secrets.md", .needed = true,
      .schema = "{\"minItems\": 1, \"maxItems\": 16, "
                "\"examples\": [[\"api.example.com\", \"*.example.org:443\", \"http://plain.example.com\"]]}" },
};
/* clang-format on */
const struct form v1_secret_form = FORM_OF(secret_fields);

static int set(struct exchange *x, json_t *json, struct err *err)
{
    struct secret_body body = { .value = NULL };
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_secret secret;

    if (form_read(exchange_caller(x), json, &v1_secret_form, &body, err) < 0)
        return -1;
    secret = (struct ops_secret){ body.value, json_string_length(json_object_get(json, "value")),
                                  body.hosts };
    return ops_secret_set(&ops, exchange_param(x, "name"), &secret, err);
}

int v1_secret_put(struct exchange *x, struct err *err)
{
    return v1_body(x, set, err) < 0 ? -1 : exchange_reply_json(x, 204, NULL, err);
}

int v1_secret_list(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *list;

    if (ops_secret_list(&ops, &list, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:o}", "secrets", list), err);
}

int v1_secret_delete(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_secret_remove(&ops, exchange_param(x, "name"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}
