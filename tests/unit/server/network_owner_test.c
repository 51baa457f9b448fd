#include "server/net/network_owner.h"

#include "check.h"

static void what_an_agent_says_can_be_shown(void)
{
    char out[8];

    owners_clean("a\n\x1b[\x80", out, sizeof out);
    CHECK_STR(out, "a??[?");
    owners_clean("0123456789", out, sizeof out);
    CHECK_STR(out, "0123456");
    owners_clean("", out, sizeof out);
    CHECK_STR(out, "");
}

CHECK_MAIN(T(what_an_agent_says_can_be_shown))
