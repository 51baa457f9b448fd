/* Every port of a sandbox that is not served here: by a Host of the form {port}-{id}.…, or by E2B's headers.
 *
 * Who may: of a sandbox that E2B's SDK made, anybody, unless it was made without public traffic; then whoever shows
 * its traffic token, or a key of its tenant. Ports of sandboxes that were made otherwise are private: token or key,
 * or loopback without one if the sandbox is the local tenant's. */
#include "api/auth.h"
#include "api/page.h"
#include "api/port_host.h"
#include "api/relay.h"
#include "base/own.h"
#include "base/sha256.h"
#include "e2b/e2b.h"
#include "e2b/surfaces.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TOKEN_HEADER "e2b-traffic-access-token"

/* "3000-…" below our own domain, and yet no port of a sandbox. */
static bool is_bad_host(struct exchange *x)
{
    struct slice host = head_host(exchange_head(x)), label = host, number = host;
    const char *domain = app_config(exchange_app(x))->domain;
    size_t len = strlen(domain);

    if (!host.at || len == 0 || host.len <= len || host.at[host.len - len - 1] != '.' ||
        !slice_is_nocase((struct slice){ host.at + host.len - len, len }, domain))
        return false;
    if (!slice_cut(&label, '-', &number) || number.len == 0)
        return false;
    for (size_t i = 0; i < number.len; i++)
        if (number.at[i] < '0' || number.at[i] > '9')
            return false;
    return true;
}

static bool ports_claims(struct exchange *x)
{
    uint16_t port;

    if (e2b_target(x, &port))
        return true;
    if (!head_get(exchange_head(x), "E2b-Sandbox-Id").at && !is_bad_host(x))
        return false;
    return exchange_set_param(x, "sandbox", "") == 0;
}

static int refuse_token(struct exchange *x, const char *sentence, struct err *err)
{
    err_set(err, ERR_DENIED, "%s", sentence);
    return exchange_blame_status(x, 403);
}

/* What the request shows of the kind of this server's keys; NULL if nothing: other credentials are the application's. */
static const char *find_key(struct exchange *x)
{
    const char *key = exchange_header(x, "X-API-Key"),
               *bearer = exchange_header(x, "Authorization");

    if (key && store_key_shaped(key))
        return key;
    if (!bearer || strncasecmp(bearer, "Bearer ", 7) != 0)
        return NULL;
    bearer += 7;
    bearer += strspn(bearer, " ");
    return store_key_shaped(bearer) ? bearer : NULL;
}

/* A key of the sandbox's tenant, or, where that is enough, loopback. */
static int check_key(struct exchange *x, const char *owner, bool keyless, struct err *err)
{
    const char *key = find_key(x);
    bool known = key ? auth_key(x, key, err) == 0 : keyless && auth_local(x, err) == 0;

    if (known && strcmp(exchange_caller(x)->tenant, owner) == 0)
        return 0;
    return refuse_token(x, "this port is private: the header " TOKEN_HEADER " is missing", err);
}

int e2b_check_traffic(struct exchange *x, const struct ops_sandbox *sandbox, struct err *err)
{
    const char *shown = exchange_header(x, TOKEN_HEADER);
    char owner[sizeof exchange_caller(x)->tenant], token[E2B_TOKEN_MAX];
    struct e2b_notes notes;

    e2b_notes_read(sandbox->notes, &notes);
    if (sandbox->notes[0] && notes.public_traffic)
        return 0;
    if (!shown) {
        memcpy(owner, exchange_caller(x)->tenant, sizeof owner);
        return check_key(x, owner, !sandbox->notes[0], err);
    }
    if (e2b_traffic_token(exchange_app(x), sandbox->id, token, err) < 0)
        return -1;
    if (same_secret_text(shown, token))
        return 0;
    return refuse_token(x, "this port is private: the " TOKEN_HEADER " is wrong", err);
}

static int ports_identify(struct exchange *x, struct err *err)
{
    struct ops_sandbox sandbox;

    if (!exchange_param(x, "port")[0])
        return err_set(err, ERR_INVALID,
                       "Invalid host: it has to be {port}-{sandbox id}.{domain}, "
                       "or E2b-Sandbox-Port a number from 1 to 65535");
    if (!exchange_param(x, "sandbox")[0])
        return err_set(err, ERR_INVALID, "Invalid sandbox ID");
    if (e2b_target_caller(x, &sandbox, err) < 0)
        return -1;
    return e2b_check_traffic(x, &sandbox, err);
}

static int ports_relay(struct exchange *x, struct err *err)
{
    const char *names[4] = { TOKEN_HEADER, "E2b-Sandbox-Id", "E2b-Sandbox-Port", NULL };
    const char *shown = exchange_header(x, "X-Access-Token");
    char token[E2B_TOKEN_MAX];
    struct relay_ask ask = { .sandbox = exchange_param(x, "sandbox"),
                             .path = head_path(exchange_head(x)),
                             .drop = names,
                             .drop_count = 3 };

    (void) port_parse(slice_of(exchange_param(x, "port")), &ask.port);
    /* An SDK may send envd's token along; what an application inside calls so is its own. */
    if (shown && e2b_access_token(exchange_app(x), ask.sandbox, token, err) < 0)
        return -1;
    if (shown && same_secret_text(shown, token))
        names[ask.drop_count++] = "X-Access-Token";
    return relay_exchange(x, &ask, err);
}

/* ---- refusals ---- */

static int say(struct exchange *x, int status, const char *title, const char *what,
               const char *todo)
{
    struct err ignored;

    return page_trouble(x, status, title, what, todo, &ignored);
}

static int refuse_gone(struct exchange *x, const char *sandbox)
{
    if (!page_wanted(x))
        return e2b_refuse_gone(x, sandbox, 0);
    return say(x, 502, "No such sandbox",
               "The sandbox that this address names is not running: it was ended, it is paused, or "
               "it never was.",
               "Start it again, or ask whoever gave you the address for a new one.");
}

static int refuse_closed(struct exchange *x, const char *sandbox, uint16_t port)
{
    char what[160];

    if (!page_wanted(x))
        return e2b_refuse_gone(x, sandbox, port);
    (void) snprintf(what, sizeof what,
                    "The sandbox <code>%s</code> runs, and nothing in it listens on port "
                    "<code>%u</code>.",
                    sandbox, port);
    return say(x, 502, "Nothing listens there", what,
               "If a server was just started, give it a moment and reload. It has to listen on "
               "<code>0.0.0.0</code>, <code>::</code> or <code>localhost</code>.");
}

static int refuse_private(struct exchange *x, const char *sandbox, const struct err *why)
{
    struct err ignored;

    if (page_wanted(x))
        return say(x, 403, "This port is private",
                   "The server in this sandbox is not open to everybody.",
                   "Send its traffic token as <code>" TOKEN_HEADER
                   "</code>, or a key of its owner as <code>X-API-Key</code>.");
    return exchange_reply_json(
        x, 403,
        json_pack("{s:s, s:s, s:i}", "sandboxId", sandbox, "message", why->msg, "code", 403),
        &ignored);
}

static int ports_refuse(struct exchange *x, const struct err *why)
{
    const char *sandbox = exchange_param(x, "sandbox");
    int status = exchange_error_status(x, why);
    uint16_t port = 0;
    struct err ignored;

    if (status == 400 && (!sandbox[0] || !port_parse(slice_of(exchange_param(x, "port")), &port)))
        return exchange_reply_text(x, 400, "text/plain; charset=utf-8", why->msg, &ignored);
    (void) port_parse(slice_of(exchange_param(x, "port")), &port);
    if (why->kind == ERR_NO_SANDBOX)
        return refuse_gone(x, sandbox);
    if (why->kind == ERR_NO_PORT)
        return refuse_closed(x, sandbox, port);
    if (status == 403)
        return refuse_private(x, sandbox, why);
    return e2b_refuse(x, why);
}

/* clang-format off */
static const struct route every_request = { METHOD_ANY, "/*", SCOPE_RUN, BODY_ANY, ports_relay };
/* clang-format on */

const struct surface e2b_ports = { .name = "ports",
                                   .claims = ports_claims,
                                   .all = &every_request,
                                   .identify = ports_identify,
                                   .refuse = ports_refuse };
