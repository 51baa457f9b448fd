#include "server/life/pool_plan.h"

#include "base/own.h"
#include "check.h"

#define STEP DEMAND_STEP_MS

static struct err err;

static void bad_rules_are_refused_by_name(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "", "'' is not TEMPLATE:MIN-MAX" },
        { "base", "'base' is not TEMPLATE:MIN-MAX" },
        { "base:3", "'base:3' is not TEMPLATE:MIN-MAX" },
        { "base:1-2,", "'' is not TEMPLATE:MIN-MAX" },
        { "No Name:1-2", "'No Name' is not a template's name, nor '*'" },
        { "../x:1-2", "'../x' is not a template's name, nor '*'" },
        { "base:3-2", "base: min at most max, and max at most 256" },
        { "base:0-257", "base: min at most max, and max at most 256" },
        { "base:1-2, base:1-3", "'base' is given twice" },
        { "off, base:1-2", "'off' is not TEMPLATE:MIN-MAX" },
    };
    struct pool_rules rules;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_INT(pool_rules_parse(rows[i].text, &rules, &err), -1);
        CHECK_STR(err.msg, rows[i].why);
    }
    CHECK_INT(pool_rules_parse("base:-1-2", &rules, &err), -1);
    CHECK_INT(pool_rules_parse("base:1-x", &rules, &err), -1);
}

static void too_many_rules_are_refused(void)
{
    struct pool_rules rules;
    char text[1024] = "a0:0-1";
    size_t len = strlen(text);

    for (int i = 1; i <= POOL_RULES_MAX; i++)
        len += (size_t) snprintf(text + len, sizeof text - len, ",a%d:0-1", i);
    CHECK_INT(pool_rules_parse(text, &rules, &err), -1);
    CHECK_STR(err.msg, "more than 32 templates");
}

static void a_template_has_its_own_rule_or_that_of_the_others(void)
{
    struct store_pool_rule more = { .template = "base", .least = 1, .most = 1 };
    struct pool_rules rules;

    CHECK_INT(pool_rules_parse(" base:2-16 , *:0-8 ", &rules, &err), 0);
    CHECK_INT(pool_rules_find(&rules, "base")->most, 16);
    CHECK_INT(pool_rules_find(&rules, "x")->most, 8);
    CHECK(pool_rules_put(&rules, &more));
    CHECK_INT(pool_rules_find(&rules, "base")->most, 1);
    CHECK_INT(rules.count, 2);
    CHECK_INT(pool_rules_parse("off", &rules, &err), 0);
    CHECK(pool_rules_find(&rules, "base") == NULL);
}

static void demand_is_the_busiest_step_of_the_last(void)
{
    struct demand d = { 0 };
    uint64_t now = 1000 * STEP;
    uint32_t total;

    demand_add(&d, now, 3);
    demand_add(&d, now + STEP - 1, 2);
    demand_add(&d, now + STEP, 4);
    CHECK_INT(demand_peak(&d, now + STEP, &total), 5);
    CHECK_INT(total, 9);
    CHECK_INT(demand_peak(&d, now + (DEMAND_STEPS - 1) * STEP, &total), 5);
    CHECK_INT(demand_peak(&d, now + DEMAND_STEPS * STEP, &total),
              4); /* the first step is forgotten */
    CHECK_INT(demand_peak(&d, now + (DEMAND_STEPS + 1) * STEP, &total), 0);
    CHECK_INT(total, 0);
    demand_add(&d, now + 5000 * STEP, 1);
    CHECK_INT(demand_peak(&d, now + 5000 * STEP, &total), 1);
}

static uint32_t target_of(uint32_t peak, uint32_t total, uint32_t least, uint32_t most,
                          bool standing)
{
    struct plan_item item = { .peak = peak,
                              .total = total,
                              .least = least,
                              .most = most,
                              .standing = standing,
                              .cost_bytes = 1 };

    (void) pool_plan(&item, 1, UINT64_MAX);
    return item.target;
}

static void a_pool_wants_what_was_in_demand_within_its_bounds(void)
{
    CHECK_INT(target_of(0, 0, 0, 16, true), 0);
    CHECK_INT(target_of(1, 1, 0, 16, true), 0); /* once is no reason */
    CHECK_INT(target_of(1, 2, 0, 16, false), 2);
    CHECK_INT(target_of(9, 20, 0, 16, false), 9);
    CHECK_INT(target_of(100, 100, 0, 16, false), 16);
    CHECK_INT(target_of(9, 20, 12, 16, false), 12);
    CHECK_INT(target_of(0, 0, 4, 16, true), 4);
    CHECK_INT(target_of(0, 0, 4, 16, false), 0); /* another size, that nobody wants now */
    CHECK_INT(target_of(1, 1, 4, 16, false), 0); /* and once is no reason here either */
    CHECK_INT(target_of(1, 1, 4, 16, true), 4);
    CHECK_INT(target_of(9, 20, 0, 0, true), 0);
    CHECK_INT(target_of(1, 2, 0, 1, true), 1);
}

static void the_budget_has_the_last_word(void)
{
    struct plan_item items[] = {
        { .peak = 4, .total = 9, .most = 16, .cost_bytes = 10 },
        { .peak = 8, .total = 9, .most = 16, .cost_bytes = 10 },
        { .peak = 2, .total = 9, .most = 16, .cost_bytes = 100 },
    };

    CHECK_INT(pool_plan(items, ARRAY_LEN(items), 1000), 4 * 10 + 8 * 10 + 2 * 100);
    CHECK_INT(pool_plan(items, ARRAY_LEN(items), 105), 100);
    CHECK_INT(items[1].target, 8); /* in most demand */
    CHECK_INT(items[0].target, 2);
    CHECK_INT(items[2].target, 0);
    CHECK_INT(pool_plan(items, ARRAY_LEN(items), 0), 0);
    CHECK_INT(pool_plan(items, 0, 100), 0);
}

CHECK_MAIN(T(bad_rules_are_refused_by_name), T(too_many_rules_are_refused),
           T(a_template_has_its_own_rule_or_that_of_the_others),
           T(demand_is_the_busiest_step_of_the_last),
           T(a_pool_wants_what_was_in_demand_within_its_bounds), T(the_budget_has_the_last_word))
