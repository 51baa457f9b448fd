/* Every port of a sandbox that is not served here: by a Host of the form {port}-{id}.…, or by E2B's headers.
 *
 * Who may: of a sandbox that E2B's SDK made, anybody, unless it was made without public traffic; then a caller that shows
 * its traffic token, or a key of its tenant. Ports of sandboxes that were made otherwise are private: token or key,
 * or loopback without one if the sandbox is the local tenant's. */
#include "base/own.h"
#include "base/sha256.h"
#include "server/preview/preview.h"
#include "server/preview/relay.h"
#include "server/serve/auth.h"
#include "server/serve/port_host.h"
#include "surface/e2b/e2b.h"
#include "surface/e2b/surfaces.h"

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

    if (key && key_shaped(key))
        return key;
    if (!bearer || strncasecmp(bearer, "Bearer ", 7) != 0)
        return NULL;
    bearer += 7;
    bearer += strspn(bearer, " ");
    return key_shaped(bearer) ? bearer : NULL;
}

/* A key of the sandbox's tenant, or, where that is enough, loopback. why: of a cookie that was not good; else empty. */
static int check_key(struct exchange *x, bool keyless, const struct err *why, struct err *err)
{
    char owner[sizeof exchange_caller(x)->tenant];
    const char *key = find_key(x);
    bool known;

    memcpy(owner, exchange_caller(x)->tenant, sizeof owner);
    known = key ? auth_key(x, key, err) == 0 : keyless && auth_local(x, err) == 0;
    if (known && strcmp(exchange_caller(x)->tenant, owner) == 0) {
        if (!key) /* enough for this sandbox's ports, and no administrator */
            exchange_set_caller(x, owner, "", SCOPE_RUN);
        return 0;
    }
    return refuse_token(
        x, why->msg[0] ? why->msg : "this port is private: the header " TOKEN_HEADER " is missing",
        err);
}

/* Who asks a public port and shows that the owner knows them; all others are visitors. */
static bool is_known(struct exchange *x, const struct ops_sandbox *sandbox)
{
    const char *shown = exchange_header(x, TOKEN_HEADER), *key = find_key(x);
    char token[TOKEN_MAX];
    struct err ignored;
    uint16_t port = 0;

    if (shown)
        return token_traffic(exchange_app(x), sandbox->id, token, &ignored) == 0 &&
               same_secret_text(shown, token);
    if (key)
        return key_of_tenant(exchange_app(x), key, exchange_caller(x)->tenant);
    (void) port_parse(slice_of(exchange_param(x, "port")), &port);
    return preview_token(x, sandbox->id, port, &ignored) == 1;
}

int e2b_check_traffic(struct exchange *x, const struct ops_sandbox *sandbox, bool open,
                      struct err *err)
{
    const char *shown = exchange_header(x, TOKEN_HEADER);
    struct err why = { .msg = "" };
    char token[TOKEN_MAX];
    uint16_t port = 0;
    int rc;

    if (open) {
        if (!is_known(x, sandbox))
            exchange_set_visitor(x);
        return 0;
    }
    if (shown) {
        if (token_traffic(exchange_app(x), sandbox->id, token, err) < 0)
            return -1;
        return same_secret_text(shown, token)
                   ? 0
                   : refuse_token(x, "this port is private: the " TOKEN_HEADER " is wrong", err);
    }
    (void) port_parse(slice_of(exchange_param(x, "port")), &port);
    rc = preview_token(x, sandbox->id, port, &why);
    if (rc == 1)
        return 0;
    if (rc < 0 && why.kind == ERR_DENIED)
        return refuse_token(x, why.msg, err);
    if (rc < 0) {
        *err = why;
        return -1;
    }
    return check_key(x, !sandbox->notes[0], &why, err);
}

int e2b_preview_rules(struct exchange *x, const struct ops_sandbox *sandbox,
                      struct preview_rules *ret, struct err *err)
{
    struct e2b_notes notes;

    *ret = (struct preview_rules){ .is_public = false };
    if (sandbox->notes[0]) {
        e2b_notes_read(sandbox->notes, &notes);
        ret->is_public = notes.public_traffic;
        ret->auto_resume = notes.auto_resume;
        (void) snprintf(ret->mask_host, sizeof ret->mask_host, "%s", notes.mask_host);
    }
    return preview_rules_load(exchange_app(x), sandbox->id, ret, err);
}

static int ports_identify(struct exchange *x, struct err *err)
{
    struct ops_sandbox sandbox;
    struct preview_rules rules;

    if (!exchange_param(x, "port")[0])
        return err_set(err, ERR_INVALID,
                       "Invalid host: it has to be {port}-{sandbox id}.{domain}, "
                       "or E2b-Sandbox-Port a number from 1 to 65535");
    if (!exchange_param(x, "sandbox")[0])
        return err_set(err, ERR_INVALID, "Invalid sandbox ID");
    if (e2b_target_owner(x, &sandbox, err) < 0 || e2b_preview_rules(x, &sandbox, &rules, err) < 0 ||
        e2b_check_traffic(x, &sandbox, rules.is_public, err) < 0)
        return -1;
    if (exchange_set_param(x, "mask", rules.mask_host) < 0)
        return err_set(err, ERR_INTERNAL, "no room for a host");
    return preview_redirects(x)
               ? 0
               : e2b_target_awake(x, &sandbox,
                                  rules.auto_resume || sandbox.auto_resume || sandbox.idle_paused,
                                  err);
}

static int ports_relay(struct exchange *x, struct err *err)
{
    const char *names[4] = { TOKEN_HEADER, "E2b-Sandbox-Id", "E2b-Sandbox-Port", NULL };
    const char *shown = exchange_header(x, "X-Access-Token");
    char token[TOKEN_MAX], mask[PREVIEW_MASK_MAX];
    struct relay_ask ask = { .sandbox = exchange_param(x, "sandbox"),
                             .path = head_path(exchange_head(x)),
                             .drop = names,
                             .drop_count = 3,
                             .drop_query = PREVIEW_QUERY,
                             .drop_cookies = preview_cookies,
                             .drop_cookie_count = ARRAY_LEN(preview_cookies) };

    if (preview_redirects(x))
        return preview_redirect(x, err);
    (void) port_parse(slice_of(exchange_param(x, "port")), &ask.port);
    preview_mask_print(exchange_param(x, "mask"), ask.port, mask);
    ask.host = mask[0] ? mask : NULL;
    /* An SDK may send envd's token along; what an application inside calls so is its own. */
    if (shown && token_access(exchange_app(x), ask.sandbox, token, err) < 0)
        return -1;
    if (shown && same_secret_text(shown, token))
        names[ask.drop_count++] = "X-Access-Token";
    return relay_exchange(x, &ask, err);
}

/* clang-format off */
static const struct route every_request = { METHOD_ANY, "/*", SCOPE_RUN, BODY_ANY, ports_relay };
/* clang-format on */

const struct surface e2b_ports = { .name = "ports",
                                   .claims = ports_claims,
                                   .all = &every_request,
                                   .identify = ports_identify,
                                   .refuse = e2b_ports_refuse };
