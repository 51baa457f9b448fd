#include "egress/may_name.h"

#include "base/own.h"
#include "base/special.h"
#include "check.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* "": it may be named. */
static const char *named(const char *text, const char *ranges)
{
    static struct err err;
    struct reach_rule rule;

    err = (struct err){ .msg = "" };
    CHECK_INT(reach_rule_parse(text, &rule, &err), 0);
    return may_name_rule(&rule, ranges, "network_ranges", &err) < 0 ? err.msg : "";
}

static bool reached(const char *text, const char *ranges)
{
    struct ip ip = { { 0 } };

    CHECK(ip_parse(text, &ip));
    return may_reach(&ip, ip_kind(&ip), ranges);
}

#define ALL "0.0.0.0/0, ::/0"

static void some_addresses_are_never_named_whatever_the_setting_is(void)
{
    static const struct {
        const char *rule, *said;
    } rows[] = {
        { "127.0.0.1", "'127.0.0.1': sandboxes never reach loopback addresses" },
        { "127.8.8.8:8000", "'127.8.8.8:8000': sandboxes never reach loopback addresses" },
        { "127.0.0.0/8", "'127.0.0.0/8': sandboxes never reach loopback addresses" },
        { "::1", "'::1': sandboxes never reach loopback addresses" },
        { "[::1]:80", "'[::1]:80': sandboxes never reach loopback addresses" },
        { "::ffff:127.0.0.1", "'127.0.0.1': sandboxes never reach loopback addresses" },
        { "64:ff9b::7f00:1", "'64:ff9b::7f00:1': sandboxes never reach loopback addresses" },
        { "64:ff9b::7f00:0/104",
          "'64:ff9b::7f00:0/104': sandboxes never reach loopback addresses" },
        { "2002:7f00:1::/48", "'2002:7f00:1::/48': sandboxes never reach loopback addresses" },
        { "2002:7f00:1::5", "'2002:7f00:1::5': sandboxes never reach loopback addresses" },
        { "::ffff:0:127.0.0.1", "'::ffff:0:7f00:1': sandboxes never reach loopback addresses" },
        { "localhost", "'localhost': sandboxes never reach loopback addresses" },
        { "a.localhost:80", "'a.localhost:80': sandboxes never reach loopback addresses" },
        { "*.localhost", "'*.localhost': sandboxes never reach loopback addresses" },
        { "169.254.169.254", "'169.254.169.254': sandboxes never reach metadata addresses" },
        { "fd00:ec2::254", "'fd00:ec2::254': sandboxes never reach metadata addresses" },
        { "100.100.100.200", "'100.100.100.200': sandboxes never reach metadata addresses" },
        { "168.63.129.16", "'168.63.129.16': sandboxes never reach metadata addresses" },
        { "169.254.0.0/16", "'169.254.0.0/16': sandboxes never reach link-local addresses" },
        { "fe80::/10", "'fe80::/10': sandboxes never reach link-local addresses" },
        { "0.0.0.0", "'0.0.0.0': sandboxes never reach unspecified addresses" },
        { "::", "'::': sandboxes never reach unspecified addresses" },
        { "224.0.0.1", "'224.0.0.1': sandboxes never reach multicast addresses" },
        { "ff02::1", "'ff02::1': sandboxes never reach multicast addresses" },
        { "255.255.255.255", "'255.255.255.255': sandboxes never reach broadcast addresses" },
        { "198.19.1.1", "'198.19.1.1': sandboxes never reach private addresses" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(named(rows[i].rule, ALL), rows[i].said);
}

static void private_ranges_are_named_if_the_operator_lists_them(void)
{
    static const char *const rows[] = { "10.0.0.5:5432", "10.0.0.0/8",       "fd12::1",
                                        "172.16.0.0/12", "192.168.1.0/24",   "100.64.0.1",
                                        "240.0.0.1",     "64:ff9b::10.0.0.5" };
    char said[120], rule[REACH_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reach_rule parsed;
        struct err err;

        CHECK_INT(reach_rule_parse(rows[i], &parsed, &err), 0);
        reach_rule_print(&parsed, rule);
        (void) snprintf(said, sizeof said,
                        "'%s': %s addresses are not listed in the server's setting network_ranges",
                        rule, strcmp(rows[i], "240.0.0.1") == 0 ? "reserved" : "private");
        CHECK_STR(named(rows[i], ""), said);
        CHECK_STR(named(rows[i], "198.18.0.0/16, 2001:db8::/32"), said);
        CHECK_STR(named(rows[i], ALL), "");
    }
    CHECK_STR(named("10.0.0.5:5432", "192.168.0.0/16, 10.0.0.0/24"), "");
    CHECK_STR(named("10.0.0.0/24", "10.0.0.0/24"), "");
    CHECK(named("10.0.0.0/23", "10.0.0.0/24")[0]); /* only half of it is listed */
    CHECK(named("10.0.1.5", "10.0.0.0/24")[0]);
}

static void what_is_public_is_named_by_anybody(void)
{
    static const char *const rows[] = {
        "8.8.8.8",   "8.0.0.0/8",    "0.0.0.0/0",        "*", "::/0", "example.com", "168.0.0.0/8",
        "2606::/16", "notlocalhost", "*.example.com:443"
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(named(rows[i], ""), "");
}

static void before_a_connection_each_address_is_looked_at(void)
{
    CHECK(reached("8.8.8.8", ""));
    CHECK(!reached("10.0.0.5", ""));
    CHECK(!reached("10.0.0.5", "10.0.1.0/24"));
    CHECK(reached("10.0.0.5", "10.0.0.0/24"));
    CHECK(reached("64:ff9b::10.0.0.5", "10.0.0.0/24"));
    CHECK(reached("2002:a00:5::1", "10.0.0.0/24"));
    CHECK(!reached("10.0.0.5", "::/0"));
    CHECK(!reached("168.63.129.16", ALL)); /* also behind a rule for 168.0.0.0/8 */
    CHECK(!reached("127.0.0.1", ALL));
    CHECK(!reached("::ffff:127.0.0.1", ALL));
    CHECK(!reached("64:ff9b::7f00:1", ALL));
    CHECK(!reached("fd00:ec2::254", ALL));
    CHECK(!reached("198.19.0.1", ALL));
}

static void addresses_of_this_host_are_never_named(void)
{
    struct ip here = { { 0 } };

    CHECK(ip_parse("127.0.0.1", &here));
    CHECK(host_has_ip(&here));
    CHECK(!may_reach(&here, MAY_NAME_HOST, ALL));
    CHECK(ip_parse("8.8.8.8", &here));
    CHECK(!may_reach(&here, MAY_NAME_HOST, ALL));
    CHECK(ip_parse("10.0.0.5", &here));
    CHECK(may_reach(&here, "private", ALL));
    CHECK(!may_reach(&here, MAY_NAME_HOST, ALL));
}

/* In a network namespace of its own. */
static int look_at_local_routes(void)
{
    static const char *const here[] = { "198.41.0.5", "198.41.1.5", "2606:4700:1::5" };
    static const char setup[] = "ip link set lo up && ip addr add 93.184.216.1/32 dev lo && "
                                "ip route add local 198.41.0.0/24 dev lo && "
                                "ip route add local 198.41.1.0/24 dev lo src 93.184.216.1 && "
                                "ip -6 route add local 2606:4700:1::/64 dev lo";
    struct ip ip;

    if (unshare(CLONE_NEWNET) < 0 || system(setup) != 0)
        return 77;
    for (size_t i = 0; i < ARRAY_LEN(here); i++)
        if (!ip_parse(here[i], &ip) || !host_has_ip(&ip))
            return 1 + (int) i;
    return ip_parse("198.41.2.5", &ip) && !host_has_ip(&ip) ? 0 : 10;
}

/* Connections to such an address come from another one of this host: that is no sign of an address elsewhere. */
static void ranges_that_are_local_by_a_route_are_of_this_host(void)
{
    pid_t pid = geteuid() == 0 ? fork() : -1;
    int status = 0;

    if (pid < 0)
        return; /* needs root */
    if (pid == 0)
        _exit(look_at_local_routes());
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) != 77) /* no namespaces, or no ip */
        CHECK_INT(WEXITSTATUS(status), 0);
}

static void a_setting_that_could_never_count_is_refused(void)
{
    struct err err;

    CHECK_INT(may_name_check_ranges("", &err), 0);
    CHECK_INT(may_name_check_ranges("10.0.0.0/8, fc00::/7,192.168.0.0/16 ", &err), 0);
    CHECK_INT(may_name_check_ranges(ALL, &err), 0);
    CHECK_INT(may_name_check_ranges("10.0.0.0/8, 127.0.0.0/8", &err), -1);
    CHECK_STR(err.msg, "'127.0.0.0/8': sandboxes never reach loopback addresses");
    CHECK_INT(may_name_check_ranges("169.254.169.254", &err), -1);
    CHECK_INT(may_name_check_ranges("10.0.0.1/8", &err), -1);
    CHECK_STR(err.msg, "'10.0.0.1/8' has bits set after its prefix");
    CHECK_INT(may_name_check_ranges("db.example.com", &err), -1);
}

/* How many rows are open, and whether the row of that address is. */
static size_t opened(const char *allow, const char *ranges, const char *address, bool *ret)
{
    struct reach *rules = calloc(1, sizeof *rules);
    struct ip ip = { { 0 } };
    bool open[SPECIAL_ROWS];
    size_t count = 0;
    struct err err;

    CHECK(rules != NULL);
    rules->mode = REACH_LIST;
    CHECK_INT(reach_add(rules, false, allow, &err), 0);
    may_name_rows(rules, ranges, open);
    free(rules);
    CHECK(ip_parse(address, &ip));
    *ret = open[special_find(ip.bytes) - specials];
    for (size_t i = 0; i < SPECIAL_ROWS; i++)
        count += open[i];
    return count;
}

static void only_rows_that_are_named_and_listed_are_open(void)
{
    bool open;

    CHECK_INT(opened("10.0.0.5:5432", "", "10.0.0.5", &open), 0);
    CHECK_INT(opened("10.0.0.5:5432", "192.168.0.0/16", "10.0.0.5", &open), 0);
    CHECK_INT(opened("example.com", ALL, "10.0.0.5", &open), 0);
    CHECK_INT(opened("8.8.8.8", ALL, "10.0.0.5", &open), 0);
    CHECK_INT(opened("10.0.0.5:5432", "10.0.0.0/8", "10.0.0.5", &open), 1);
    CHECK(open);
    CHECK_INT(opened("fd12::1", "fd12::/32", "fd12::1", &open), 1);
    CHECK(open);
    CHECK_INT(opened("64:ff9b::a00:5", "10.0.0.0/8", "10.0.0.5", &open), 1);
    CHECK(open);
    (void) opened("127.0.0.1", ALL, "127.0.0.1", &open);
    CHECK(!open);
    (void) opened("100.64.0.0/10", ALL, "100.100.100.200", &open);
    CHECK(!open);
}

/* A row behind one that holds all of it would never be found. */
static void rows_of_special_addresses_are_clean_and_in_order(void)
{
    for (size_t i = 0; i < special_count; i++) {
        const struct special *row = &specials[i];

        CHECK(row->kind && row->kind[0]);
        for (unsigned bit = row->bits; bit < 128; bit++)
            CHECK(!(row->first[bit / 8] & 0x80u >> bit % 8));
        for (size_t before = 0; before < i; before++)
            CHECK(specials[before].bits > row->bits ||
                  !special_begins(row->first, specials[before].first, specials[before].bits));
    }
}

CHECK_MAIN(T(some_addresses_are_never_named_whatever_the_setting_is),
           T(private_ranges_are_named_if_the_operator_lists_them),
           T(what_is_public_is_named_by_anybody), T(before_a_connection_each_address_is_looked_at),
           T(addresses_of_this_host_are_never_named),
           T(ranges_that_are_local_by_a_route_are_of_this_host),
           T(a_setting_that_could_never_count_is_refused),
           T(only_rows_that_are_named_and_listed_are_open),
           T(rows_of_special_addresses_are_clean_and_in_order))
