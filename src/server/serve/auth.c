#include "server/serve/auth.h"

#include "server/guard/audit.h"
#include "server/guard/keys.h"
#include "server/guard/quota.h"
#include "server/serve/exchange_own.h"
#include "server/serve/origin.h"
#include "server/serve/sign.h"

#include <string.h>

/* 401: unknown caller. 403 is for those whom we know, and who may not. */
static int unknown(struct exchange *x)
{
    struct err ignored;

    x->refusal_status = 401;
    (void) exchange_add_header(x, "WWW-Authenticate", "Bearer realm=\"cove\"", &ignored);
    return -1;
}

int auth_local(struct exchange *x, struct err *err)
{
    if (!x->conn->admin &&
        (!x->conn->loopback || !x->app->loopback || !app_config(x->app)->local)) {
        err_set(err, ERR_DENIED,
                "a key is needed: send it as X-API-Key, or as Authorization: Bearer");
        return unknown(x);
    }
    if (origin_forwarded(x)) {
        err_set(err, ERR_DENIED,
                "a key is needed: a proxy says that this request is of another host");
        return unknown(x);
    }
    if (origin_check(x, err) < 0)
        return -1;
    (void) strcpy(x->caller.tenant, STORE_LOCAL_TENANT);
    x->caller.scope = x->conn->admin ? SCOPE_OPERATOR : SCOPE_ADMIN;
    return 0;
}

/* What the request shows as its key. 1: there is one, 0: none, -1: two, or one that cannot be read. */
static int find_key(struct exchange *x, const char **ret, struct err *err)
{
    const char *key = exchange_header(x, "X-API-Key");
    const char *bearer = exchange_header(x, "Authorization");

    if (bearer) {
        if (strncasecmp(bearer, "Bearer ", 7) != 0)
            return err_set(err, ERR_DENIED, "Authorization: only Bearer is understood");
        bearer += 7;
        bearer += strspn(bearer, " ");
    }
    if (key && bearer && strcmp(key, bearer) != 0)
        return err_set(err, ERR_DENIED, "X-API-Key and Authorization show different keys");
    *ret = key ? key : bearer;
    return *ret != NULL;
}

int auth_key(struct exchange *x, const char *text, struct err *err)
{
    if (key_identify(&x->caller, text, err) < 0)
        return err->kind == ERR_DENIED ? unknown(x) : -1;
    return 0;
}

static int check_caller(struct exchange *x, struct err *err)
{
    const char *key = NULL;
    int rc = find_key(x, &key, err);

    if (rc < 0)
        return unknown(x);
    if (rc == 0 && sign_shown(x))
        return sign_check(x, err);
    return rc == 1 ? auth_key(x, key, err) : auth_local(x, err);
}

/* The request is the caller's; what it does is done for the tenant that the header names. */
static int act_for(struct exchange *x, struct err *err)
{
    const char *tenant = exchange_header(x, "X-Cove-Tenant");

    if (!tenant || key_act_for(exchange_caller(x), tenant, err) == 0)
        return 0;
    if (err->kind == ERR_DENIED)
        audit_refusal(exchange_caller(x), "auth.refused", err);
    return -1;
}

/* From here on the request ends when its key is revoked or expires. A link to a port stands for the key that it was made with. */
static int hold_key(struct exchange *x, uint64_t seen, struct err *err)
{
    const char *id = x->caller.key_id[0] ? x->caller.key_id : exchange_param(x, "link_key");
    struct store_key key;

    if (!id[0] || live_begin(&x->live, id, x->caller.key_expires_ms, x->conn->fd, seen) ||
        key_of(x->app, id, &key, err) == 0)
        return 0;
    return err->kind == ERR_DENIED ? unknown(x) : -1;
}

int auth_check(struct exchange *x, struct err *err)
{
    uint64_t seen = live_seen();
    int (*identify)(struct exchange *, struct err *) =
        x->surface->identify ? x->surface->identify : check_caller;

    if (x->route->scope == SCOPE_NONE)
        return 0;
    if (identify(x, err) < 0 || hold_key(x, seen, err) < 0) {
        if (err->kind == ERR_DENIED)
            audit_refusal(exchange_caller(x), "auth.refused", err);
        return -1;
    }
    if (x->caller.scope < x->route->scope) {
        err_set(err, ERR_DENIED, "a key of scope %s may not do that: it needs %s",
                scope_name(x->caller.scope), scope_name(x->route->scope));
        audit_refusal(exchange_caller(x), "auth.refused", err);
        return -1;
    }
    x->caller.user = exchange_header(x, "X-Cove-User");
    return quota_request(exchange_caller(x), err) < 0 ? -1 : act_for(x, err);
}
