/* network_option.h - the options that say what sandboxes of a tenant or a template may reach when their create says nothing.
 *
 *   --network off|public|list|none   --allow RULE   --deny RULE   --proxy URL   --proxy-login FILE
 *
 * Callers: the verb tenant. Their user is the operator: a proxy may be anywhere. */
#ifndef TESTS_DIRECT_NETWORK_OPTION_H
#define TESTS_DIRECT_NETWORK_OPTION_H

#include "cli/options.h"
#include "store/store.h"

struct network_values {
    const char *mode, *proxy, *login;
    struct option_list allow, deny;
};

/* Rows of a table of options; `at` is the offset of a struct network_values. */
/* clang-format off */
#define NETWORK_OPTIONS(at) \
    { 0, "network",     OPTION_TEXT, (at) + offsetof(struct network_values, mode),  "MODE", COMPLETE_NONE, "of sandboxes whose create says none: off, public or list; none: no such default" }, \
    { 0, "allow",       OPTION_LIST, (at) + offsetof(struct network_values, allow), "RULE", COMPLETE_NONE, "with --network: an address, range or name that may be reached; again for more" }, \
    { 0, "deny",        OPTION_LIST, (at) + offsetof(struct network_values, deny),  "RULE", COMPLETE_NONE, "with --network: one that may not be reached" }, \
    { 0, "proxy",       OPTION_TEXT, (at) + offsetof(struct network_values, proxy), "URL",  COMPLETE_NONE, "with --network: http://HOST:PORT or socks5://HOST:PORT that connections go through" }, \
    { 0, "proxy-login", OPTION_TEXT, (at) + offsetof(struct network_values, login), "FILE", COMPLETE_FILE, "its user and password: user:password in one line; -: stdin" }
/* clang-format on */

/* As the store keeps them; the caller's to free. *ret_given false: nothing was said. Then, and with "none", both NULL. */
struct network_default {
    bool given;
    char *rules, *login;
};
int network_values_read(const struct network_values *values, struct network_default *ret,
                        struct err *err);
void network_default_done(struct network_default *what);
/* Nothing was given: nothing is done. */
int network_default_store(struct store *store, enum store_network_kind kind, const char *name,
                          const struct network_default *what, struct err *err);
/* "public", "list" …; "-" without any. */
const char *network_default_mode(struct store *store, enum store_network_kind kind,
                                 const char *name, char out[16]);

#endif
