#include "base/own.h"
#include "base/parse.h"
#include "store/own.h"

#include <string.h>

static int set(struct db *db, void *arg, struct err *err)
{
    const struct store_warm *w = arg;

    return db_run(db, err, SQL_WARM_SET, "tttttii", w->template, w->image, w->start, w->ready,
                  w->modules, (int64_t) w->made_ms, (int64_t) w->bytes);
}

int store_warm_set(struct store *store, const struct store_warm *warm, struct err *err)
{
    if (!name_ok(warm->template))
        return err_set(err, ERR_NO_TEMPLATE, "there is no template '%.40s'", warm->template);
    return store_write(store, set, (void *) (uintptr_t) warm, err);
}

static int drop(struct db *db, void *arg, struct err *err)
{
    return db_run(db, err, SQL_WARM_REMOVE, "t", (const char *) arg);
}

int store_warm_remove(struct store *store, const char *template, struct err *err)
{
    return store_write(store, drop, (void *) (uintptr_t) template, err);
}

static void read_warm(sqlite3_stmt *stmt, struct store_warm *ret)
{
    db_copy(stmt, 0, ret->template, sizeof ret->template);
    db_copy(stmt, 1, ret->image, sizeof ret->image);
    db_copy(stmt, 2, ret->start, sizeof ret->start);
    db_copy(stmt, 3, ret->ready, sizeof ret->ready);
    db_copy(stmt, 4, ret->modules, sizeof ret->modules);
    ret->made_ms = db_number(stmt, 5);
    ret->bytes = db_number(stmt, 6);
}

int store_warm_get(struct store *store, const char *template, struct store_warm *ret,
                   struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_WARM_GET, err);
    if (stmt) {
        db_bind(stmt, "t", template);
        rc = db_step(&db, stmt, err);
        if (rc == 1)
            read_warm(stmt, ret);
    }
    reader_give(store, &db);
    return rc;
}

struct search {
    const char *image;
    bool found;
};

static int match(void *arg, const struct store_warm *warm, struct err *err)
{
    struct search *search = arg;

    (void) err;
    search->found = search->found || strcmp(warm->image, search->image) == 0;
    return 0;
}

int store_warm_has(struct store *store, const char *image, struct err *err)
{
    struct search search = { .image = image };

    return store_warm_list(store, match, &search, err) < 0 ? -1 : search.found;
}

int store_warm_list(struct store *store, store_warm_each *each, void *arg, struct err *err)
{
    struct store_warm warm;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_WARM_LIST, err);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        read_warm(stmt, &warm);
        if (each(arg, &warm, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}
