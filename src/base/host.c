#include "base/host.h"

#include "base/parse.h"

#include <string.h>

#define PORT_LEN 5

bool name_normal(const char *in, size_t len, char out[HOST_MAX])
{
    size_t label = 0;

    if (len > 0 && in[len - 1] == '.')
        len--;
    if (len == 0 || len >= HOST_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = in[i];

        if (c >= 'A' && c <= 'Z')
            c = (char) (c - 'A' + 'a');
        if (c == '.' && label == 0)
            return false;
        if (c != '.' && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return false;
        label = c == '.' ? 0 : label + 1;
        if (label > 63)
            return false;
        out[i] = c;
    }
    out[len] = '\0';
    return label > 0;
}

static int parse_port(const char *text, uint16_t *ret, struct err *err)
{
    uint64_t port;

    if (strlen(text) > PORT_LEN || parse_u64(text, &port, err) < 0 || port < 1 || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "'%.20s' is not a port", text);
    *ret = (uint16_t) port;
    return 0;
}

int host_rule_parse(const char *text, struct host_rule *ret, struct err *err)
{
    static const char plain[] = "http://", tls[] = "https://";
    struct host_rule rule = { .plain = strncmp(text, plain, strlen(plain)) == 0 };
    const char *name = text, *colon;
    size_t len;

    rule.tls = !rule.plain;
    if (rule.plain)
        name += strlen(plain);
    else if (strncmp(text, tls, strlen(tls)) == 0)
        name += strlen(tls);
    rule.below = strncmp(name, "*.", 2) == 0;
    name += rule.below ? 2 : 0;
    colon = strchr(name, ':');
    len = colon ? (size_t) (colon - name) : strlen(name);
    if (colon && parse_port(colon + 1, &rule.port, err) < 0)
        return -1;
    if (!name_normal(name, len, rule.name) ||
        strspn(rule.name, "0123456789.") == strlen(rule.name)) /* meant as an address */
        return err_set(err, ERR_INVALID, "'%.60s' is not a host name", text);
    if (rule.below && !strchr(rule.name, '.'))
        return err_set(err, ERR_INVALID, "'%.60s' has too many hosts below it", text);
    *ret = rule;
    return 0;
}

bool host_rule_fits(const struct host_rule *rule, const char *name, uint16_t port, bool tls)
{
    size_t len = strlen(name), own = strlen(rule->name);

    if (!(tls ? rule->tls : rule->plain) || (rule->port && rule->port != port))
        return false;
    if (!rule->below)
        return strcmp(rule->name, name) == 0;
    return len > own + 1 && name[len - own - 1] == '.' && strcmp(name + len - own, rule->name) == 0;
}
