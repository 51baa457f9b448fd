/* Links to ports, and what ends them. */
#include "base/own.h"
#include "store/store.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

#define BOX   "iaaaaaaaaaaaaaaaaaaaa"
#define OTHER "ibbbbbbbbbbbbbbbbbbbb"

static char state[64];
static struct store *store;

static void begin(void)
{
    struct store_sandbox sandbox = { .tenant = STORE_LOCAL_TENANT };
    struct err err;

    (void) strcpy(state, "/tmp/cove-store.XXXXXX");
    if (!mkdtemp(state) || store_open(state, &store, &err) < 0)
        exit(1);
    memcpy(sandbox.id, BOX, sizeof BOX);
    sandbox.preview = "{\"public\":true}";
    CHECK(store_sandbox_add(store, &sandbox, &err) == 0);
}

static void end(void)
{
    char command[128];

    store_close(store);
    store = NULL;
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    IGNORE(system(command));
}

static void make(const char *sandbox, uint16_t port, uint64_t expires, char text[STORE_LINK_MAX])
{
    struct store_link link;
    struct err err;

    CHECK(store_link_init(store, sandbox, port, &link, &err) == 0);
    link.expires = expires;
    CHECK(store_link_make(store, &link, text, &err) == 0);
}

static int check(const char *sandbox, uint16_t port, const char *text, struct err *err)
{
    struct store_link link;

    return store_link_init(store, sandbox, port, &link, err) < 0
               ? -1
               : store_link_check(store, text, &link, err);
}

static void a_link_opens_its_port_and_no_other(void)
{
    uint64_t later = store_now_ms() / 1000 + 60;
    char text[STORE_LINK_MAX];
    struct err err;

    begin();
    make(BOX, 3000, later, text);
    CHECK_INT(check(BOX, 3000, text, &err), 0);
    CHECK_INT(check(BOX, 3001, text, &err), -1);
    CHECK_INT(err.kind, ERR_DENIED);
    CHECK_INT(check(OTHER, 3000, text, &err), -1);
    for (size_t i = 0; text[i]; i++) { /* whatever is changed in it */
        char was = text[i];

        text[i] = was == '1' ? '2' : '1';
        CHECK_INT(check(BOX, 3000, text, &err), -1);
        text[i] = was;
    }
    CHECK_INT(check(BOX, 3000, text, &err), 0);
    end();
}

static void texts_that_are_no_links_are_refused(void)
{
    static const char *const texts[] = { "", ".", "..", "1.-.", "x.-.y", "1..2", "-1.-.2" };
    char endless[4 * STORE_LINK_MAX];
    struct err err;

    begin();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK_INT(check(BOX, 1, texts[i], &err), -1);
        CHECK_INT(err.kind, ERR_DENIED);
    }
    memset(endless, '9', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    CHECK_INT(check(BOX, 1, endless, &err), -1);
    endless[100] = endless[102] = '.';
    CHECK_INT(check(BOX, 1, endless, &err), -1);
    CHECK_INT(err.kind, ERR_DENIED);
    end();
}

static void a_link_ends_by_itself_or_by_a_roll(void)
{
    char text[STORE_LINK_MAX], before[STORE_TRAFFIC_MAX], after[STORE_TRAFFIC_MAX];
    struct store_preview preview;
    struct err err;

    begin();
    make(BOX, 80, store_now_ms() / 1000, text);
    CHECK_INT(check(BOX, 80, text, &err), -1);
    CHECK_STR(err.msg, "this link has expired");
    make(BOX, 80, store_now_ms() / 1000 + 60, text);
    CHECK_INT(store_traffic_token(store, BOX, before, &err), 0);
    CHECK_INT(store_preview_roll(store, BOX, &err), 0);
    CHECK_INT(check(BOX, 80, text, &err), -1);
    CHECK_INT(store_traffic_token(store, BOX, after, &err), 0);
    CHECK(strcmp(before, after) != 0);
    CHECK_INT(store_preview_get(store, BOX, &preview, &err), 0);
    CHECK_INT(preview.generation, 1);
    CHECK_STR(preview.rules, "{\"public\":true}"); /* a roll leaves them */
    CHECK_INT(store_preview_set(store, BOX, "{}", &err), 0);
    CHECK_INT(store_preview_get(store, BOX, &preview, &err), 0);
    CHECK_INT(preview.generation, 1); /* and they leave the roll */
    end();
}

static void nothing_is_kept_of_a_sandbox_that_is_gone(void)
{
    struct store_preview preview;
    struct err err;

    begin();
    CHECK_INT(store_preview_roll(store, BOX, &err), 0);
    CHECK_INT(store_sandbox_remove(store, BOX, &err), 0);
    CHECK_INT(store_preview_roll(store, BOX, &err), 0); /* too late: for nobody */
    CHECK_INT(store_preview_get(store, BOX, &preview, &err), 0);
    CHECK_INT(preview.generation, 0);
    CHECK_STR(preview.rules, "");
    end();
}

CHECK_MAIN(T(a_link_opens_its_port_and_no_other), T(texts_that_are_no_links_are_refused),
           T(a_link_ends_by_itself_or_by_a_roll), T(nothing_is_kept_of_a_sandbox_that_is_gone))
