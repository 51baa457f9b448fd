/* What args_read takes, as JSON Schema. */
#include "server/form/tools_args.h"

#define EXACT_MOST (1ull << 53) /* whole numbers up to here are the same in every language */

static json_t *number_schema(const struct arg *arg)
{
    json_t *schema = arg->type == ARG_ID
                         ? json_pack("{s:[s, s]}", "type", "integer", "string")
                         : json_pack("{s:s}", "type", arg->type == ARG_REAL ? "number" : "integer");

    (void) json_object_set_new(schema, "minimum", json_integer((json_int_t) arg->least));
    if (arg->most < EXACT_MOST)
        (void) json_object_set_new(schema, "maximum", json_integer((json_int_t) arg->most));
    return schema;
}

static json_t *text_schema(const struct arg *arg)
{
    json_t *schema = json_pack("{s:s}", "type", "string"), *choices;

    if (!arg->choices)
        return schema;
    choices = json_array();
    for (size_t i = 0; arg->choices[i]; i++)
        (void) json_array_append_new(choices, json_string(arg->choices[i]));
    (void) json_object_set_new(schema, "enum", choices);
    return schema;
}

static json_t *value_schema(const struct arg *arg)
{
    static const struct arg text = { .type = ARG_TEXT };

    switch (arg->type) {
    case ARG_TEXT:
        return text_schema(arg);
    case ARG_NUMBER:
    case ARG_REAL:
    case ARG_ID:
        return number_schema(arg);
    case ARG_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case ARG_OBJECT:
        return arg->items ? args_schema(arg->items)
                          : json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
                                      text_schema(&text));
    case ARG_ARRAY:
        return json_pack("{s:s, s:o}", "type", "array", "items",
                         arg->items ? args_schema(arg->items) : text_schema(&text));
    case ARG_IGNORED:
        break;
    }
    return json_object();
}

json_t *args_schema(const struct args *args)
{
    json_t *properties = json_object(), *required = json_array();

    for (size_t i = 0; i < args->count; i++) {
        const struct arg *arg = &args->rows[i];
        json_t *schema;

        if (!arg->help)
            continue;
        schema = value_schema(arg);
        (void) json_object_set_new(schema, "description", json_string(arg->help));
        (void) json_object_set_new(properties, arg->name, schema);
        if (arg->needed)
            (void) json_array_append_new(required, json_string(arg->name));
    }
    return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties, "required",
                     required);
}
