/* Names of what the gateway counts and tells. */
#include "egress/egress.h"

#include "base/own.h"

static const char *const what_names[] = { [EGRESS_CONNECT] = "connect",
                                          [EGRESS_REFUSED] = "refused",
                                          [EGRESS_NAME] = "name_refused",
                                          [EGRESS_FAILED] = "failed" };
_Static_assert(ARRAY_LEN(what_names) == EGRESS_WHATS, "every event has a name");

const char *egress_what_name(enum egress_what what)
{
    return what_names[what];
}

static const char *const share_names[] = { [EGRESS_CONNECTIONS] = "connections",
                                           [EGRESS_LOOKUPS] = "lookups",
                                           [EGRESS_HANDSHAKES] = "handshakes" };
_Static_assert(ARRAY_LEN(share_names) == EGRESS_SHARES, "every share has a name");

const char *egress_share_name(enum egress_share share)
{
    return share_names[share];
}

static const char *const whose[] = {
    [EGRESS_OF_SANDBOX] = "sandbox", [EGRESS_OF_TENANT] = "tenant", [EGRESS_OF_SERVER] = "server"
};
_Static_assert(ARRAY_LEN(whose) == EGRESS_WHOSE, "every limit has an owner");

const char *egress_whose_name(enum egress_whose of)
{
    return whose[of];
}
