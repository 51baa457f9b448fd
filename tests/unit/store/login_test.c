/* Logins of proxies: what lies in the file, also of those that an older version left there in the open. */
#include "base/own.h"
#include "store/db.h"
#include "store/seal.h"
#include "store/store.h"

#include "check.h"

#include <glob.h>
#include <sqlite3.h>
#include <unistd.h>

#define HUSH    "open:sesame"
#define LOGIN   "me\n" HUSH
#define SANDBOX "iaaaaaaaaaaaaaaaaaaaa"

static char state[64];
static struct store *store;
static struct err err;

static void begin(void)
{
    (void) strcpy(state, "/tmp/cove-login.XXXXXX");
    if (!mkdtemp(state) || store_open(state, &store, &err) < 0) {
        printf("not ok - a store opens: %s\n", err.msg);
        exit(1);
    }
}

static void again(void)
{
    store_close(store);
    store = NULL;
    if (store_open(state, &store, &err) < 0) {
        printf("not ok - a store opens again: %s\n", err.msg);
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

/* How many of the store's files, the journal among them, have this in them. */
static int files_with(const char *text)
{
    char pattern[128];
    glob_t found;
    int count = 0;

    (void) snprintf(pattern, sizeof pattern, "%s/server/*", state);
    if (glob(pattern, 0, NULL, &found) != 0)
        return -1;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        static char data[1 << 22];
        size_t len = file ? fread(data, 1, sizeof data, file) : 0;

        if (file)
            (void) fclose(file);
        count += memmem(data, len, text, strlen(text)) != NULL;
    }
    globfree(&found);
    return count;
}

static void a_login_opens_for_its_proxy_alone(void)
{
    auto_free char *sealed = NULL;
    char *open = NULL;
    size_t len = 0;

    begin();
    CHECK(store_login_seal(store, "socks5/a.com:1", LOGIN, &sealed, &err) == 0);
    CHECK(sealed && !strstr(sealed, "sesame"));
    CHECK(store_login_open(store, "socks5/b.com:1", sealed, &open, &len, &err) == -1);
    CHECK_INT(err.kind, ERR_UNAVAILABLE);
    CHECK(store_login_open(store, "socks5/a.com:1", sealed, &open, &len, &err) == 0);
    CHECK_STR(open, LOGIN);
    seal_wipe(open, len);
    end();
}

static void a_defaults_login_is_nowhere_in_the_files(void)
{
    char *rules = NULL, *login = NULL;

    begin();
    CHECK(store_network_default_set(store, STORE_NETWORK_TENANT, "local", "{}", LOGIN, &err) == 0);
    CHECK(store_network_default_set(store, STORE_NETWORK_TEMPLATE, "base", "{}", "", &err) == 0);
    CHECK_INT(files_with("sesame"), 0);
    again();
    CHECK_INT(files_with("sesame"), 0);
    CHECK(store_network_default_get(store, STORE_NETWORK_TENANT, "local", &rules, &login, &err) ==
          0);
    CHECK_STR(login, LOGIN);
    free(rules);
    free(login);
    CHECK(store_network_default_get(store, STORE_NETWORK_TEMPLATE, "base", &rules, &login, &err) ==
          0);
    CHECK_STR(login, "");
    free(rules);
    free(login);
    end();
}

static void sql(const char *text)
{
    char path[128];
    sqlite3 *db = NULL;

    (void) snprintf(path, sizeof path, "%s/server/cove.db", state);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
    (void) sqlite3_close(db);
}

#define OPEN                                                                                       \
    "{\"mode\":\"public\",\"proxy\":{\"type\":\"socks5\",\"address\":\"a.com:1\","                 \
    "\"username\":\"me\",\"password\":\"" HUSH "\"}}"

/* As version 13 kept them; also of a sandbox that is no more, whose row is in a free page. */
static void what_was_in_the_open_is_sealed(void)
{
    static const char before[] = "{\"mode\":\"public\",\"proxy\":{\"type\":\"socks5\","
                                 "\"address\":\"a.com:1\",\"login\":\"";
    char *rules = NULL, *login = NULL, *open = NULL;
    size_t len = 0;

    begin();
    store_close(store);
    store = NULL;
    sql("INSERT INTO networks VALUES('" SANDBOX "', '" OPEN "'), ('ib', ''), ('ic', '{}'),"
        " ('id', '" OPEN "');"
        "DROP TRIGGER tenants_end_templates; DROP TABLE templates; DROP TABLE builds;"
        "DROP TABLE template_tags; DROP TABLE build_steps; DROP TABLE pulled;"
        "ALTER TABLE tenants DROP COLUMN images;"
        "ALTER TABLE tenants DROP COLUMN isolation;"
        "INSERT INTO snapshots_kept VALUES('s', '[]', '" OPEN "');"
        "INSERT INTO network_defaults VALUES('tenant', 'local', '{}', 'me' || char(10) || '" HUSH
        "'); DELETE FROM networks WHERE id = 'id'; PRAGMA user_version = 13");
    CHECK(files_with("sesame") > 0);
    CHECK(store_open(state, &store, &err) == 0);
    CHECK_INT(files_with("sesame"), 0);
    CHECK(store_network_get(store, SANDBOX, &rules, &err) == 0);
    CHECK(rules && strncmp(rules, before, sizeof before - 1) == 0 && strstr(rules, "\"}}"));
    if (rules && strlen(rules) > sizeof before) {
        rules[strlen(rules) - 3] = '\0';
        CHECK(store_login_open(store, "socks5/a.com:1", rules + sizeof before - 1, &open, &len,
                               &err) == 0);
        CHECK_STR(open, LOGIN);
        seal_wipe(open, len);
    }
    free(rules);
    CHECK(store_snapshot_kept(store, "s", &open, &rules, &err) == 0);
    CHECK(rules && strncmp(rules, before, sizeof before - 1) == 0);
    free(open);
    free(rules);
    CHECK(store_network_default_get(store, STORE_NETWORK_TENANT, "local", &rules, &login, &err) ==
          0);
    CHECK_STR(login, LOGIN);
    free(rules);
    free(login);
    CHECK(store_network_get(store, "ic", &rules, &err) == 0);
    CHECK_STR(rules, "{}");
    free(rules);
    end();
}

CHECK_MAIN(T(a_login_opens_for_its_proxy_alone), T(a_defaults_login_is_nowhere_in_the_files),
           T(what_was_in_the_open_is_sealed))
