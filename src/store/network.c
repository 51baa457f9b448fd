#include "base/own.h"
#include "store/own.h"

#include <stdlib.h>
#include <string.h>

struct change {
    const char *id, *rules;
};

static int set(struct db *db, void *arg, struct err *err)
{
    const struct change *c = arg;

    return db_run(db, err, SQL_NETWORK_SET, "tt", c->id, c->rules);
}

int store_network_set(struct store *store, const char *id, const char *rules, struct err *err)
{
    struct change c = { id, rules };

    return store_write(store, set, &c, err);
}

int store_network_get(struct store *store, const char *id, char **ret, struct err *err)
{
    char *copy = NULL;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_NETWORK_GET, err);
    if (stmt) {
        db_bind(stmt, "t", id);
        rc = db_step(&db, stmt, err);
    }
    if (rc >= 0 && !(copy = strdup(rc == 1 ? db_text(stmt, 0) : ""))) {
        err_set(err, ERR_NO_MEMORY, "no memory for rules");
        rc = -1;
    }
    reader_give(store, &db);
    if (rc < 0)
        return -1;
    *ret = copy;
    return 0;
}

int store_network_list(struct store *store, store_network_each *each, void *arg, struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_NETWORK_LIST, err);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        if (each(arg, db_text(stmt, 0), db_text(stmt, 1), err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}
