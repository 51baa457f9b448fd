#include "e2b/e2b.h"

#include "api/exchange.h"
#include "api/port_host.h"
#include "api/preview.h"
#include "base/sha256.h"
#include "http/url.h"
#include "store/store.h"

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
 * An SDK that was told one URL for all sandboxes makes such links. Tokens differ, so at most one sandbox has made it;
 * each costs two short hashes to try. */

struct search {
    struct app *app;
    const char *path, *operation, *user, *expiration, *signature;
    char found[ID_LEN + 1];
};

static int try_sandbox(void *arg, const struct store_sandbox *record, struct err *err)
{
    struct search *search = arg;
    char token[E2B_TOKEN_MAX], signature[E2B_SIGNATURE_MAX];

    if (e2b_access_token(search->app, record->id, token, err) < 0)
        return -1;
    e2b_signature(search->path, search->operation, search->user, token, search->expiration,
                  signature);
    if (same_secret_text(search->signature, signature))
        memcpy(search->found, record->id, sizeof search->found);
    return 0;
}

static bool is_signed_link(struct exchange *x)
{
    return slice_is(head_path(exchange_head(x)), "/files") && exchange_query(x, "signature");
}

static bool find_by_signature(struct exchange *x, char ret_id[ID_LEN + 1])
{
    enum method method = exchange_head(x)->method;
    const char *user = exchange_query(x, "username"), *path = exchange_query(x, "path");
    struct search search = { .app = exchange_app(x),
                             .path = path ? path : "",
                             .operation = method == METHOD_POST ? "write" : "read",
                             .user = user ? user : "",
                             .expiration = exchange_query(x, "signature_expiration"),
                             .signature = exchange_query(x, "signature") };
    struct err ignored;

    if (!is_signed_link(x))
        return false;
    if (store_sandbox_list(search.app->store, NULL, 0, 0, try_sandbox, &search, &ignored) < 0 ||
        !search.found[0])
        return false;
    memcpy(ret_id, search.found, sizeof search.found);
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
    if (id.at ? !target_by_headers(x, id, sandbox, ret_port)
              : !find_by_signature(x, sandbox) && !is_signed_link(x))
        return false;
    return set_target(x, sandbox, *ret_port) == 0;
}

/* ---- whose it is, and whether it is awake ---- */

int e2b_target_owner(struct exchange *x, struct ops_sandbox *ret, struct err *err)
{
    const char *sandbox = exchange_param(x, "sandbox");
    struct store_sandbox record;
    struct ops ops;

    if (!sandbox[0] && !head_get(exchange_head(x), "E2b-Sandbox-Id").at) {
        err_set(err, ERR_DENIED,
                "invalid signature"); /* no sandbox has made this link, or it is gone */
        return exchange_blame_status(x, 401);
    }
    if (!sandbox[0] || store_sandbox_get(exchange_app(x)->store, NULL, sandbox, &record, err) < 0) {
        err_set(err, ERR_NO_SANDBOX, "The sandbox was not found");
        return exchange_blame_status(x, 502);
    }
    exchange_set_caller(x, record.tenant, "", SCOPE_RUN);
    ops = ops_of(x);
    if (ops_sandbox_get(&ops, sandbox, ret, err) < 0)
        return err->kind == ERR_NO_SANDBOX ? exchange_blame_status(x, 502) : -1;
    return 0;
}

int e2b_target_awake(struct exchange *x, struct ops_sandbox *sandbox, bool may_wake,
                     struct err *err)
{
    struct ops ops = ops_of(x);
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
 * question whether it runs; unless it only dozes: to its owner it does run. */
static bool may_wake(struct exchange *x, const struct ops_sandbox *sandbox)
{
    const struct head *head = exchange_head(x);
    const char *operation = head->method == METHOD_POST ? "write" : "read";
    struct e2b_notes notes;
    struct err ignored;

    e2b_notes_read(sandbox->notes, &notes);
    if (!sandbox->dozes && (!notes.auto_resume || slice_is(head_path(head), "/health")))
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
