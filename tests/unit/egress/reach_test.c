#include "egress/reach.h"

#include "base/own.h"
#include "base/special.h"
#include "check.h"
#include "egress/egress.h"

static struct ip ip(const char *text)
{
    struct ip ret = { { 0 } };

    CHECK(ip_parse(text, &ret));
    return ret;
}

static void both_ways_to_write_an_address_are_one(void)
{
    struct ip a = ip("10.1.2.3"), b = ip("::ffff:10.1.2.3"), c = ip("::ffff:a01:203");
    char text[IP_TEXT_MAX];

    CHECK(ip_same(&a, &b) && ip_same(&a, &c));
    ip_print(&b, text);
    CHECK_STR(text, "10.1.2.3");
}

static void odd_ways_to_write_an_address_are_none(void)
{
    static const char *const rows[] = { "10.1",         "0x7f.0.0.1", "2130706433", "010.0.0.1",
                                        "127.0.0.1 ",   "1.2.3.4.5",  "fe80::1%lo", "",
                                        "::ffff:1.2.3", "[::1]" };
    struct ip ret;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK(!ip_parse(rows[i], &ret));
}

static void what_is_not_public_has_a_kind(void)
{
    static const struct {
        const char *ip, *kind;
    } rows[] = {
        { "10.0.0.1", "private" },
        { "172.16.0.1", "private" },
        { "172.31.255.255", "private" },
        { "192.168.1.1", "private" },
        { "100.64.0.1", "private" },
        { "127.0.0.1", "loopback" },
        { "127.255.255.254", "loopback" },
        { "169.254.169.254", "metadata" },
        { "169.254.1.1", "link-local" },
        { "0.0.0.0", "unspecified" },
        { "224.0.0.1", "multicast" },
        { "255.255.255.255", "broadcast" },
        { "::1", "loopback" },
        { "::", "unspecified" },
        { "fe80::1", "link-local" },
        { "fd00::1", "private" },
        { "fd00:ec2::254", "metadata" },
        { "ff02::1", "multicast" },
        { "::ffff:127.0.0.1", "loopback" },
        { "::127.0.0.1", "reserved" },
        { "64:ff9b::7f00:1", "loopback" },
        { "64:ff9b::a00:1", "private" },
        { "2002:7f00:1::", "loopback" },
        { "2002:a9fe:a9fe::1", "metadata" },
        { "::ffff:0:10.0.0.1", "private" },
        { "192.0.2.2", "reserved" },
        { "8.8.8.8", NULL },
        { "172.32.0.1", NULL },
        { "11.0.0.1", NULL },
        { "2606:4700::1111", NULL },
        { "64:ff9b::808:808", NULL },
        { "2002:808:808::1", NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ip at = ip(rows[i].ip);
        const char *kind = ip_kind(&at);

        CHECK_STR(kind ? kind : "public", rows[i].kind ? rows[i].kind : "public");
    }
}

static void every_kind_and_mode_that_refuses_is_explained(void)
{
    static const char *const rows[] = { "off", "not allowed", "host" };

    for (size_t i = 0; i < special_count; i++) {
        const char *means = egress_rule_means(specials[i].kind);

        CHECK(means[0] && strlen(means) < EGRESS_REASON_MAX);
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK(egress_rule_means(rows[i])[0] &&
              strlen(egress_rule_means(rows[i])) < EGRESS_REASON_MAX);
    CHECK_STR(egress_rule_means("reserved"),
              "kept for examples and protocols, reached only if network_ranges lists it and a rule "
              "of the sandbox names it");
    CHECK_STR(egress_rule_means("203.0.113.0/24"), "");
}

static void a_range_has_no_bits_behind_its_prefix(void)
{
    struct ip_range range;
    struct err err;

    CHECK_INT(ip_range_parse("10.0.0.0/8", &range, &err), 0);
    CHECK_INT(range.bits, 104);
    CHECK_INT(ip_range_parse("10.0.0.1/8", &range, &err), -1);
    CHECK_STR(err.msg, "'10.0.0.1/8' has bits set after its prefix");
    CHECK_INT(ip_range_parse("10.0.0.0/33", &range, &err), -1);
    CHECK_STR(err.msg, "'10.0.0.0/33' has no prefix of 0 to 32 bits");
    CHECK_INT(ip_range_parse("10.0.0.0/", &range, &err), -1);
    CHECK_INT(ip_range_parse("2001:db8::/32", &range, &err), 0);
    CHECK_INT(range.bits, 32);
}

static void rules_read_as_they_were_written(void)
{
    static const char *const rows[] = {
        "10.0.0.0/8",        "10.1.2.3",    "10.1.2.3:443",  "2001:db8::/32",    "2001:db8::1",
        "[2001:db8::1]:443", "example.com", "*.example.com", "example.com:8080", "*",
        "0.0.0.0/0",         "::/0",        "*:443",         "*.example.com:22"
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[REACH_TEXT_MAX] = "";
        struct reach_rule rule;
        struct err err;

        CHECK_INT(reach_rule_parse(rows[i], &rule, &err), 0);
        reach_rule_print(&rule, text);
        CHECK_STR(text, rows[i]);
    }
}

static void what_is_no_rule_is_refused(void)
{
    static const char *const rows[] = {
        "",    "*example.com", "exa mple.com", "example..com", ".com",   "a:0",          "a:65536",
        "a:x", "10.0.0",       "1.2.3.4/40",   "[::1",         "[::1]x", "http://a.com", "a/b",
        "*.*", "256.1.1.1"
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reach_rule rule;
        struct err err;

        CHECK_INT(reach_rule_parse(rows[i], &rule, &err), -1);
    }
}

static struct reach *make(enum reach_mode mode, const char *allow, const char *deny)
{
    static struct reach rules;
    char copy[512], *rest, *item;
    struct err err;

    rules = (struct reach){ .mode = mode };
    for (int d = 0; d < 2; d++) {
        (void) snprintf(copy, sizeof copy, "%s", d ? deny : allow);
        rest = copy;
        while ((item = strsep(&rest, " ")))
            if (*item)
                CHECK_INT(reach_add(&rules, d, item, &err), 0);
    }
    return &rules;
}

static const char *verdict(const struct reach *rules, const char *at, uint16_t port,
                           const char *name)
{
    static char text[REACH_TEXT_MAX + 8];
    struct ip address = ip(at);
    struct reach_verdict v = reach_address(rules, &address, port, name, ip_kind(&address));

    (void) snprintf(text, sizeof text, "%c%s", v.allowed ? '+' : '-', v.rule);
    return text;
}

static void off_is_off(void)
{
    struct reach *r = make(REACH_OFF, "8.8.8.8 *", "");

    CHECK_STR(verdict(r, "8.8.8.8", 53, "dns.google"), "-off");
    CHECK(!reach_name(r, "dns.google").allowed);
}

static void public_is_all_but_what_is_special_or_denied(void)
{
    struct reach *r = make(REACH_PUBLIC, "", "203.0.113.0/24 1.1.1.1:25 evil.example");

    CHECK_STR(verdict(r, "8.8.8.8", 443, NULL), "+public");
    CHECK_STR(verdict(r, "10.0.0.1", 443, NULL), "-private");
    CHECK_STR(verdict(r, "169.254.169.254", 80, NULL), "-metadata");
    CHECK_STR(verdict(r, "1.1.1.1", 25, NULL), "-1.1.1.1:25");
    CHECK_STR(verdict(r, "1.1.1.1", 443, NULL), "+public");
    CHECK_STR(verdict(r, "64:ff9b::101:101", 25, NULL), "-1.1.1.1:25");
    CHECK_STR(verdict(r, "2002:101:101::1", 25, NULL), "-1.1.1.1:25");
    CHECK_STR(verdict(r, "168.63.129.16", 80, NULL), "-metadata");
    CHECK_STR(verdict(r, "8.8.8.8", 443, "evil.example"), "-evil.example");
    CHECK(!reach_name(r, "evil.example").allowed);
    CHECK(reach_name(r, "good.example").allowed);
}

static void a_list_is_only_what_is_in_it(void)
{
    struct reach *r = make(
        REACH_LIST, "api.example.com *.example.org:443 198.41.0.4 10.0.0.0/24:5432", "9.9.9.9");

    CHECK_STR(verdict(r, "8.8.8.8", 443, NULL), "-not allowed");
    CHECK_STR(verdict(r, "8.8.8.8", 443, "api.example.com"), "+api.example.com");
    CHECK_STR(verdict(r, "8.8.8.8", 443, "example.com"), "-not allowed");
    CHECK_STR(verdict(r, "8.8.8.8", 443, "files.example.org"), "+*.example.org:443");
    CHECK_STR(verdict(r, "8.8.8.8", 80, "files.example.org"), "-not allowed");
    CHECK_STR(verdict(r, "8.8.8.8", 443, "example.org"), "-not allowed");
    CHECK_STR(verdict(r, "8.8.8.8", 443, "xexample.org"), "-not allowed");
    CHECK_STR(verdict(r, "198.41.0.4", 53, NULL), "+198.41.0.4");
    CHECK_STR(verdict(r, "10.0.0.7", 5432, NULL), "+10.0.0.0/24:5432");
    CHECK_STR(verdict(r, "10.0.0.7", 22, NULL), "-private");
    CHECK_STR(verdict(r, "9.9.9.9", 443, "api.example.com"), "-9.9.9.9");
}

static void no_name_leads_to_what_is_not_public(void)
{
    struct reach *r = make(REACH_LIST, "api.example.com *", "");

    CHECK_STR(verdict(r, "10.0.0.1", 80, "api.example.com"), "-private");
    CHECK_STR(verdict(r, "127.0.0.1", 80, "api.example.com"), "-loopback");
    CHECK_STR(verdict(r, "::ffff:169.254.169.254", 80, "api.example.com"), "-metadata");
}

static void everything_does_not_mean_what_is_special(void)
{
    struct reach *r = make(REACH_LIST, "0.0.0.0/0", "");

    CHECK_STR(verdict(r, "8.8.8.8", 80, NULL), "+0.0.0.0/0");
    CHECK_STR(verdict(r, "2606:4700::1", 80, NULL), "+0.0.0.0/0");
    CHECK_STR(verdict(r, "10.0.0.1", 80, NULL), "-private");
    r = make(REACH_LIST, "0.0.0.0/1 128.0.0.0/1 ::/1 8000::/1", "");
    CHECK_STR(verdict(r, "8.8.8.8", 80, NULL), "+0.0.0.0/1");
    CHECK_STR(verdict(r, "10.0.0.1", 80, NULL), "-private");
    CHECK_STR(verdict(r, "169.254.169.254", 80, NULL), "-metadata");
    CHECK_STR(verdict(r, "fd00::1", 80, NULL), "-private");
    r = make(REACH_LIST, "10.0.0.0/8 fc00::/7", "");
    CHECK_STR(verdict(r, "10.0.0.1", 80, NULL), "+10.0.0.0/8");
    CHECK_STR(verdict(r, "fd00::1", 80, NULL), "+fc00::/7");
}

static void where_allow_wins_it_wins_over_addresses(void)
{
    struct reach *r = make(REACH_LIST, "api.example.com 1.1.1.1", "0.0.0.0/0");
    struct ip eight = ip("8.8.8.8"), one = ip("1.1.1.1");

    r->allow_wins = true;
    CHECK_STR(verdict(r, "1.1.1.1", 80, NULL), "+1.1.1.1");
    CHECK_STR(verdict(r, "8.8.8.8", 80, "api.example.com"), "+api.example.com");
    /* but the name has to lead there: the address alone is not allowed */
    CHECK(reach_address(r, &eight, 80, "api.example.com", NULL).by_name);
    CHECK(!reach_address(r, &one, 80, "api.example.com", NULL).by_name);
    CHECK_STR(verdict(r, "8.8.8.8", 80, NULL), "-0.0.0.0/0");
    CHECK_STR(verdict(r, "10.0.0.1", 80, "api.example.com"), "-0.0.0.0/0");
}

static void while_the_port_is_not_known_only_what_is_sure_is_denied(void)
{
    struct reach *r = make(REACH_PUBLIC, "", "1.1.1.1:25 2.2.2.2");

    CHECK_STR(verdict(r, "1.1.1.1", 0, NULL), "+public");
    CHECK_STR(verdict(r, "2.2.2.2", 0, NULL), "-2.2.2.2");
}

static void names_are_lower_case_without_a_dot_at_the_end(void)
{
    char name[REACH_NAME_MAX];

    CHECK(name_normal("Example.COM.", 12, name));
    CHECK_STR(name, "example.com");
    CHECK(!name_normal("a..b", 4, name) && !name_normal(".", 1, name) && !name_normal("", 0, name));
    CHECK(!name_normal("a b", 3, name) && !name_normal("a\0b", 3, name) &&
          !name_normal("b\xc3\xbc", 3, name));
}

static void there_is_an_end_to_rules(void)
{
    static struct reach rules;
    struct err err;

    rules = (struct reach){ .mode = REACH_LIST };
    for (int i = 0; i < REACH_MAX; i++)
        CHECK_INT(reach_add(&rules, false, "a.example", &err), 0);
    CHECK_INT(reach_add(&rules, false, "a.example", &err), -1);
    CHECK_STR(err.msg, "more than 128 rules");
}

CHECK_MAIN(T(both_ways_to_write_an_address_are_one), T(odd_ways_to_write_an_address_are_none),
           T(what_is_not_public_has_a_kind), T(every_kind_and_mode_that_refuses_is_explained),
           T(a_range_has_no_bits_behind_its_prefix), T(rules_read_as_they_were_written),
           T(what_is_no_rule_is_refused), T(off_is_off),
           T(public_is_all_but_what_is_special_or_denied), T(a_list_is_only_what_is_in_it),
           T(no_name_leads_to_what_is_not_public), T(everything_does_not_mean_what_is_special),
           T(where_allow_wins_it_wins_over_addresses),
           T(while_the_port_is_not_known_only_what_is_sure_is_denied),
           T(names_are_lower_case_without_a_dot_at_the_end), T(there_is_an_end_to_rules))
