#include "server/preview/preview.h"

#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"
#include "http/strip.h"
#include "http/target.h"
#include "server/guard/audit.h"
#include "server/guard/keys.h"
#include "server/serve/exchange_own.h"
#include "server/serve/origin.h"
#include "server/serve/port_host.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define GRANT_SECONDS  (24u * 3600) /* of a cookie that a token without an end gives */
#define WAKE_LEAST_S   300          /* not for a moment only */
#define SAVING_MOST_MS 10000        /* that a sandbox may take to fall asleep before it is woken */
#define SAVING_LOOK_MS 20

const char *const preview_cookies[2] = { PREVIEW_COOKIE, PREVIEW_COOKIE_TLS };

/* ---- tokens ---- */

/* What a request shows is tried against these; there may be many cookies, so they are read once. */
struct door {
    struct store_link link; /* in the end, of the text that was good */
    char traffic[TOKEN_MAX];
};

static int door_init(struct exchange *x, const char *sandbox, uint16_t port, struct door *ret,
                     struct err *err)
{
    return token_link_init(x->app, sandbox, port, &ret->link, err) < 0 ||
                   token_traffic(x->app, sandbox, ret->traffic, err) < 0
               ? -1
               : 0;
}

/* One text, whatever it is: 0 good, and door->link opens just this port. */
static int check_text(struct exchange *x, struct slice text, struct door *door, struct err *err)
{
    char copy[STORE_LINK_MAX];

    if (!slice_copy(text, copy, sizeof copy))
        return err_set(err, ERR_DENIED, "this link is not valid: it is too long");
    if (strchr(copy, '.'))
        return token_link_check(x->app, copy, &door->link, err);
    if (!same_secret_text(copy, door->traffic))
        return err_set(err, ERR_DENIED,
                       "this token is not valid: it is for another sandbox, or was revoked");
    door->link.expires = io_real_ms() / 1000 + GRANT_SECONDS;
    door->link.key_id[0] = '\0';
    return 0;
}

/* For auth.c: what is opened with the link ends when its key is revoked. */
static int hold(struct exchange *x, const struct store_link *link, struct err *err)
{
    return exchange_set_param(x, "link_key", link->key_id) < 0
               ? err_set(err, ERR_INTERNAL, "no room for the id of a key")
               : 0;
}

static int grant(struct exchange *x, const struct store_link *link, struct err *err)
{
    char token[STORE_LINK_MAX];

    if (token_link_make(x->app, link, token, err) < 0)
        return -1;
    return exchange_set_param(x, "grant", token) < 0
               ? err_set(err, ERR_INTERNAL, "no room for a token")
               : 1;
}

/* See the head of preview.h. Browsers say who asks: by Sec-Fetch-Site where the address is a safe one, which a page cannot
 * change, else by Origin. */
static bool cookie_may(struct exchange *x, const char *sandbox)
{
    struct slice site = head_get(&x->head, "Sec-Fetch-Site"),
                 mode = head_get(&x->head, "Sec-Fetch-Mode"), origin = head_get(&x->head, "Origin");

    if (site.at && (slice_is(site, "same-origin") || slice_is(site, "none")))
        return true;
    if (origin.at)
        return origin_is_sandbox(x, origin, sandbox);
    return !site.at || (slice_is(mode, "navigate") &&
                        (x->head.method == METHOD_GET || x->head.method == METHOD_HEAD));
}

/* Several of the name are looked at: another host below our domain can set one for all of them, and must not shut out
 * who has a good one. */
static int check_cookies(struct exchange *x, struct door *door, struct err *why)
{
    for (size_t i = 0; i < x->head.field_count; i++) {
        struct slice rest = head_field_value(&x->head, i), name, value;

        if (!slice_is_nocase(head_field_name(&x->head, i), "Cookie"))
            continue;
        while (strip_cookie_next(&rest, &name, &value)) {
            if (!slice_is(name, preview_cookies[0]) && !slice_is(name, preview_cookies[1]))
                continue;
            if (check_text(x, value, door, why) == 0) {
                if (cookie_may(x, door->link.sandbox))
                    return 1;
                err_set(why, ERR_DENIED, "a page elsewhere cannot use your cookie");
                return 0;
            }
            if (why->kind != ERR_DENIED)
                return -1;
        }
    }
    return 0;
}

static bool named_by_host(struct exchange *x)
{
    char id[ID_LEN + 1];
    uint16_t port;

    return port_host_parse(head_host(&x->head), id, &port);
}

static bool shows_cookie(const struct head *head)
{
    for (size_t i = 0; i < head->field_count; i++) {
        struct slice value = head_field_value(head, i);

        if (slice_is_nocase(head_field_name(head, i), "Cookie") &&
            memmem(value.at, value.len, PREVIEW_COOKIE, sizeof PREVIEW_COOKIE - 1))
            return true;
    }
    return false;
}

int preview_token(struct exchange *x, const char *sandbox, uint16_t port, struct err *why)
{
    struct slice shown;
    struct err refusal;
    struct door door;
    size_t count;
    int rc;

    if (!named_by_host(x))
        return 0;
    count = strip_query_find(head_query(&x->head), PREVIEW_QUERY, &shown);
    if (count == 0 && !shows_cookie(&x->head))
        return 0;
    if (door_init(x, sandbox, port, &door, why) < 0)
        return -1;
    if (count == 1 && check_text(x, shown, &door, why) == 0)
        return hold(x, &door.link, why) < 0 ? -1 : grant(x, &door.link, why);
    if (count == 1 && why->kind != ERR_DENIED)
        return -1;
    if (count > 1)
        err_set(why, ERR_DENIED, "this link is not valid: " PREVIEW_QUERY " is in it twice");
    refusal = *why;
    rc = check_cookies(x, &door, why);
    if (rc == 1 && hold(x, &door.link, why) < 0)
        return -1;
    if (rc != 0 || count == 0)
        return rc;
    *why = refusal;
    return -1;
}

/* ---- the redirect ---- */

bool preview_redirects(struct exchange *x)
{
    const struct head *head = &x->head;
    struct slice ignored;

    return (head->method == METHOD_GET || head->method == METHOD_HEAD) && !head->upgrade &&
           named_by_host(x) && strip_query_find(head_query(head), PREVIEW_QUERY, &ignored) > 0;
}

static int set_cookie(struct exchange *x, const char *token, struct err *err)
{
    uint64_t until = strtoull(token, NULL, 10), now = io_real_ms() / 1000;
    bool secure = origin_secure(x);
    char text[STORE_LINK_MAX + 128];

    (void) snprintf(
        text, sizeof text, "%s=%s; Path=/; HttpOnly; SameSite=Lax; Max-Age=%" PRIu64 "%s",
        preview_cookies[secure], token, until > now ? until - now : 0, secure ? "; Secure" : "");
    return exchange_add_header(x, "Set-Cookie", text, err);
}

int preview_redirect(struct exchange *x, struct err *err)
{
    const char *token = exchange_param(x, "grant");
    struct slice path = head_path(&x->head);
    char location[HEAD_LINE_MAX + 8];
    struct put put = put_into(location, sizeof location - 1);

    /* "//name" would be another host's address; "/.//name" is this path of ours. */
    if (path.len > 1 && (path.at[1] == '/' || path.at[1] == '\\'))
        put_text(&put, "/.");
    put_bytes(&put, path.at, path.len);
    strip_query(&put, head_query(&x->head), PREVIEW_QUERY);
    location[put_fits(&put) ? put.len : 0] = '\0';
    if (exchange_add_header(x, "Location", location, err) < 0) {
        err_set(err, ERR_TOO_BIG, "this address is too long to be asked for with a token in it");
        return exchange_blame_status(x, 414);
    }
    if (token[0])
        audit_note(exchange_caller(x), "preview.open", exchange_param(x, "sandbox"), NULL);
    if ((token[0] && set_cookie(x, token, err) < 0) ||
        exchange_add_header(x, "Cache-Control", "no-store", err) < 0 ||
        exchange_add_header(x, "Referrer-Policy", "no-referrer", err) < 0)
        return -1;
    return exchange_reply_text(x, 303, "text/plain; charset=utf-8", "", err);
}

/* ---- waking, and addresses ---- */

int preview_wake(struct ops *ops, struct ops_sandbox *sandbox, uint64_t seconds, struct err *err)
{
    uint64_t most = app_config(ops->app)->sandbox_timeout_most_ms / 1000;
    uint64_t until = io_now_ms() + SAVING_MOST_MS;
    char id[ID_LEN + 1];
    bool resumed;

    memcpy(id, sandbox->id, sizeof id);
    seconds = seconds > WAKE_LEAST_S ? seconds : WAKE_LEAST_S;
    seconds = seconds < most ? seconds : most;
    for (;;) {
        if (ops_sandbox_connect(ops, id, seconds * 1000, &resumed, sandbox, err) < 0)
            return -1;
        if (sandbox->life != LIFE_PAUSING || io_now_ms() >= until)
            return 0;
        (void) poll(NULL, 0, SAVING_LOOK_MS);
    }
}

int preview_url(struct exchange *x, const char *sandbox, uint16_t port, const char *token,
                char **ret, struct err *err)
{
    const struct config *config = app_config(x->app);
    bool known = config->public_domain[0];
    bool secure = origin_secure(x) || (known && config->tls_cert[0]);
    char own[8] = "";
    const char *domain = config->domain[0] ? config->domain : "localhost";

    if (!known && x->head.port)
        (void) snprintf(own, sizeof own, ":%u", x->head.port);
    if (asprintf(ret, "%s://%u-%s.%s%s/?" PREVIEW_QUERY "=%s", secure ? "https" : "http", port,
                 sandbox, known ? config->public_domain : domain, known ? "" : own, token) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for a URL");
    return 0;
}
