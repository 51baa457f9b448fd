#include "store/db.h"

#include "base/own.h"
#include "store/seal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OUR_ID       0x636f7665 /* "cove" */
#define BUSY_MS      5000
#define SEALED_SINCE 14 /* logins of proxies were in the open before */
#define WHOLE_MAX    (32 << 20)

/* What SQLite's results mean to a caller; others are ERR_INTERNAL with SQLite's own words. */
static const struct {
    int code;
    enum err_kind kind;
    const char *sentence;
} meanings[] = {
    { SQLITE_FULL, ERR_DISK_FULL, "the store's disk is full" },
    { SQLITE_CORRUPT, ERR_UNAVAILABLE, "the store is damaged: restore cove.db from a copy" },
    { SQLITE_NOTADB, ERR_UNAVAILABLE, "the store is damaged: cove.db is not an SQLite file" },
    { SQLITE_BUSY, ERR_UNAVAILABLE, "the store is busy" },
    { SQLITE_READONLY, ERR_DENIED, "the store cannot be written" },
    { SQLITE_CANTOPEN, ERR_DENIED, "the store cannot be opened" },
    { SQLITE_PERM, ERR_DENIED, "the store cannot be opened" },
    { SQLITE_NOMEM, ERR_NO_MEMORY, "no memory for the store" },
};

int db_error(struct db *db, struct err *err)
{
    int code = sqlite3_errcode(db->handle) & 0xff;

    /* Also a journal that cannot grow is a full disk, whatever SQLite calls it. */
    if (code == SQLITE_IOERR &&
        (sqlite3_system_errno(db->handle) == ENOSPC || sqlite3_system_errno(db->handle) == EDQUOT))
        code = SQLITE_FULL;
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (meanings[i].code == code)
            return err_set(err, meanings[i].kind, "%s", meanings[i].sentence);
    return err_set(err, ERR_INTERNAL, "the store: %s", sqlite3_errmsg(db->handle));
}

sqlite3_stmt *db_stmt(struct db *db, enum sql which, struct err *err)
{
    sqlite3_stmt **stmt = &db->stmts[which];

    if (!*stmt && sqlite3_prepare_v3(db->handle, db_sql[which], -1, SQLITE_PREPARE_PERSISTENT, stmt,
                                     NULL) != SQLITE_OK) {
        db_error(db, err);
        return NULL;
    }
    (void) sqlite3_reset(*stmt);
    (void) sqlite3_clear_bindings(*stmt);
    return *stmt;
}

static void bind_all(sqlite3_stmt *stmt, const char *types, va_list args)
{
    for (int i = 1; *types; types++, i++) {
        if (*types == 't') {
            const char *text = va_arg(args, const char *);

            (void) sqlite3_bind_text(stmt, i, text ? text : "", -1, SQLITE_TRANSIENT);
        } else if (*types == 'i') {
            (void) sqlite3_bind_int64(stmt, i, va_arg(args, int64_t));
        } else {
            (void) sqlite3_bind_blob(stmt, i, va_arg(args, const void *), 32, SQLITE_TRANSIENT);
        }
    }
}

void db_bind(sqlite3_stmt *stmt, const char *types, ...)
{
    va_list args;

    va_start(args, types);
    bind_all(stmt, types, args);
    va_end(args);
}

int db_step(struct db *db, sqlite3_stmt *stmt, struct err *err)
{
    int rc = sqlite3_step(stmt);

    if (rc == SQLITE_ROW)
        return 1;
    if (rc != SQLITE_DONE)
        db_error(db, err);
    (void) sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? 0 : -1;
}

int db_run(struct db *db, struct err *err, enum sql which, const char *types, ...)
{
    sqlite3_stmt *stmt = db_stmt(db, which, err);
    va_list args;

    if (!stmt)
        return -1;
    va_start(args, types);
    bind_all(stmt, types, args);
    va_end(args);
    return db_step(db, stmt, err) < 0 ? -1 : 0;
}

const char *db_text(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *) sqlite3_column_text(stmt, column);

    return text ? text : "";
}

void db_copy(sqlite3_stmt *stmt, int column, char *out, size_t size)
{
    const char *text = db_text(stmt, column);
    size_t len = strnlen(text, size - 1);

    memcpy(out, text, len);
    out[len] = '\0';
}

uint64_t db_number(sqlite3_stmt *stmt, int column)
{
    return (uint64_t) sqlite3_column_int64(stmt, column);
}

/* ---- opening ---- */

static int exec(struct db *db, const char *sql, struct err *err)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_error(db, err);
}

static int pragma_number(struct db *db, const char *sql, int64_t *ret, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = -1;

    if (sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW) {
        db_error(db, err);
    } else {
        *ret = sqlite3_column_int64(stmt, 0);
        rc = 0;
    }
    (void) sqlite3_finalize(stmt);
    return rc;
}

/* Another program's file, or that of a later cove, is left as it is. */
static int check_ours(struct db *db, int64_t *ret_version, struct err *err)
{
    int64_t id, tables;

    if (pragma_number(db, "PRAGMA application_id", &id, err) < 0 ||
        pragma_number(db, "PRAGMA user_version", ret_version, err) < 0 ||
        pragma_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0)
        return -1;
    if (id != OUR_ID && (tables > 0 || id != 0))
        return err_set(err, ERR_UNAVAILABLE, "the file is another program's, not cove's");
    if (*ret_version > DB_VERSION)
        return err_set(err, ERR_UNAVAILABLE,
                       "the store is of a later version of cove (%lld, this one knows %d)",
                       (long long) *ret_version, DB_VERSION);
    return 0;
}

/* seal(about, text), for upgrades: sqlite3_user_data is the path of the file. */
static void sql_seal(sqlite3_context *context, int count, sqlite3_value **args)
{
    const char *about = (const char *) sqlite3_value_text(args[0]);
    const char *text = (const char *) sqlite3_value_text(args[1]);
    unsigned char key[SEAL_KEY_LEN];
    char *sealed = NULL;
    struct err err;

    assert(count == 2);
    if (!about || !text) {
        sqlite3_result_null(context);
        return;
    }
    if (seal_key(sqlite3_user_data(context), key, &err) < 0 ||
        seal_close(key, about, text, strlen(text), &sealed, &err) < 0)
        sqlite3_result_error(context, err.msg, -1);
    else
        sqlite3_result_text(context, sealed, -1, free);
    explicit_bzero(key, sizeof key);
}

/* What was in the open before is in pages that are free now, and in the journal. */
static void sweep(struct db *db)
{
    (void) sqlite3_exec(db->handle, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
}

static int upgrade(struct db *db, int64_t version, struct err *err)
{
    if (version == 0 && exec(db, db_schema, err) < 0)
        return -1;
    for (int64_t i = version == 0 ? 0 : version - 1; i < DB_VERSION - 1; i++)
        if (exec(db, db_upgrades[i], err) < 0)
            return -1;
    return 0;
}

/* Before anything is written: a page that is bad would be found by the first request that needs it, in the middle of something.
 * Small files are looked at as a whole; of large ones, which are large by their audit log, the other tables. */
static int check_whole(struct db *db, struct err *err)
{
    static const char *const small[] = {
        "PRAGMA quick_check('tenants')",   "PRAGMA quick_check('keys')",
        "PRAGMA quick_check('sandboxes')", "PRAGMA quick_check('secrets')",
        "PRAGMA quick_check('chain')",     NULL,
    };
    static const char *const all[] = { "PRAGMA quick_check(1)", NULL };
    int64_t pages, size;

    if (pragma_number(db, "PRAGMA page_count", &pages, err) < 0 ||
        pragma_number(db, "PRAGMA page_size", &size, err) < 0)
        return -1;
    for (const char *const *sql = pages * size <= WHOLE_MAX ? all : small; *sql; sql++) {
        sqlite3_stmt *stmt = NULL;
        bool fine = sqlite3_prepare_v2(db->handle, *sql, -1, &stmt, NULL) == SQLITE_OK &&
                    sqlite3_step(stmt) == SQLITE_ROW && strcmp(db_text(stmt, 0), "ok") == 0;

        (void) sqlite3_finalize(stmt);
        if (!fine)
            return err_set(err, ERR_UNAVAILABLE,
                           "the store is damaged: restore cove.db from a copy");
    }
    return 0;
}

/* Looked at again under the lock: two programs may start at once. */
static int make_schema(struct db *db, const char *path, struct err *err)
{
    int64_t version = 0;

    if (sqlite3_create_function_v2(db->handle, "seal", 2, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                   (void *) path, sql_seal, NULL, NULL, NULL) != SQLITE_OK)
        return db_error(db, err);
    if (exec(db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    if (check_ours(db, &version, err) < 0 || upgrade(db, version, err) < 0) {
        (void) sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    if (exec(db, "COMMIT", err) < 0)
        return -1;
    if (version > 0 && version < SEALED_SINCE)
        sweep(db);
    return 0;
}

int db_open(struct db *db, const char *path, bool writer, struct err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    int64_t version = 0;

    memset(db, 0, sizeof *db);
    if (sqlite3_open_v2(path, &db->handle, flags, NULL) != SQLITE_OK) {
        if (!db->handle)
            return err_set(err, ERR_NO_MEMORY, "no memory for the store");
        db_error(db, err);
        goto undo;
    }
    (void) sqlite3_busy_timeout(db->handle, BUSY_MS);
    if (check_ours(db, &version, err) < 0)
        goto undo;
    if (!writer) {
        if (exec(db, "PRAGMA query_only = ON", err) < 0)
            goto undo;
        return 0;
    }
    if (version > 0 && check_whole(db, err) < 0)
        goto undo;
    /* NORMAL: commits stay in order; writer.c brings them to the disk. The journal shrinks back after a burst. */
    if (exec(db,
             "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
             "PRAGMA journal_size_limit = 16777216",
             err) < 0 ||
        (version < DB_VERSION && make_schema(db, path, err) < 0))
        goto undo;
    return 0;

undo:
    db_close(db);
    return -1;
}

void db_close(struct db *db)
{
    for (size_t i = 0; i < SQL_COUNT; i++)
        (void) sqlite3_finalize(db->stmts[i]);
    (void) sqlite3_close_v2(db->handle);
    memset(db, 0, sizeof *db);
}
