/* A form as JSON Schema. */
#include "server/form/form.h"

#include <stdlib.h>

#define EXACT_MOST (1ull << 53) /* whole numbers up to here are the same in every language */

static void put(json_t *schema, const char *key, json_t *take_value)
{
    (void) json_object_set_new(schema, key, take_value);
}

/* 0.5, but 3600 rather than 3600.0. */
static json_t *milli_json(uint64_t milli)
{
    return milli % 1000 ? json_real((double) milli / 1000)
                        : json_integer((json_int_t) (milli / 1000));
}

static json_t *number_schema(const struct form_field *row)
{
    json_t *schema = row->type == FORM_ID ? json_pack("{s:[s, s]}", "type", "integer", "string")
                                          : json_pack("{s:s}", "type", "integer");

    put(schema, "minimum", json_integer((json_int_t) row->least));
    if (row->most < EXACT_MOST)
        put(schema, "maximum", json_integer((json_int_t) row->most));
    return schema;
}

static json_t *milli_schema(const struct form_field *row)
{
    return json_pack("{s:s, s:o, s:o}", "type", "number", "minimum", milli_json(row->least),
                     "maximum", milli_json(row->most));
}

static json_t *text_schema(const struct form_field *row)
{
    json_t *schema = json_pack("{s:s}", "type", "string"), *choices;

    if (row->choices) {
        choices = json_array();
        for (size_t i = 0; row->choices[i]; i++)
            (void) json_array_append_new(choices, json_string(row->choices[i]));
        put(schema, "enum", choices);
        return schema;
    }
    if (row->type == FORM_TEXT)
        put(schema, "minLength", json_integer(1));
    if (row->most > 0)
        put(schema, "maxLength", json_integer((json_int_t) row->most));
    return schema;
}

static json_t *array_schema(const struct form_field *row, enum form_view view)
{
    json_t *schema = json_pack("{s:s, s:o}", "type", "array", "items",
                               row->items ? form_schema(row->items, view)
                                          : json_pack("{s:s}", "type", "string"));

    if (row->least > 0)
        put(schema, "minItems", json_integer((json_int_t) row->least));
    if (row->most > 0)
        put(schema, "maxItems", json_integer((json_int_t) row->most));
    return schema;
}

static json_t *object_schema(const struct form_field *row, enum form_view view)
{
    if (row->describe)
        return row->describe();
    return row->items ? form_schema(row->items, view)
                      : json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties",
                                  "type", "string");
}

static json_t *type_schema(const struct form_field *row, enum form_view view)
{
    switch (row->type) {
    case FORM_TEXT:
    case FORM_CONTENT:
    case FORM_STRING:
        return text_schema(row);
    case FORM_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case FORM_COUNT:
    case FORM_ID:
        return number_schema(row);
    case FORM_SECONDS:
    case FORM_MILLI:
        return milli_schema(row);
    case FORM_ARRAY:
        return array_schema(row, view);
    case FORM_OBJECT:
        return object_schema(row, view);
    case FORM_ANY:
    case FORM_IGNORED:
        break;
    }
    return json_object();
}

static json_t *fallback_json(const struct form_field *row)
{
    return row->type == FORM_TEXT || row->type == FORM_CONTENT
               ? json_string(row->fallback)
               : json_loads(row->fallback, JSON_DECODE_ANY, NULL);
}

/* The row that this one is another name of; NULL: none. */
static const struct form_field *other_name(const struct form *form, const struct form_field *row)
{
    for (size_t i = 0; i < form->count; i++)
        if (form->rows[i].help && form->rows[i].at == row->at &&
            form->rows[i].type != FORM_IGNORED && &form->rows[i] != row)
            return &form->rows[i];
    return NULL;
}

static json_t *help_json(const struct form *form, const struct form_field *row)
{
    const struct form_field *named;

    if (row->help)
        return json_string(row->help);
    if (row->type == FORM_IGNORED)
        return json_string("has no meaning here");
    named = other_name(form, row);
    return named ? json_sprintf("another name of %s", named->name) : NULL;
}

static json_t *row_schema(const struct form *form, const struct form_field *row,
                          enum form_view view)
{
    json_t *schema = type_schema(row, view), *help = help_json(form, row),
           *more = row->schema ? json_loads(row->schema, 0, NULL) : NULL;

    if (more)
        (void) json_object_update(schema, more);
    json_decref(more);
    if (row->nullable && json_object_get(schema, "properties"))
        schema = json_pack("{s:[o, {s:s}]}", "oneOf", schema, "type", "null");
    else if (row->nullable)
        put(schema, "type", json_pack("[O, s]", json_object_get(schema, "type"), "null"));
    if (help)
        put(schema, "description", help);
    if (row->fallback)
        put(schema, "default", fallback_json(row));
    return schema;
}

/* Whether the name itself is necessary: not if another name would do. */
static bool is_required(const struct form *form, const struct form_field *row, enum form_view view)
{
    if (!row->needed)
        return false;
    for (size_t i = 0; view == FORM_WHOLE && i < form->count; i++)
        if (&form->rows[i] != row && form->rows[i].at == row->at &&
            form->rows[i].type != FORM_IGNORED)
            return false;
    return true;
}

static void add_rows(const struct form *form, enum form_view view, json_t *properties,
                     json_t *required)
{
    if (form->beside)
        add_rows(form->beside, view, properties, required);
    for (size_t i = 0; i < form->count; i++) {
        const struct form_field *row = &form->rows[i];

        if (view == FORM_LISTED && (!row->help || row->unlisted))
            continue;
        put(properties, row->name, row_schema(form, row, view));
        if (is_required(form, row, view))
            (void) json_array_append_new(required, json_string(row->name));
    }
}

json_t *form_schema(const struct form *form, enum form_view view)
{
    json_t *properties = json_object(), *required = json_array(),
           *schema = json_pack("{s:s}", "type", "object");

    add_rows(form, view, properties, required);
    if (view == FORM_WHOLE && !form->open)
        put(schema, "additionalProperties", json_false());
    if (view == FORM_WHOLE && form->help)
        put(schema, "description", json_string(form->help));
    put(schema, "properties", properties);
    if (view == FORM_LISTED || json_array_size(required) > 0)
        put(schema, "required", json_incref(required));
    json_decref(required);
    return schema;
}
