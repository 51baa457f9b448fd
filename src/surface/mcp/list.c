/* tools/list. */
#include "surface/mcp/mcp.h"

#include "base/own.h"

#define LIST_TTL_MS 3600000

static json_t *annotations(const char *title, enum tool_effect effect, bool harms)
{
    return json_pack("{s:s, s:b, s:b, s:b, s:b}", "title", title, "readOnlyHint",
                     effect == TOOL_READS, "destructiveHint", harms, "idempotentHint",
                     effect != TOOL_RUNS, "openWorldHint", effect == TOOL_RUNS);
}

static json_t *tool_json(const char *name, const char *title, const char *brief,
                         json_t *take_schema, json_t *take_annotations)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", name, "title", title, "description",
                     brief, "inputSchema", take_schema, "annotations", take_annotations);
}

/* A pinned client is not told of other sandboxes. */
static json_t *schema_of(const struct mcp_call *call, const struct form *form, bool anywhere)
{
    struct form whole = *form;
    json_t *schema;

    if (anywhere && !call->pinned)
        whole.beside = &tool_where_form;
    schema = form_schema(&whole, FORM_LISTED);
    if (call->pinned)
        (void) json_object_del(json_object_get(schema, "properties"), "sandbox_id");
    return schema;
}

int mcp_tools_list(struct mcp_call *call, struct err *err)
{
    json_t *list = json_array(), *result;

    for (size_t i = 0; i < tools_count; i++) {
        const struct tool *tool = &tools_table[i];

        (void) json_array_append_new(
            list, tool_json(tool->plain, tool->name, tool->brief, schema_of(call, tool->form, true),
                            annotations(tool->name, tool->effect, tool->effect != TOOL_READS)));
    }
    for (size_t i = 0; i < mcp_own_count; i++) {
        const struct mcp_own *own = &mcp_owns[i];

        if (call->pinned && !own->inside)
            continue;
        (void) json_array_append_new(
            list, tool_json(own->name, own->title, own->brief, schema_of(call, own->form, false),
                            annotations(own->title, own->effect, own->ends)));
    }
    result = json_pack("{s:o}", "tools", list);
    if (call->modern) {
        (void) json_object_set_new(result, "ttlMs", json_integer(LIST_TTL_MS));
        (void) json_object_set_new(result, "cacheScope", json_string("public"));
    }
    return mcp_reply(call, result, err);
}
