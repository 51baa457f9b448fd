#include "base/own.h"
#include "store/own.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
    [STORE_NETWORK_TENANT] = "tenant",
    [STORE_NETWORK_TEMPLATE] = "template",
};
_Static_assert(ARRAY_LEN(kinds) == STORE_NETWORK_KINDS, "every kind has a name");

int network_default_write(struct db *db, enum store_network_kind kind, const char *name,
                          const char *rules, const char *login, struct err *err)
{
    return rules ? db_run(db, err, SQL_NETWORK_DEFAULT_SET, "tttt", kinds[kind], name, rules, login)
                 : db_run(db, err, SQL_NETWORK_DEFAULT_REMOVE, "tt", kinds[kind], name);
}

struct change {
    enum store_network_kind kind;
    const char *name, *rules, *login;
};

static int set(struct db *db, void *arg, struct err *err)
{
    const struct change *c = arg;
    struct store_tenant tenant;

    /* In the same transaction: a tenant that was removed meanwhile leaves nothing behind. */
    if (c->kind == STORE_NETWORK_TENANT && tenant_read(db, c->name, &tenant, err) < 0)
        return -1;
    return network_default_write(db, c->kind, c->name, c->rules, c->login, err);
}

static void about_default(enum store_network_kind kind, const char *name, char out[STORE_ABOUT_MAX])
{
    (void) snprintf(out, STORE_ABOUT_MAX, "login/%s/%s", kinds[kind], name);
}

int network_default_seal(struct store *store, enum store_network_kind kind, const char *name,
                         const char *rules, const char *login, char **ret, struct err *err)
{
    char about[STORE_ABOUT_MAX];

    if (rules && login && login[0]) {
        about_default(kind, name, about);
        return store_seal(store, about, login, strlen(login), ret, err);
    }
    *ret = strdup("");
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for rules");
}

int store_network_default_set(struct store *store, enum store_network_kind kind, const char *name,
                              const char *rules, const char *login, struct err *err)
{
    auto_free char *sealed = NULL;
    struct change c = { kind, name, rules, NULL };

    if (network_default_seal(store, kind, name, rules, login, &sealed, err) < 0)
        return -1;
    c.login = sealed;
    return store_write(store, set, &c, err);
}

/* Of a row, in its place; "" stays what it is. */
static int open_login(struct store *store, enum store_network_kind kind, const char *name,
                      char **login, struct err *err)
{
    char about[STORE_ABOUT_MAX], *open;
    size_t len;

    if (!(*login)[0])
        return 0;
    about_default(kind, name, about);
    if (store_unseal(store, about, *login, &open, &len, err) < 0)
        return err_wrap(err, "the login of a proxy");
    free(*login);
    *login = open;
    return 0;
}

int store_network_default_get(struct store *store, enum store_network_kind kind, const char *name,
                              char **ret_rules, char **ret_login, struct err *err)
{
    auto_free char *rules = NULL, *login = NULL;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_NETWORK_DEFAULT_GET, err);
    if (stmt) {
        db_bind(stmt, "tt", kinds[kind], name);
        rc = db_step(&db, stmt, err);
    }
    if (rc == 1) {
        rules = strdup(db_text(stmt, 0));
        login = strdup(db_text(stmt, 1));
        if (!rules || !login) {
            err_set(err, ERR_NO_MEMORY, "no memory for rules");
            rc = -1;
        }
    }
    reader_give(store, &db);
    if (rc < 0 || (ret_login && rc == 1 && open_login(store, kind, name, &login, err) < 0))
        return -1;
    *ret_rules = take_ptr(&rules);
    if (ret_login)
        *ret_login = take_ptr(&login);
    return 0;
}
