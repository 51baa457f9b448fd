#include "agent/forget.h"
#include "check.h"

static void few_files_are_remembered(void)
{
    uint64_t most = 0;

    CHECK(!forget_wanted(60, false, &most));
    CHECK(!forget_wanted(8192, false, &most));
    CHECK_INT(most, 8192);
}

static void too_many_files_are_forgotten(void)
{
    uint64_t most = 0;

    CHECK(!forget_wanted(60, false, &most));
    CHECK(forget_wanted(8193, false, &most));
    CHECK(!forget_wanted(100, true, &most));
    CHECK_INT(most, 8192);
    CHECK(forget_wanted(9000, false, &most));
}

/* They cannot be forgotten: asking for it at every look would only take time. */
static void files_that_are_in_use_are_not_asked_for_again(void)
{
    uint64_t most = 0;

    CHECK(!forget_wanted(60, false, &most));
    CHECK(forget_wanted(10000, false, &most));
    CHECK(!forget_wanted(9500, true, &most));
    CHECK(!forget_wanted(10000, false, &most));
    CHECK(!forget_wanted(16000, false, &most));
    CHECK(forget_wanted(20000, false, &most));
    CHECK(!forget_wanted(200, true, &most));
    CHECK(forget_wanted(8193, false, &most));
}

CHECK_MAIN(T(few_files_are_remembered), T(too_many_files_are_forgotten),
           T(files_that_are_in_use_are_not_asked_for_again))
