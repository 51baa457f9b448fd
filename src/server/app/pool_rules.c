#include "server/app/pool_rules.h"

#include "base/own.h"
#include "base/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 2048

static int read_rule(char *item, struct store_pool_rule *ret, struct err *err)
{
    char *colon = strchr(item, ':'), *dash = colon ? strchr(colon, '-') : NULL;

    if (!dash)
        return err_set(err, ERR_INVALID, "'%.60s' is not TEMPLATE:MIN-MAX", item);
    *colon = '\0';
    *dash = '\0';
    if ((strcmp(item, "*") != 0 && !name_ok(item)) || strlen(item) >= sizeof ret->template)
        return err_set(err, ERR_INVALID, "'%.60s' is not a template's name, nor '*'", item);
    if (parse_u64(colon + 1, &ret->least, err) < 0 || parse_u64(dash + 1, &ret->most, err) < 0)
        return -1;
    if (ret->least > ret->most || ret->most > STORE_POOL_MOST)
        return err_set(err, ERR_INVALID, "%.60s: min at most max, and max at most %d", item,
                       STORE_POOL_MOST);
    memcpy(ret->template, item, strlen(item) + 1);
    return 0;
}

static char *trim(char *text)
{
    size_t len;

    while (isspace((unsigned char) *text))
        text++;
    len = strlen(text);
    while (len > 0 && isspace((unsigned char) text[len - 1]))
        text[--len] = '\0';
    return text;
}

int pool_rules_parse(const char *text, struct pool_rules *ret, struct err *err)
{
    char copy[TEXT_MAX], *rest = copy, *item;

    *ret = (struct pool_rules){ .count = 0 };
    if (strlen(text) >= sizeof copy)
        return err_set(err, ERR_INVALID, "longer than %zu", sizeof copy - 1);
    memcpy(copy, text, strlen(text) + 1);
    if (strcmp(trim(copy), "off") == 0)
        return 0;
    while ((item = strsep(&rest, ","))) {
        struct store_pool_rule rule = { .least = 0 };

        if (read_rule(trim(item), &rule, err) < 0)
            return -1;
        for (size_t i = 0; i < ret->count; i++)
            if (strcmp(ret->list[i].template, rule.template) == 0)
                return err_set(err, ERR_INVALID, "'%s' is given twice", rule.template);
        if (!pool_rules_put(ret, &rule))
            return err_set(err, ERR_INVALID, "more than %d templates", POOL_RULES_MAX);
    }
    return 0;
}

bool pool_rules_put(struct pool_rules *rules, const struct store_pool_rule *rule)
{
    size_t i = 0;

    while (i < rules->count && strcmp(rules->list[i].template, rule->template) != 0)
        i++;
    if (i == POOL_RULES_MAX)
        return false;
    rules->list[i] = *rule;
    rules->count += i == rules->count;
    return true;
}

const struct store_pool_rule *pool_rules_find(const struct pool_rules *rules, const char *template)
{
    const struct store_pool_rule *others = NULL;

    for (size_t i = 0; i < rules->count; i++) {
        if (strcmp(rules->list[i].template, template) == 0)
            return &rules->list[i];
        if (strcmp(rules->list[i].template, "*") == 0)
            others = &rules->list[i];
    }
    return others;
}
