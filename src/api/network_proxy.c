#include "api/network_proxy.h"

#include "api/v1.h"
#include "base/own.h"
#include "base/prefix.h"
#include "egress/ip.h"

#include <string.h>

struct body {
    const char *type, *address, *username;
    json_t *password; /* may be empty */
};

static int blame(struct exchange *x, const char *field, const char *below, struct err *err)
{
    char name[96];

    (void) snprintf(name, sizeof name, "%s.%s", field, below);
    (void) err_wrap(err, "%s", name);
    return exchange_blame(x, name, NULL, NULL);
}

/* Where the operator let no proxy be. Names are looked up, and judged again, whenever there is a connection. */
static bool is_forbidden(struct exchange *x, const struct upstream *upstream)
{
    struct sockaddr_storage at;
    struct ip ip;

    if (!ip_parse(upstream->host, &ip) || !ip_kind(&ip))
        return false;
    (void) ip_to_sockaddr(&ip, upstream->port, &at);
    return !prefix_list_has(app_config(exchange_app(x))->network_proxy_ranges,
                            (const struct sockaddr *) &at);
}

int network_proxy_read(struct exchange *x, const char *field, json_t *value,
                       enum upstream_kind kind, struct upstream *ret, struct err *err)
{
    static const struct v1_field fields[] = {
        { "type", V1_TEXT, offsetof(struct body, type), 0, 0 },
        { "address", V1_TEXT, offsetof(struct body, address), 0, 0 },
        { "username", V1_TEXT, offsetof(struct body, username), 0, 0 },
        { "password", V1_ANY, offsetof(struct body, password), 0, 0 },
    };
    struct upstream upstream = { .kind = kind };
    struct body body = { .type = NULL };

    *ret = (struct upstream){ .kind = UPSTREAM_NONE };
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_object(value))
        return v1_bad(x, err, field, "an object with 'address' is needed");
    if (v1_read(x, value, fields, ARRAY_LEN(fields), &body, err) < 0)
        return err_wrap(err, "%s", field);
    if (body.type && upstream_kind_parse(body.type, &upstream.kind, err) < 0)
        return blame(x, field, "type", err);
    if (upstream.kind == UPSTREAM_NONE) {
        err_set(err, ERR_INVALID, "'http' or 'socks5' is needed");
        return blame(x, field, "type", err);
    }
    if (!body.address || upstream_set_address(&upstream, body.address, err) < 0) {
        if (!body.address)
            err_set(err, ERR_INVALID, "host:port is needed");
        return blame(x, field, "address", err);
    }
    if (is_forbidden(x, &upstream)) {
        err_set(err, ERR_INVALID, "a proxy must be at a public address");
        return blame(x, field, "address", err);
    }
    if (body.password && !json_is_string(body.password)) {
        err_set(err, ERR_INVALID, "is not a text");
        return blame(x, field, "password", err);
    }
    if (upstream_set_login(&upstream, body.username, json_string_value(body.password), err) < 0)
        return blame(x, field, "username", err);
    *ret = upstream;
    return 0;
}

json_t *network_proxy_json(const struct upstream *upstream)
{
    char address[UPSTREAM_ADDRESS_MAX];

    if (upstream->kind == UPSTREAM_NONE)
        return NULL;
    upstream_address(upstream, address);
    return json_pack("{s:s, s:s}", "type", upstream_kind_name(upstream->kind), "address", address);
}

#define KEPT_TRUSTED  "trusted"
#define KEPT_USER     "username"
#define KEPT_PASSWORD "password"

json_t *network_proxy_keep(const struct upstream *upstream)
{
    json_t *json = network_proxy_json(upstream);

    if (upstream->trusted)
        (void) json_object_set_new(json, KEPT_TRUSTED, json_true());
    if (upstream->user[0]) {
        (void) json_object_set_new(json, KEPT_USER, json_string(upstream->user));
        (void) json_object_set_new(json, KEPT_PASSWORD, json_string(upstream->password));
    }
    return json;
}

int network_proxy_kept(const json_t *kept, struct upstream *ret, struct err *err)
{
    const char *type = json_string_value(json_object_get(kept, "type"));
    const char *address = json_string_value(json_object_get(kept, "address"));
    struct upstream upstream = { .trusted = json_is_true(json_object_get(kept, KEPT_TRUSTED)) };

    *ret = (struct upstream){ .kind = UPSTREAM_NONE };
    if (!kept)
        return 0;
    if (!type || !address || upstream_kind_parse(type, &upstream.kind, err) < 0 ||
        upstream_set_address(&upstream, address, err) < 0 ||
        upstream_set_login(&upstream, json_string_value(json_object_get(kept, KEPT_USER)),
                           json_string_value(json_object_get(kept, KEPT_PASSWORD)), err) < 0)
        return err_set(err, ERR_INTERNAL, "the proxy that was kept cannot be read");
    *ret = upstream;
    return 0;
}
