/* Secrets of tenants. A value is sealed before it is queued for the writer, and opened after the reader has let go: the
 * database never sees one. */
#include "base/own.h"
#include "store/own.h"

#include <inttypes.h>
#include <string.h>

/* ---- the key ---- */

static int key_of(struct store *store, unsigned char ret[SEAL_KEY_LEN], struct err *err)
{
    int r = 0;

    (void) pthread_mutex_lock(&store->lock);
    if (!store->has_seal) {
        r = seal_key(store->path, store->seal, err);
        store->has_seal = r == 0;
    }
    memcpy(ret, store->seal, SEAL_KEY_LEN);
    (void) pthread_mutex_unlock(&store->lock);
    return r;
}

int store_vault_ready(struct store *store, struct err *err)
{
    unsigned char key[SEAL_KEY_LEN];
    int r = key_of(store, key, err);

    explicit_bzero(key, sizeof key);
    return r;
}

int store_seal(struct store *store, const char *about, const char *text, size_t len, char **ret,
               struct err *err)
{
    unsigned char key[SEAL_KEY_LEN];
    int r = key_of(store, key, err) < 0 ? -1 : seal_close(key, about, text, len, ret, err);

    explicit_bzero(key, sizeof key);
    return r;
}

int store_unseal(struct store *store, const char *about, const char *sealed, char **ret,
                 size_t *ret_len, struct err *err)
{
    unsigned char key[SEAL_KEY_LEN];
    int r = key_of(store, key, err) < 0 ? -1 : seal_open(key, about, sealed, ret, ret_len, err);

    explicit_bzero(key, sizeof key);
    return r;
}

#define ABOUT_MAX (STORE_TENANT_MAX + STORE_NAME_MAX + 16)

static void about_secret(char out[ABOUT_MAX], const char *tenant, const char *name)
{
    (void) snprintf(out, ABOUT_MAX, "secret/%.63s/%.63s", tenant, name);
}

static void about_sandbox(char out[ABOUT_MAX], const char *id)
{
    (void) snprintf(out, ABOUT_MAX, "sandbox/%.63s", id);
}

/* ---- what can be one ---- */

bool store_vault_name_ok(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

    return len > 0 && len < STORE_NAME_MAX && !name[len] && !(name[0] >= '0' && name[0] <= '9');
}

bool store_vault_value_ok(const char *value, size_t len)
{
    if (len == 0 || len > STORE_VALUE_MAX || value[0] == ' ' || value[len - 1] == ' ')
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) value[i] < ' ' || value[i] == 0x7f)
            return false;
    return true;
}

static int check(const char *name, const char *value, size_t len, struct err *err)
{
    if (!store_vault_name_ok(name))
        return err_set(err, ERR_INVALID,
                       "the name of a secret is 1 to 63 letters, digits and '_', "
                       "and begins with no digit");
    if (len > STORE_VALUE_MAX)
        return err_set(err, ERR_TOO_BIG, "a secret has %d bytes at most", STORE_VALUE_MAX);
    if (!store_vault_value_ok(value, len))
        return err_set(err, ERR_INVALID,
                       "a secret is a text of one line, without control "
                       "characters and without blanks at its ends");
    return 0;
}

/* ---- secrets ---- */

struct change {
    const char *tenant, *name, *hosts, *sealed;
};

static int set(struct db *db, void *arg, struct err *err)
{
    const struct change *c = arg;
    struct store_tenant tenant;
    sqlite3_stmt *stmt;
    uint64_t others;

    if (tenant_read(db, c->tenant, &tenant, err) < 0 || !(stmt = db_stmt(db, SQL_VAULT_COUNT, err)))
        return -1;
    db_bind(stmt, "tt", c->tenant, c->name);
    if (db_step(db, stmt, err) != 1)
        return -1;
    others = db_number(stmt, 0);
    (void) sqlite3_reset(stmt);
    if (others >= STORE_VAULT_MOST)
        return err_set(err, ERR_TOO_MANY, "a tenant has %d secrets at most", STORE_VAULT_MOST);
    return db_run(db, err, SQL_VAULT_SET, "tttti", c->tenant, c->name, c->hosts, c->sealed,
                  (int64_t) store_now_ms());
}

int store_vault_set(struct store *store, const char *tenant, const char *name, const char *hosts,
                    const char *value, size_t len, struct err *err)
{
    auto_free char *sealed = NULL;
    char about[ABOUT_MAX];
    struct change c = { tenant, name, hosts, NULL };

    if (check(name, value, len, err) < 0)
        return -1;
    if (strlen(hosts) >= STORE_HOSTS_MAX)
        return err_set(err, ERR_TOO_BIG, "the hosts of a secret are too long");
    about_secret(about, tenant, name);
    if (store_seal(store, about, value, len, &sealed, err) < 0)
        return -1;
    c.sealed = sealed;
    return store_write(store, set, &c, err);
}

static void read_row(sqlite3_stmt *stmt, struct store_vault *ret)
{
    db_copy(stmt, 0, ret->name, sizeof ret->name);
    db_copy(stmt, 1, ret->hosts, sizeof ret->hosts);
    ret->created_ms = db_number(stmt, 2);
    ret->updated_ms = db_number(stmt, 3);
}

static int absent(const char *name, struct err *err)
{
    return err_set(err, ERR_NO_PATH, "there is no secret '%.63s'", name);
}

/* The sealed text of one row, copied. 0: there is none. */
static int read_sealed(struct store *store, enum sql which, const char *first, const char *second,
                       struct store_vault *ret, char **ret_sealed, struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, which, err);
    if (stmt) {
        db_bind(stmt, second ? "tt" : "t", first, second);
        rc = db_step(&db, stmt, err);
    }
    if (rc == 1) {
        if (ret)
            read_row(stmt, ret);
        *ret_sealed = strdup(db_text(stmt, ret ? 4 : 0));
        if (!*ret_sealed)
            rc = err_set(err, ERR_NO_MEMORY, "no memory for a secret");
    }
    reader_give(store, &db);
    return rc;
}

int store_vault_get(struct store *store, const char *tenant, const char *name,
                    struct store_vault *ret, char **ret_value, size_t *ret_len, struct err *err)
{
    auto_free char *sealed = NULL;
    char about[ABOUT_MAX];
    int rc = read_sealed(store, SQL_VAULT_GET, tenant, name, ret, &sealed, err);

    if (rc <= 0)
        return rc < 0 ? -1 : absent(name, err);
    about_secret(about, tenant, name);
    return store_unseal(store, about, sealed, ret_value, ret_len, err);
}

static int remove_one(struct db *db, void *arg, struct err *err)
{
    const struct change *c = arg;

    if (db_run(db, err, SQL_VAULT_REMOVE, "tt", c->tenant, c->name) < 0)
        return -1;
    return sqlite3_changes(db->handle) == 0 ? absent(c->name, err) : 0;
}

int store_vault_remove(struct store *store, const char *tenant, const char *name, struct err *err)
{
    struct change c = { tenant, name, NULL, NULL };

    return store_write(store, remove_one, &c, err);
}

int store_vault_list(struct store *store, const char *tenant, store_vault_each *each, void *arg,
                     struct err *err)
{
    struct store_vault secret;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_VAULT_LIST, err);
    if (stmt) {
        db_bind(stmt, "t", tenant);
        while ((rc = db_step(&db, stmt, err)) == 1) {
            read_row(stmt, &secret);
            if (each(arg, &secret, err) < 0) {
                rc = -1;
                break;
            }
        }
    }
    reader_give(store, &db);
    return rc;
}

int store_vault_stamp(struct store *store, uint64_t *ret, struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_VAULT_STAMP, err);
    if (stmt && (rc = db_step(&db, stmt, err)) == 1)
        *ret = db_number(stmt, 0);
    reader_give(store, &db);
    return rc < 0 ? -1 : 0;
}

/* ---- of sandboxes ---- */

int hidden_seal(struct store *store, const char *id, const char *text, char **ret, struct err *err)
{
    char about[ABOUT_MAX];

    about_sandbox(about, id);
    return store_seal(store, about, text, strlen(text), ret, err);
}

static int set_hidden(struct db *db, void *arg, struct err *err)
{
    const struct change *c = arg;

    return db_run(db, err, SQL_HIDDEN_SET, "tt", c->name, c->sealed);
}

int store_hidden_set(struct store *store, const char *id, const char *text, struct err *err)
{
    auto_free char *sealed = NULL;
    struct change c = { NULL, id, NULL, NULL };

    if (hidden_seal(store, id, text, &sealed, err) < 0)
        return -1;
    c.sealed = sealed;
    return store_write(store, set_hidden, &c, err);
}

int store_hidden_get(struct store *store, const char *id, char **ret, size_t *ret_len,
                     struct err *err)
{
    auto_free char *sealed = NULL;
    char about[ABOUT_MAX];
    int rc = read_sealed(store, SQL_HIDDEN_GET, id, NULL, NULL, &sealed, err);

    if (rc < 0)
        return -1;
    *ret = NULL;
    *ret_len = 0;
    if (rc == 0)
        return 0;
    about_sandbox(about, id);
    return store_unseal(store, about, sealed, ret, ret_len, err);
}

/* The rows are copied before anyone is called: who is called may take its time, and read for itself. */
struct owner {
    char id[ID_LEN + 1], tenant[STORE_TENANT_MAX];
};

static int read_owners(struct store *store, const char *tenant, struct owner **ret,
                       size_t *ret_count, struct err *err)
{
    size_t room = 0;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_HIDDEN_LIST, err);
    if (stmt)
        db_bind(stmt, "t", tenant);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        if (*ret_count == room) {
            size_t wider = room ? 2 * room : 64;
            struct owner *more = realloc(*ret, wider * sizeof *more);

            if (!more) {
                rc = err_set(err, ERR_NO_MEMORY, "no memory for a list of sandboxes");
                break;
            }
            *ret = more;
            room = wider;
        }
        db_copy(stmt, 0, (*ret)[*ret_count].id, sizeof(*ret)->id);
        db_copy(stmt, 1, (*ret)[(*ret_count)++].tenant, sizeof(*ret)->tenant);
    }
    reader_give(store, &db);
    return rc;
}

int store_hidden_list(struct store *store, const char *tenant, store_hidden_each *each, void *arg,
                      struct err *err)
{
    auto_free struct owner *owners = NULL;
    size_t count = 0;

    if (read_owners(store, tenant, &owners, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (each(arg, owners[i].id, owners[i].tenant, err) < 0)
            return -1;
    return 0;
}
