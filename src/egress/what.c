/* Names of what the gateway counts and tells, and what its refusals mean. */
#include "egress/egress.h"

#include "base/own.h"

#include <string.h>

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

#define IF_LISTED "reached only if network_ranges lists it and a rule of the sandbox names it"
#define NEVER     "which sandboxes never reach"

/* clang-format off */
static const struct meaning {
    const char *rule, *text;
} meanings[] = {
    { "off",         "by its policy this sandbox has no network (mode 'off')" },
    { "not allowed", "the network policy of this sandbox does not list it" },
    { "private",     "an address of a private network, " IF_LISTED },
    { "reserved",    "kept for examples and protocols, " IF_LISTED },
    { "loopback",    "an address of the host for itself, " NEVER },
    { "link-local",  "an address of one network link, " NEVER },
    { "metadata",    "a cloud's metadata service, " NEVER },
    { "host",        "an address of the machine that runs this sandbox, " NEVER },
    { "unspecified", "not the address of a host" },
    { "multicast",   "an address of many hosts, " NEVER },
    { "broadcast",   "an address of many hosts, " NEVER },
};
/* clang-format on */

const char *egress_rule_means(const char *rule)
{
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (strcmp(meanings[i].rule, rule) == 0)
            return meanings[i].text;
    return "";
}
