#include "api/auth.h"

#include "api/audit.h"
#include "api/exchange_own.h"
#include "api/port_host.h"
#include "api/quota.h"
#include "api/sign.h"
#include "store/store.h"

#include <string.h>

_Static_assert((int) SCOPE_READ == STORE_SCOPE_READ && (int) SCOPE_RUN == STORE_SCOPE_RUN &&
                   (int) SCOPE_ADMIN == STORE_SCOPE_ADMIN,
               "the store's scopes are the API's");

#define USE_NOTED_MS 60000

/* A web page can make a browser send requests to loopback; it cannot choose their Host, nor hide its
 * Origin. So both must be ours before a request without a key is anybody's. */
static bool name_is_ours(struct app *app, struct slice host)
{
    static const char *const own[] = { "localhost", "127.0.0.1", "[::1]", "::1" };
    const char *ours = app_config(app)->domain;
    size_t domain = strlen(ours);

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (slice_is_nocase(host, own[i]))
            return true;
    if (domain == 0 || host.len < domain)
        return false;
    if (!slice_is_nocase((struct slice){ host.at + host.len - domain, domain }, ours))
        return false;
    return host.len == domain || host.at[host.len - domain - 1] == '.';
}

struct slice auth_origin_host(struct slice origin)
{
    const char *begin = memmem(origin.at, origin.len, "://", 3);
    struct slice host = { begin ? begin + 3 : origin.at, 0 };

    if (!begin)
        return host;
    host.len = (size_t) (origin.at + origin.len - host.at);
    for (size_t i = 0; i < host.len; i++)
        if (host.at[i] == '/' || (host.at[i] == ':' && host.at[0] != '['))
            host.len = i;
    if (host.len > 0 && host.at[0] == '[') {
        const char *end = memchr(host.at, ']', host.len);

        host.len = end ? (size_t) (end - host.at + 1) : host.len;
    }
    return host;
}

/* A page that a sandbox serves has a name of ours and is not ours: it may reach its own sandbox and nothing else. */
static bool origin_may(struct slice origin, struct slice host)
{
    char page[ID_LEN + 1], asked[ID_LEN + 1];
    uint16_t port;

    if (!port_host_parse(origin, page, &port))
        return true;
    return port_host_parse(host, asked, &port) && strcmp(page, asked) == 0;
}

/* A picture or a script of ours in a page of somebody else's: such requests have no Origin, and nothing that we answer is
 * made for them. Who goes here by a link does it for himself. */
static bool is_embedded(const struct head *head)
{
    struct slice site = head_get(head, "Sec-Fetch-Site"), mode = head_get(head, "Sec-Fetch-Mode");

    return !head_get(head, "Origin").at && site.at && !slice_is(site, "same-origin") &&
           !slice_is(site, "none") && !slice_is(mode, "navigate");
}

/* 401: nobody we know. 403 is for those whom we know, and who may not. */
static int unknown(struct exchange *x)
{
    struct err ignored;

    x->refusal_status = 401;
    (void) exchange_add_header(x, "WWW-Authenticate", "Bearer realm=\"cove\"", &ignored);
    return -1;
}

int auth_local(struct exchange *x, struct err *err)
{
    struct slice origin = head_get(&x->head, "Origin");

    if (!x->conn->loopback || !x->app->loopback || !app_config(x->app)->local) {
        err_set(err, ERR_DENIED,
                "a key is needed: send it as X-API-Key, or as Authorization: Bearer");
        return unknown(x);
    }
    if (!name_is_ours(x->app, head_host(&x->head)))
        return err_set(err, ERR_DENIED, "Host is not a name of this server");
    if (origin.at && !name_is_ours(x->app, auth_origin_host(origin)))
        return err_set(err, ERR_DENIED, "Origin is not a name of this server");
    if (origin.at && !origin_may(auth_origin_host(origin), head_host(&x->head)))
        return err_set(err, ERR_DENIED,
                       "Origin is a page of a sandbox: it needs a key like anybody");
    if (is_embedded(&x->head))
        return err_set(err, ERR_DENIED, "a page elsewhere cannot use this server without a key");
    (void) strcpy(x->caller.tenant, STORE_LOCAL_TENANT);
    x->caller.scope = SCOPE_ADMIN;
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

/* The first use, and then one a minute: that a key is in use is worth a record, each use is not. */
static void note_use(struct exchange *x, const struct store_key *key)
{
    uint64_t now = store_now_ms(),
             apart = now > key->last_used_ms ? now - key->last_used_ms : key->last_used_ms - now;
    bool noted = false;
    struct err ignored; /* a full disk is no reason to refuse a key; the store logs it */

    if (apart > USE_NOTED_MS &&
        store_key_used(x->app->store, key->id, now, &noted, &ignored) == 0 && noted)
        audit_note(x, "key.use", "", NULL);
}

int auth_key(struct exchange *x, const char *text, struct err *err)
{
    struct store_key key;

    if (store_key_find(x->app->store, text, &key, err) < 0)
        return err->kind == ERR_DENIED ? unknown(x) : -1;
    (void) snprintf(x->caller.tenant, sizeof x->caller.tenant, "%s", key.tenant);
    (void) snprintf(x->caller.key_id, sizeof x->caller.key_id, "%s", key.id);
    x->caller.scope = (enum scope) key.scope;
    note_use(x, &key);
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

int auth_check(struct exchange *x, struct err *err)
{
    int (*identify)(struct exchange *, struct err *) =
        x->surface->identify ? x->surface->identify : check_caller;

    if (x->route->scope == SCOPE_NONE)
        return 0;
    if (identify(x, err) < 0) {
        if (err->kind == ERR_DENIED)
            audit_refusal(x, "auth.refused", err);
        return -1;
    }
    if (x->caller.scope < x->route->scope) {
        err_set(err, ERR_DENIED, "a key of scope %s may not do that: it needs %s",
                store_scope_name((int) x->caller.scope), store_scope_name((int) x->route->scope));
        audit_refusal(x, "auth.refused", err);
        return -1;
    }
    return quota_request(x, err);
}
