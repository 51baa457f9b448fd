/* One table: what it reads, what it refuses and in which words, and the schema that it is. */
#include "server/form/form.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

struct body {
    const char *name, *mode, *note;
    uint64_t count, id, wait_ms, milli;
    json_t *list, *object, *text;
    bool on;
};

#define AT(field) offsetof(struct body, field)
static const char *const modes[] = { "off", "public", "list", NULL };
static const struct form_field rows[] = {
    { "name", FORM_TEXT, .at = AT(name), .most = 8, .help = "a name", .needed = true },
    { "alias", FORM_TEXT, .at = AT(name), .most = 8 },
    { "mode", FORM_TEXT, .at = AT(mode), .help = "a mode", .choices = modes, .fallback = "list" },
    { "note", FORM_CONTENT, .at = AT(note), .help = "may be empty" },
    { "count", FORM_COUNT, .at = AT(count), 1, 9, "how many", .fallback = "5" },
    { "id", FORM_ID, .at = AT(id), 1, 9, "a number, also as a text" },
    { "wait", FORM_SECONDS, .at = AT(wait_ms), 500, 60000, "seconds", .fallback = "1.5" },
    { "cores", FORM_MILLI, .at = AT(milli), 10, 4000, "processors" },
    { "list", FORM_ARRAY, .at = AT(list), 1, 2, "texts" },
    { "object", FORM_OBJECT, .at = AT(object), .help = "texts by name" },
    { "text", FORM_STRING, .at = AT(text), .help = "any bytes" },
    { "on", FORM_BOOL, .at = AT(on), .help = "a switch", .fallback = "true" },
    { "old", FORM_IGNORED },
};
static const struct form form = FORM_OF(rows);

static int read_text(const char *text, struct body *body, struct caller *caller, struct err *err)
{
    json_t *json = json_loads(text, JSON_ALLOW_NUL, NULL);
    int r;

    CHECK(json != NULL);
    *body = (struct body){ .name = NULL };
    *caller = (struct caller){ .scope = SCOPE_RUN };
    r = form_read_within(caller, "in.", json, &form, body, err);
    json_decref(json);
    return r;
}

static void wrong_values_are_refused_with_the_name_of_the_field(void)
{
    static const struct {
        const char *json, *field, *message;
    } cases[] = {
        { "{}", "in.name", "in.name: is required" },
        { "{\"name\": null}", "in.name", "in.name: is required" },
        { "{\"name\": 1}", "in.name", "in.name: must be a string" },
        { "{\"name\": \"\"}", "in.name", "in.name: must not be empty" },
        { "{\"name\": \"a\\u0000b\"}", "in.name", "in.name: must not contain NUL" },
        { "{\"name\": \"123456789\"}", "in.name", "in.name: longer than 8 bytes" },
        { "{\"alias\": false}", "in.alias", "in.alias: must be a string" },
        { "{\"name\": \"a\", \"mode\": \"all\"}", "in.mode",
          "in.mode: must be off, public or list" },
        { "{\"name\": \"a\", \"count\": 0}", "in.count", "in.count: 0 is not between 1 and 9" },
        { "{\"name\": \"a\", \"count\": -1}", "in.count", "in.count: -1 is not between 1 and 9" },
        { "{\"name\": \"a\", \"count\": 1.5}", "in.count", "in.count: must be a whole number" },
        { "{\"name\": \"a\", \"count\": \"1\"}", "in.count", "in.count: must be a whole number" },
        { "{\"name\": \"a\", \"id\": \"x\"}", "in.id", "in.id: must be a whole number" },
        { "{\"name\": \"a\", \"wait\": 61}", "in.wait",
          "in.wait: 61 seconds is not between 0.5 and 60" },
        { "{\"name\": \"a\", \"wait\": \"1\"}", "in.wait", "in.wait: must be a number of seconds" },
        { "{\"name\": \"a\", \"cores\": 0.001}", "in.cores",
          "in.cores: 0.001 is not between 0.01 and 4" },
        { "{\"name\": \"a\", \"list\": []}", "in.list", "in.list: must have at least 1 item" },
        { "{\"name\": \"a\", \"list\": [1, 2, 3]}", "in.list",
          "in.list: must have at most 2 items" },
        { "{\"name\": \"a\", \"list\": {}}", "in.list", "in.list: must be an array" },
        { "{\"name\": \"a\", \"object\": []}", "in.object", "in.object: must be an object" },
        { "{\"name\": \"a\", \"text\": 1}", "in.text", "in.text: must be a string" },
        { "{\"name\": \"a\", \"on\": 1}", "in.on", "in.on: must be true or false" },
        { "{\"name\": \"a\", \"colour\": 1}", "in.colour", "in.colour: unknown field" },
    };
    struct caller caller;
    struct body body;
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_INT(read_text(cases[i].json, &body, &caller, &err), -1);
        CHECK_STR(err.msg, cases[i].message);
        CHECK_STR(caller.blame.field, cases[i].field);
        CHECK_INT(err.kind, ERR_INVALID);
    }
}

static void what_is_absent_has_its_default(void)
{
    struct caller caller;
    struct body body;
    struct err err;

    CHECK_INT(read_text("{\"alias\": \"n\", \"old\": [1], \"count\": null}", &body, &caller, &err),
              0);
    CHECK_STR(body.mode, "list");
    CHECK_INT(body.count, 5);
    CHECK_INT(body.wait_ms, 1500);
    CHECK(body.on);
    CHECK_INT(body.id, 0);
}

static void values_are_read_in_every_form_that_they_may_have(void)
{
    struct caller caller;
    struct body body;
    struct err err;

    CHECK_INT(read_text("{\"name\": \"n\", \"count\": 3.0, \"id\": \"7\", \"wait\": 2, \"cores\": "
                        "0.5, \"on\": false, "
                        "\"note\": \"\"}",
                        &body, &caller, &err),
              0);
    CHECK_INT(body.count, 3);
    CHECK_INT(body.id, 7);
    CHECK_INT(body.wait_ms, 2000);
    CHECK_INT(body.milli, 500);
    CHECK(!body.on);
}

static void check_schema(enum form_view view, const char *field, const char *want)
{
    json_t *schema = form_schema(&form, view), *expected = json_loads(want, JSON_DECODE_ANY, NULL),
           *got = json_object_get(json_object_get(schema, "properties"), field);
    char *text = json_dumps(got ? got : json_null(), JSON_ENCODE_ANY);

    CHECK(expected != NULL);
    CHECK(json_equal(got ? got : json_null(), expected));
    if (!json_equal(got ? got : json_null(), expected))
        printf("# %s: %s\n", field, text);
    free(text);
    json_decref(schema);
    json_decref(expected);
}

static void a_schema_says_what_is_read(void)
{
    check_schema(
        FORM_WHOLE, "name",
        "{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 8, \"description\": \"a name\"}");
    check_schema(FORM_WHOLE, "alias",
                 "{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 8, \"description\": "
                 "\"another name of name\"}");
    check_schema(
        FORM_WHOLE, "mode",
        "{\"type\": \"string\", \"enum\": [\"off\", \"public\", \"list\"], \"default\": \"list\", "
        "\"description\": \"a mode\"}");
    check_schema(FORM_WHOLE, "wait",
                 "{\"type\": \"number\", \"minimum\": 0.5, \"maximum\": 60, \"default\": 1.5, "
                 "\"description\": \"seconds\"}");
    check_schema(FORM_WHOLE, "list",
                 "{\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"minItems\": 1, "
                 "\"maxItems\": 2, "
                 "\"description\": \"texts\"}");
    check_schema(FORM_WHOLE, "old", "{\"description\": \"has no meaning here\"}");
    check_schema(FORM_LISTED, "alias", "null");
    check_schema(FORM_LISTED, "old", "null");
    check_schema(FORM_LISTED, "id",
                 "{\"type\": [\"integer\", \"string\"], \"minimum\": 1, \"maximum\": 9, "
                 "\"description\": \"a number, also as a text\"}");
}

CHECK_MAIN(T(wrong_values_are_refused_with_the_name_of_the_field),
           T(what_is_absent_has_its_default), T(values_are_read_in_every_form_that_they_may_have),
           T(a_schema_says_what_is_read))
