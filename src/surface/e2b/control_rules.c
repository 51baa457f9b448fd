/* E2B's `network.rules`, headers that are put into requests on their way:
 *
 *   {"api.example.com": [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.TOKEN}"}}}]}
 *
 * and ours (server/net/secrets.h): {"api.example.com": {"Authorization": …}}. */
#include "surface/e2b/control.h"

#include "base/own.h"

#include <string.h>

#define REFERENCE "${e2b.secrets."

/* The headers of one host: one rule at most, with one transform. */
static int read_host(struct exchange *x, const char *host, json_t *list, json_t **ret,
                     struct err *err)
{
    json_t *rule = json_array_get(list, 0), *transform = json_object_get(rule, "transform");
    json_t *headers = json_object_get(transform, "headers");

    if (!json_is_array(list) || json_array_size(list) > 1)
        return form_bad(exchange_caller(x), err, "network.rules",
                        "'%.60s' needs a list of one rule", host);
    if (rule && (!json_is_object(rule) || json_object_size(rule) != (transform ? 1 : 0) ||
                 (transform && json_object_size(transform) != (headers ? 1 : 0)) ||
                 (headers && !json_is_object(headers))))
        return form_bad(exchange_caller(x), err, "network.rules",
                        "'%.60s': only transform.headers is supported", host);
    *ret = headers;
    return 0;
}

int control_rules(struct exchange *x, json_t *network, const json_t **ret, struct err *err)
{
    json_t *rules = json_object_get(network, "rules"), *ours, *list, *headers = NULL;
    const char *host;

    *ret = NULL;
    if (!control_says(rules))
        return 0;
    if (!json_is_object(rules))
        return form_bad(exchange_caller(x), err, "network.rules", "an object of hosts is needed");
    ours = json_object();
    json_object_foreach(rules, host, list)
    {
        if (read_host(x, host, list, &headers, err) < 0) {
            json_decref(ours);
            return -1;
        }
        if (headers)
            (void) json_object_set(ours, host, headers);
    }
    /* It lives as long as the request. */
    if (!ours || json_object_set_new(network, "rules", ours) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    *ret = ours;
    return 0;
}

/* A value that was said in full is not shown again; one that names a secret tells nothing. */
json_t *control_rules_json(struct exchange *x, const char *sandbox)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *ours = ops_network_rules(&ops, sandbox), *rules = json_object(), *headers, *value;
    const char *host, *name;
    void *next;

    json_object_foreach(ours, host, headers)
    {
        json_object_foreach_safe(headers, next, name, value)
        {
            if (!strstr(json_string_value(value), REFERENCE))
                (void) json_object_set_new(headers, name, json_string("***"));
        }
        (void) json_object_set_new(rules, host,
                                   json_pack("[{s:{s:O}}]", "transform", "headers", headers));
    }
    json_decref(ours);
    return rules;
}
