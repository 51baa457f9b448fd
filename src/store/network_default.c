#include "base/own.h"
#include "store/own.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
    [STORE_NETWORK_TENANT] = "tenant",
    [STORE_NETWORK_TEMPLATE] = "template",
};
_Static_assert(ARRAY_LEN(kinds) == STORE_NETWORK_KINDS, "every kind has a name");

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
    return c->rules ? db_run(db, err, SQL_NETWORK_DEFAULT_SET, "tttt", kinds[c->kind], c->name,
                             c->rules, c->login)
                    : db_run(db, err, SQL_NETWORK_DEFAULT_REMOVE, "tt", kinds[c->kind], c->name);
}

int store_network_default_set(struct store *store, enum store_network_kind kind, const char *name,
                              const char *rules, const char *login, struct err *err)
{
    struct change c = { kind, name, rules, login ? login : "" };

    return store_write(store, set, &c, err);
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
    if (rc < 0)
        return -1;
    *ret_rules = take_ptr(&rules);
    if (ret_login)
        *ret_login = take_ptr(&login);
    return 0;
}
