/* Tenants, keys and sandboxes, each test in a state directory of its own. */
#include "base/own.h"
#include "base/sha256.h"
#include "store/db.h"
#include "store/store.h"

#include "check.h"

#include <pthread.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID(c) "i" c c c c c c c c c c c c c c c c c c c c

static char state[64];
static struct store *store;
static struct err err;

static void begin(void)
{
    (void) strcpy(state, "/tmp/cove-store.XXXXXX");
    if (!mkdtemp(state))
        exit(1);
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

/* ---- hashes ---- */

static void sha256_gives_the_published_values(void)
{
    static char million[1000000];
    struct sha256 hash;
    unsigned char sum[SHA256_LEN];
    char hex[SHA256_HEX];

    sha256_of("", 0, sum);
    sha256_hex(sum, sizeof sum, hex);
    CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_of("abc", 3, sum);
    sha256_hex(sum, sizeof sum, hex);
    CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    memset(million, 'a', sizeof million);
    sha256_init(&hash);
    for (size_t at = 0, n = 1; at < sizeof million; at += n, n = n % 97 + 1) {
        if (n > sizeof million - at)
            n = sizeof million - at;
        sha256_add(&hash, million + at, n);
    }
    sha256_done(&hash, sum);
    sha256_hex(sum, sizeof sum, hex);
    CHECK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* ---- opening ---- */

static void a_file_that_is_no_store_is_refused_and_left_alone(void)
{
    struct store *other = NULL;
    char path[128];
    struct stat st;
    FILE *file;

    begin();
    store_close(store);
    (void) snprintf(path, sizeof path, "%s/server/cove.db", state);
    file = fopen(path, "w");
    for (int i = 0; file && i < 400; i++)
        (void) fputs("this is no database\n", file);
    if (file)
        (void) fclose(file);
    CHECK(store_open(state, &other, &err) == -1);
    CHECK(strstr(err.msg, "the store is damaged: cove.db is not an SQLite file") != NULL);
    CHECK_INT(err.kind, ERR_UNAVAILABLE);
    CHECK(other == NULL);
    CHECK(stat(path, &st) == 0 && st.st_size == 8000);
    store = NULL;
    end();
}

/* A file as version 1 made it, whatever was added since. */
static void an_older_store_is_brought_up_to_date(void)
{
    struct store_tenant tenant;
    struct store_sandbox got;
    char path[128];

    begin();
    store_close(store);
    store = NULL;
    (void) snprintf(path, sizeof path, "%s/server/cove.db", state);
    CHECK(truncate(path, 0) == 0);
    sql(db_schema);
    sql("INSERT INTO tenants VALUES('old', 1, 5, 0, 0, 0, 0, 0, 0)");
    sql("INSERT INTO sandboxes(id, tenant, name, template, metadata, created_ms, deadline_ms, "
        "on_timeout,"
        " idempotency_key, cpu_milli, memory_bytes, disk_bytes)"
        " VALUES('" ID("a") "', 'old', '', '', '{}', 1, 2, 0, 'k', 3, 4, 5)");
    if (store_open(state, &store, &err) < 0) {
        CHECK_STR(err.msg, "opened");
        return;
    }
    CHECK(store_tenant_get(store, "old", &tenant, &err) == 0);
    CHECK_INT(tenant.quotas.sandboxes, 5);
    CHECK_INT(tenant.quotas.stored_bytes, 0);
    CHECK(store_sandbox_find_idempotency(store, "old", "k", &got, &err) == 0);
    CHECK_STR(got.request_hash, "");
    CHECK_INT(got.disk_bytes, 5);
    end();
}

static void a_clock_that_is_set_takes_the_deadlines_along(void)
{
    struct store_sandbox got;

    begin();
    sql("INSERT INTO sandboxes(id, tenant, name, template, metadata, created_ms, deadline_ms, "
        "on_timeout,"
        " idempotency_key, cpu_milli, memory_bytes, disk_bytes)"
        " VALUES('" ID("a") "', 'local', '', '', '{}', 5000, 9000, 0, '', 1, 1, 1),"
                            "       ('" ID(
                                "b") "', 'local', '', '', '{}', 5000, 0, 0, '', 1, 1, 1)");
    CHECK(store_sandbox_shift(store, 1000, &err) == 0);
    CHECK(store_sandbox_get(store, NULL, ID("a"), &got, &err) == 0);
    CHECK_INT(got.created_ms, 6000);
    CHECK_INT(got.deadline_ms, 10000);
    CHECK(store_sandbox_get(store, NULL, ID("b"), &got, &err) == 0);
    CHECK_INT(got.deadline_ms, 0); /* none stays none */
    CHECK(store_sandbox_shift(store, -20000, &err) == 0);
    CHECK(store_sandbox_get(store, NULL, ID("a"), &got, &err) == 0);
    CHECK_INT(got.deadline_ms, 1); /* past, but one */
    end();
}

static void another_programs_database_is_refused(void)
{
    struct store *other = NULL;

    begin();
    sql("PRAGMA application_id = 42");
    CHECK(store_open(state, &other, &err) == -1);
    CHECK(strstr(err.msg, "the file is another program's, not cove's") != NULL);
    end();
}

static void a_later_versions_store_is_refused(void)
{
    struct store *other = NULL;

    begin();
    sql("PRAGMA user_version = 99");
    CHECK(store_open(state, &other, &err) == -1);
    CHECK(strstr(err.msg, "of a later version of cove (99, this one knows ") != NULL);
    end();
}

static void an_environment_lives_as_long_as_its_sandbox(void)
{
    struct store_sandbox sandbox = { .id = ID("a"), .tenant = "local", .env = "[\"X=1\"]" };
    struct store_sandbox got;
    char *env = NULL;

    begin();
    CHECK_INT(store_sandbox_add(store, &sandbox, &err), 0);
    CHECK_INT(store_sandbox_get(store, NULL, sandbox.id, &got, &err), 0);
    CHECK(got.env == NULL);
    CHECK_INT(store_sandbox_env(store, sandbox.id, &env, &err), 0);
    CHECK_STR(env ? env : "", "[\"X=1\"]");
    free(env);
    CHECK_INT(store_sandbox_set_metadata(store, sandbox.id, "{\"a\":\"b\"}", &err), 0);
    CHECK_INT(store_sandbox_get(store, NULL, sandbox.id, &got, &err), 0);
    CHECK_STR(got.metadata, "{\"a\":\"b\"}");
    CHECK_INT(store_sandbox_remove(store, sandbox.id, &err), 0);
    CHECK_INT(store_sandbox_env(store, sandbox.id, &env, &err), 0);
    CHECK(env == NULL);
    CHECK_INT(store_sandbox_set_metadata(store, sandbox.id, "{}", &err), -1);
    CHECK_INT(err.kind, ERR_NO_SANDBOX);
    end();
}

static void only_the_owner_can_read_the_store(void)
{
    char path[128];
    struct stat st;

    begin();
    (void) snprintf(path, sizeof path, "%s/server", state);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0700);
    (void) snprintf(path, sizeof path, "%s/server/cove.db", state);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
    end();
}

static void a_secret_stays_the_same(void)
{
    unsigned char one[32], two[32], other[32];

    begin();
    CHECK(store_secret(store, "urls", one, &err) == 0);
    CHECK(store_secret(store, "other", other, &err) == 0);
    store_close(store);
    CHECK(store_open(state, &store, &err) == 0);
    CHECK(store_secret(store, "urls", two, &err) == 0);
    CHECK(memcmp(one, two, 32) == 0);
    CHECK(memcmp(one, other, 32) != 0);
    end();
}

/* ---- tenants ---- */

static void tenants_are_added_changed_and_removed(void)
{
    struct store_quotas quotas;
    struct store_tenant tenant;

    begin();
    store_quotas_default(&quotas);
    CHECK(store_tenant_add(store, "Team A", &quotas, &err) == -1 && err.kind == ERR_INVALID);
    CHECK(store_tenant_add(store, "team-a", &quotas, &err) == 0);
    CHECK(store_tenant_add(store, "team-a", &quotas, &err) == -1);
    CHECK_STR(err.msg, "there is a tenant 'team-a' already");
    quotas.sandboxes = 7;
    CHECK(store_tenant_set(store, "team-a", &quotas, &err) == 0);
    CHECK(store_tenant_get(store, "team-a", &tenant, &err) == 0);
    CHECK_INT(tenant.quotas.sandboxes, 7);
    CHECK(tenant.created_ms > 0);
    CHECK(store_tenant_set(store, "team-b", &quotas, &err) == -1);
    CHECK_STR(err.msg, "there is no tenant 'team-b'");
    CHECK(store_tenant_remove(store, "team-a", &err) == 0);
    CHECK(store_tenant_remove(store, "team-a", &err) == -1 && err.kind == ERR_NO_PATH);
    end();
}

static void a_tenant_and_its_network_are_written_together_or_not_at_all(void)
{
    const struct store_network_new network = { "{}", "user\npassword" };
    struct store_quotas quotas;
    struct store_tenant tenant;
    char *rules = NULL;

    begin();
    sql("CREATE TRIGGER broken BEFORE INSERT ON network_defaults BEGIN SELECT RAISE(ABORT, 'no'); "
        "END");
    store_quotas_default(&quotas);
    CHECK(store_tenant_write(store, true, "team", &quotas, &network, &err) == -1);
    CHECK(store_tenant_get(store, "team", &tenant, &err) == -1 && err.kind == ERR_NO_PATH);
    CHECK(store_tenant_add(store, "team", &quotas, &err) == 0);
    quotas.sandboxes = 7;
    CHECK(store_tenant_write(store, false, "team", &quotas, &network, &err) == -1);
    CHECK(store_tenant_get(store, "team", &tenant, &err) == 0 && tenant.quotas.sandboxes == 100);
    sql("DROP TRIGGER broken");
    CHECK(store_tenant_write(store, false, "team", &quotas, &network, &err) == 0);
    CHECK(store_tenant_get(store, "team", &tenant, &err) == 0 && tenant.quotas.sandboxes == 7);
    CHECK(store_network_default_get(store, STORE_NETWORK_TENANT, "team", &rules, NULL, &err) == 0);
    CHECK_STR(rules, "{}");
    free(rules);
    end();
}

#define CHANGES 100
static void *change_one_quota(void *offset)
{
    struct store_quotas quotas;
    struct err own;

    for (uint64_t i = 1; i <= CHANGES; i++) {
        memset(&quotas, 0xff, sizeof quotas); /* STORE_QUOTA_KEEP, each */
        *(uint64_t *) ((char *) &quotas + (uintptr_t) offset) = i;
        CHECK(store_tenant_write(store, false, "team", &quotas, NULL, &own) == 0);
    }
    return NULL;
}

static void two_changes_of_a_tenant_at_once_both_count(void)
{
    static const size_t offsets[] = { offsetof(struct store_quotas, sandboxes),
                                      offsetof(struct store_quotas, streams) };
    struct store_quotas quotas;
    struct store_tenant tenant;
    pthread_t threads[2];

    begin();
    memset(&quotas, 0xff, sizeof quotas);
    CHECK(store_tenant_add(store, "team", &quotas, &err) == 0);
    CHECK(store_tenant_get(store, "team", &tenant, &err) == 0 && tenant.quotas.sandboxes == 100);
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, change_one_quota, (void *) offsets[i]) == 0);
    for (size_t i = 0; i < 2; i++)
        (void) pthread_join(threads[i], NULL);
    CHECK(store_tenant_get(store, "team", &tenant, &err) == 0);
    CHECK_INT(tenant.quotas.sandboxes, CHANGES);
    CHECK_INT(tenant.quotas.streams, CHANGES);
    CHECK_INT(tenant.quotas.requests_per_s, 500); /* nobody changed it */
    end();
}

static void the_local_tenant_is_there_without_limits_and_stays(void)
{
    struct store_tenant tenant;

    begin();
    CHECK(store_tenant_get(store, "local", &tenant, &err) == 0);
    CHECK_INT(tenant.quotas.sandboxes, 0);
    CHECK(store_tenant_remove(store, "local", &err) == -1);
    CHECK_STR(err.msg, "the tenant 'local' is always there");
    end();
}

/* ---- keys ---- */

static void a_key_opens_what_its_text_says_and_nothing_else_does(void)
{
    char text[STORE_KEY_TEXT_MAX], other[STORE_KEY_TEXT_MAX];
    struct store_key key, found;

    begin();
    CHECK(store_key_create(store, "local", STORE_SCOPE_RUN, "ci", 0, &key, text, &err) == 0);
    CHECK_INT(strlen(text), 44);
    CHECK(strncmp(text, "e2b_", 4) == 0);
    CHECK(strncmp(text + 4, key.id, 12) == 0);
    CHECK(store_key_find(store, text, &found, &err) == 0);
    CHECK_STR(found.tenant, "local");
    CHECK_INT(found.scope, STORE_SCOPE_RUN);
    memcpy(other, text, sizeof other);
    other[43] = other[43] == '0' ? '1' : '0';
    CHECK(store_key_find(store, other, &found, &err) == -1);
    CHECK_STR(err.msg, "not a key of this server");
    CHECK(store_key_find(store, "e2b_", &found, &err) == -1 && err.kind == ERR_DENIED);
    CHECK(store_key_find(store, "", &found, &err) == -1 && err.kind == ERR_DENIED);
    text[43] = '\0';
    CHECK(store_key_find(store, text, &found, &err) == -1 && err.kind == ERR_DENIED);
    end();
}

static void the_file_never_holds_a_key(void)
{
    char text[STORE_KEY_TEXT_MAX], command[256];
    struct store_key key;

    begin();
    CHECK(store_key_create(store, "local", STORE_SCOPE_RUN, "", 0, &key, text, &err) == 0);
    (void) snprintf(command, sizeof command, "grep -qaF '%s' %s/server/*", text + 16, state);
    CHECK(system(command) != 0);
    (void) snprintf(command, sizeof command, "grep -qaF '%s' %s/server/*", key.id, state);
    CHECK(system(command) == 0);
    end();
}

static void expired_and_revoked_keys_say_so(void)
{
    char text[STORE_KEY_TEXT_MAX];
    struct store_key key, found;

    begin();
    CHECK(store_key_create(store, "local", STORE_SCOPE_READ, "", store_now_ms() - 1, &key, text,
                           &err) == 0);
    CHECK(store_key_find(store, text, &found, &err) == -1);
    CHECK_STR(err.msg, "this key has expired");
    CHECK(store_key_revoke(store, key.id, &found, &err) == 0);
    CHECK_STR(found.tenant, "local");
    CHECK(found.revoked_ms > 0);
    CHECK(store_key_create(store, "local", STORE_SCOPE_READ, "", 0, &key, text, &err) == 0);
    CHECK(store_key_revoke(store, key.id, NULL, &err) == 0);
    CHECK(store_key_revoke(store, key.id, NULL, &err) == 0);
    CHECK(store_key_find(store, text, &found, &err) == -1);
    CHECK_STR(err.msg, "this key was revoked");
    CHECK(store_key_revoke(store, "000000000000", NULL, &err) == -1 && err.kind == ERR_NO_PATH);
    end();
}

static void keys_go_with_their_tenant(void)
{
    char text[STORE_KEY_TEXT_MAX];
    struct store_quotas quotas = { 0 };
    struct store_key key;

    begin();
    CHECK(store_key_create(store, "nobody", STORE_SCOPE_RUN, "", 0, &key, text, &err) == -1);
    CHECK_STR(err.msg, "there is no tenant 'nobody'");
    CHECK(store_tenant_add(store, "a", &quotas, &err) == 0);
    CHECK(store_key_create(store, "a", STORE_SCOPE_RUN, "", 0, &key, text, &err) == 0);
    CHECK(store_tenant_remove(store, "a", &err) == 0);
    CHECK(store_key_find(store, text, &key, &err) == -1 && err.kind == ERR_DENIED);
    end();
}

static void a_keys_use_is_noted_once_a_minute(void)
{
    char text[STORE_KEY_TEXT_MAX];
    struct store_key key;
    uint64_t now = store_now_ms();
    bool noted = false;

    begin();
    CHECK(store_key_create(store, "local", STORE_SCOPE_RUN, "", 0, &key, text, &err) == 0);
    CHECK(store_key_used(store, key.id, now, &noted, &err) == 0 && noted);
    CHECK(store_key_used(store, key.id, now + 1000, &noted, &err) == 0 && !noted);
    CHECK(store_key_used(store, key.id, now + 61000, &noted, &err) == 0 && noted);
    CHECK(store_key_used(store, key.id, now - 100000, &noted, &err) == 0 && noted);
    end();
}

/* ---- sandboxes ---- */

static struct store_sandbox sandbox(const char *id, const char *tenant)
{
    struct store_sandbox s = { .created_ms = 1000,
                               .deadline_ms = 2000,
                               .cpu_milli = 1000,
                               .memory_bytes = 512 << 20,
                               .disk_bytes = 1 << 30 };

    (void) snprintf(s.id, sizeof s.id, "%s", id);
    (void) snprintf(s.tenant, sizeof s.tenant, "%s", tenant);
    (void) snprintf(s.metadata, sizeof s.metadata, "{\"a\":\"b\"}");
    return s;
}

static void a_foreign_sandbox_is_as_unknown_as_none(void)
{
    struct store_quotas quotas = { 0 };
    struct store_sandbox s = sandbox(ID("a"), "local"), got;
    char foreign[ERR_MSG_MAX];

    begin();
    CHECK(store_tenant_add(store, "other", &quotas, &err) == 0);
    CHECK(store_sandbox_add(store, &s, &err) == 0);
    CHECK(store_sandbox_get(store, "local", s.id, &got, &err) == 0);
    CHECK_STR(got.metadata, "{\"a\":\"b\"}");
    CHECK_INT(got.deadline_ms, 2000);
    CHECK(store_sandbox_get(store, NULL, s.id, &got, &err) == 0);
    CHECK(store_sandbox_get(store, "other", s.id, &got, &err) == -1);
    CHECK_INT(err.kind, ERR_NO_SANDBOX);
    (void) strcpy(foreign, err.msg);
    CHECK(store_sandbox_remove(store, s.id, &err) == 0);
    CHECK(store_sandbox_get(store, "other", s.id, &got, &err) == -1);
    CHECK_STR(err.msg, foreign);
    CHECK(store_sandbox_remove(store, s.id, &err) == 0);
    end();
}

static void names_and_idempotency_keys_are_unique_in_a_tenant(void)
{
    struct store_quotas quotas = { 0 };
    struct store_sandbox one = sandbox(ID("a"), "local"), two = sandbox(ID("b"), "local"), got;

    begin();
    CHECK(store_tenant_add(store, "other", &quotas, &err) == 0);
    (void) strcpy(one.name, "web");
    (void) strcpy(one.idempotency_key, "k1");
    CHECK(store_sandbox_add(store, &one, &err) == 0);
    (void) strcpy(two.name, "web");
    CHECK(store_sandbox_add(store, &two, &err) == -1);
    CHECK_INT(err.kind, ERR_NAME_TAKEN);
    (void) strcpy(two.idempotency_key, "k1");
    CHECK(store_sandbox_add(store, &two, &err) == -1);
    CHECK_INT(err.kind, ERR_EXISTS);
    (void) strcpy(two.tenant, "other");
    CHECK(store_sandbox_add(store, &two, &err) == 0);
    CHECK(store_sandbox_find_name(store, "other", "web", &got, &err) == 0);
    CHECK_STR(got.id, two.id);
    CHECK(store_sandbox_find_idempotency(store, "local", "k1", &got, &err) == 0);
    CHECK_STR(got.id, one.id);
    CHECK(store_sandbox_find_name(store, "other", "", &got, &err) == -1);
    end();
}

static void quotas_hold_exactly(void)
{
    struct store_quotas quotas = { .sandboxes = 2, .memory_bytes = 1ull << 30 };
    struct store_sandbox s = sandbox(ID("a"), "small");

    begin();
    CHECK(store_tenant_add(store, "small", &quotas, &err) == 0);
    CHECK(store_sandbox_add(store, &s, &err) == 0);
    (void) strcpy(s.id, ID("b"));
    s.memory_bytes++;
    CHECK(store_sandbox_add(store, &s, &err) == -1);
    CHECK_INT(err.kind, ERR_TOO_MANY);
    CHECK(strncmp(err.msg, "quota of memory: 512 MiB in use, 512 MiB more", 45) == 0);
    s.memory_bytes--;
    CHECK(store_sandbox_add(store, &s, &err) == 0);
    (void) strcpy(s.id, ID("c"));
    CHECK(store_sandbox_add(store, &s, &err) == -1);
    CHECK_STR(err.msg, "quota of sandboxes: 2 in use, 1 more were asked for, 2 are allowed");
    CHECK(store_tenant_remove(store, "small", &err) == -1 && err.kind == ERR_NOT_EMPTY);
    end();
}

static int collect(void *arg, const struct store_sandbox *s, struct err *why)
{
    char *out = arg;

    (void) why;
    (void) strncat(out, s->id + 1, 1);
    return 0;
}

static void lists_come_in_pages_newest_first(void)
{
    static const char *const ids[] = { ID("a"), ID("b"), ID("c"), ID("d"), ID("e") };
    char text[16] = "";
    struct store_sandbox got;

    begin();
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct store_sandbox s = sandbox(ids[i], "local");

        CHECK(store_sandbox_add(store, &s, &err) == 0);
    }
    CHECK(store_sandbox_list(store, "local", 0, 2, collect, text, &err) == 0);
    CHECK_STR(text, "ed");
    CHECK(store_sandbox_get(store, NULL, ID("d"), &got, &err) == 0);
    text[0] = '\0';
    CHECK(store_sandbox_list(store, "local", got.seq, 0, collect, text, &err) == 0);
    CHECK_STR(text, "cba");
    text[0] = '\0';
    CHECK(store_sandbox_list(store, "nobody", 0, 0, collect, text, &err) == 0);
    CHECK_STR(text, "");
    end();
}

static void *add_many(void *arg)
{
    long lane = (long) arg, added = 0;
    struct err why;

    for (int i = 0; i < 20; i++) {
        struct store_sandbox s = sandbox(ID("a"), "small");

        (void) snprintf(s.id, sizeof s.id, "i%019ld%c", lane, 'a' + i);
        added += store_sandbox_add(store, &s, &why) == 0;
    }
    return (void *) added;
}

static void a_quota_holds_for_many_threads(void)
{
    struct store_quotas quotas = { .sandboxes = 50 };
    pthread_t threads[8];
    struct store_usage usage;
    long added = 0;

    begin();
    CHECK(store_tenant_add(store, "small", &quotas, &err) == 0);
    for (long i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, add_many, (void *) i) == 0);
    for (long i = 0; i < 8; i++) {
        void *count = NULL;

        (void) pthread_join(threads[i], &count);
        added += (long) count;
    }
    CHECK_INT(added, 50);
    CHECK(store_usage(store, "small", &usage, &err) == 0);
    CHECK_INT(usage.sandboxes, 50);
    CHECK_INT(usage.cpu_milli, 50000);
    end();
}

/* ---- volumes ---- */

static int add_volume(const char *tenant, unsigned number, uint64_t bytes)
{
    struct store_volume v = { .bytes = bytes, .inodes = 100, .created_ms = 1 };

    (void) snprintf(v.id, sizeof v.id, "v%.4s%016u", tenant, number);
    (void) snprintf(v.tenant, sizeof v.tenant, "%s", tenant);
    (void) snprintf(v.name, sizeof v.name, "n%u", number);
    return store_volume_add(store, &v, &err);
}

static void a_foreign_volume_is_as_unknown_as_none(void)
{
    struct store_quotas quotas = { 0 };
    struct store_volume v;

    begin();
    CHECK(store_tenant_add(store, "team", &quotas, &err) == 0);
    CHECK(add_volume("local", 1, 5) == 0);
    CHECK(add_volume("local", 1, 5) == -1 && err.kind == ERR_EXISTS);
    CHECK(add_volume("team", 1, 6) == 0);
    CHECK(store_volume_get(store, "team", "n1", &v, &err) == 0 && v.bytes == 6);
    CHECK(store_volume_get(store, "local", v.id, &v, &err) == -1 && err.kind == ERR_NO_VOLUME);
    CHECK(store_tenant_remove(store, "team", &err) == -1 && err.kind == ERR_NOT_EMPTY);
    CHECK(store_volume_remove(store, v.id, &err) == 0);
    CHECK(store_tenant_remove(store, "team", &err) == 0);
    end();
}

static void volumes_have_bounds_in_bytes_and_number(void)
{
    struct store_quotas quotas = { .stored_bytes = 10 };

    begin();
    CHECK(store_tenant_add(store, "team", &quotas, &err) == 0);
    CHECK(add_volume("team", 1, 11) == -1 && err.kind == ERR_TOO_MANY);
    CHECK(add_volume("team", 1, 6) == 0);
    CHECK(add_volume("team", 2, UINT64_MAX / 4) == -1 && err.kind == ERR_TOO_MANY);
    CHECK(add_volume("team", 2, 4) == 0);
    CHECK(add_volume("team", 3, 1) == -1);
    sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
        "INSERT INTO volumes SELECT 'x' || i, 'local', 'x' || i, 1, 1, 1 FROM n");
    CHECK(add_volume("local", 1, 1) == -1 && err.kind == ERR_TOO_MANY);
    end();
}

CHECK_MAIN(T(sha256_gives_the_published_values),
           T(a_file_that_is_no_store_is_refused_and_left_alone),
           T(an_older_store_is_brought_up_to_date), T(an_environment_lives_as_long_as_its_sandbox),
           T(a_clock_that_is_set_takes_the_deadlines_along),
           T(another_programs_database_is_refused), T(a_later_versions_store_is_refused),
           T(only_the_owner_can_read_the_store), T(a_secret_stays_the_same),
           T(tenants_are_added_changed_and_removed),
           T(a_tenant_and_its_network_are_written_together_or_not_at_all),
           T(two_changes_of_a_tenant_at_once_both_count),
           T(the_local_tenant_is_there_without_limits_and_stays),
           T(a_key_opens_what_its_text_says_and_nothing_else_does), T(the_file_never_holds_a_key),
           T(expired_and_revoked_keys_say_so), T(keys_go_with_their_tenant),
           T(a_keys_use_is_noted_once_a_minute), T(a_foreign_sandbox_is_as_unknown_as_none),
           T(names_and_idempotency_keys_are_unique_in_a_tenant), T(quotas_hold_exactly),
           T(lists_come_in_pages_newest_first), T(a_quota_holds_for_many_threads),
           T(a_foreign_volume_is_as_unknown_as_none), T(volumes_have_bounds_in_bytes_and_number))
