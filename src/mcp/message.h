/* message.h - messages of the Model Context Protocol: JSON-RPC 2.0, one JSON object each. Pure.
 *
 * Two eras are spoken. A message of 2026-07-28 says its revision in params._meta; one of 2025-11-25 or before does not, and
 * agrees on a revision with `initialize`.
 *
 * Callers: surface/mcp, which gets messages as bodies; cli/api/mcp.c, which gets them as lines; fuzz/mcp_message_fuzz.c. */
#ifndef COVE_MCP_MESSAGE_H
#define COVE_MCP_MESSAGE_H

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

#define MCP_MODERN   "2026-07-28"
#define MCP_LEGACY   "2025-11-25" /* the newest of the older era */
#define MCP_META     "io.modelcontextprotocol/"
#define MCP_ID_MAX   256 /* bytes of an id that is a text */
#define MCP_NAME_MAX 128 /* of a method, and of a tool */

/* Codes of errors: JSON-RPC's own, and those of 2026-07-28. */
enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_NO_VERSION = -32022
};

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

/* What there is of a message; all of it is borrowed from the JSON. */
struct mcp_message {
    enum mcp_kind kind;
    json_t *id;          /* a text or a whole number; NULL: a notification, or unusable */
    const char *method;  /* NULL: a response */
    json_t *params;      /* an object; NULL: none */
    json_t *meta;        /* params._meta, an object; NULL: none */
    const char *version; /* what _meta says; NULL: nothing */
};

/* -1: not a message, why is in err, and *ret_code is the code to answer with; ret->id is there if one could be read. */
int mcp_read(json_t *json, struct mcp_message *ret, enum mcp_code *ret_code, struct err *err);
/* The same of a text. *ret_json is the caller's to json_decref, also when -1 is returned; NULL: not JSON. */
int mcp_parse(const char *text, size_t len, json_t **ret_json, struct mcp_message *ret,
              enum mcp_code *ret_code, struct err *err);

/* params.name of tools/call and prompts/get, params.uri of resources/read: the header Mcp-Name. NULL: the method has none, or it
 * is missing. */
const char *mcp_name(const struct mcp_message *message);

/* A text member of an object; NULL: missing, or not a text. */
const char *mcp_text(json_t *object, const char *key);

/* {"jsonrpc": "2.0", "id": …, "result"|"error": …}. id NULL: left out. take_*: the reference is taken. */
json_t *mcp_result(json_t *id, json_t *take_result);
json_t *mcp_error(json_t *id, enum mcp_code code, const char *message, json_t *take_data);

#endif
