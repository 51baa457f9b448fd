/* rules.h - what a sandbox may reach: one policy, its rules, and the verdict on an address or a name.
 *
 *   off       nothing
 *   public    every public address, but for what is denied
 *   list      only what is allowed
 *
 * Rules, for `allow` and `deny` alike: an address, a range ("10.0.0.0/8"), a name ("example.com"), or all names below
 * one ("*.example.com"); each with a port behind, if it is only for that port ("example.com:443", "[2001:db8::1]:443").
 * "0.0.0.0/0" is every address of both families, "*" every name.
 *
 * Which one counts: an address that is not public (ip_kind) needs a rule that allows that very address or range; a deny
 * of addresses comes before an allow of names; E2B's rule, that an allow beats a deny of addresses, is `allow_wins`.
 *
 * Pure. */
#ifndef COVE_EGRESS_RULES_H
#define COVE_EGRESS_RULES_H

#include "egress/ip.h"

#include <stddef.h>

#define RULES_MAX     128 /* of each list */
#define RULE_NAME_MAX 254 /* of a host name, with the NUL */
#define RULE_TEXT_MAX 264

enum rules_mode { RULES_OFF, RULES_PUBLIC, RULES_LIST, RULES_MODES };
const char *rules_mode_name(enum rules_mode mode);
int rules_mode_parse(const char *text, enum rules_mode *ret, struct err *err);

struct rule {
    bool is_name, below; /* below: names below it, not it */
    uint16_t port;       /* 0: any */
    struct ip_range range;
    char name[RULE_NAME_MAX]; /* lower case; "" with below: every name */
};

struct rules {
    enum rules_mode mode;
    bool allow_wins;
    size_t allow_count, deny_count;
    struct rule allow[RULES_MAX], deny[RULES_MAX];
};

int rule_parse(const char *text, struct rule *ret, struct err *err);
void rule_print(const struct rule *rule, char out[RULE_TEXT_MAX]);
/* ERR_TOO_BIG past RULES_MAX. */
int rules_add(struct rules *rules, bool deny, const char *text, struct err *err);

/* A host name as DNS has it: letters, digits, '-', '_', dots; lower case into out, without a dot at the end. */
bool name_normal(const char *in, size_t len, char out[RULE_NAME_MAX]);

struct rules_verdict {
    bool allowed;
    bool by_name; /* only a name can allow it: the address alone does not */
    char
        rule[RULE_TEXT_MAX]; /* what decided: a rule's text, or "private", "off", "not allowed" … */
};

/* May this name be looked up at all? `port` is not known yet. */
struct rules_verdict rules_name(const struct rules *rules, const char *name);
/* May this address be reached, under that name (NULL: none is known)? `kind`: what is special about it, from ip_kind,
 * or by what only this host knows; NULL: public. */
struct rules_verdict rules_address(const struct rules *rules, const struct ip *ip, uint16_t port,
                                   const char *name, const char *kind);
/* Whether names decide anything: else nobody has to look for one in what is sent. */
bool rules_need_name(const struct rules *rules);

#endif
