#include "store/pulled.h"

#include "base/own.h"
#include "store/own.h"

#include <string.h>

static int usage(struct db *db, const char *tenant, uint64_t *ret_count, uint64_t *ret_bytes,
                 struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_PULLED_USAGE, err);

    if (!stmt)
        return -1;
    db_bind(stmt, "t", tenant);
    if (db_step(db, stmt, err) != 1)
        return -1;
    *ret_count = db_number(stmt, 0);
    *ret_bytes = db_number(stmt, 1);
    (void) sqlite3_reset(stmt);
    return 0;
}

static int add(struct db *db, void *arg, struct err *err)
{
    const struct store_pulled *p = arg;
    struct store_tenant tenant;
    uint64_t count, bytes;

    if (tenant_read(db, p->tenant, &tenant, err) < 0 ||
        usage(db, p->tenant, &count, &bytes, err) < 0)
        return -1;
    if (count >= STORE_PULLED_MAX)
        return err_set(err, ERR_TOO_MANY,
                       "there are %d images that were pulled or imported, as many as a tenant may "
                       "have: remove a template",
                       STORE_PULLED_MAX);
    return db_run(db, err, SQL_PULLED_ADD, "ttttii", p->name, p->tenant, p->digest, p->source,
                  (int64_t) p->bytes, (int64_t) p->created_ms);
}

int store_pulled_add(struct store *store, const struct store_pulled *pulled, struct err *err)
{
    struct store_pulled copy = *pulled;

    return store_write(store, add, &copy, err);
}

static int done(struct db *db, void *arg, struct err *err)
{
    const struct store_pulled *p = arg;
    struct store_tenant tenant;

    if (tenant_read(db, p->tenant, &tenant, err) < 0)
        return err_set(err, ERR_STATE, "the tenant was removed while its image was made");
    return db_run(db, err, SQL_PULLED_SET, "tti", p->name, p->digest, (int64_t) p->bytes);
}

int store_pulled_done(struct store *store, const struct store_pulled *pulled, struct err *err)
{
    struct store_pulled copy = *pulled;

    return store_write(store, done, &copy, err);
}

static int drop(struct db *db, void *arg, struct err *err)
{
    return db_run(db, err, SQL_PULLED_REMOVE, "t", (const char *) arg);
}

int store_pulled_remove(struct store *store, const char *name, struct err *err)
{
    char copy[STORE_NAME_MAX];

    (void) snprintf(copy, sizeof copy, "%s", name);
    return store_write(store, drop, copy, err);
}

static int rows(struct store *store, enum sql which, const char *tenant, store_pulled_each *each,
                void *arg, struct err *err)
{
    struct store_pulled item;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, which, err);
    if (stmt)
        db_bind(stmt, "t", tenant);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        db_copy(stmt, 0, item.name, sizeof item.name);
        db_copy(stmt, 1, item.tenant, sizeof item.tenant);
        db_copy(stmt, 2, item.digest, sizeof item.digest);
        db_copy(stmt, 3, item.source, sizeof item.source);
        item.bytes = db_number(stmt, 4);
        item.created_ms = db_number(stmt, 5);
        if (each(arg, &item, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc < 0 ? -1 : 0;
}

int store_pulled_list(struct store *store, const char *tenant, store_pulled_each *each, void *arg,
                      struct err *err)
{
    return rows(store, SQL_PULLED_LIST, tenant, each, arg, err);
}

int store_pulled_idle(struct store *store, const char *tenant, store_pulled_each *each, void *arg,
                      struct err *err)
{
    return rows(store, SQL_PULLED_IDLE, tenant, each, arg, err);
}

int store_pulled_bytes(struct store *store, const char *tenant, uint64_t *ret, struct err *err)
{
    uint64_t count;
    struct db db;
    int rc;

    if (reader_take(store, &db, err) < 0)
        return -1;
    rc = usage(&db, tenant, &count, ret, err);
    reader_give(store, &db);
    return rc;
}
