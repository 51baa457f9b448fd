#include "mcp/message.h"

#include "base/own.h"

#include <stdbool.h>
#include <string.h>

const char *mcp_text(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool id_ok(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= MCP_ID_MAX);
}

static int bad(enum mcp_code *ret_code, const char *why, struct err *err)
{
    *ret_code = MCP_INVALID_REQUEST;
    return err_set(err, ERR_INVALID, "%s", why);
}

static int read_params(json_t *json, struct mcp_message *m, enum mcp_code *ret_code,
                       struct err *err)
{
    json_t *meta;

    m->params = json_object_get(json, "params");
    if (!m->params)
        return 0;
    if (!json_is_object(m->params)) {
        m->params = NULL;
        return bad(ret_code, "params is not an object", err);
    }
    meta = json_object_get(m->params, "_meta");
    if (meta && !json_is_object(meta)) {
        *ret_code = MCP_INVALID_PARAMS;
        return err_set(err, ERR_INVALID, "params._meta is not an object");
    }
    m->meta = meta;
    m->version = mcp_text(meta, MCP_META "protocolVersion");
    return 0;
}

int mcp_read(json_t *json, struct mcp_message *ret, enum mcp_code *ret_code, struct err *err)
{
    const char *version = mcp_text(json, "jsonrpc");
    json_t *id = json_object_get(json, "id"), *method = json_object_get(json, "method");
    bool answers = json_object_get(json, "result") || json_object_get(json, "error");

    *ret = (struct mcp_message){ .id = id_ok(id) ? id : NULL };
    if (json_is_array(json))
        return bad(ret_code,
                   "batches are not part of the protocol any more: send one message at a time",
                   err);
    if (!json_is_object(json))
        return bad(ret_code, "a message is a JSON object", err);
    if (!version || strcmp(version, "2.0") != 0)
        return bad(ret_code, "jsonrpc is not \"2.0\"", err);
    if (id && !ret->id)
        return bad(ret_code, "id is neither a text of at most 256 bytes nor a whole number", err);
    if (!method && (!answers || !id))
        return bad(ret_code, "a message has a method, or an id with a result or an error", err);
    if (!method) {
        ret->kind = MCP_RESPONSE;
        return 0;
    }
    if (!json_is_string(method) || json_string_length(method) == 0 ||
        json_string_length(method) > MCP_NAME_MAX)
        return bad(ret_code, "method is not a text of 1 to 128 bytes", err);
    if (answers)
        return bad(ret_code, "a message is either a request or a response", err);
    ret->kind = id ? MCP_REQUEST : MCP_NOTIFICATION;
    ret->method = json_string_value(method);
    return read_params(json, ret, ret_code, err);
}

int mcp_parse(const char *text, size_t len, json_t **ret_json, struct mcp_message *ret,
              enum mcp_code *ret_code, struct err *err)
{
    json_error_t why;

    *ret = (struct mcp_message){ .id = NULL };
    *ret_json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (*ret_json)
        return mcp_read(*ret_json, ret, ret_code, err);
    *ret_code = MCP_PARSE_ERROR;
    return err_set(err, ERR_INVALID, "not JSON: %s (line %d, column %d)", why.text, why.line,
                   why.column);
}

const char *mcp_name(const struct mcp_message *message)
{
    static const struct {
        const char *method, *key;
    } named[] = { { "tools/call", "name" },
                  { "prompts/get", "name" },
                  { "resources/read", "uri" } };

    for (size_t i = 0; message->method && i < ARRAY_LEN(named); i++)
        if (strcmp(named[i].method, message->method) == 0)
            return mcp_text(message->params, named[i].key);
    return NULL;
}

static json_t *envelope(json_t *id)
{
    json_t *json = json_pack("{s:s}", "jsonrpc", "2.0");

    if (id)
        (void) json_object_set(json, "id", id);
    return json;
}

json_t *mcp_result(json_t *id, json_t *take_result)
{
    json_t *json = envelope(id);

    (void) json_object_set_new(json, "result", take_result);
    return json;
}

json_t *mcp_error(json_t *id, enum mcp_code code, const char *message, json_t *take_data)
{
    json_t *json = envelope(id), *text = json_string(message);
    json_t *error = json_pack("{s:i, s:o}", "code", (int) code, "message",
                              text ? text : json_string("the request is not UTF-8"));

    if (take_data)
        (void) json_object_set_new(error, "data", take_data);
    (void) json_object_set_new(json, "error", error);
    return json;
}
