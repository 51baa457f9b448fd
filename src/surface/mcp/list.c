/* tools/list. */
#include "surface/mcp/mcp.h"

#include "base/own.h"

#define LIST_TTL_MS 3600000

/* Every tool that works in a sandbox can be told in which. */
/* clang-format off */
static const struct arg where_rows[] = {
    { "sandbox_id", ARG_TEXT, .help = "the sandbox to work in (default: your own, which is made when it is needed)" },
};
/* clang-format on */
static const struct args where_args = ARGS_OF(where_rows);

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
static json_t *schema_of(const struct mcp_call *call, const struct args *args, bool anywhere)
{
    json_t *schema = args_schema(args), *properties = json_object_get(schema, "properties"), *where;

    if (call->pinned)
        (void) json_object_del(properties, "sandbox_id");
    if (call->pinned || !anywhere)
        return schema;
    where = args_schema(&where_args);

    (void) json_object_update(properties, json_object_get(where, "properties"));
    json_decref(where);
    return schema;
}

int mcp_tools_list(struct mcp_call *call, struct err *err)
{
    json_t *list = json_array(), *result;

    for (size_t i = 0; i < tools_count; i++) {
        const struct tool *tool = &tools_table[i];

        (void) json_array_append_new(
            list, tool_json(tool->plain, tool->name, tool->brief, schema_of(call, tool->args, true),
                            annotations(tool->name, tool->effect, tool->effect != TOOL_READS)));
    }
    for (size_t i = 0; i < mcp_own_count; i++) {
        const struct mcp_own *own = &mcp_owns[i];

        if (call->pinned && !own->inside)
            continue;
        (void) json_array_append_new(
            list, tool_json(own->name, own->title, own->brief, schema_of(call, own->args, false),
                            annotations(own->title, own->effect, own->ends)));
    }
    result = json_pack("{s:o}", "tools", list);
    if (call->modern) {
        (void) json_object_set_new(result, "ttlMs", json_integer(LIST_TTL_MS));
        (void) json_object_set_new(result, "cacheScope", json_string("public"));
    }
    return mcp_reply(call, result, err);
}
