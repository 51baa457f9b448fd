/* /v1/networks: private networks between a tenant's sandboxes. */
#include "base/own.h"
#include "egress/egress.h"
#include "egress/peer.h"
#include "server/net/network_rules.h"
#include "server/net/private.h"
#include "surface/v1/v1.h"

#include <string.h>

/* ---- reading ---- */

static int read_ports(struct exchange *x, const char *field, json_t *list,
                      struct private_member *ret, struct err *err)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        char name[64];

        (void) snprintf(name, sizeof name, "%.40s[%zu]", field, i);
        if (!json_is_integer(item) || json_integer_value(item) < 1)
            return form_bad(exchange_caller(x), err, name, "a port is a number from 1 to 65535");
        if (private_port_add(ret, (uint64_t) json_integer_value(item), err) < 0) {
            (void) err_wrap(err, "%s", name);
            return exchange_blame(x, name, NULL, NULL);
        }
    }
    return 0;
}

static int read_label(struct exchange *x, const char *field, const char *text,
                      char out[PRIVATE_LABEL_MAX], struct err *err)
{
    if (!private_label_ok(text))
        return form_bad(exchange_caller(x), err, field,
                        "1 to 63 of a-z, 0-9 and '-', '-' neither first nor last");
    (void) strcpy(out, text);
    return 0;
}

/* Without a network: the path names it. prefix: of the fields' names in refusals, with its dot, or "". */
static int read_join(struct exchange *x, const char *prefix, json_t *json, const struct form *form,
                     struct private_member *ret, struct err *err)
{
    struct network_join body = { NULL, NULL, NULL };
    char field[64];

    if (form_read_within(exchange_caller(x), prefix, json, form, &body, err) < 0)
        return -1;
    (void) snprintf(field, sizeof field, "%snetwork", prefix);
    if (body.network && read_label(x, field, body.network, ret->network, err) < 0)
        return -1;
    (void) snprintf(field, sizeof field, "%salias", prefix);
    if (body.alias && read_label(x, field, body.alias, ret->alias, err) < 0)
        return -1;
    (void) snprintf(field, sizeof field, "%sports", prefix);
    return read_ports(x, field, body.ports, ret, err);
}

int v1_joins_read(struct exchange *x, json_t *list, struct private_member *out, size_t *ret_count,
                  struct err *err)
{
    json_t *item;
    size_t i;

    *ret_count = 0;
    if (json_array_size(list) > PRIVATE_JOINS) {
        err_set(err, ERR_TOO_MANY, "network.join: a sandbox is in %d networks at most",
                PRIVATE_JOINS);
        return exchange_blame(x, "network.join", NULL, "quota");
    }
    json_array_foreach(list, i, item)
    {
        char prefix[32];

        (void) snprintf(prefix, sizeof prefix, "network.join[%zu].", i);
        out[i] = (struct private_member){ .port_count = 0 };
        if (!json_is_object(item))
            return form_bad(exchange_caller(x), err, "network.join", "item %zu must be an object",
                            i);
        if (read_join(x, prefix, item, &network_join_form, &out[i], err) < 0)
            return -1;
        for (size_t before = 0; before < i; before++)
            if (strcmp(out[before].network, out[i].network) == 0)
                return form_bad(exchange_caller(x), err, "network.join", "'%s' is given twice",
                                out[i].network);
        *ret_count = i + 1;
    }
    return 0;
}

/* ---- writing ---- */

static json_t *member_json(const struct private_member *member)
{
    char name[3 * PRIVATE_LABEL_MAX], address[IP_TEXT_MAX];
    struct ip ip = peer_ip(member->network_number, member->number);
    json_t *ports = json_array();

    for (size_t i = 0; i < member->port_count; i++)
        (void) json_array_append_new(ports, json_integer(member->ports[i]));
    (void) snprintf(name, sizeof name, "%s.%s." EGRESS_SUFFIX, member->alias, member->network);
    ip_print(&ip, address);
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "sandbox", member->sandbox, "alias",
                     member->alias, "host", name, "address", address, "ports", ports, "joined_at",
                     form_time(member->joined_ms));
}

static json_t *network_summary(const struct private_network *network)
{
    return json_pack("{s:s, s:o, s:I}", "name", network->name, "created_at",
                     form_time(network->created_ms), "member_count", (json_int_t) network->members);
}

static int add_network(void *arg, const struct private_network *network, struct err *err)
{
    return json_array_append_new(arg, network_summary(network)) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for the list")
               : 0;
}

static int add_member(void *arg, const struct private_member *member, struct err *err)
{
    return json_array_append_new(arg, member_json(member)) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for the list")
               : 0;
}

static int reply_network(struct exchange *x, int status, const struct private_network *network,
                         struct err *err)
{
    json_t *json = network_summary(network), *members = json_array();
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_private_members(&ops, network->name, add_member, members, err) < 0) {
        json_decref(members);
        json_decref(json);
        return -1;
    }
    (void) json_object_set_new(json, "member_count",
                               json_integer((json_int_t) json_array_size(members)));
    (void) json_object_set_new(json, "members", members);
    return exchange_reply_json(x, status, json, err);
}

/* ---- handlers ---- */

int v1_networks_list(struct exchange *x, struct err *err)
{
    json_t *list = json_array();
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_private_list(&ops, add_network, list, err) < 0) {
        json_decref(list);
        return -1;
    }
    return exchange_reply_json(x, 200, json_pack("{s:o}", "networks", list), err);
}

static const struct form_field make_fields[] = {
    { "name", FORM_TEXT, .help = "unique in the tenant; a part of its members' names",
      .needed = true, .schema = NETWORK_LABEL_PATTERN },
};
const struct form v1_networks_form = FORM_OF(make_fields);

int v1_networks_make(struct exchange *x, struct err *err)
{
    struct private_network network;
    char name[PRIVATE_LABEL_MAX];
    struct ops ops = ops_of(exchange_caller(x));
    const char *text = NULL;
    json_t *json;
    bool made;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &v1_networks_form, &text, err);
    if (r == 0)
        r = read_label(x, "name", text, name, err);
    json_decref(json);
    if (r < 0 || ops_private_make(&ops, name, &network, &made, err) < 0)
        return -1;
    return reply_network(x, made ? 201 : 200, &network, err);
}

int v1_networks_get(struct exchange *x, struct err *err)
{
    struct private_network network;
    struct ops ops = ops_of(exchange_caller(x));

    return ops_private_get(&ops, exchange_param(x, "name"), &network, err) < 0
               ? -1
               : reply_network(x, 200, &network, err);
}

int v1_networks_remove(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    return ops_private_remove(&ops, exchange_param(x, "name"), err) < 0
               ? -1
               : exchange_reply_json(x, 204, NULL, err);
}

int v1_networks_join(struct exchange *x, struct err *err)
{
    struct private_member join = { .port_count = 0 }, member;
    const char *network = exchange_param(x, "name"), *sandbox = exchange_param(x, "sandbox");
    struct ops ops = ops_of(exchange_caller(x));
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = read_join(x, "", json, &network_member_form, &join, err);
    json_decref(json);
    if (r < 0)
        return -1;
    if (strlen(network) >= sizeof join.network)
        return err_set(err, ERR_NO_PATH, "there is no network '%.63s'", network);
    if (!id_ok(sandbox))
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.63s'", sandbox);
    (void) strcpy(join.network, network);
    (void) strcpy(join.sandbox, sandbox);
    return ops_private_join(&ops, &join, &member, err) < 0
               ? -1
               : exchange_reply_json(x, 200, member_json(&member), err);
}

int v1_networks_leave(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    return ops_private_leave(&ops, exchange_param(x, "name"), exchange_param(x, "sandbox"), err) < 0
               ? -1
               : exchange_reply_json(x, 204, NULL, err);
}
