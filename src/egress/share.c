/* What sandboxes share: connections, look-ups and TLS handshakes.
 *
 * A tenant may have as many as are free. So a tenant alone has half of all, two have a third each, and the next to come
 * finds some left: it need not be known how many tenants there will be. A sandbox may have as many as its tenant could
 * still take, by the same reasoning, and never more than its own limit. What was given is not taken back.
 *
 * Handshakes are counted by the second: all counts begin again with each. */
#include "egress/egress_own.h"

#include "base/io.h"
#include "base/own.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define LOOKUPS_MOST    64 /* of one sandbox, at once */
#define HANDSHAKES_MOST 50 /* of one sandbox, in a second: each costs a few signatures */
#define SECOND_MS       1000

static const char *const many[] = {
    [EGRESS_CONNECTIONS] = "connections at once",
    [EGRESS_LOOKUPS] = "look-ups of names at once",
    [EGRESS_HANDSHAKES] = "TLS handshakes in a second",
};
_Static_assert(ARRAY_LEN(many) == EGRESS_SHARES, "every share has a text");

/* ---- tenants ---- */

struct account *account_ref(struct egress *e, const char *tenant)
{
    struct account *account = e->accounts;

    while (account && strcmp(account->tenant, tenant) != 0)
        account = account->next;
    if (!account && (account = calloc(1, sizeof *account))) {
        (void) snprintf(account->tenant, sizeof account->tenant, "%s", tenant);
        account->next = e->accounts;
        e->accounts = account;
    }
    if (account)
        account->boxes++;
    return account;
}

void account_unref(struct egress *e, struct account *account)
{
    struct account **at = &e->accounts;

    if (!account || --account->boxes > 0)
        return;
    while (*at != account)
        at = &(*at)->next;
    *at = account->next;
    free(account);
}

/* ---- shares ---- */

/* Two descriptors for each connection, and half of all for others. */
static uint64_t descriptors_allow(void)
{
    struct rlimit files;

    return getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY
               ? UINT64_MAX
               : files.rlim_cur / 4;
}

void shares_init(struct egress *e)
{
    uint64_t most = descriptors_allow();

    for (int s = 0; s < EGRESS_SHARES; s++)
        e->most[s] = e->config.shares[s] ? e->config.shares[s] : UINT64_MAX;
    if (e->most[EGRESS_CONNECTIONS] > most)
        e->most[EGRESS_CONNECTIONS] = most;
}

static uint64_t sandbox_most(const struct egress *e, enum egress_share share)
{
    static const uint64_t fixed[] = {
        [EGRESS_LOOKUPS] = LOOKUPS_MOST, [EGRESS_HANDSHAKES] = HANDSHAKES_MOST
    };

    return share == EGRESS_CONNECTIONS ? e->config.limits.connections : fixed[share];
}

static void begin_second(struct egress *e)
{
    uint64_t now = io_now_ms();

    if (now - e->second_ms < SECOND_MS)
        return;
    e->second_ms = now;
    e->used[EGRESS_HANDSHAKES] = 0;
    for (struct account *account = e->accounts; account; account = account->next)
        account->used[EGRESS_HANDSHAKES] = 0;
    for (struct box *box = e->boxes; box; box = box->next)
        box->used[EGRESS_HANDSHAKES] = 0;
}

/* Whose limit another one would exceed; EGRESS_WHOSE: none. */
static enum egress_whose exceeds(const struct egress *e, const struct box *box,
                                 enum egress_share share)
{
    uint64_t used = box->used[share] + (share == EGRESS_CONNECTIONS ? box->guests : 0);
    uint64_t free_now = e->most[share] > e->used[share] ? e->most[share] - e->used[share] : 0;
    uint64_t tenant = box->account->used[share];

    if (used >= sandbox_most(e, share))
        return EGRESS_OF_SANDBOX;
    if (free_now == 0)
        return EGRESS_OF_SERVER;
    return tenant >= free_now || box->used[share] >= free_now - tenant ? EGRESS_OF_TENANT
                                                                       : EGRESS_WHOSE;
}

bool share_take(struct egress *e, struct box *box, enum egress_share share,
                char why[EGRESS_REASON_MAX])
{
    static const char *const texts[] = {
        [EGRESS_OF_SANDBOX] = "this sandbox has %" PRIu64 " %s, and may not have more",
        [EGRESS_OF_TENANT] = "the tenant's share is used up: its sandboxes have %" PRIu64 " %s",
        [EGRESS_OF_SERVER] = "the server's limit: all sandboxes have %" PRIu64 " %s",
    };
    enum egress_whose of;

    if (share == EGRESS_HANDSHAKES)
        begin_second(e);
    of = exceeds(e, box, share);
    if (of == EGRESS_WHOSE) {
        e->used[share]++;
        box->account->used[share]++;
        box->used[share]++;
        return true;
    }
    e->counts.limited[share][of]++;
    (void) snprintf(why, EGRESS_REASON_MAX, texts[of],
                    of == EGRESS_OF_SANDBOX  ? box->used[share]
                    : of == EGRESS_OF_TENANT ? box->account->used[share]
                                             : e->used[share],
                    many[share]);
    return false;
}

void share_give(struct egress *e, struct box *box, enum egress_share share)
{
    e->used[share]--;
    box->account->used[share]--;
    box->used[share]--;
}

void shares_count(struct egress *e, struct egress_counts *ret)
{
    begin_second(e);
    memcpy(ret->used, e->used, sizeof ret->used);
    memcpy(ret->most, e->most, sizeof ret->most);
    memset(ret->tenant_used, 0, sizeof ret->tenant_used);
    for (const struct account *account = e->accounts; account; account = account->next)
        for (int s = 0; s < EGRESS_SHARES; s++)
            if (account->used[s] > ret->tenant_used[s])
                ret->tenant_used[s] = account->used[s];
}
