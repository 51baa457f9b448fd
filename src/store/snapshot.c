#include "base/own.h"
#include "store/own.h"

#include <string.h>

static void read_snapshot(sqlite3_stmt *stmt, struct store_snapshot *ret)
{
    ret->seq = db_number(stmt, 0);
    db_copy(stmt, 1, ret->id, sizeof ret->id);
    db_copy(stmt, 2, ret->tenant, sizeof ret->tenant);
    db_copy(stmt, 3, ret->name, sizeof ret->name);
    db_copy(stmt, 4, ret->sandbox, sizeof ret->sandbox);
    db_copy(stmt, 5, ret->template, sizeof ret->template);
    db_copy(stmt, 6, ret->metadata, sizeof ret->metadata);
    ret->created_ms = db_number(stmt, 7);
    ret->state = (int) db_number(stmt, 8);
    ret->memory = db_number(stmt, 9) != 0;
    ret->bytes = db_number(stmt, 10);
    ret->env = ret->network = ret->hidden = NULL;
    ret->volumes = NULL;
    ret->volume_count = 0;
}

/* ---- changes ---- */

static int find_name(struct db *db, const struct store_snapshot *s, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc;

    if (!s->name[0])
        return 0;
    stmt = db_stmt(db, SQL_SNAPSHOT_BY_NAME, err);
    if (!stmt)
        return -1;
    db_bind(stmt, "tt", s->name, s->tenant);
    rc = db_step(db, stmt, err);
    (void) sqlite3_reset(stmt);
    return rc;
}

static int add(struct db *db, void *arg, struct err *err)
{
    const struct store_snapshot *s = arg;
    int rc = find_name(db, s, err);

    if (rc != 0)
        return rc < 0 ? -1 : err_set(err, ERR_NAME_TAKEN, "the name '%s' is in use", s->name);
    if ((s->env || s->network) &&
        db_run(db, err, SQL_SNAPSHOT_KEEP, "ttt", s->id, s->env, s->network) < 0)
        return -1;
    if ((s->hidden && db_run(db, err, SQL_HIDDEN_SET, "tt", s->id, s->hidden) < 0) ||
        volume_uses_write(db, s->id, s->volumes, s->volume_count, err) < 0)
        return -1;
    return db_run(db, err, SQL_SNAPSHOT_ADD, "ttttttiii", s->id, s->tenant, s->name, s->sandbox,
                  s->template, s->metadata, (int64_t) s->created_ms, (int64_t) s->state,
                  (int64_t) s->memory);
}

int store_snapshot_add(struct store *store, const struct store_snapshot *snapshot, struct err *err)
{
    auto_free char *sealed = NULL;
    struct store_snapshot own = *snapshot;

    if (own.hidden && hidden_seal(store, own.id, own.hidden, &sealed, err) < 0)
        return -1;
    own.hidden = sealed;
    return store_write(store, add, &own, err);
}

static int ready(struct db *db, void *arg, struct err *err)
{
    const struct store_snapshot *s = arg;

    if (s->name[0] && db_run(db, err, SQL_SNAPSHOT_UNNAME, "tt", s->tenant, s->name) < 0)
        return -1;
    if (db_run(db, err, SQL_SNAPSHOT_READY, "ttiii", s->id, s->name, (int64_t) s->state,
               (int64_t) s->bytes, (int64_t) s->memory) < 0)
        return -1;
    return sqlite3_changes(db->handle) == 1
               ? 0
               : err_set(err, ERR_NO_IMAGE, "there is no snapshot '%s'", s->id);
}

int store_snapshot_ready(struct store *store, const struct store_snapshot *snapshot,
                         struct err *err)
{
    return store_write(store, ready, (void *) snapshot, err);
}

struct size {
    const char *id;
    uint64_t bytes;
};

static int set_bytes(struct db *db, void *arg, struct err *err)
{
    const struct size *size = arg;

    return db_run(db, err, SQL_SNAPSHOT_BYTES, "ti", size->id, (int64_t) size->bytes);
}

int store_snapshot_set_bytes(struct store *store, const char *id, uint64_t bytes, struct err *err)
{
    struct size size = { .id = id, .bytes = bytes };

    return store_write(store, set_bytes, &size, err);
}

static int remove_snapshot(struct db *db, void *arg, struct err *err)
{
    return db_run(db, err, SQL_SNAPSHOT_REMOVE, "t", (const char *) arg);
}

int store_snapshot_remove(struct store *store, const char *id, struct err *err)
{
    return store_write(store, remove_snapshot, (void *) id, err);
}

/* ---- reading ---- */

static int find(struct db *db, enum sql which, const char *tenant, const char *text,
                struct store_snapshot *ret, struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, which, err);
    int rc;

    if (!stmt)
        return -1;
    db_bind(stmt, "tt", text, tenant);
    rc = db_step(db, stmt, err);
    if (rc == 1)
        read_snapshot(stmt, ret);
    return rc;
}

int store_snapshot_get(struct store *store, const char *tenant, const char *id,
                       struct store_snapshot *ret, struct err *err)
{
    struct db db;
    int rc;

    if (reader_take(store, &db, err) < 0)
        return -1;
    rc = find(&db, SQL_SNAPSHOT_GET, tenant, id, ret, err);
    if (rc == 0 && tenant)
        rc = find(&db, SQL_SNAPSHOT_BY_NAME, tenant, id, ret, err);
    reader_give(store, &db);
    if (rc == 0)
        return err_set(err, ERR_NO_IMAGE, "there is no snapshot '%.63s'", id);
    return rc < 0 ? -1 : 0;
}

static int copy_text(sqlite3_stmt *stmt, int column, char **ret, struct err *err)
{
    const char *text = db_text(stmt, column);

    if (!text[0])
        return 0;
    *ret = strdup(text);
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a snapshot's settings");
}

int store_snapshot_kept(struct store *store, const char *id, char **ret_env, char **ret_network,
                        struct err *err)
{
    auto_free char *env = NULL, *network = NULL;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_SNAPSHOT_KEPT, err);
    if (stmt) {
        db_bind(stmt, "t", id);
        rc = db_step(&db, stmt, err);
    }
    if (rc == 1 && (copy_text(stmt, 0, &env, err) < 0 || copy_text(stmt, 1, &network, err) < 0))
        rc = -1;
    reader_give(store, &db);
    if (rc < 0)
        return -1;
    *ret_env = take_ptr(&env);
    *ret_network = take_ptr(&network);
    return 0;
}

int store_snapshot_list(struct store *store, const char *tenant, uint64_t after, uint64_t limit,
                        store_snapshot_each *each, void *arg, struct err *err)
{
    struct store_snapshot snapshot;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_SNAPSHOT_LIST, err);
    if (stmt)
        db_bind(stmt, "tii", tenant, (int64_t) after, limit ? (int64_t) limit : (int64_t) -1);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        read_snapshot(stmt, &snapshot);
        if (each(arg, &snapshot, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}
