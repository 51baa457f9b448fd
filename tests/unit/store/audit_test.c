/* The audit log: chain, filters, pruning, and a disk that is full. */
#include "base/own.h"
#include "store/store.h"

#include "check.h"

#include <pthread.h>
#include <sqlite3.h>
#include <sys/mount.h>

static char state[64];
static struct store *store;
static struct err err;

static void begin(void)
{
    (void) strcpy(state, "/tmp/cove-audit.XXXXXX");
    if (!mkdtemp(state))
        exit(1);
}

static void begin_open(void)
{
    begin();
    if (store_open(state, &store, &err) < 0) {
        printf("not ok - a store opens: %s\n", err.msg);
        exit(1);
    }
}

static void end(void)
{
    char command[128];

    store_close(store);
    store = NULL;
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    IGNORE(system(command));
}

static void sql(const char *text)
{
    char path[128];
    sqlite3 *db = NULL;

    (void) snprintf(path, sizeof path, "%s/server/cove.db", state);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    (void) sqlite3_busy_timeout(db, 5000);
    CHECK(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
    (void) sqlite3_close(db);
}

static int append(const char *action, uint64_t time_ms, bool durable)
{
    struct audit_record record = { .tenant = "local",
                                   .user_id = "local",
                                   .action = action,
                                   .outcome = "ok",
                                   .sandbox_id = "iaaaaaaaaaaaaaaaaaaaa",
                                   .time_ms = time_ms,
                                   .duration_ms = -1,
                                   .exit_code = AUDIT_NO_EXIT };

    return store_audit_append(store, &record, durable ? STORE_ON_DISK : STORE_QUEUED, &err);
}

static void append_some(int count)
{
    for (int i = 1; i <= count; i++)
        CHECK(append(i % 2 ? "exec.run" : "file.write", (uint64_t) i * 1000, i == count) == 0);
}

static struct audit_chain verified(void)
{
    struct audit_chain chain = { 0 };

    CHECK(store_audit_verify(store, &chain, &err) == 0);
    return chain;
}

static void an_untouched_chain_is_whole(void)
{
    struct audit_chain chain;

    begin_open();
    CHECK_INT(verified().count, 0);
    append_some(10);
    chain = verified();
    CHECK_INT(chain.broken_at, 0);
    CHECK_INT(chain.count, 10);
    CHECK_INT(chain.last, 10);
    CHECK_INT(strlen(chain.head), 64);
    end();
}

static void a_changed_record_breaks_the_chain(void)
{
    begin_open();
    append_some(10);
    sql("UPDATE audit SET user_id = 'somebody' WHERE seq = 4");
    CHECK_INT(verified().broken_at, 4);
    end();
}

static void a_removed_record_breaks_the_chain(void)
{
    struct audit_chain chain;

    begin_open();
    append_some(10);
    sql("DELETE FROM audit WHERE seq = 6");
    chain = verified();
    CHECK_INT(chain.broken_at, 6);
    CHECK_STR(chain.why, "is missing");
    end();
}

static void records_cut_off_the_end_are_missed(void)
{
    struct audit_chain chain;

    begin_open();
    append_some(10);
    sql("DELETE FROM audit WHERE seq > 7");
    chain = verified();
    CHECK_INT(chain.broken_at, 8);
    CHECK_STR(chain.why, "and the records after it are missing");
    end();
}

static void the_chain_goes_on_after_closing(void)
{
    begin_open();
    append_some(3);
    CHECK(append("exec.run", 0, false) == 0);
    store_close(store);
    CHECK(store_open(state, &store, &err) == 0);
    append_some(3);
    CHECK_INT(verified().count, 7);
    CHECK_INT(verified().broken_at, 0);
    end();
}

static void two_programs_append_to_one_chain(void)
{
    struct store *mine, *other = NULL;

    begin_open();
    mine = store;
    CHECK(store_open(state, &other, &err) == 0);
    for (int i = 0; i < 10; i++) {
        store = i % 2 ? mine : other;
        CHECK(append("exec.run", 0, true) == 0);
    }
    store = mine;
    CHECK_INT(verified().count, 10);
    CHECK_INT(verified().broken_at, 0);
    store_close(other);
    end();
}

static int keep_action(void *arg, const struct audit_record *record, struct err *ignored)
{
    (void) ignored;
    (void) snprintf(arg, 64, "%s", record->action);
    return 0;
}

static void the_record_of_a_removal_is_written_with_it(void)
{
    const struct audit_record note = { .action = "audit.prune" };
    const struct audit_filter newest = { .limit = 1 };
    char action[64] = "";
    uint64_t count = 99;

    begin_open();
    append_some(10);
    CHECK(store_audit_prune(store, 500, &note, &count, &err) == 0);
    CHECK_INT(verified().count, 10); /* nothing went, and nothing is said */
    CHECK(store_audit_prune(store, 5000, &note, &count, &err) == 0);
    CHECK_INT(count, 4);
    CHECK_INT(verified().broken_at, 0);
    CHECK_INT(verified().count, 7);
    CHECK(store_audit_list(store, &newest, keep_action, action, &err) == 0);
    CHECK_STR(action, "audit.prune");
    end();
}

static void pruning_keeps_the_chain(void)
{
    struct audit_chain chain;
    uint64_t count = 99;

    begin_open();
    append_some(10);
    CHECK(store_audit_prune(store, 500, NULL, &count, &err) == 0);
    CHECK_INT(count, 0);
    CHECK(store_audit_prune(store, 5000, NULL, &count, &err) == 0);
    CHECK_INT(count, 4);
    chain = verified();
    CHECK_INT(chain.broken_at, 0);
    CHECK_INT(chain.first, 5);
    CHECK(store_audit_prune(store, 1000000, NULL, &count, &err) == 0);
    CHECK_INT(count, 6);
    append_some(2);
    chain = verified();
    CHECK_INT(chain.broken_at, 0);
    CHECK_INT(chain.first, 11);
    CHECK_INT(chain.last, 12);
    end();
}

static int collect(void *arg, const struct audit_record *record, struct err *why)
{
    char *out = arg;

    (void) why;
    (void) snprintf(out + strlen(out), 64 - strlen(out), "%llu ", (unsigned long long) record->seq);
    return 0;
}

static void filters_choose_and_cursors_go_on(void)
{
    /* clang-format off */
    static const struct {
        struct audit_filter filter;
        const char *want;
    } cases[] = {
        { { .limit = 3 },                                      "8 7 6 " },
        { { .limit = 3, .after = 6 },                          "5 4 3 " },
        { { .oldest_first = true, .limit = 2, .after = 6 },    "7 8 " },
        { { .action = "exec.run" },                            "7 5 3 1 " },
        { { .action = "file." },                               "8 6 4 2 " },
        { { .action = "file" },                                "" },
        { { .since_ms = 3000, .until_ms = 6000 },              "5 4 3 " },
        { { .tenant = "other" },                               "" },
        { { .sandbox_id = "iaaaaaaaaaaaaaaaaaaaa", .limit = 1 }, "8 " },
        { { .outcome = "permission_denied" },                  "" },
        { { .user_id = "local' OR 1=1 --" },                   "" },
    };
    /* clang-format on */

    begin_open();
    append_some(8);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[64] = "";

        CHECK(store_audit_list(store, &cases[i].filter, collect, text, &err) == 0);
        CHECK_STR(text, cases[i].want);
    }
    end();
}

static void *append_many(void *arg)
{
    for (int i = 0; i < 200; i++)
        CHECK(append("exec.run", 0, i % 50 == 0) == 0);
    return arg;
}

static void many_threads_make_one_chain(void)
{
    pthread_t threads[8];

    begin_open();
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, append_many, NULL) == 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        (void) pthread_join(threads[i], NULL);
    CHECK(store_audit_flush(store, &err) == 0);
    CHECK_INT(verified().count, 1600);
    CHECK_INT(verified().broken_at, 0);
    end();
}

/* 512 KiB: the schema fits, much more does not. */
static void a_full_disk_is_said_and_reads_go_on(void)
{
    struct store_tenant tenant;
    struct store_quotas quotas = { 0 };
    char why[ERR_MSG_MAX], text[64] = "";
    struct audit_filter filter = { .limit = 1 };
    FILE *ballast;
    char path[128];
    int rc = 0;

    begin();
    if (mount("cove-test", state, "tmpfs", 0, "size=512k") < 0) {
        SKIP("cannot mount a tmpfs");
        (void) rmdir(state);
        return;
    }
    CHECK(store_open(state, &store, &err) == 0);
    CHECK(store_tenant_add(store, "a", &quotas, &err) == 0);
    CHECK(append("exec.run", 0, true) == 0);
    (void) snprintf(path, sizeof path, "%s/ballast", state);
    ballast = fopen(path, "w");
    for (int i = 0; ballast && i < 4096 && fputs("0123456789abcdef0123456789abcdef", ballast) >= 0;
         i++)
        for (int k = 0; k < 8; k++)
            (void) fputs("0123456789abcdef0123456789abcdef", ballast);
    if (ballast)
        (void) fclose(ballast);
    for (int i = 0; rc == 0 && i < 2000; i++)
        rc = append("exec.run", 0, true);
    CHECK_INT(rc, -1);
    CHECK_INT(err.kind, ERR_DISK_FULL);
    CHECK_STR(err.msg, "the store's disk is full");
    CHECK(store_trouble(store, why, sizeof why) != NULL);
    CHECK(store_tenant_get(store, "a", &tenant, &err) == 0);
    CHECK(store_audit_list(store, &filter, collect, text, &err) == 0);
    CHECK(text[0] != '\0');
    CHECK(append("exec.run", 0, false) == 0); /* waits in memory */
    (void) unlink(path);
    CHECK(append("exec.run", 0, true) == 0);
    CHECK(store_trouble(store, why, sizeof why) == NULL);
    CHECK_INT(verified().broken_at, 0);
    store_close(store);
    store = NULL;
    CHECK(umount(state) == 0);
    (void) rmdir(state);
}

static void a_damaged_file_is_said_when_it_is_opened(void)
{
    char path[128];
    FILE *file;

    begin_open();
    append_some(500);
    store_close(store);
    store = NULL;
    (void) snprintf(path, sizeof path, "%s/server/cove.db", state);
    file = fopen(path, "r+");
    for (long at = 60000; file && at < 90000; at += 7) {
        (void) fseek(file, at, SEEK_SET);
        (void) fputs("garbage", file);
    }
    if (file)
        (void) fclose(file);
    CHECK(store_open(state, &store, &err) == -1);
    CHECK(strstr(err.msg, "the store is damaged: restore cove.db from a copy") != NULL);
    CHECK(store == NULL);
    end();
}

static int keep_detail(void *arg, const struct audit_record *record, struct err *why)
{
    (void) why;
    (void) snprintf(arg, 300, "%s", record->detail);
    return 0;
}

static void texts_are_utf8_whatever_came(void)
{
    static const struct audit_filter last = { .limit = 1 };
    char text[300], got[300] = "";
    struct audit_record record = { .tenant = "local", .action = "file.read", .detail = text };

    begin_open();
    (void) strcpy(text, "a\xff\xc3z\xc3\xa9");
    CHECK(store_audit_append(store, &record, STORE_ON_DISK, &err) == 0);
    CHECK(store_audit_list(store, &last, keep_detail, got, &err) == 0);
    CHECK_STR(got, "a??z\xc3\xa9");
    memset(text, 'a', 255); /* then a character that is cut at the end */
    (void) strcpy(text + 255, "\xc3\xa9");
    CHECK(store_audit_append(store, &record, STORE_ON_DISK, &err) == 0);
    CHECK(store_audit_list(store, &last, keep_detail, got, &err) == 0);
    CHECK_INT(strlen(got), 256);
    CHECK_INT(got[255], '?');
    CHECK_INT(verified().broken_at, 0);
    sql("UPDATE audit SET detail = CAST(x'41ff42' AS TEXT) WHERE seq = 2"); /* as earlier versions did */
    CHECK(store_audit_list(store, &last, keep_detail, got, &err) == 0);
    CHECK_STR(got, "A?B");
    CHECK_INT(verified().broken_at, 2);
    end();
}

CHECK_MAIN(T(an_untouched_chain_is_whole), T(a_changed_record_breaks_the_chain),
           T(a_removed_record_breaks_the_chain), T(records_cut_off_the_end_are_missed),
           T(the_chain_goes_on_after_closing), T(two_programs_append_to_one_chain),
           T(pruning_keeps_the_chain), T(the_record_of_a_removal_is_written_with_it),
           T(filters_choose_and_cursors_go_on), T(many_threads_make_one_chain),
           T(a_full_disk_is_said_and_reads_go_on), T(a_damaged_file_is_said_when_it_is_opened),
           T(texts_are_utf8_whatever_came))
