/* mcp.h - POST /mcp: the tools for agents (surface/tools), as the Model Context Protocol has them.
 *
 * Every request stands alone: nothing is kept between two of them, so a restart of the server goes unnoticed. Both eras are
 * spoken on one address. The session id that `initialize` gives out to clients of the older era is a random text that is not
 * stored: it only tells apart two clients with the same key that number their requests alike (running.h).
 *
 *   mcp.c       the request: Origin, headers, era; the table of methods
 *   list.c      tools/list, from the tables of arguments that also check a call
 *   call.c      tools/call: runs a tool, reports progress, ends with the client
 *   content.c   the answer of a tool, or its refusal, as content for a model
 *   boxes.c     tools that are about sandboxes rather than in one
 *
 * Never:   reaches a sandbox past surface/tools and ops.h. */
#ifndef COVE_SURFACE_MCP_MCP_H
#define COVE_SURFACE_MCP_MCP_H

#include "mcp/message.h"
#include "server/serve/exchange.h"
#include "surface/tools/tools.h"

/* One request. */
struct mcp_call {
    struct exchange *x;
    struct mcp_message message; /* borrowed from the body */
    bool modern;                /* of 2026-07-28 */
    /* of /mcp?sandbox=ID: the one sandbox that this client works in; else NULL */
    const char *pinned;
};

/* ---- mcp.c: answers ---- */

/* take_result: the reference is taken. In the newer era the result is marked as complete, and says who answers. */
int mcp_reply(struct mcp_call *call, json_t *take_result, struct err *err);
/* As a message, for streams. */
json_t *mcp_answer(const struct mcp_call *call, json_t *take_result);
/* status: of HTTP in the newer era; the older one has 200 for whatever was understood. */
int mcp_fail(struct mcp_call *call, int status, enum mcp_code code, const char *message,
             json_t *take_data, struct err *err);

/* ---- boxes.c ---- */

/* A tool that is about sandboxes. */
struct mcp_own {
    const char *name, *title, *brief;
    enum tool_effect effect;
    bool ends;   /* something is gone afterwards */
    bool inside; /* works in one sandbox: a pinned client has it, too */
    /* *ret: a text for the model. */
    int (*run)(struct exchange *x, json_t *arguments, json_t **ret, struct err *err);
    const struct form *form;
};
extern const struct mcp_own mcp_owns[];
extern const size_t mcp_own_count;

/* ---- list.c, call.c: methods ---- */

int mcp_tools_list(struct mcp_call *call, struct err *err);
int mcp_tools_call(struct mcp_call *call, struct err *err);

/* ---- content.c: results of tools/call ---- */

/* What a tool of tools_table answered. */
json_t *mcp_content(const struct tool *tool, json_t *answer);
json_t *mcp_content_text(const char *text, bool is_error);
/* Why it was refused, and what an agent can do next. */
json_t *mcp_content_refusal(const struct caller *caller, const struct err *why);

#endif
