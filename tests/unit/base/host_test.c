#include "base/host.h"

#include "check.h"

#include <string.h>

static void what_is_no_host_is_refused_in_words(void)
{
    static const struct {
        const char *text, *msg;
    } cases[] = {
        { "", "'' is not a host name" },
        { "*", "'*' is not a host name" },
        { "*.", "'*.' is not a host name" },
        { "*.com", "'*.com' has too many hosts below it" },
        { "*.com.", "'*.com.' has too many hosts below it" },
        { "a..b", "'a..b' is not a host name" },
        { ".example.com", "'.example.com' is not a host name" },
        { "*.*.example.com", "'*.*.example.com' is not a host name" },
        { "exa mple.com", "'exa mple.com' is not a host name" },
        { "user@example.com", "'user@example.com' is not a host name" },
        { "example.com/path", "'example.com/path' is not a host name" },
        { "HTTP://example.com", "'//example.com' is not a port" },
        { "10.0.0.1", "'10.0.0.1' is not a host name" },
        { "2130706433", "'2130706433' is not a host name" },
        { "[::1]", "':1]' is not a port" },
        { "example.com:", "'' is not a port" },
        { "example.com:0", "'0' is not a port" },
        { "example.com:65536", "'65536' is not a port" },
        { "example.com:000443", "'000443' is not a port" },
        { "example.com:+1", "'+1' is not a port" },
    };
    struct host_rule rule = { .port = 7 };
    struct err err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(host_rule_parse(cases[i].text, &rule, &err), -1);
        CHECK_STR(err.msg, cases[i].msg);
    }
    CHECK_INT(rule.port, 7);
}

static void names_have_the_lengths_that_dns_allows(void)
{
    char text[300], out[HOST_MAX];

    memset(text, 'a', sizeof text);
    CHECK(name_normal(text, 63, out));
    CHECK(!name_normal(text, 64, out));
    for (size_t i = 50; i < sizeof text; i += 51)
        text[i] = '.';
    CHECK(name_normal(text, 253, out));
    CHECK(!name_normal(text, 254, out));
}

static void a_name_is_lower_case_without_its_last_dot(void)
{
    struct host_rule rule;
    struct err err;

    CHECK_INT(host_rule_parse("https://API.Example.com.:8443", &rule, &err), 0);
    CHECK_STR(rule.name, "api.example.com");
    CHECK_INT(rule.port, 8443);
    CHECK(rule.tls && !rule.plain && !rule.below);
}

static void a_rule_fits_what_it_names_and_nothing_else(void)
{
    static const struct {
        const char *rule, *name;
        uint16_t port;
        bool tls, fits;
    } cases[] = {
        { "example.com", "example.com", 443, true, true },
        { "example.com", "example.com", 8443, true, true },
        { "example.com", "example.com", 80, false, false }, /* a value in the clear */
        { "example.com", "www.example.com", 443, true, false },
        { "example.com", "example.com.evil.test", 443, true, false },
        { "example.com", "notexample.com", 443, true, false },
        { "example.com:443", "example.com", 8443, true, false },
        { "http://example.com", "example.com", 80, false, true },
        { "http://example.com", "example.com", 443, true, false },
        { "*.example.com", "a.example.com", 443, true, true },
        { "*.example.com", "a.b.example.com", 443, true, true },
        { "*.example.com", "example.com", 443, true, false },
        { "*.example.com", ".example.com", 443, true, false },
        { "*.example.com", "aexample.com", 443, true, false },
        { "*.example.com:443", "a.example.com", 444, true, false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct host_rule rule;
        struct err err;

        CHECK_INT(host_rule_parse(cases[i].rule, &rule, &err), 0);
        CHECK_INT(host_rule_fits(&rule, cases[i].name, cases[i].port, cases[i].tls), cases[i].fits);
    }
}

CHECK_MAIN(T(what_is_no_host_is_refused_in_words), T(names_have_the_lengths_that_dns_allows),
           T(a_name_is_lower_case_without_its_last_dot),
           T(a_rule_fits_what_it_names_and_nothing_else))
