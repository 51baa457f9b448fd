#include "store/store.h"

#include "base/own.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char state[64];
static struct store *store;
static struct err err;

static void begin(void)
{
    strcpy(state, "/tmp/cove-store.XXXXXX");
    CHECK(mkdtemp(state) != NULL);
    CHECK(store_open(state, &store, &err) == 0);
}

static void end(void)
{
    char command[128];

    store_close(store);
    store = NULL;
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    CHECK(system(command) == 0);
}

static int count_rule(void *arg, const struct store_pool_rule *rule, struct err *ignored)
{
    struct store_pool_rule *last = arg;

    (void) ignored;
    last->least += 1000; /* how many there were */
    last->most = rule->most;
    memcpy(last->template, rule->template, sizeof last->template);
    return 0;
}

static void rules_are_checked_set_and_unset(void)
{
    struct store_pool_rule rule = { .template = "base", .least = 3, .most = 2 },
                           last = { .most = 0 };

    begin();
    CHECK_INT(store_pool_rule_set(store, &rule, &err), -1);
    CHECK_STR(err.msg, "min and max: min at most max, and max at most 256");
    rule.most = STORE_POOL_MOST + 1;
    CHECK_INT(store_pool_rule_set(store, &rule, &err), -1);
    strcpy(rule.template, "No Name");
    CHECK_INT(store_pool_rule_set(store, &rule, &err), -1);
    CHECK_INT(err.kind, ERR_NO_TEMPLATE);
    strcpy(rule.template, "*");
    rule.most = 8;
    CHECK_INT(store_pool_rule_set(store, &rule, &err), 0);
    rule.most = 9; /* in the place of the other */
    CHECK_INT(store_pool_rule_set(store, &rule, &err), 0);
    CHECK_INT(store_pool_rules(store, count_rule, &last, &err), 0);
    CHECK_INT(last.least, 1000);
    CHECK_INT(last.most, 9);
    CHECK_INT(store_pool_rule_remove(store, "*", &err), 0);
    CHECK_INT(store_pool_rule_remove(store, "*", &err), -1);
    CHECK_STR(err.msg, "nothing was set for template '*'");
    end();
}

static int keep_pool(void *arg, const struct store_pool *pool, struct err *ignored)
{
    struct store_pool *list = arg;

    (void) ignored;
    list[list[0].template[0] ? 1 : 0] = *pool;
    return 0;
}

static void pools_are_saved_in_the_place_of_all_before(void)
{
    struct store_pool a = { .template = "a",
                            .root = true,
                            .memory_bytes = 1,
                            .disk_bytes = 2,
                            .disk_inodes = 3,
                            .cpu_milli = 4,
                            .processes = 5,
                            .open_files = 6,
                            .ptys = 7,
                            .ready = 8,
                            .target = 9,
                            .least = 10,
                            .most = 11,
                            .hits = 12,
                            .misses = 13,
                            .updated_ms = 14 };
    struct store_pool got[2] = { 0 }, two[2] = { a, a };

    begin();
    CHECK_INT(store_pools_save(store, two, 2, &err), 0);
    CHECK_INT(store_pools_save(store, &a, 1, &err), 0);
    CHECK_INT(store_pools_list(store, keep_pool, got, &err), 0);
    CHECK_INT(got[1].template[0], 0); /* one */
    CHECK_STR(got[0].template, "a");
    CHECK(got[0].root);
    CHECK(memcmp(&got[0].memory_bytes, &a.memory_bytes,
                 sizeof a - offsetof(struct store_pool, memory_bytes)) == 0);
    CHECK_INT(store_pools_save(store, NULL, 0, &err), 0);
    memset(got, 0, sizeof got);
    CHECK_INT(store_pools_list(store, keep_pool, got, &err), 0);
    CHECK_INT(got[0].template[0], 0);
    end();
}

CHECK_MAIN(T(rules_are_checked_set_and_unset), T(pools_are_saved_in_the_place_of_all_before))
