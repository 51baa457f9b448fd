/* pool_rules.h - the setting `pool`: how many sandboxes of which template may wait. Pure.
 *
 * Callers: config.c, which checks it; pool.c. */
#ifndef COVE_SERVER_APP_POOL_RULES_H
#define COVE_SERVER_APP_POOL_RULES_H

#include "base/err.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

#define POOL_RULES_MAX 32

struct pool_rules {
    size_t count;
    struct store_pool_rule list[POOL_RULES_MAX];
};

/* "off", or "base:2-16, *:0-8": least and most for a template, and for every other. */
int pool_rules_parse(const char *text, struct pool_rules *ret, struct err *err);
/* One more, or another in the place of the one that its template had; false: there is no room. */
bool pool_rules_put(struct pool_rules *rules, const struct store_pool_rule *rule);
/* That of the template, or that of "*"; NULL: nothing waits of it. */
const struct store_pool_rule *pool_rules_find(const struct pool_rules *rules, const char *template);

#endif
