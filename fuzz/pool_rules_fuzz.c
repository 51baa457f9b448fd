/* The setting `pool`: rules for sandboxes made ahead. Beyond not crashing: what was read is within its bounds, no
 * template is there twice, and written out again it reads as the same. */
#include "base/parse.h"
#include "server/app/pool_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static void check(const struct pool_rules *rules)
{
    struct pool_rules again;
    struct err err;
    char text[4096];
    size_t len = 0;

    for (size_t i = 0; i < rules->count; i++) {
        const struct store_pool_rule *r = &rules->list[i];

        must(name_ok(r->template) || strcmp(r->template, "*") == 0);
        must(r->least <= r->most && r->most <= STORE_POOL_MOST);
        must(pool_rules_find(rules, r->template) == r);
        len += (size_t) snprintf(text + len, sizeof text - len, "%s%s:%" PRIu64 "-%" PRIu64,
                                 i ? "," : "", r->template, r->least, r->most);
    }
    must(len < sizeof text);
    if (rules->count > 0 && len < 2048)
        must(pool_rules_parse(text, &again, &err) == 0 && memcmp(&again, rules, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct pool_rules rules;
    struct err err = { 0 };

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (pool_rules_parse(text, &rules, &err) < 0)
        must(err.kind != ERR_NONE && err.msg[0]);
    else
        check(&rules);
    free(text);
    return 0;
}
