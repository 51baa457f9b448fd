#include "server/serve/origin.h"

#include "base/own.h"
#include "http/target.h"
#include "server/app/app.h"
#include "server/serve/exchange_own.h"
#include "server/serve/port_host.h"

#include <arpa/inet.h>
#include <string.h>

/* Where a page is, or a request goes: what browsers compare. */
struct place {
    bool tls;
    struct slice name; /* of the host; IPv6 in brackets */
    uint16_t port;     /* never 0 */
};

static uint16_t port_or_default(uint16_t port, bool tls)
{
    return port ? port : tls ? 443 : 80;
}

bool origin_secure(struct exchange *x)
{
    return x->conn->tls ||
           (x->conn->loopback && slice_is_nocase(head_get(&x->head, "X-Forwarded-Proto"), "https"));
}

/* "http://localhost:8000", also with a path behind it; false for "null" and all other schemes. */
static bool place_parse(struct slice text, struct place *ret)
{
    static const struct {
        const char *begins;
        bool tls;
    } schemes[] = { { "http://", false }, { "https://", true } };
    struct host host;
    struct err ignored;

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i].begins);
        struct slice rest = { text.at + len, text.len - len }, authority = rest;

        if (text.len <= len || !slice_is_nocase((struct slice){ text.at, len }, schemes[i].begins))
            continue;
        if (!slice_cut(&rest, '/', &authority))
            authority = rest;
        if (host_parse(authority, &host, &ignored) < 0)
            return false;
        *ret =
            (struct place){ schemes[i].tls, host.name, port_or_default(host.port, schemes[i].tls) };
        return true;
    }
    return false;
}

static struct place place_asked(struct exchange *x)
{
    bool tls = origin_secure(x);

    return (struct place){ tls, head_host(&x->head), port_or_default(x->head.port, tls) };
}

/* What is behind the first dot of a name. */
static struct slice below(struct slice name)
{
    struct slice label;

    (void) slice_cut(&name, '.', &label);
    return name;
}

bool origin_is_sandbox(struct exchange *x, struct slice origin, const char *sandbox)
{
    struct place page, asked = place_asked(x);
    char id[ID_LEN + 1];
    uint16_t port;

    return place_parse(origin, &page) && port_host_parse(page.name, id, &port) &&
           strcmp(id, sandbox) == 0 && page.tls == asked.tls && page.port == asked.port &&
           slice_same_nocase(below(page.name), below(asked.name));
}

/* A page of this server, or, where a port of a sandbox is asked for, of the same sandbox. */
static bool page_may(struct exchange *x, struct slice origin)
{
    struct place page, asked = place_asked(x);
    char id[ID_LEN + 1];
    uint16_t port;

    if (asked.name.at && port_host_parse(asked.name, id, &port))
        return origin_is_sandbox(x, origin, id);
    return place_parse(origin, &page) && page.tls == asked.tls && page.port == asked.port &&
           slice_same_nocase(page.name, asked.name);
}

/* ---- Host ---- */

static bool is_loopback_address(struct slice host)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr four;

    return slice_is(host, "[::1]") ||
           (slice_copy(host, text, sizeof text) && inet_pton(AF_INET, text, &four) == 1 &&
            ntohl(four.s_addr) >> 24 == 127);
}

bool origin_forwarded(struct exchange *x)
{
    static const char *const names[] = { "X-Forwarded-For", "X-Real-IP" };
    struct slice client;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct head_list clients = head_list(&x->head, names[i]);
        bool named = false;

        while (head_list_next(&clients, &client)) {
            if (!slice_is(client, "::1") && !is_loopback_address(client))
                return true;
            named = true;
        }
        if (!named && head_get(&x->head, names[i]).at)
            return true;
    }
    return head_get(&x->head, "Forwarded").at != NULL;
}

/* A name that leads here because another name server says so is not ours (DNS rebinding). */
static bool host_is_ours(struct app *app, struct slice host)
{
    const char *ours = app_config(app)->domain;
    size_t domain = strlen(ours);

    if (slice_is_nocase(host, "localhost") || is_loopback_address(host))
        return true;
    if (domain == 0 || host.len < domain)
        return false;
    if (!slice_is_nocase((struct slice){ host.at + host.len - domain, domain }, ours))
        return false;
    return host.len == domain || host.at[host.len - domain - 1] == '.';
}

/* ---- who asks ---- */

/* Pictures, scripts, frames and the like in a page elsewhere have no Origin. Who opens an address does it for
 * himself, in a tab. */
static bool is_embedded(struct exchange *x)
{
    struct slice site = head_get(&x->head, "Sec-Fetch-Site"),
                 mode = head_get(&x->head, "Sec-Fetch-Mode"),
                 dest = head_get(&x->head, "Sec-Fetch-Dest"), page = head_get(&x->head, "Referer");

    if (!site.at) /* an older browser, or a name that is not localhost and no TLS */
        return page.at && !page_may(x, page);
    if (slice_is(site, "same-origin") || slice_is(site, "none"))
        return false;
    return !slice_is(mode, "navigate") || (dest.at && !slice_is(dest, "document")) ||
           (x->head.method != METHOD_GET && x->head.method != METHOD_HEAD);
}

static bool is_browser(const struct head *head)
{
    /* Not Sec-Fetch-Mode: node's fetch() sends that, too. */
    static const char *const signs[] = { "Origin", "Referer", "Sec-Fetch-Site" };
    struct slice agent = head_get(head, "User-Agent");

    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (head_get(head, signs[i]).at)
            return true;
    return agent.len > 8 && memcmp(agent.at, "Mozilla/", 8) == 0;
}

/* What a page elsewhere could make a browser send unasked: a form, or what looks like one. */
static bool is_simple(const struct head *head)
{
    static const char *const forms[] = { "text/plain", "multipart/form-data",
                                         "application/x-www-form-urlencoded" };
    struct slice type = head_get(head, "Content-Type"), rest = type;

    if (head->method != METHOD_POST)
        return false;
    if (slice_cut(&rest, ';', &type))
        type = slice_trim(type);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (slice_is_nocase(type, forms[i]))
            return true;
    return type.len == 0;
}

bool origin_is_foreign(struct exchange *x)
{
    struct slice origin = head_get(&x->head, "Origin");

    return origin.at && !page_may(x, origin);
}

int origin_check(struct exchange *x, struct err *err)
{
    bool told = head_get(&x->head, "Origin").at;
    struct slice host = head_host(&x->head);
    char id[ID_LEN + 1];
    uint16_t port;

    if (!host_is_ours(x->app, host))
        return err_set(err, ERR_DENIED, "Host is not a name of this server");
    if (told ? origin_is_foreign(x) : is_embedded(x))
        return err_set(err, ERR_DENIED, "a page elsewhere cannot use this server without a key");
    /* What a server inside a sandbox takes from its own pages is for that server to say. */
    if (port_host_parse(host, id, &port) || !is_browser(&x->head) || !is_simple(&x->head))
        return 0;
    x->refusal_status = 415;
    return err_set(err, ERR_INVALID,
                   "a browser without a key has to send Content-Type: application/json");
}
