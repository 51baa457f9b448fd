#include "base/own.h"
#include "store/own.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* A key is "e2b_" and 40 hex digits, of which the first 12 are its public id and 28, 112 bits, are
 * secret. The file has the id and the SHA-256 of the whole: a random key needs no slow hash. */

#define PREFIX     "e2b_"
#define PREFIX_LEN 4
#define ID_DIGITS  (STORE_KEY_ID_MAX - 1)
#define RANDOM     20

static const char *const scopes[] = {
    [STORE_SCOPE_READ] = "read",
    [STORE_SCOPE_RUN] = "run",
    [STORE_SCOPE_ADMIN] = "admin",
    [STORE_SCOPE_OPERATOR] = "operator",
};

const char *store_scope_name(int scope)
{
    return scope >= STORE_SCOPE_READ && scope <= STORE_SCOPE_OPERATOR ? scopes[scope] : "none";
}

int store_scope_parse(const char *text, int *ret, struct err *err)
{
    for (int i = STORE_SCOPE_READ; i <= STORE_SCOPE_OPERATOR; i++)
        if (strcmp(text, scopes[i]) == 0) {
            *ret = i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "'%.20s' is not a scope: read, run, admin or operator", text);
}

static void read_key(sqlite3_stmt *stmt, struct store_key *ret)
{
    db_copy(stmt, 0, ret->id, sizeof ret->id);
    db_copy(stmt, 1, ret->tenant, sizeof ret->tenant);
    db_copy(stmt, 2, ret->label, sizeof ret->label);
    ret->scope = (int) db_number(stmt, 3);
    ret->created_ms = db_number(stmt, 4);
    ret->expires_ms = db_number(stmt, 5);
    ret->revoked_ms = db_number(stmt, 6);
    ret->last_used_ms = db_number(stmt, 7);
}

/* ---- creating ---- */

struct new_key {
    struct store_key *key;
    unsigned char hash[SHA256_LEN];
};

static int add(struct db *db, void *arg, struct err *err)
{
    const struct new_key *new = arg;
    const struct store_key *key = new->key;
    struct store_tenant tenant;

    if (tenant_read(db, key->tenant, &tenant, err) < 0)
        return -1;
    return db_run(db, err, SQL_KEY_ADD, "thtitii", key->id, new->hash, key->tenant,
                  (int64_t) key->scope, key->label, (int64_t) key->created_ms,
                  (int64_t) key->expires_ms);
}

static int check_label(const char *label, struct err *err)
{
    if (strlen(label) >= STORE_NAME_MAX)
        return err_set(err, ERR_TOO_BIG, "label: more than %d bytes", STORE_NAME_MAX - 1);
    for (const char *c = label; *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            return err_set(err, ERR_INVALID, "label: has control characters in it");
    return 0;
}

int store_key_create(struct store *store, const char *tenant, int scope, const char *label,
                     uint64_t expires_ms, struct store_key *ret, char ret_text[STORE_KEY_TEXT_MAX],
                     struct err *err)
{
    unsigned char random[RANDOM];
    struct store_key key = { .scope = scope, .expires_ms = expires_ms };
    struct new_key new = { .key = &key };
    char text[STORE_KEY_TEXT_MAX] = PREFIX;

    if (scope < STORE_SCOPE_READ || scope > STORE_SCOPE_OPERATOR)
        return err_set(err, ERR_INVALID, "unknown scope");
    if (scope == STORE_SCOPE_OPERATOR && strcmp(tenant, STORE_LOCAL_TENANT) != 0)
        return err_set(err, ERR_INVALID,
                       "scope operator: only for keys of the tenant '" STORE_LOCAL_TENANT "'");
    if (strlen(tenant) >= sizeof key.tenant)
        return err_set(err, ERR_NO_PATH, "there is no tenant '%.63s'", tenant);
    if (check_label(label ? label : "", err) < 0)
        return -1;
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return err_sys(err, errno, "random bytes");
    sha256_hex(random, sizeof random, text + PREFIX_LEN);
    sha256_of(text, strlen(text), new.hash);
    key.created_ms = store_now_ms();
    memcpy(key.id, text + PREFIX_LEN, ID_DIGITS);
    (void) snprintf(key.tenant, sizeof key.tenant, "%s", tenant);
    (void) snprintf(key.label, sizeof key.label, "%s", label ? label : "");
    if (store_write(store, add, &new, err) == 0) {
        *ret = key;
        memcpy(ret_text, text, sizeof text);
        explicit_bzero(text, sizeof text);
        explicit_bzero(random, sizeof random);
        return 0;
    }
    explicit_bzero(text, sizeof text);
    explicit_bzero(random, sizeof random);
    return -1;
}

/* ---- finding ---- */

bool store_key_shaped(const char *text)
{
    return strncmp(text, PREFIX, PREFIX_LEN) == 0 &&
           strspn(text + PREFIX_LEN, "0123456789abcdef") == 2 * RANDOM &&
           !text[PREFIX_LEN + 2 * RANDOM];
}

/* 1: found, 0: not, -1. */
static int look_up(struct db *db, const char *id, struct store_key *ret,
                   unsigned char hash[SHA256_LEN], struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_KEY_FIND, err);
    int rc;

    if (!stmt)
        return -1;
    db_bind(stmt, "t", id);
    rc = db_step(db, stmt, err);
    if (rc != 1)
        return rc;
    read_key(stmt, ret);
    if (sqlite3_column_bytes(stmt, 8) == SHA256_LEN)
        memcpy(hash, sqlite3_column_blob(stmt, 8), SHA256_LEN);
    (void) sqlite3_reset(stmt);
    return 1;
}

/* Only to those who have shown the key, or something that was made with it. */
static int still_good(const struct store_key *key, struct err *err)
{
    if (key->revoked_ms)
        return err_set(err, ERR_DENIED, "this key was revoked");
    if (key->expires_ms && key->expires_ms <= store_now_ms())
        return err_set(err, ERR_DENIED, "this key has expired");
    return 0;
}

int store_key_get(struct store *store, const char *id, struct store_key *ret, struct err *err)
{
    unsigned char hash[SHA256_LEN];
    struct store_key key = { 0 };
    struct db db;
    int rc;

    if (reader_take(store, &db, err) < 0)
        return -1;
    rc = look_up(&db, id, &key, hash, err);
    reader_give(store, &db);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return err_set(err, ERR_DENIED, "not a key of this server");
    if (still_good(&key, err) < 0)
        return -1;
    *ret = key;
    return 0;
}

int store_key_find(struct store *store, const char *text, struct store_key *ret, struct err *err)
{
    unsigned char asked[SHA256_LEN], known[SHA256_LEN] = { 0 };
    char id[STORE_KEY_ID_MAX] = "";
    struct store_key key = { 0 };
    struct db db;
    bool same;
    int rc;

    if (!store_key_shaped(text))
        return err_set(err, ERR_DENIED, "not a key of this server");
    memcpy(id, text + PREFIX_LEN, ID_DIGITS);
    if (reader_take(store, &db, err) < 0)
        return -1;
    rc = look_up(&db, id, &key, known, err);
    reader_give(store, &db);
    if (rc < 0)
        return -1;
    /* An unknown id costs the same comparison. */
    sha256_of(text, strlen(text), asked);
    same = same_secret(asked, known, sizeof asked);
    if (rc == 0 || !same)
        return err_set(err, ERR_DENIED, "not a key of this server");
    if (still_good(&key, err) < 0)
        return -1;
    *ret = key;
    return 0;
}

/* ---- the rest of a key's life ---- */

struct use {
    const char *id;
    uint64_t now_ms;
    bool noted;
};

static int used(struct db *db, void *arg, struct err *err)
{
    struct use *use = arg;

    if (db_run(db, err, SQL_KEY_USED, "ti", use->id, (int64_t) use->now_ms) < 0)
        return -1;
    use->noted = sqlite3_changes(db->handle) > 0;
    return 0;
}

int store_key_used(struct store *store, const char *id, uint64_t now_ms, bool *ret_noted,
                   struct err *err)
{
    struct use use = { id, now_ms, false };

    if (store_write(store, used, &use, err) < 0)
        return -1;
    *ret_noted = use.noted;
    return 0;
}

static int set_revoked(struct db *db, void *arg, struct err *err)
{
    struct store_key *key = arg;
    unsigned char hash[SHA256_LEN];
    char id[STORE_KEY_ID_MAX];
    int rc;

    memcpy(id, key->id, sizeof id);
    if (db_run(db, err, SQL_KEY_REVOKE, "ti", id, (int64_t) store_now_ms()) < 0)
        return -1;
    rc = look_up(db, id, key, hash, err);
    return rc == 0 ? err_set(err, ERR_NO_PATH, "there is no key '%.12s'", id) : rc < 0 ? -1 : 0;
}

int store_key_revoke(struct store *store, const char *id, struct store_key *ret, struct err *err)
{
    struct store_key key = { 0 };

    if (strlen(id) != ID_DIGITS)
        return err_set(err, ERR_NO_PATH, "there is no key of that id (12 hex digits)");
    memcpy(key.id, id, sizeof key.id);
    if (store_write(store, set_revoked, &key, err) < 0)
        return -1;
    if (ret)
        *ret = key;
    return 0;
}

int store_key_list(struct store *store, const char *tenant, store_key_each *each, void *arg,
                   struct err *err)
{
    sqlite3_stmt *stmt;
    struct store_key key;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_KEY_LIST, err);
    if (stmt)
        db_bind(stmt, "t", tenant);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        read_key(stmt, &key);
        if (each(arg, &key, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}
