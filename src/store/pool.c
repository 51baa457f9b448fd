#include "base/own.h"
#include "base/parse.h"
#include "store/own.h"

#include <string.h>

struct saving {
    const struct store_pool *list;
    size_t count;
};

static int save(struct db *db, void *arg, struct err *err)
{
    const struct saving *saving = arg;

    if (db_run(db, err, SQL_POOLS_CLEAR, "") < 0)
        return -1;
    for (size_t i = 0; i < saving->count; i++) {
        const struct store_pool *p = &saving->list[i];

        if (db_run(db, err, SQL_POOL_ADD, "tiiiiiiiiiiiiiiiii", p->template, (int64_t) p->root,
                   (int64_t) p->memory_bytes, (int64_t) p->disk_bytes, (int64_t) p->disk_inodes,
                   (int64_t) p->cpu_milli, (int64_t) p->processes, (int64_t) p->open_files,
                   (int64_t) p->ptys, (int64_t) p->ready, (int64_t) p->target, (int64_t) p->least,
                   (int64_t) p->most, (int64_t) p->hits, (int64_t) p->misses,
                   (int64_t) p->updated_ms, (int64_t) p->warm, (int64_t) p->isolation) < 0)
            return -1;
    }
    return 0;
}

int store_pools_save(struct store *store, const struct store_pool *list, size_t count,
                     struct err *err)
{
    struct saving saving = { .list = list, .count = count };

    return store_write_early(store, save, &saving, err);
}

static void read_pool(sqlite3_stmt *stmt, struct store_pool *ret)
{
    uint64_t *const numbers[] = {
        &ret->memory_bytes, &ret->disk_bytes, &ret->disk_inodes, &ret->cpu_milli,  &ret->processes,
        &ret->open_files,   &ret->ptys,       &ret->ready,       &ret->target,     &ret->least,
        &ret->most,         &ret->hits,       &ret->misses,      &ret->updated_ms,
    };

    db_copy(stmt, 0, ret->template, sizeof ret->template);
    ret->root = db_number(stmt, 1) != 0;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        *numbers[i] = db_number(stmt, (int) i + 2);
    ret->warm = db_number(stmt, (int) ARRAY_LEN(numbers) + 2) != 0;
    ret->isolation = db_number(stmt, (int) ARRAY_LEN(numbers) + 3);
}

int store_pools_list(struct store *store, store_pool_each *each, void *arg, struct err *err)
{
    struct store_pool pool;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_POOL_LIST, err);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        read_pool(stmt, &pool);
        if (each(arg, &pool, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}

/* ---- rules ---- */

static int set_rule(struct db *db, void *arg, struct err *err)
{
    const struct store_pool_rule *rule = arg;

    return db_run(db, err, SQL_POOL_RULE_SET, "tii", rule->template, (int64_t) rule->least,
                  (int64_t) rule->most);
}

static int remove_rule(struct db *db, void *arg, struct err *err)
{
    const char *template = arg;

    if (db_run(db, err, SQL_POOL_RULE_REMOVE, "t", template) < 0)
        return -1;
    return sqlite3_changes(db->handle) == 1
               ? 0
               : err_set(err, ERR_NO_TEMPLATE, "nothing was set for template '%s'", template);
}

static int check_template(const char *template, struct err *err)
{
    return strcmp(template, "*") == 0 || name_ok(template)
               ? 0
               : err_set(err, ERR_NO_TEMPLATE, "there is no template '%.40s'", template);
}

int store_pool_rule_set(struct store *store, const struct store_pool_rule *rule, struct err *err)
{
    struct store_pool_rule copy = *rule;

    if (check_template(rule->template, err) < 0)
        return -1;
    if (rule->least > rule->most || rule->most > STORE_POOL_MOST)
        return err_set(err, ERR_INVALID, "min and max: min at most max, and max at most %d",
                       STORE_POOL_MOST);
    return store_write(store, set_rule, &copy, err);
}

int store_pool_rule_remove(struct store *store, const char *template, struct err *err)
{
    char copy[STORE_TEMPLATE_MAX];

    if (check_template(template, err) < 0)
        return -1;
    (void) snprintf(copy, sizeof copy, "%s", template);
    return store_write(store, remove_rule, copy, err);
}

int store_pool_rules(struct store *store, store_pool_rule_each *each, void *arg, struct err *err)
{
    struct store_pool_rule rule = { .least = 0 };
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_POOL_RULE_LIST, err);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        db_copy(stmt, 0, rule.template, sizeof rule.template);
        rule.least = db_number(stmt, 1);
        rule.most = db_number(stmt, 2);
        if (each(arg, &rule, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}
