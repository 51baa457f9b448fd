#include "surface/mcp/mcp.h"

#include "base/base64.h"
#include "base/own.h"
#include "server/serve/origin.h"
#include "surface/mcp/running.h"
#include "surface/mcp/surfaces.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define DISCOVER_TTL_MS 3600000

static const char instructions[] =
    "These tools work in a sandbox of their own, not on the machine of the user. Files live in the "
    "sandbox; relative paths begin in "
    "/home/user. bash keeps its directory, variables and functions between calls. Long or serving "
    "commands: run_in_background, then "
    "bash_output. A sandbox has no network unless it was made with one (create_sandbox with the "
    "preset development or with network). "
    "A refusal says what to do next.";

/* ---- answers ---- */

static json_t *server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "cove", "title", "cove sandboxes", "version",
                     COVE_VERSION);
}

json_t *mcp_answer(const struct mcp_call *call, json_t *take_result)
{
    if (call->modern) {
        (void) json_object_set_new(take_result, "resultType", json_string("complete"));
        (void) json_object_set_new(take_result, "_meta",
                                   json_pack("{s:o}", MCP_META "serverInfo", server_info()));
    }
    return mcp_result(call->message.id, take_result);
}

int mcp_reply(struct mcp_call *call, json_t *take_result, struct err *err)
{
    return exchange_reply_json(call->x, 200, mcp_answer(call, take_result), err);
}

int mcp_fail(struct mcp_call *call, int status, enum mcp_code code, const char *message,
             json_t *take_data, struct err *err)
{
    return exchange_reply_json(call->x, call->modern ? status : 200,
                               mcp_error(call->message.id, code, message, take_data), err);
}

/* ---- methods ---- */

static json_t *capabilities(void)
{
    return json_pack("{s:{}}", "tools");
}

/* Of the older era, newest first. */
static const char *const older[] = { MCP_LEGACY, "2025-06-18", "2025-03-26" };

static bool is_older(const char *version)
{
    for (size_t i = 0; i < ARRAY_LEN(older); i++)
        if (strcmp(older[i], version) == 0)
            return true;
    return false;
}

/* The session id is not kept: see mcp.h. */
static int initialize(struct mcp_call *call, struct err *err)
{
    const char *asked = mcp_text(call->message.params, "protocolVersion");
    unsigned char random[16];
    char session[2 * sizeof random + 1];

    if (!asked)
        return mcp_fail(call, 400, MCP_INVALID_PARAMS, "protocolVersion is missing", NULL, err);
    if (getrandom(random, sizeof random, 0) != (ssize_t) sizeof random)
        return err_set(err, ERR_INTERNAL, "no random bytes for a session id");
    for (size_t i = 0; i < sizeof random; i++)
        (void) snprintf(session + 2 * i, 3, "%02x", random[i]);
    if (exchange_add_header(call->x, "Mcp-Session-Id", session, err) < 0)
        return -1;
    return mcp_reply(call,
                     json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion",
                               is_older(asked) ? asked : older[0], "capabilities", capabilities(),
                               "serverInfo", server_info(), "instructions", instructions),
                     err);
}

static int ping(struct mcp_call *call, struct err *err)
{
    return mcp_reply(call, json_object(), err);
}

static int discover(struct mcp_call *call, struct err *err)
{
    return mcp_reply(call,
                     json_pack("{s:[s], s:o, s:s, s:i, s:s}", "supportedVersions", MCP_MODERN,
                               "capabilities", capabilities(), "instructions", instructions,
                               "ttlMs", DISCOVER_TTL_MS, "cacheScope", "public"),
                     err);
}

enum { OLD = 1, NEW = 2 };

/* clang-format off */
static const struct {
    const char *name;
    int eras;
    int (*run)(struct mcp_call *call, struct err *err);
} methods[] = {
    { "initialize",      OLD,       initialize },
    { "ping",            OLD,       ping },
    { "server/discover", NEW,       discover },
    { "tools/list",      OLD | NEW, mcp_tools_list },
    { "tools/call",      OLD | NEW, mcp_tools_call },
};
/* clang-format on */

static int run_method(struct mcp_call *call, struct err *err)
{
    int era = call->modern ? NEW : OLD;

    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if ((methods[i].eras & era) && strcmp(methods[i].name, call->message.method) == 0)
            return methods[i].run(call, err);
    return mcp_fail(call, 404, MCP_NO_METHOD, "unknown method", NULL, err);
}

/* ---- notifications ---- */

static const char *session_of(struct exchange *x)
{
    const char *session = exchange_header(x, "Mcp-Session-Id");

    return session ? session : "";
}

/* Without a session there is nothing that tells two clients with one key apart: both may have a request 1. Clients of the newer
 * era have none, and close the connection instead. */
static int take_notification(struct mcp_call *call, struct err *err)
{
    struct running_name name = { .caller = exchange_caller(call->x),
                                 .session = session_of(call->x) };

    if (call->message.method && strcmp(call->message.method, "notifications/cancelled") == 0) {
        name.id = json_object_get(call->message.params, "requestId");
        if (name.id && name.session[0])
            running_cancel(&name);
    }
    return exchange_reply_json(call->x, 202, NULL, err);
}

/* ---- the newer era: headers say again what the body says ---- */

/* Plain, or "=?base64?…?=". false: it cannot be read, or is another text. */
static bool header_is(const char *header, const char *wanted)
{
    size_t len = strlen(header), want = strlen(wanted);
    auto_free uint8_t *bytes = NULL;
    ssize_t n;

    if (len < 12 || strncmp(header, "=?base64?", 9) != 0 || strcmp(header + len - 2, "?=") != 0)
        return strcmp(header, wanted) == 0;
    bytes = malloc(len);
    n = bytes ? base64_get(header + 9, len - 11, bytes) : -1;
    return n >= 0 && (size_t) n == want && memcmp(bytes, wanted, want) == 0;
}

/* NULL: they agree; else which header does not. */
static const char *wrong_header(struct mcp_call *call)
{
    const struct {
        const char *name, *wanted;
    } rows[] = {
        { "MCP-Protocol-Version", call->message.version },
        { "Mcp-Method", call->message.method },
        { "Mcp-Name", mcp_name(&call->message) },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *header = rows[i].wanted ? exchange_header(call->x, rows[i].name) : NULL;

        if (rows[i].wanted && (!header || !header_is(header, rows[i].wanted)))
            return rows[i].name;
    }
    return NULL;
}

/* 1: fine, 0: answered, -1. */
static int check_modern(struct mcp_call *call, struct err *err)
{
    const struct mcp_message *m = &call->message;
    const char *header;
    char why[96];

    if (!m->version || !json_is_object(json_object_get(m->meta, MCP_META "clientCapabilities")))
        return mcp_fail(call, 400, MCP_INVALID_PARAMS,
                        "params._meta needs " MCP_META "protocolVersion and " MCP_META
                        "clientCapabilities",
                        NULL, err);
    if ((header = wrong_header(call))) {
        (void) snprintf(why, sizeof why, "header %s is missing, or is not what the body says",
                        header);
        return mcp_fail(call, 400, MCP_HEADER_MISMATCH, why, NULL, err);
    }
    if (strcmp(m->version, MCP_MODERN) != 0)
        return mcp_fail(call, 400, MCP_NO_VERSION, "unsupported protocol version",
                        json_pack("{s:[s], s:s}", "supported", MCP_MODERN, "requested", m->version),
                        err);
    return 1;
}

/* 1: fine, 0: answered, -1. A version that was agreed on with another server is told at once. */
static int check_legacy(struct mcp_call *call, const char *header, struct err *err)
{
    if (!header || is_older(header) || strcmp(call->message.method, "initialize") == 0)
        return 1;
    return exchange_reply_json(
        call->x, 400,
        mcp_error(call->message.id, MCP_INVALID_REQUEST,
                  "MCP-Protocol-Version: unsupported; this server speaks " MCP_MODERN
                  ", " MCP_LEGACY " and 2025-06-18",
                  NULL),
        err);
}

static int serve_message(struct mcp_call *call, struct err *err)
{
    const char *header = exchange_header(call->x, "MCP-Protocol-Version");
    int r;

    if (call->message.kind != MCP_REQUEST)
        return take_notification(call, err);
    call->modern = call->message.version || (header && strcmp(header, MCP_MODERN) == 0);
    r = call->modern ? check_modern(call, err) : check_legacy(call, header, err);
    return r == 1 ? run_method(call, err) : r;
}

/* ---- the request ---- */

/* 1: a message, 0: answered, -1. */
static int read_message(struct exchange *x, json_t **ret_json, struct mcp_message *ret,
                        struct err *err)
{
    enum mcp_code code = MCP_PARSE_ERROR;
    auto_free char *text = NULL;
    size_t len = 0, blank = 0;
    int r;

    if (exchange_text(x, &text, &len, err) < 0)
        return -1;
    while (blank < len && strchr(" \t\r\n", text[blank]))
        blank++;
    if (blank < len && text[blank] == '[') /* a batch, whatever is in it */
        *ret_json = json_array();
    r = *ret_json ? 0 : exchange_json_text(text, len, ret_json, err);
    if (r == 0)
        r = mcp_read(*ret_json, ret, &code, err);
    if (r == 0)
        return 1;
    return exchange_reply_json(x, 400, mcp_error(ret->id, code, err->msg, NULL), err);
}

/* A pin that cannot be read is refused: a client that should be kept in one sandbox would have all of them. */
static int read_pin(struct mcp_call *call, struct err *err)
{
    if (exchange_query_strict(call->x, "sandbox", &call->pinned, err) < 0)
        return -1;
    return call->pinned && !call->pinned[0]
               ? err_set(err, ERR_INVALID, "query parameter 'sandbox' is empty")
               : 0;
}

static int serve_post(struct exchange *x, struct err *err)
{
    struct mcp_call call = { .x = x };
    json_t *json = NULL;
    int r;

    /* Without a key this was checked already; with one, the protocol asks for it all the same. */
    if (origin_is_foreign(x))
        return err_set(err, ERR_DENIED, "Origin is not a page of this server");
    if (read_pin(&call, err) < 0)
        return -1;
    r = read_message(x, &json, &call.message, err);
    if (r == 1)
        r = serve_message(&call, err);
    json_decref(json);
    return r;
}

static int refuse(struct exchange *x, const struct err *why)
{
    int status = exchange_error_status(x, why);
    struct err ignored;

    return exchange_reply_json(
        x, status,
        mcp_error(NULL, status >= 500 ? MCP_INTERNAL : MCP_INVALID_REQUEST, why->msg, NULL),
        &ignored);
}

static const struct route mcp_routes[] = {
    { METHOD_POST, "/mcp", SCOPE_RUN, TOOLS_BODY, serve_post },
};

const struct surface mcp_surface = {
    .name = "mcp", .routes = mcp_routes, .route_count = ARRAY_LEN(mcp_routes), .refuse = refuse
};
