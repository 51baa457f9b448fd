/* reach.h - what a sandbox may reach: one policy, its rules, and the verdict on an address or a name.
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
#ifndef COVE_EGRESS_REACH_H
#define COVE_EGRESS_REACH_H

#include "base/host.h"
#include "egress/ip.h"
#include "egress/upstream.h"

#include <stddef.h>

#define REACH_MAX      128 /* of each list */
#define REACH_NAME_MAX HOST_MAX
#define REACH_TEXT_MAX 264

enum reach_mode { REACH_OFF, REACH_PUBLIC, REACH_LIST, REACH_MODES };
const char *reach_mode_name(enum reach_mode mode);
int reach_mode_parse(const char *text, enum reach_mode *ret, struct err *err);

struct reach_rule {
    bool is_name, below; /* below: names below it, not it */
    uint16_t port;       /* 0: any */
    struct ip_range range;
    char name[REACH_NAME_MAX]; /* lower case; "" with below: every name */
};

struct reach {
    enum reach_mode mode;
    bool allow_wins;
    size_t allow_count, deny_count;
    struct reach_rule allow[REACH_MAX], deny[REACH_MAX];
    struct upstream upstream; /* the way there; decides nothing */
};

int reach_rule_parse(const char *text, struct reach_rule *ret, struct err *err);
void reach_rule_print(const struct reach_rule *rule, char out[REACH_TEXT_MAX]);
/* ERR_TOO_BIG past REACH_MAX. */
int reach_add(struct reach *rules, bool deny, const char *text, struct err *err);

struct reach_verdict {
    bool allowed;
    bool by_name; /* only a name can allow it: the address alone does not */
    /* what decided: a rule's text, or "private", "off", "not allowed" … */
    char rule[REACH_TEXT_MAX];
};

/* May this name be looked up at all? `port` is not known yet. */
struct reach_verdict reach_name(const struct reach *rules, const char *name);
/* May this address be reached, under that name (NULL: none is known)? `kind`: what is special about it, from ip_kind,
 * or by what only this host knows; NULL: public. */
struct reach_verdict reach_address(const struct reach *rules, const struct ip *ip, uint16_t port,
                                   const char *name, const char *kind);
/* Whether names decide anything: else no name has to be looked for in what is sent. */
bool reach_need_name(const struct reach *rules);

#endif
