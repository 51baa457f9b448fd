/* The code interpreter's table, who may use it, and how it says no: with plain text, which its SDKs put into their
 * exceptions. */
#include "surface/e2b/code.h"

#include "base/own.h"
#include "server/preview/preview.h"
#include "surface/e2b/surfaces.h"

#include <string.h>

/* clang-format off */
static const struct route code_routes[] = {
    /* method        path                         who         body        handler */
    { METHOD_GET,    "/health",                   SCOPE_READ, 0,          code_health },
    { METHOD_POST,   "/execute",                  SCOPE_RUN,  16 * MiB,   code_execute },
    { METHOD_GET,    "/contexts",                 SCOPE_READ, 0,          code_context_list },
    { METHOD_POST,   "/contexts",                 SCOPE_RUN,  64 * KiB,   code_context_create },
    { METHOD_DELETE, "/contexts/:id",             SCOPE_RUN,  64 * KiB,   code_context_remove },
    { METHOD_POST,   "/contexts/:id/restart",     SCOPE_RUN,  64 * KiB,   code_context_restart },
    { METHOD_POST,   "/contexts/:id/fork",        SCOPE_RUN,  64 * KiB,   code_context_fork },
};
/* clang-format on */

static bool code_claims(struct exchange *x)
{
    uint16_t port;

    return e2b_target(x, &port) && port == E2B_CODE_PORT;
}

/* The SDKs show the access token on /execute only, and the traffic token, where the sandbox has one, on every call. So
 * contexts of a secured sandbox with public traffic ask for nothing but the sandbox's id, as E2B's own do. */
static int code_identify(struct exchange *x, struct err *err)
{
    struct slice path = head_path(exchange_head(x));
    struct ops_sandbox sandbox;
    struct preview_rules rules;
    struct e2b_notes notes;

    if (e2b_target_owner(x, &sandbox, err) < 0 || e2b_preview_rules(x, &sandbox, &rules, err) < 0)
        return -1;
    e2b_notes_read(sandbox.notes, &notes);
    /* What is public of a sandbox that another surface made is its servers, not ours. */
    if (e2b_check_traffic(x, &sandbox, rules.is_public && sandbox.notes[0], err) < 0 ||
        e2b_target_awake(x, &sandbox,
                         rules.auto_resume || sandbox.auto_resume || sandbox.idle_paused, err) < 0)
        return -1;
    if (!notes.secure || !slice_is(path, "/execute"))
        return 0;
    return e2b_check_access(x, sandbox.id, NULL, err);
}

static int code_refuse(struct exchange *x, const struct err *why)
{
    int status = exchange_error_status(x, why);
    struct err ignored;

    if (status != 404 && status != 502)
        exchange_set_reason(
            x, why->msg); /* E2B's SDK for JavaScript shows the status line and nothing else */
    if (status == 502 || status == 403)
        return e2b_refuse(x, why);
    return exchange_reply_text(x, status, "text/plain; charset=utf-8", why->msg, &ignored);
}

const struct surface e2b_code = { .name = "e2b-code",
                                  .claims = code_claims,
                                  .routes = code_routes,
                                  .route_count = ARRAY_LEN(code_routes),
                                  .identify = code_identify,
                                  .refuse = code_refuse };

int code_health(struct exchange *x, struct err *err)
{
    return exchange_reply_text(x, 200, "text/plain; charset=utf-8", "OK", err);
}
