#include "api/auth.h"

#include "api/exchange_own.h"

#include <string.h>

/* A web page can make a browser send requests to loopback; it cannot choose their Host, nor hide its
 * Origin. So both must be ours before a request without a key is anybody's. */
static bool name_is_ours(const struct app *app, struct slice host)
{
    static const char *const own[] = { "localhost", "127.0.0.1", "[::1]", "::1" };
    size_t domain = strlen(app->config.domain);

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (slice_is_nocase(host, own[i]))
            return true;
    if (domain == 0 || host.len < domain)
        return false;
    if (!slice_is_nocase((struct slice){ host.at + host.len - domain, domain }, app->config.domain))
        return false;
    return host.len == domain || host.at[host.len - domain - 1] == '.';
}

/* "http://localhost:8000" → "localhost" */
static struct slice origin_host(struct slice origin)
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

static int check_local(struct exchange *x, struct err *err)
{
    struct slice origin = head_get(&x->head, "Origin");

    if (!x->conn->loopback || !x->app->config.local) {
        x->refusal_status = 401;
        return err_set(err, ERR_DENIED, "a key is needed: send it as X-API-Key");
    }
    if (!name_is_ours(x->app, head_host(&x->head)))
        return err_set(err, ERR_DENIED, "Host is not a name of this server");
    if (origin.at && !name_is_ours(x->app, origin_host(origin)))
        return err_set(err, ERR_DENIED, "Origin is not a name of this server");
    (void) strcpy(x->caller.tenant, "local");
    x->caller.scope = SCOPE_ADMIN;
    return 0;
}

int auth_check(struct exchange *x, struct err *err)
{
    if (x->route->scope == SCOPE_NONE)
        return 0;
    if (check_local(x, err) < 0)
        return -1;
    if (x->caller.scope < x->route->scope)
        return err_set(err, ERR_DENIED, "this key may not do that");
    return 0;
}
