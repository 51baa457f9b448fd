#include "base/own.h"
#include "base/parse.h"
#include "store/own.h"

#include <inttypes.h>
#include <string.h>

static void read_volume(sqlite3_stmt *stmt, struct store_volume *ret)
{
    db_copy(stmt, 0, ret->id, sizeof ret->id);
    db_copy(stmt, 1, ret->tenant, sizeof ret->tenant);
    db_copy(stmt, 2, ret->name, sizeof ret->name);
    ret->bytes = db_number(stmt, 3);
    ret->inodes = db_number(stmt, 4);
    ret->created_ms = db_number(stmt, 5);
}

int volume_usage_read(struct db *db, const char *tenant, struct store_volume_usage *ret,
                      struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_VOLUME_USAGE, err);

    if (!stmt)
        return -1;
    db_bind(stmt, "t", tenant);
    if (db_step(db, stmt, err) != 1)
        return -1;
    *ret = (struct store_volume_usage){ db_number(stmt, 0), db_number(stmt, 1) };
    (void) sqlite3_reset(stmt);
    return 0;
}

int store_volume_usage(struct store *store, const char *tenant, struct store_volume_usage *ret,
                       struct err *err)
{
    struct db db;
    int rc;

    if (reader_take(store, &db, err) < 0)
        return -1;
    rc = volume_usage_read(&db, tenant, ret, err);
    reader_give(store, &db);
    return rc;
}

/* ---- changes ---- */

static int check_quota(struct db *db, const struct store_volume *v, struct err *err)
{
    struct store_volume_usage used;
    struct store_tenant tenant;
    uint64_t most;

    if (tenant_read(db, v->tenant, &tenant, err) < 0 ||
        volume_usage_read(db, v->tenant, &used, err) < 0)
        return -1;
    if (used.volumes >= STORE_VOLUMES_MAX)
        return err_set(err, ERR_TOO_MANY, "there are %" PRIu64 " volumes, as many as a tenant may",
                       used.volumes);
    most = tenant.quotas.stored_bytes;
    if (most && (v->bytes > most || used.bytes > most - v->bytes))
        return err_set(err, ERR_TOO_MANY,
                       "quota of stored-bytes: volumes of %" PRIu64 " MiB, %" PRIu64
                       " MiB more were asked for, %" PRIu64 " MiB are allowed",
                       used.bytes >> 20, v->bytes >> 20, most >> 20);
    return 0;
}

static int add(struct db *db, void *arg, struct err *err)
{
    const struct store_volume *v = arg;
    sqlite3_stmt *stmt = db_stmt(db, SQL_VOLUME_GET, err);
    int rc;

    if (!stmt)
        return -1;
    db_bind(stmt, "tt", v->tenant, v->name);
    rc = db_step(db, stmt, err);
    (void) sqlite3_reset(stmt);
    if (rc != 0)
        return rc < 0 ? -1 : err_set(err, ERR_EXISTS, "there is a volume '%s' already", v->name);
    if (check_quota(db, v, err) < 0)
        return -1;
    return db_run(db, err, SQL_VOLUME_ADD, "tttiii", v->id, v->tenant, v->name, (int64_t) v->bytes,
                  (int64_t) v->inodes, (int64_t) v->created_ms);
}

int store_volume_add(struct store *store, const struct store_volume *volume, struct err *err)
{
    if (!name_ok(volume->name))
        return err_set(err, ERR_INVALID, "name: 1 to 63 of a-z, 0-9, inner '-', '_', '.'");
    return store_write(store, add, (void *) volume, err);
}

static int remove_one(struct db *db, void *arg, struct err *err)
{
    return db_run(db, err, SQL_VOLUME_REMOVE, "t", arg);
}

int store_volume_remove(struct store *store, const char *id, struct err *err)
{
    return store_write(store, remove_one, (void *) id, err);
}

int volume_uses_write(struct db *db, const char *id, const struct store_volume_use *uses,
                      size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (db_run(db, err, SQL_VOLUME_USE_ADD, "titti", id, (int64_t) i, uses[i].volume,
                   uses[i].path, (int64_t) uses[i].read_only) < 0)
            return -1;
    return 0;
}

/* ---- reading ---- */

int store_volume_get(struct store *store, const char *tenant, const char *name,
                     struct store_volume *ret, struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_VOLUME_GET, err);
    if (stmt) {
        db_bind(stmt, "tt", tenant, name);
        rc = db_step(&db, stmt, err);
    }
    if (rc == 1)
        read_volume(stmt, ret);
    reader_give(store, &db);
    return rc == 0 ? err_set(err, ERR_NO_VOLUME, "there is no volume '%.63s'", name) : -(rc < 0);
}

int store_volume_list(struct store *store, const char *tenant, store_volume_each *each, void *arg,
                      struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_VOLUME_LIST, err);
    if (stmt)
        db_bind(stmt, "t", tenant ? tenant : "");
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        struct store_volume volume;

        read_volume(stmt, &volume);
        if (each(arg, &volume, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}

static int read_uses(struct store *store, enum sql which, const char *key,
                     store_volume_use_each *each, void *arg, struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, which, err);
    if (stmt)
        db_bind(stmt, "t", key);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        struct store_volume_use use;

        db_copy(stmt, 0, use.sandbox, sizeof use.sandbox);
        db_copy(stmt, 1, use.volume, sizeof use.volume);
        db_copy(stmt, 2, use.name, sizeof use.name);
        db_copy(stmt, 3, use.path, sizeof use.path);
        use.read_only = db_number(stmt, 4) != 0;
        if (each(arg, &use, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}

int store_volume_uses_of(struct store *store, const char *sandbox, store_volume_use_each *each,
                         void *arg, struct err *err)
{
    return read_uses(store, SQL_VOLUME_USES_OF, sandbox, each, arg, err);
}

int store_volume_users(struct store *store, const char *volume, store_volume_use_each *each,
                       void *arg, struct err *err)
{
    return read_uses(store, SQL_VOLUME_USERS, volume, each, arg, err);
}
