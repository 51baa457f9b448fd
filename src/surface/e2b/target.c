#include "surface/e2b/e2b.h"

#include "base/sha256.h"
#include "http/url.h"
#include "server/ops/ops_signed.h"
#include "server/preview/preview.h"
#include "server/serve/exchange.h"
#include "server/serve/port_host.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_ID_MAX 64 /* of what a client calls an id, with the NUL */
#define ID_SIGNS     "abcdefghijklmnopqrstuvwxyz0123456789"

static int set_target(struct exchange *x, const char *sandbox, uint16_t port)
{
    char text[8];

    (void) snprintf(text, sizeof text, "%u", port);
    return exchange_set_param(x, "sandbox", sandbox) < 0 || exchange_set_param(x, "port", text) < 0
               ? -1
               : 0;
}

/* ---- signed links that name no sandbox ----
 *
 * An SDK that was told one URL for all sandboxes makes such links. Tokens differ, so at most one sandbox has made it. */

struct signed_link {
    const char *path, *operation, *user, *expiration, *signature;
};

static bool link_fits(void *context, const char *token)
{
    const struct signed_link *link = context;
    char signature[E2B_SIGNATURE_MAX];

    e2b_signature(link->path, link->operation, link->user, token, link->expiration, signature);
    return same_secret_text(link->signature, signature);
}

static bool is_signed_link(struct exchange *x)
{
    return slice_is(head_path(exchange_head(x)), "/files") && exchange_query(x, "signature");
}

/* False: it is no such link. One that no sandbox has made has the id ""; so has one that was not looked for, since too many
 * were asked for, which the param "busy" says. */
static bool find_by_signature(struct exchange *x, char ret_id[ID_LEN + 1])
{
    enum method method = exchange_head(x)->method;
    const char *user = exchange_query(x, "username"), *path = exchange_query(x, "path");
    struct signed_link link = { .path = path ? path : "",
                                .operation = method == METHOD_POST ? "write" : "read",
                                .user = user ? user : "",
                                .expiration = exchange_query(x, "signature_expiration"),
                                .signature = exchange_query(x, "signature") };
    struct err err;

    if (!is_signed_link(x))
        return false;
    if (ops_signed_find(exchange_caller(x), link_fits, &link, ret_id, &err) < 0 &&
        err.kind == ERR_TOO_MANY)
        (void) exchange_set_param(x, "busy", err.msg);
    return true;
}

/* By E2B's headers. An id that no sandbox can have is kept as "", at port 0: so ports.c answers that it is none. */
static bool target_by_headers(struct exchange *x, struct slice id, char sandbox[SHOWN_ID_MAX],
                              uint16_t *ret_port)
{
    struct slice port = head_get(exchange_head(x), "E2b-Sandbox-Port");

    if (port.at && !port_parse(port, ret_port))
        return false;
    if (id.len < 1 || !slice_copy(id, sandbox, SHOWN_ID_MAX) ||
        strspn(sandbox, ID_SIGNS) != id.len) {
        sandbox[0] = '\0';
        *ret_port = 0;
    }
    return true;
}

bool e2b_target(struct exchange *x, uint16_t *ret_port)
{
    struct slice id = head_get(exchange_head(x), "E2b-Sandbox-Id");
    char sandbox[SHOWN_ID_MAX] = "";

    if (exchange_param(x, "port")[0]) /* found before, by the surface that was asked first */
        return port_parse(slice_of(exchange_param(x, "port")), ret_port);
    /* A host that names a sandbox is asked before the headers: a page that the sandbox serves can send its own host any
     * header, and no other host without the browser saying where it comes from. */
    if (port_host_parse(head_host(exchange_head(x)), sandbox, ret_port))
        return set_target(x, sandbox, *ret_port) == 0;
    sandbox[0] = '\0';
    *ret_port = E2B_ENVD_PORT;
    if (id.at ? !target_by_headers(x, id, sandbox, ret_port) : !find_by_signature(x, sandbox))
        return false;
    return set_target(x, sandbox, *ret_port) == 0;
}

/* ---- whose it is, and whether it is awake ---- */

int e2b_target_owner(struct exchange *x, struct ops_sandbox *ret, struct err *err)
{
    const char *sandbox = exchange_param(x, "sandbox");

    if (exchange_param(x, "busy")[0])
        return err_set(err, ERR_TOO_MANY, "%s", exchange_param(x, "busy"));
    if (!sandbox[0] && !head_get(exchange_head(x), "E2b-Sandbox-Id").at) {
        err_set(err, ERR_DENIED,
                "invalid signature"); /* no sandbox has made this link, or it is gone */
        return exchange_blame_status(x, 401);
    }
    if (sandbox[0] && ops_owner_get(exchange_caller(x), sandbox, ret, err) == 0)
        return 0;
    if (sandbox[0] && err->kind != ERR_NO_SANDBOX)
        return -1;
    err_set(err, ERR_NO_SANDBOX, "The sandbox was not found");
    return exchange_blame_status(x, 502);
}

int e2b_target_awake(struct exchange *x, struct ops_sandbox *sandbox, bool may_wake,
                     struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct e2b_notes notes;

    e2b_notes_read(sandbox->notes, &notes);
    /* For as long as the create asked for. */
    if (preview_sleeps(sandbox) && may_wake &&
        preview_wake(&ops, sandbox, notes.timeout_s, err) < 0)
        return exchange_blame_status(x, 502);
    if (sandbox->life == LIFE_RUNNING)
        return 0;
    if (preview_sleeps(sandbox))
        (void) exchange_set_param(x, "paused", "yes");
    err_set(err, ERR_NO_SANDBOX, "The sandbox was not found");
    return exchange_blame_status(x, 502);
}

/* A request wakes what it could use if it were awake: one that will be refused for its token does not, nor does the
 * question whether it runs; unless it is paused for idleness: to its owner it does run. */
static bool may_wake(struct exchange *x, const struct ops_sandbox *sandbox)
{
    const struct head *head = exchange_head(x);
    const char *operation = head->method == METHOD_POST ? "write" : "read";
    struct e2b_notes notes;
    struct err ignored;

    e2b_notes_read(sandbox->notes, &notes);
    if (!sandbox->idle_paused && (!notes.auto_resume || slice_is(head_path(head), "/health")))
        return false;
    return !notes.secure ||
           e2b_check_access(x, sandbox->id, slice_is(head_path(head), "/files") ? operation : NULL,
                            &ignored) == 0;
}

int e2b_target_caller(struct exchange *x, struct ops_sandbox *ret, struct err *err)
{
    if (e2b_target_owner(x, ret, err) < 0)
        return -1;
    return e2b_target_awake(x, ret, preview_sleeps(ret) && may_wake(x, ret), err);
}
