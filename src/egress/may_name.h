/* may_name.h - which addresses a tenant may name: in rules, as a proxy, as whatever else this server connects to for it.
 *
 *   public addresses           yes
 *   private, reserved, …       if the operator lists their range (setting network_ranges)
 *   loopback, link-local, metadata services, multicast, broadcast, addresses of this host      never
 *
 * Asked twice: when a tenant names something, for a clear error; and before every connection, because names resolve
 * to other addresses later, settings change, and this host gets new addresses.
 *
 * Callers: flow.c, via.c, box.c of the gateway; api, when rules and proxies are set. */
#ifndef COVE_EGRESS_MAY_NAME_H
#define COVE_EGRESS_MAY_NAME_H

#include "base/special.h"
#include "egress/reach.h"

#define MAY_NAME_HOST "host" /* the kind of an address of this host */

/* Before a connection. kind: from ip_kind, or MAY_NAME_HOST; NULL: public. ranges: a list of base/prefix.h. */
bool may_reach(const struct ip *ip, const char *kind, const char *ranges);

/* When a tenant names an address or range, or a host name. ERR_INVALID says which kind of address, and which setting
 * (`setting`) could list it. A range that holds public addresses, too, passes: may_reach decides on each. */
int may_name_range(const struct ip_range *range, const char *ranges, const char *setting,
                   struct err *err);
int may_name_host(const char *name, struct err *err);
/* An allow rule: the two above. */
int may_name_rule(const struct reach_rule *rule, const char *ranges, const char *setting,
                  struct err *err);

/* Which rows of base/special.h the rules lead to, if the ranges list some of them: the others are refused at the socket
 * look-up of the sandbox. Pure. */
void may_name_rows(const struct reach *rules, const char *ranges, bool ret_open[SPECIAL_ROWS]);

/* The operator's list itself: ranges that can never be named are ERR_INVALID. */
int may_name_check_ranges(const char *ranges, struct err *err);

/* The kernel's word: is this an address of this host, now? What cannot be found out counts as one. */
bool host_has_ip(const struct ip *ip);

#endif
