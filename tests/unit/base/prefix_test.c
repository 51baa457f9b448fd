#include "base/prefix.h"

#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static bool has(const char *list, const char *address)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
    struct sockaddr_in four = { .sin_family = AF_INET };

    if (inet_pton(AF_INET, address, &four.sin_addr) == 1)
        return prefix_list_has(list, (const struct sockaddr *) &four);
    CHECK_INT(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
    return prefix_list_has(list, (const struct sockaddr *) &six);
}

static void lists_hold_what_they_say_and_nothing_else(void)
{
    static const struct {
        const char *list, *address;
        bool has;
    } cases[] = {
        { "", "127.0.0.1", false },
        { "127.0.0.1", "127.0.0.1", true },
        { "127.0.0.1", "127.0.0.2", false },
        { "127.0.0.0/8, ::1", "127.9.9.9", true },
        { "127.0.0.0/8, ::1", "128.0.0.1", false },
        { "127.0.0.0/8, ::1", "::1", true },
        { "127.0.0.0/8", "::ffff:127.0.0.1", true },
        { "10.1.2.128/25", "10.1.2.127", false },
        { "10.1.2.128/25", "10.1.2.129", true },
        { "0.0.0.0/0", "::1", false },
        { "0.0.0.0/0", "8.8.8.8", true },
        { "2001:db8::/33", "2001:db8:7fff::1", true },
        { "2001:db8::/33", "2001:db8:8000::1", false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_INT(has(cases[i].list, cases[i].address), cases[i].has);
}

static void what_is_no_address_is_refused_by_name(void)
{
    static const char *const bad[] = { "localhost", "10.0.0.0/33", "1.2.3", "::1/129", "1.2.3.4/" };
    struct err err;
    char want[100];

    CHECK_INT(prefix_list_check("", &err), 0);
    CHECK_INT(prefix_list_check("10.0.0.0/8, ::1,1.2.3.4", &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_INT(prefix_list_check(bad[i], &err), -1);
        (void) snprintf(want, sizeof want, "'%s' is neither an address nor a prefix", bad[i]);
        CHECK_STR(err.msg, want);
    }
}

CHECK_MAIN(T(lists_hold_what_they_say_and_nothing_else), T(what_is_no_address_is_refused_by_name))
