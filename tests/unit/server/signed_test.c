/* Links that name no sandbox: what strangers may have tried, asked by a caller that is no HTTP request. */
#include "server/ops/ops_signed.h"

#include "base/own.h"
#include "server/app/app.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

#define BOX_A "iaaaaaaaaaaaaaaaaaaaa"
#define BOX_B "ibbbbbbbbbbbbbbbbbbbb"
#define BOX_C "icccccccccccccccccccc"
/* Searches: a search takes microseconds, the share is milliseconds of each second. */
#define ROUNDS 10000000

#define SECOND 1000000u
#define PER_S  1000u

static void a_share_is_whole_at_first_and_ends_when_it_is_used(void)
{
    struct signed_share share = { 0 };

    CHECK(signed_share_open(&share, 5 * SECOND, PER_S));
    signed_share_use(&share, PER_S - 1);
    CHECK(signed_share_open(&share, 5 * SECOND, PER_S));
    signed_share_use(&share, 1);
    CHECK(!signed_share_open(&share, 5 * SECOND, PER_S));
}

static void a_used_share_comes_back_with_time_and_never_beyond_a_second(void)
{
    struct signed_share share = { 0 };

    CHECK(signed_share_open(&share, SECOND, PER_S));
    signed_share_use(&share, PER_S);
    CHECK(!signed_share_open(&share, SECOND, PER_S));
    CHECK(signed_share_open(&share, SECOND + SECOND / 2, PER_S));
    CHECK_INT(share.left_us, PER_S / 2);
    CHECK(signed_share_open(&share, 100 * SECOND, PER_S));
    CHECK_INT(share.left_us, PER_S);
}

static void what_one_search_overdraws_is_owed(void)
{
    struct signed_share share = { 0 };

    CHECK(signed_share_open(&share, SECOND, PER_S));
    signed_share_use(&share, 3 * PER_S);
    CHECK(!signed_share_open(&share, 2 * SECOND, PER_S));
    CHECK(!signed_share_open(&share, 3 * SECOND, PER_S));
    CHECK(signed_share_open(&share, 3 * SECOND + SECOND / 2, PER_S));
}

static struct app app;

static void add(const char *id)
{
    struct store_sandbox box = { .tenant = STORE_LOCAL_TENANT, .template = "host" };
    struct err err;

    (void) snprintf(box.id, sizeof box.id, "%s", id);
    CHECK(store_sandbox_add(app.store, &box, &err) == 0);
}

static bool fits(void *token, const char *other)
{
    return strcmp(token, other) == 0;
}

static int find(const char *peer, char *token, char id[ID_LEN + 1], struct caller *caller)
{
    struct err err;
    int r;

    *caller = (struct caller){ .app = &app, .peer = peer };
    r = ops_signed_find(caller, fits, token, id, &err);
    CHECK(r >= 0 || err.kind == ERR_TOO_MANY);
    return r;
}

static void a_link_of_a_removed_sandbox_is_of_none_also_when_it_was_found_before(void)
{
    char token[TOKEN_MAX], id[ID_LEN + 1] = "";
    struct caller caller;
    struct err err;

    add(BOX_C);
    CHECK(token_access(&app, BOX_C, token, &err) == 0);
    CHECK_INT(find("192.0.2.3", token, id, &caller), 1);
    CHECK_STR(id, BOX_C);
    CHECK(store_sandbox_remove(app.store, BOX_C, &err) == 0);
    id[0] = '\0';
    CHECK_INT(find("192.0.2.3", token, id, &caller), 0);
    CHECK_STR(id, "");
}

static void invented_signatures_end_at_a_share_of_their_address(void)
{
    char a[TOKEN_MAX], b[TOKEN_MAX], none[] = "";
    char id[ID_LEN + 1] = "";
    struct caller caller;
    struct err err;
    int r = 0;

    add(BOX_A);
    add(BOX_B);
    CHECK(token_access(&app, BOX_A, a, &err) == 0 && token_access(&app, BOX_B, b, &err) == 0);
    CHECK_INT(find("192.0.2.1", a, id, &caller), 1);
    CHECK_STR(id, BOX_A);
    CHECK_INT(find("192.0.2.1", none, id, &caller), 0);
    for (int i = 0; i < ROUNDS && r == 0; i++)
        r = find("192.0.2.1", none, id, &caller);
    CHECK_INT(r, -1);
    CHECK(caller.blame.retry_s > 0);
    CHECK_STR(caller.blame.rule, "signatures");
    /* Found before: not looked for. */
    CHECK_INT(find("192.0.2.1", a, id, &caller), 1);
    CHECK_STR(id, BOX_A);
    CHECK_INT(find("192.0.2.2", b, id, &caller), 1);
    CHECK_STR(id, BOX_B);
}

static void links_are_looked_for_in_the_store(void)
{
    char state[] = "/tmp/cove-signed.XXXXXX", command[64];
    struct err err;

    CHECK(mkdtemp(state) && store_open(state, &app.store, &err) == 0);
    a_link_of_a_removed_sandbox_is_of_none_also_when_it_was_found_before();
    invented_signatures_end_at_a_share_of_their_address();
    store_close(app.store);
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    IGNORE(system(command));
}

CHECK_MAIN(T(a_share_is_whole_at_first_and_ends_when_it_is_used),
           T(a_used_share_comes_back_with_time_and_never_beyond_a_second),
           T(what_one_search_overdraws_is_owed), T(links_are_looked_for_in_the_store))
