#include "cli/template/template_built.h"

#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <string.h>

int built_by_server(const char *tenant, struct err *err)
{
    if (server_act_for(tenant, err) < 0)
        return -1;
    return tenant || server_is_elsewhere();
}

int built_list(json_t **ret, struct err *err)
{
    return server_ask("GET", NULL, ret, err, "/v1/templates");
}

/* ---- the list ---- */

static void put_row(struct table *table, json_t *template, json_t *tag)
{
    const char *from = show_text(tag, "from");
    char text[32];

    table_cell(table, "%s", show_text(template, "name"));
    table_cell(table, "%s", json_is_true(json_object_get(template, "own")) ? "" : "public");
    table_cell(table, "%s", tag ? show_text(tag, "tag") : "-");
    table_cell(table, "built");
    table_cell(table, "%s", tag ? report_size(text, sizeof text, show_number(tag, "bytes")) : "-");
    table_cell(table, "-");
    table_cell(table, "%s",
               subverb_when(text, sizeof text, show_time(tag ? tag : template, "created_at")));
    table_cell(table, "-");
    table_cell(table, "%s%s", !tag ? "no build has succeeded" : from[0] ? "from " : "", from);
}

void built_rows(struct table *table, json_t *template)
{
    json_t *tags = json_object_get(template, "tags"), *tag;
    size_t i;

    if (json_array_size(tags) == 0)
        put_row(table, template, NULL);
    json_array_foreach(tags, i, tag)
    {
        put_row(table, template, tag);
    }
}

/* What the server says, and what tells it from the other templates of a list. */
static json_t *as_one(json_t *template)
{
    json_t *one = json_pack("{s:s, s:s}", "name", show_text(template, "name"), "kind", "built");

    (void) json_object_update_missing(one, template);
    (void) json_object_set_new(
        one, "created", json_integer((json_int_t) (show_time(template, "created_at") / 1000)));
    return one;
}

void built_json(struct json_out *json, json_t *template)
{
    json_t *one = as_one(template);
    auto_free char *text = json_dumps(one, 0);

    if (text)
        json_out_raw(json, NULL, text);
    json_decref(one);
}

/* ---- one ---- */

static void show_line(const char *heading, const char *text)
{
    auto_free char *safe = report_safe(text);

    if (safe && safe[0])
        (void) printf("%-13s%s\n", heading, safe);
}

static void show_tag(json_t *tag)
{
    char size[32], date[32];
    auto_free char *text = NULL;

    if (asprintf(&text, "%s, %s, made %s, from %s, build %s", show_text(tag, "tag"),
                 report_size(size, sizeof size, show_number(tag, "bytes")),
                 subverb_when(date, sizeof date, show_time(tag, "created_at")),
                 show_text(tag, "from"), show_text(tag, "build")) < 0)
        text = NULL;
    show_line("tag", text ? text : "");
}

static void show_settings(json_t *settings)
{
    static const char *const texts[] = { "user", "workdir", "start", "ready" };
    json_t *item;
    size_t i;

    for (i = 0; i < ARRAY_LEN(texts); i++)
        show_line(texts[i], show_text(settings, texts[i]));
    json_array_foreach(json_object_get(settings, "env"), i, item)
    {
        show_line("env", json_is_string(item) ? json_string_value(item) : "");
    }
}

static void show_words(json_t *template)
{
    bool own = json_is_true(json_object_get(template, "own")),
         all = json_is_true(json_object_get(template, "public"));
    json_t *tag;
    char date[32];
    size_t i;

    show_line("template", show_text(template, "name"));
    show_line("id", show_text(template, "id"));
    show_line("kind", "built");
    show_line("for", all ? own ? "every tenant" : "every tenant, by another one" : "this tenant");
    show_line("created", subverb_when(date, sizeof date, show_time(template, "created_at")));
    show_line("updated", subverb_when(date, sizeof date, show_time(template, "updated_at")));
    json_array_foreach(json_object_get(template, "tags"), i, tag)
    {
        show_tag(tag);
    }
    show_settings(json_object_get(template, "settings"));
}

int built_show(const char *name, bool as_json, struct err *err)
{
    json_t *template = NULL;

    if (server_ask("GET", NULL, &template, err, "/v1/templates/%s", name) < 0)
        return -1;
    if (as_json)
        show_json(as_one(template));
    else
        show_words(template);
    json_decref(template);
    return 0;
}

int built_remove(const char *name, struct err *err)
{
    const char *tag = strchr(name, ':');
    auto_free char *whole = tag ? strndup(name, (size_t) (tag - name)) : NULL;

    if (tag && !whole)
        return err_set(err, ERR_NO_MEMORY, "no memory");
    return tag ? server_ask("DELETE", NULL, NULL, err, "/v1/templates/%s/tags/%s", whole, tag + 1)
               : server_ask("DELETE", NULL, NULL, err, "/v1/templates/%s", name);
}
