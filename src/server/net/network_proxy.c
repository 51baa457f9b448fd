#include "server/net/network_proxy.h"

#include "base/own.h"
#include "base/sha256.h"
#include "egress/may_name.h"
#include "server/app/app.h"
#include "server/form/form.h"
#include "store/seal.h"

#include <string.h>

struct body {
    const char *type, *address, *username, *password;
};

#define AT(field) offsetof(struct body, field)
#define LOGIN     "{\"maxLength\": 255, \"writeOnly\": true}"
static const char *const types[] = { "http", "socks5", NULL };

/* clang-format off */
static const struct form_field fields[] = {
    { "type", FORM_TEXT, .at = AT(type), .help = "what it speaks", .needed = true, .choices = types },
    { "address", FORM_TEXT, .at = AT(address), .help = "host:port; at a public address", .needed = true },
    { "username", FORM_TEXT, .at = AT(username), .help = "of a proxy that wants a login", .schema = LOGIN },
    { "password", FORM_CONTENT, .at = AT(password), .help = "of a proxy that wants a login", .schema = LOGIN },
};
/* clang-format on */
#undef AT
const struct form network_proxy_form = FORM_OF(fields);
/* Where the type is known. */
static const struct form untyped_form = { .rows = fields + 1, .count = ARRAY_LEN(fields) - 1 };

static int blame(struct caller *caller, const char *field, const char *below, struct err *err)
{
    char name[96];

    (void) snprintf(name, sizeof name, "%s.%s", field, below);
    (void) err_wrap(err, "%s", name);
    return caller_blame(caller, name, NULL, NULL);
}

/* Names are looked up, and judged again, whenever there is a connection. */
static int may_be_there(struct caller *caller, const struct upstream *upstream, struct err *err)
{
    struct ip_range one = { .bits = 128 };

    return ip_parse(upstream->host, &one.first)
               ? may_name_range(&one, app_config(caller->app)->network_proxy_ranges,
                                "network_proxy_ranges", err)
               : may_name_host(upstream->host, err);
}

static int read_proxy(struct caller *caller, const char *field, json_t *value,
                      enum upstream_kind kind, bool trusted, struct upstream *ret, struct err *err)
{
    struct upstream upstream = { .kind = kind, .trusted = trusted };
    bool untyped = kind != UPSTREAM_NONE && !json_object_get(value, "type");
    struct body body = { .type = NULL };
    char within[64];

    *ret = (struct upstream){ .kind = UPSTREAM_NONE };
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_object(value))
        return form_bad(caller, err, field, "must be an object");
    (void) snprintf(within, sizeof within, "%s.", field);
    if (form_read_within(caller, within, value, untyped ? &untyped_form : &network_proxy_form,
                         &body, err) < 0)
        return -1;
    if (body.type && upstream_kind_parse(body.type, &upstream.kind, err) < 0)
        return blame(caller, field, "type", err);
    if (upstream_set_address(&upstream, body.address, err) < 0)
        return blame(caller, field, "address", err);
    if (!trusted && may_be_there(caller, &upstream, err) < 0)
        return blame(caller, field, "address", err);
    if (upstream_set_login(&upstream, body.username, body.password, err) < 0)
        return blame(caller, field, "username", err);
    *ret = upstream;
    return 0;
}

int network_proxy_read(struct caller *caller, const char *field, json_t *value,
                       enum upstream_kind kind, struct upstream *ret, struct err *err)
{
    return read_proxy(caller, field, value, kind, false, ret, err);
}

int network_proxy_read_trusted(struct caller *caller, const char *field, json_t *value,
                               enum upstream_kind kind, struct upstream *ret, struct err *err)
{
    return read_proxy(caller, field, value, kind, true, ret, err);
}

json_t *network_proxy_json(const struct upstream *upstream)
{
    char address[UPSTREAM_ADDRESS_MAX];

    if (upstream->kind == UPSTREAM_NONE)
        return NULL;
    upstream_address(upstream, address);
    return json_pack("{s:s, s:s}", "type", upstream_kind_name(upstream->kind), "address", address);
}

int network_proxy_mark(struct store *store, const struct upstream *upstream, json_t **ret,
                       struct err *err)
{
    char login[UPSTREAM_JOINED_MAX], hex[2 * SHA256_LEN + 1];
    unsigned char key[32], sum[SHA256_LEN];
    json_t *json;

    if (upstream->user[0] && store_secret(store, "request", key, err) < 0)
        return -1;
    json = network_proxy_json(upstream);
    if (upstream->user[0]) {
        upstream_join_login(upstream, login);
        sha256_hmac(key, sizeof key, login, strlen(login), sum);
        explicit_bzero(login, sizeof login);
        sha256_hex(sum, sizeof sum, hex);
        (void) json_object_set_new(json, "login", json_string(hex));
    }
    *ret = json;
    return 0;
}

/* ---- as it is kept ---- */

#define KEPT_TRUSTED "trusted"
#define KEPT_LOGIN   "login"
#define ABOUT_MAX    (UPSTREAM_ADDRESS_MAX + 32)

/* Which proxy a login is for is part of its seal: with another address in the row beside it, it does not open. */
static void about_proxy(const struct upstream *upstream, char out[ABOUT_MAX])
{
    char address[UPSTREAM_ADDRESS_MAX];

    upstream_address(upstream, address);
    (void) snprintf(out, ABOUT_MAX, "%s/%s", upstream_kind_name(upstream->kind), address);
}

int network_proxy_keep(struct store *store, const struct upstream *upstream, json_t **ret,
                       struct err *err)
{
    char about[ABOUT_MAX], login[UPSTREAM_JOINED_MAX];
    auto_free char *sealed = NULL;
    json_t *json = network_proxy_json(upstream);

    if (json && upstream->trusted)
        (void) json_object_set_new(json, KEPT_TRUSTED, json_true());
    if (json && upstream->user[0]) {
        int r;

        about_proxy(upstream, about);
        upstream_join_login(upstream, login);
        r = store_login_seal(store, about, login, &sealed, err);
        explicit_bzero(login, sizeof login);
        if (r < 0) {
            json_decref(json);
            return -1;
        }
        (void) json_object_set_new(json, KEPT_LOGIN, json_string(sealed));
    }
    *ret = json;
    return 0;
}

static int open_login(struct store *store, const char *sealed, struct upstream *upstream,
                      struct err *err)
{
    char about[ABOUT_MAX], *login;
    size_t len;
    int r;

    about_proxy(upstream, about);
    if (store_login_open(store, about, sealed, &login, &len, err) < 0)
        return -1;
    r = upstream_split_login(upstream, login, err);
    seal_wipe(login, len);
    return r;
}

int network_proxy_kept(struct store *store, const json_t *kept, struct upstream *ret,
                       struct err *err)
{
    const char *type = json_string_value(json_object_get(kept, "type"));
    const char *address = json_string_value(json_object_get(kept, "address"));
    const char *login = json_string_value(json_object_get(kept, KEPT_LOGIN));
    struct upstream upstream = { .trusted = json_is_true(json_object_get(kept, KEPT_TRUSTED)) };

    *ret = (struct upstream){ .kind = UPSTREAM_NONE };
    if (!kept)
        return 0;
    if (!type || !address || upstream_kind_parse(type, &upstream.kind, err) < 0 ||
        upstream_set_address(&upstream, address, err) < 0)
        return err_set(err, ERR_INTERNAL, "the proxy that was kept cannot be read");
    if (login && open_login(store, login, &upstream, err) < 0)
        return err_wrap(err, "the login of a proxy");
    *ret = upstream;
    return 0;
}
