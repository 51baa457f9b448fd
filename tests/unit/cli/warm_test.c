#include "cli/template/warm_ready.h"

#include "base/own.h"
#include "check.h"

static void modules_are_names_and_nothing_else(void)
{
    static const char *const good[] = { "a", "a,b", "matplotlib.pyplot,pandas", "_x9.y_" };
    static const char *const bad[] = { "",   ",",   "a,",  ",a",  "a,,b", "a.",  ".a",
                                       "9a", "a;b", "a b", "a\"", "a\\",  "a\n", "\xc3\xa4" };
    char most[2048];

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK(warm_modules_ok(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!warm_modules_ok(bad[i]));
    memset(most, 'a', sizeof most);
    most[1023] = '\0';
    CHECK(warm_modules_ok(most));
    most[1023] = 'a';
    most[1024] = '\0';
    CHECK(!warm_modules_ok(most));
}

CHECK_MAIN(T(modules_are_names_and_nothing_else))
