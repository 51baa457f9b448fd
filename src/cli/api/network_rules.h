/* network_rules.h - the options that say what sandboxes of a tenant may reach when their create says nothing.
 *
 *   --network off|public|list|none   --allow RULE   --deny RULE   --proxy URL   --proxy-login FILE
 *
 * Callers: the verbs tenant and template; of the parts, make.c and the verb network. The server checks what they say. */
#ifndef COVE_CLI_API_NETWORK_RULES_H
#define COVE_CLI_API_NETWORK_RULES_H

#include "cli/options.h"

#include <jansson.h>

struct network_rules {
    const char *mode, *proxy, *login;
    struct option_list allow, deny;
};

/* Rows of a table of options; `at` is the offset of a struct network_rules. */
/* clang-format off */
#define NETWORK_RULES(at) \
    { 0, "network",     OPTION_TEXT, (at) + offsetof(struct network_rules, mode),  "MODE", COMPLETE_NONE, "of sandboxes whose create names no network: off, public or list; none: no default" }, \
    { 0, "allow",       OPTION_LIST, (at) + offsetof(struct network_rules, allow), "RULE", COMPLETE_NONE, "with --network: an address, range or name that may be reached (repeatable)" }, \
    { 0, "deny",        OPTION_LIST, (at) + offsetof(struct network_rules, deny),  "RULE", COMPLETE_NONE, "with --network: one that may not be reached (repeatable)" }, \
    { 0, "proxy",       OPTION_TEXT, (at) + offsetof(struct network_rules, proxy), "URL",  COMPLETE_NONE, "with --network: http://HOST:PORT or socks5://HOST:PORT that connections go through" }, \
    { 0, "proxy-login", OPTION_TEXT, (at) + offsetof(struct network_rules, login), "FILE", COMPLETE_FILE, "user and password of the proxy: user:password in one line; -: stdin" }
/* clang-format on */

/* The field "network" of a body: an object, null for "none"; nothing was given: no field. */
int network_rules_put(const struct network_rules *rules, json_t *body, struct err *err);

/* The field "proxy" of a network; proxy NULL: no field. */
int network_proxy_put(const char *proxy, const char *login, json_t *network, struct err *err);
/* "80,443", added to an array of ports. */
int network_ports_put(const char *option, const char *text, json_t *ports, struct err *err);

#endif
