#include "egress/reach.h"

#include "base/own.h"
#include "base/parse.h"

#include <stdio.h>
#include <string.h>

#define PORT_LEN 5

static const char *const mode_names[] = {
    [REACH_OFF] = "off", [REACH_PUBLIC] = "public", [REACH_LIST] = "list"
};
_Static_assert(ARRAY_LEN(mode_names) == REACH_MODES, "every mode has a name");

const char *reach_mode_name(enum reach_mode mode)
{
    return mode_names[mode];
}

int reach_mode_parse(const char *text, enum reach_mode *ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(mode_names); i++)
        if (strcmp(text, mode_names[i]) == 0) {
            *ret = (enum reach_mode) i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "'%.20s' must be off, public or list", text);
}

/* Cuts ":port" off the end. An IPv6 address with one is in brackets, one without may be. */
static int cut_port(char *text, uint16_t *ret, struct err *err)
{
    char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
    uint64_t port;

    *ret = 0;
    if (text[0] == '[' && bracket) {
        *bracket = '\0';
        memmove(text, text + 1, strlen(text));
        colon = bracket[1] == ':' ? bracket + 1 : NULL;
        if (!colon && bracket[1])
            return err_set(err, ERR_INVALID, "text after the bracket");
    } else if (colon && strchr(text, ':') != colon) {
        return 0; /* an IPv6 address */
    }
    if (!colon)
        return 0;
    if (strlen(colon + 1) > PORT_LEN || parse_u64(colon + 1, &port, err) < 0 || port < 1 ||
        port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "'%.20s' is not a port", colon + 1);
    *colon = '\0';
    *ret = (uint16_t) port;
    return 0;
}

/* Digits and dots alone are meant as an address; a name of such labels exists nowhere. */
static bool looks_like_address(const char *text)
{
    return strchr(text, ':') || strchr(text, '/') || strspn(text, "0123456789.") == strlen(text);
}

static int parse_name(const char *text, struct reach_rule *ret, struct err *err)
{
    ret->is_name = true;
    if (strcmp(text, "*") == 0) {
        ret->below = true;
        return 0;
    }
    ret->below = strncmp(text, "*.", 2) == 0;
    text += ret->below ? 2 : 0;
    if (!name_normal(text, strlen(text), ret->name))
        return err_set(err, ERR_INVALID, "'%.60s' is not a host name", text);
    return 0;
}

int reach_rule_parse(const char *text, struct reach_rule *ret, struct err *err)
{
    struct reach_rule rule = { .is_name = false };
    char copy[REACH_TEXT_MAX];

    if (strlen(text) >= sizeof copy)
        return err_set(err, ERR_INVALID, "a rule is longer than %d characters", REACH_TEXT_MAX - 1);
    (void) strcpy(copy, text);
    if (cut_port(copy, &rule.port, err) < 0)
        return -1;
    if (looks_like_address(copy) ? ip_range_parse(copy, &rule.range, err) < 0
                                 : parse_name(copy, &rule, err) < 0)
        return -1;
    if (strcmp(copy, "0.0.0.0/0") == 0)
        rule.range.bits = 0; /* both families: what is meant is everything */
    *ret = rule;
    return 0;
}

void reach_rule_print(const struct reach_rule *rule, char out[REACH_TEXT_MAX])
{
    char ip[IP_TEXT_MAX], port[8] = "";
    bool four = ip_is4(&rule->range.first);
    unsigned bits = rule->range.bits - (four && rule->range.bits > 0 ? 96u : 0u);

    if (rule->port)
        (void) snprintf(port, sizeof port, ":%u", rule->port);
    if (rule->is_name) {
        (void) snprintf(out, REACH_TEXT_MAX, "%s%s%s",
                        !rule->below    ? ""
                        : rule->name[0] ? "*."
                                        : "*",
                        rule->name, port);
        return;
    }
    ip_print(&rule->range.first, ip);
    if (bits == (four ? 32u : 128u))
        (void) snprintf(out, REACH_TEXT_MAX, port[0] && !four ? "[%s]%s" : "%s%s", ip, port);
    else
        (void) snprintf(out, REACH_TEXT_MAX, port[0] && !four ? "[%s/%u]%s" : "%s/%u%s", ip, bits,
                        port);
}

int reach_add(struct reach *rules, bool deny, const char *text, struct err *err)
{
    size_t *count = deny ? &rules->deny_count : &rules->allow_count;

    if (*count == REACH_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %d rules", REACH_MAX);
    if (reach_rule_parse(text, deny ? &rules->deny[*count] : &rules->allow[*count], err) < 0)
        return -1;
    ++*count;
    return 0;
}

/* ---- verdicts ---- */

static bool name_fits(const struct reach_rule *rule, const char *name)
{
    size_t len = strlen(name), own = strlen(rule->name);

    if (!rule->below)
        return strcmp(name, rule->name) == 0;
    if (own == 0)
        return true;
    return len > own + 1 && name[len - own - 1] == '.' && strcmp(name + len - own, rule->name) == 0;
}

struct list {
    const struct reach_rule *rules;
    size_t count;
    bool deny;
};

/* While the port is not known (0), all may yet be allowed, and only what is for every port is denied. */
static bool port_fits(const struct list *list, const struct reach_rule *rule, uint16_t port)
{
    return rule->port == 0 || (port == 0 ? !list->deny : rule->port == port);
}

static const struct reach_rule *find_name(struct list list, const char *name, uint16_t port)
{
    for (size_t i = 0; name && i < list.count; i++)
        if (list.rules[i].is_name && port_fits(&list, &list.rules[i], port) &&
            name_fits(&list.rules[i], name))
            return &list.rules[i];
    return NULL;
}

static const struct reach_rule *find_range(struct list list, const struct ip *ip, uint16_t port)
{
    for (size_t i = 0; i < list.count; i++)
        if (!list.rules[i].is_name && port_fits(&list, &list.rules[i], port) &&
            ip_in(ip, &list.rules[i].range))
            return &list.rules[i];
    return NULL;
}

static struct list allowed(const struct reach *r)
{
    return (struct list){ r->allow, r->allow_count, false };
}

static struct list denied(const struct reach *r)
{
    return (struct list){ r->deny, r->deny_count, true };
}

static struct reach_verdict say(bool allowed, const struct reach_rule *rule, const char *text)
{
    struct reach_verdict verdict = { .allowed = allowed };

    if (rule)
        reach_rule_print(rule, verdict.rule);
    else
        (void) snprintf(verdict.rule, sizeof verdict.rule, "%s", text);
    return verdict;
}

struct reach_verdict reach_name(const struct reach *r, const char *name)
{
    const struct reach_rule *deny = find_name(denied(r), name, 0);
    const struct reach_rule *allow = find_name(allowed(r), name, 0);

    if (r->mode == REACH_OFF)
        return say(false, NULL, "off");
    if (deny && !(allow && r->allow_wins))
        return say(false, deny, NULL);
    /* Where only addresses are allowed, no name is: a question can carry a secret as well as a connection. */
    return allow || r->mode == REACH_PUBLIC ? say(true, allow, "public")
                                            : say(false, NULL, "not allowed");
}

/* A range that allows an address which is not public must mean it: "everything" does not, nor does everything in two
 * halves. 10.0.0.0/8 and fc00::/7 are the widest that are meant for what is in them. */
static bool is_meant(const struct reach_rule *allow, const struct ip *ip)
{
    return allow && allow->range.bits >= (ip_is4(ip) ? 96 + 8 : 7);
}

struct reach_verdict reach_address(const struct reach *r, const struct ip *ip, uint16_t port,
                                   const char *name, const char *kind)
{
    const struct reach_rule *deny_name = find_name(denied(r), name, port);
    const struct reach_rule *deny = find_range(denied(r), ip, port);
    const struct reach_rule *allow = find_range(allowed(r), ip, port);
    const struct reach_rule *allow_name = find_name(allowed(r), name, port);
    struct reach_verdict verdict;
    struct ip inner;

    if (!deny && ip_inner(ip, &inner)) /* a denied address stays so in another dress */
        deny = find_range(denied(r), &inner, port);
    if (r->mode == REACH_OFF)
        return say(false, NULL, "off");
    if (r->allow_wins && (allow || allow_name) && (!kind || is_meant(allow, ip))) {
        verdict = say(true, allow ? allow : allow_name, NULL);
        verdict.by_name = !allow;
        return verdict;
    }
    if (deny_name || deny)
        return say(false, deny_name ? deny_name : deny, NULL);
    if (kind)
        return is_meant(allow, ip) ? say(true, allow, NULL) : say(false, NULL, kind);
    if (allow)
        return say(true, allow, NULL);
    if (allow_name) {
        verdict = say(true, allow_name, NULL);
        verdict.by_name = true;
        return verdict;
    }
    return r->mode == REACH_PUBLIC ? say(true, NULL, "public") : say(false, NULL, "not allowed");
}

bool reach_need_name(const struct reach *r)
{
    for (size_t i = 0; i < r->allow_count; i++)
        if (r->allow[i].is_name)
            return true;
    for (size_t i = 0; i < r->deny_count; i++)
        if (r->deny[i].is_name)
            return true;
    return false;
}
