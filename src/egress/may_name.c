#include "egress/may_name.h"

#include "base/own.h"
#include "base/own_address.h"

#include <stdio.h>
#include <string.h>

#define ITEM_MAX  64
#define LOCALHOST "localhost"

/* The next range of a list, or false at its end. What cannot be read is skipped: the list was checked when it was set. */
static bool next_range(const char **list, struct ip_range *ret)
{
    struct err ignored;

    for (;;) {
        const char *begin = *list + strspn(*list, ", ");
        size_t len = strcspn(begin, ", ");
        char item[ITEM_MAX];

        *list = begin + len;
        if (len == 0)
            return false;
        (void) snprintf(item, sizeof item, "%.*s", (int) len, begin);
        if (ip_range_parse(item, ret, &ignored) == 0)
            return true;
    }
}

/* 0.0.0.0/0 is of IPv4 alone here, and ::/0 of IPv6, as everywhere in settings. */
static bool is_listed(const struct ip_range *range, const char *ranges)
{
    struct ip_range listed;

    while (next_range(&ranges, &listed))
        if (listed.bits <= range->bits && ip_is4(&listed.first) == ip_is4(&range->first) &&
            ip_in(&range->first, &listed))
            return true;
    return false;
}

bool may_reach(const struct ip *ip, const char *kind, const char *ranges)
{
    const struct special *row = special_find(ip->bytes);
    struct ip_range one = { .first = *ip, .bits = 128 };

    if (!kind)
        return true;
    if (!row || row->never || strcmp(kind, row->kind) != 0)
        return false;
    (void) ip_inner(ip, &one.first); /* it leads there */
    return is_listed(&one, ranges);
}

/* A range of IPv6 addresses that all carry IPv4 addresses is judged as the range of those. */
static struct ip_range inner_range(const struct ip_range *range)
{
    for (size_t i = 0; i < special_carrier_count; i++) {
        const struct special_carrier *carrier = &special_carriers[i];
        unsigned outer = carrier->at * 8u;
        struct ip_range inner;

        if (range->bits < outer ||
            !special_begins(range->first.bytes, carrier->first, carrier->bits) ||
            !ip_inner(&range->first, &inner.first))
            continue;
        inner.bits = (uint8_t) (range->bits - outer > 32 ? 128 : 96 + range->bits - outer);
        return inner;
    }
    return *range;
}

/* The row that holds all of the range; NULL: none does. */
static const struct special *row_of(const struct ip_range *range)
{
    for (size_t i = 0; i < special_count; i++)
        if (specials[i].bits <= range->bits &&
            special_begins(range->first.bytes, specials[i].first, specials[i].bits))
            return &specials[i];
    return NULL;
}

static int refuse_never(const char *kind, struct err *err)
{
    return err_set(err, ERR_INVALID, "sandboxes never reach %s addresses", kind);
}

int may_name_range(const struct ip_range *range, const char *ranges, const char *setting,
                   struct err *err)
{
    struct ip_range inner = inner_range(range);
    const struct special *row = row_of(&inner);

    if (row && row->never)
        return refuse_never(row->kind, err);
    if (range->bits == 128 && (host_has_ip(&range->first) || host_has_ip(&inner.first)))
        return err_set(err, ERR_INVALID, "sandboxes never reach addresses of this host");
    if (row && !is_listed(&inner, ranges))
        return err_set(err, ERR_INVALID, "%s addresses are not listed in the server's setting %s",
                       row->kind, setting);
    return 0;
}

int may_name_host(const char *name, struct err *err)
{
    size_t len = strlen(name), own = strlen(LOCALHOST);

    /* RFC 6761: whatever a name server says of these. */
    if (len >= own && strcmp(name + len - own, LOCALHOST) == 0 &&
        (len == own || name[len - own - 1] == '.'))
        return refuse_never("loopback", err);
    return 0;
}

int may_name_rule(const struct reach_rule *rule, const char *ranges, const char *setting,
                  struct err *err)
{
    char text[REACH_TEXT_MAX];
    int r = rule->is_name ? may_name_host(rule->name, err)
                          : may_name_range(&rule->range, ranges, setting, err);

    if (r == 0)
        return 0;
    reach_rule_print(rule, text);
    return err_wrap(err, "'%.80s'", text);
}

/* ---- rows ---- */

static bool overlaps(const struct special *row, const struct ip_range *range)
{
    unsigned bits = row->bits < range->bits ? row->bits : range->bits;

    return special_begins(row->first, range->first.bytes, bits);
}

static bool row_listed(const struct special *row, const char *ranges)
{
    struct ip_range listed;

    while (next_range(&ranges, &listed))
        if (overlaps(row, &listed))
            return true;
    return false;
}

static bool leads_to(const struct reach_rule *rule, const struct special *row)
{
    struct ip_range inner = inner_range(&rule->range);

    return !rule->is_name && (overlaps(row, &rule->range) || overlaps(row, &inner));
}

void may_name_rows(const struct reach *rules, const char *ranges, bool ret_open[SPECIAL_ROWS])
{
    for (size_t i = 0; i < SPECIAL_ROWS; i++) {
        bool may = i < special_count && !specials[i].never && rules->mode != REACH_OFF &&
                   row_listed(&specials[i], ranges);

        ret_open[i] = false;
        for (size_t r = 0; may && r < rules->allow_count && !ret_open[i]; r++)
            ret_open[i] = leads_to(&rules->allow[r], &specials[i]);
    }
}

int may_name_check_ranges(const char *ranges, struct err *err)
{
    while (*(ranges += strspn(ranges, ", "))) {
        const struct special *row;
        struct ip_range range;
        char item[ITEM_MAX];
        size_t len = strcspn(ranges, ", ");

        (void) snprintf(item, sizeof item, "%.*s", (int) len, ranges);
        ranges += len;
        if (ip_range_parse(item, &range, err) < 0)
            return -1;
        range = inner_range(&range);
        row = row_of(&range);
        if (row && row->never)
            return err_set(err, ERR_INVALID, "'%s': sandboxes never reach %s addresses", item,
                           row->kind);
    }
    return 0;
}

/* ---- this host ---- */

bool host_has_ip(const struct ip *ip)
{
    return own_address(ip->bytes);
}
