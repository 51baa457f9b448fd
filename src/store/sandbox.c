#include "base/own.h"
#include "store/own.h"
#include "store/private.h"

#include <inttypes.h>
#include <string.h>

int usage_read(struct db *db, const char *tenant, struct store_usage *ret, struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_USAGE, err);

    if (!stmt)
        return -1;
    db_bind(stmt, "t", tenant);
    if (db_step(db, stmt, err) != 1)
        return -1;
    *ret = (struct store_usage){ db_number(stmt, 0), db_number(stmt, 1), db_number(stmt, 2),
                                 db_number(stmt, 3) };
    (void) sqlite3_reset(stmt);
    return 0;
}

int store_usage(struct store *store, const char *tenant, struct store_usage *ret, struct err *err)
{
    struct db db;
    int rc;

    if (reader_take(store, &db, err) < 0)
        return -1;
    rc = usage_read(&db, tenant, ret, err);
    reader_give(store, &db);
    return rc;
}

int store_images(struct store *store, const char *tenant, uint64_t *ret, struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_TENANT_IMAGES, err);
    if (stmt) {
        db_bind(stmt, "t", tenant);
        rc = db_step(&db, stmt, err) == 1 ? 0 : -1;
        if (rc == 0)
            *ret = db_number(stmt, 0);
        (void) sqlite3_reset(stmt);
    }
    reader_give(store, &db);
    return rc;
}

int store_quotas_allow(const struct store_quotas *quotas, const struct store_usage *used,
                       const struct store_usage *more, struct err *err)
{
    const struct {
        const char *what;
        uint64_t most, used, more, unit;
        const char *unit_name;
    } sums[] = {
        { "sandboxes", quotas->sandboxes, used->sandboxes, more->sandboxes, 1, "" },
        { "cores", quotas->cpu_milli, used->cpu_milli, more->cpu_milli, 1000, "" },
        { "memory", quotas->memory_bytes, used->memory_bytes, more->memory_bytes, 1 << 20, " MiB" },
        { "disk", quotas->disk_bytes, used->disk_bytes, more->disk_bytes, 1 << 20, " MiB" },
    };

    for (size_t i = 0; i < ARRAY_LEN(sums); i++)
        if (sums[i].most &&
            (sums[i].more > sums[i].most || sums[i].used > sums[i].most - sums[i].more))
            return err_set(err, ERR_TOO_MANY,
                           "quota of %s: %g%s in use, %g%s more were asked for, %g%s are allowed",
                           sums[i].what, (double) sums[i].used / (double) sums[i].unit,
                           sums[i].unit_name, (double) sums[i].more / (double) sums[i].unit,
                           sums[i].unit_name, (double) sums[i].most / (double) sums[i].unit,
                           sums[i].unit_name);
    return 0;
}

static void read_sandbox(sqlite3_stmt *stmt, struct store_sandbox *ret)
{
    ret->seq = db_number(stmt, 0);
    db_copy(stmt, 1, ret->id, sizeof ret->id);
    db_copy(stmt, 2, ret->tenant, sizeof ret->tenant);
    db_copy(stmt, 3, ret->name, sizeof ret->name);
    db_copy(stmt, 4, ret->template, sizeof ret->template);
    db_copy(stmt, 5, ret->metadata, sizeof ret->metadata);
    ret->created_ms = db_number(stmt, 6);
    ret->deadline_ms = db_number(stmt, 7);
    ret->on_timeout = (int) db_number(stmt, 8);
    db_copy(stmt, 9, ret->idempotency_key, sizeof ret->idempotency_key);
    ret->cpu_milli = db_number(stmt, 10);
    ret->memory_bytes = db_number(stmt, 11);
    ret->disk_bytes = db_number(stmt, 12);
    ret->env = NULL;
    db_copy(stmt, 13, ret->request_hash, sizeof ret->request_hash);
    ret->network = ret->preview = ret->hidden = NULL;
    ret->joins = NULL;
    ret->join_count = 0;
    ret->volumes = NULL;
    ret->volume_count = 0;
    ret->sleep = (struct store_sleep){ .tier = (int) db_number(stmt, 14),
                                       .aim = (int) db_number(stmt, 15),
                                       .by = (int) db_number(stmt, 16),
                                       .since_ms = db_number(stmt, 17),
                                       .bytes = db_number(stmt, 18),
                                       .memory = db_number(stmt, 19) != 0 };
    ret->timeout_ms = db_number(stmt, 20);
    ret->idle_pause_ms = db_number(stmt, 21);
    ret->idle_disk_ms = db_number(stmt, 22);
    ret->auto_resume = db_number(stmt, 23) != 0;
    ret->forgets = db_number(stmt, 24) != 0;
    ret->has_volumes = db_number(stmt, 25) != 0;
}

/* ---- changes ---- */

/* 1: there is one, 0: not, -1. */
static int taken(struct db *db, enum sql which, const char *text, const char *tenant,
                 struct err *err)
{
    sqlite3_stmt *stmt;
    int rc;

    if (!text[0])
        return 0;
    stmt = db_stmt(db, which, err);
    if (!stmt)
        return -1;
    db_bind(stmt, "tt", text, tenant);
    rc = db_step(db, stmt, err);
    (void) sqlite3_reset(stmt);
    return rc;
}

static int add_joins(struct db *db, const struct store_sandbox *s, struct err *err)
{
    for (size_t i = 0; i < s->join_count; i++) {
        struct private_member join = s->joins[i];

        memcpy(join.sandbox, s->id, sizeof join.sandbox);
        if (private_join_in(db, s->tenant, &join, &join, err) < 0)
            return -1;
    }
    return 0;
}

static int add(struct db *db, void *arg, struct err *err)
{
    const struct store_sandbox *s = arg;
    const struct store_usage more = { 1, s->cpu_milli, s->memory_bytes, s->disk_bytes };
    struct store_tenant tenant;
    struct store_usage used;
    int rc;

    rc = taken(db, SQL_SANDBOX_BY_IDEMPOTENCY, s->idempotency_key, s->tenant, err);
    if (rc != 0)
        return rc < 0 ? -1
                      : err_set(err, ERR_EXISTS, "there is a sandbox for this idempotency key");
    rc = taken(db, SQL_SANDBOX_BY_NAME, s->name, s->tenant, err);
    if (rc != 0)
        return rc < 0 ? -1 : err_set(err, ERR_NAME_TAKEN, "the name '%s' is in use", s->name);
    if (tenant_read(db, s->tenant, &tenant, err) < 0 || usage_read(db, s->tenant, &used, err) < 0 ||
        store_quotas_allow(&tenant.quotas, &used, &more, err) < 0)
        return -1;
    if (s->env && db_run(db, err, SQL_ENV_ADD, "tt", s->id, s->env) < 0)
        return -1;
    if (s->preview && db_run(db, err, SQL_PREVIEW_SET, "tt", s->id, s->preview) < 0)
        return -1;
    if (s->network && db_run(db, err, SQL_NETWORK_SET, "tt", s->id, s->network) < 0)
        return -1;
    if (s->hidden && db_run(db, err, SQL_HIDDEN_SET, "tt", s->id, s->hidden) < 0)
        return -1;
    if (db_run(db, err, SQL_SANDBOX_ADD, "tttttiiitiiitiiiii", s->id, s->tenant, s->name,
               s->template, s->metadata, (int64_t) s->created_ms, (int64_t) s->deadline_ms,
               (int64_t) s->on_timeout, s->idempotency_key, (int64_t) s->cpu_milli,
               (int64_t) s->memory_bytes, (int64_t) s->disk_bytes, s->request_hash,
               (int64_t) s->timeout_ms, (int64_t) s->idle_pause_ms, (int64_t) s->idle_disk_ms,
               (int64_t) s->auto_resume, (int64_t) s->forgets) < 0)
        return -1;
    return add_joins(db, s, err) < 0
               ? -1
               : volume_uses_write(db, s->id, s->volumes, s->volume_count, err);
}

int store_sandbox_add(struct store *store, const struct store_sandbox *sandbox, struct err *err)
{
    struct store_sandbox own = *sandbox;
    auto_free char *sealed = NULL;

    if (sandbox->hidden && hidden_seal(store, sandbox->id, sandbox->hidden, &sealed, err) < 0)
        return -1;
    own.hidden = sealed;
    return store_write_early(store, add, &own, err);
}

struct deadline {
    const char *id;
    uint64_t at_ms;
    int on_timeout;
};

static int changed_one(struct db *db, const char *id, struct err *err)
{
    return sqlite3_changes(db->handle) == 1
               ? 0
               : err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.63s'", id);
}

static int set_deadline(struct db *db, void *arg, struct err *err)
{
    const struct deadline *d = arg;

    if (db_run(db, err, SQL_SANDBOX_SET_DEADLINE, "tii", d->id, (int64_t) d->at_ms,
               (int64_t) d->on_timeout) < 0)
        return -1;
    return changed_one(db, d->id, err);
}

int store_sandbox_set_deadline(struct store *store, const char *id, uint64_t deadline_ms,
                               int on_timeout, struct err *err)
{
    struct deadline d = { id, deadline_ms, on_timeout };

    return store_write_early(store, set_deadline, &d, err);
}

/* ---- sleep ---- */

struct sleep_change {
    const char *id;
    const struct store_sleep *sleep;
};

static int set_sleep(struct db *db, void *arg, struct err *err)
{
    const struct sleep_change *c = arg;
    const struct store_sleep *s = c->sleep;

    if (db_run(db, err, SQL_SANDBOX_SET_SLEEP, "tiiiiii", c->id, (int64_t) s->tier,
               (int64_t) s->aim, (int64_t) s->by, (int64_t) s->since_ms, (int64_t) s->bytes,
               (int64_t) s->memory) < 0)
        return -1;
    return changed_one(db, c->id, err);
}

int store_sandbox_set_sleep(struct store *store, const char *id, const struct store_sleep *sleep,
                            struct err *err)
{
    struct sleep_change c = { id, sleep };

    return sleep->tier == STORE_DISK ? store_write(store, set_sleep, &c, err)
                                     : store_write_early(store, set_sleep, &c, err);
}

/* What is on disk counts for nothing but its bytes; from here on it counts again, if there is room. */
static int claim(struct db *db, void *arg, struct err *err)
{
    const struct store_sandbox *s = arg;
    const struct store_usage more = { 1, s->cpu_milli, s->memory_bytes, s->disk_bytes };
    struct store_sleep sleep = s->sleep;
    struct sleep_change c = { s->id, &sleep };
    struct store_tenant tenant;
    struct store_usage used;

    sleep.tier = STORE_HOT;
    if (tenant_read(db, s->tenant, &tenant, err) < 0 || usage_read(db, s->tenant, &used, err) < 0 ||
        store_quotas_allow(&tenant.quotas, &used, &more, err) < 0)
        return -1;
    return set_sleep(db, &c, err);
}

int store_sandbox_claim(struct store *store, const struct store_sandbox *sandbox, struct err *err)
{
    return store_write_early(store, claim, (void *) sandbox, err);
}

struct change {
    const char *id, *text;
};

static int set_metadata(struct db *db, void *arg, struct err *err)
{
    const struct change *c = arg;

    if (db_run(db, err, SQL_SANDBOX_SET_METADATA, "tt", c->id, c->text) < 0)
        return -1;
    return changed_one(db, c->id, err);
}

int store_sandbox_set_metadata(struct store *store, const char *id, const char *metadata,
                               struct err *err)
{
    struct change c = { id, metadata };

    return store_write(store, set_metadata, &c, err);
}

static int remove_sandbox(struct db *db, void *arg, struct err *err)
{
    if (db_run(db, err, SQL_ENV_REMOVE, "t", (const char *) arg) < 0)
        return -1;
    return db_run(db, err, SQL_SANDBOX_REMOVE, "t", (const char *) arg);
}

static int shift(struct db *db, void *arg, struct err *err)
{
    return db_run(db, err, SQL_SANDBOX_SHIFT, "i", *(const int64_t *) arg);
}

int store_sandbox_shift(struct store *store, int64_t by_ms, struct err *err)
{
    return store_write_early(store, shift, &by_ms, err);
}

struct times {
    const char *id;
    uint64_t created_ms, deadline_ms;
    bool changed;
};

static int renew(struct db *db, void *arg, struct err *err)
{
    const struct times *t = arg;

    if (db_run(db, err, SQL_SANDBOX_RENEW, "tii", t->id, (int64_t) t->created_ms,
               (int64_t) t->deadline_ms) < 0)
        return -1;
    return sqlite3_changes(db->handle) == 1
               ? 0
               : err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%s'", t->id);
}

int store_sandbox_renew(struct store *store, const char *id, uint64_t created_ms,
                        uint64_t deadline_ms, struct err *err)
{
    struct times t = { .id = id, .created_ms = created_ms, .deadline_ms = deadline_ms };

    return store_write_early(store, renew, &t, err);
}

static int remove_old(struct db *db, void *arg, struct err *err)
{
    struct times *t = arg;

    if (db_run(db, err, SQL_SANDBOX_REMOVE_OLD, "ti", t->id, (int64_t) t->created_ms) < 0)
        return -1;
    t->changed = sqlite3_changes(db->handle) == 1;
    return t->changed ? db_run(db, err, SQL_ENV_REMOVE, "t", t->id) : 0;
}

int store_sandbox_remove_old(struct store *store, const char *id, uint64_t created_ms,
                             bool *ret_removed, struct err *err)
{
    struct times t = { .id = id, .created_ms = created_ms };

    if (store_write_early(store, remove_old, &t, err) < 0)
        return -1;
    *ret_removed = t.changed;
    return 0;
}

int store_sandbox_remove(struct store *store, const char *id, struct err *err)
{
    return store_write_early(store, remove_sandbox, (void *) id, err);
}

/* ---- reading ---- */

static int find(struct store *store, enum sql which, const char *tenant, const char *text,
                struct store_sandbox *ret, struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, which, err);
    if (stmt) {
        db_bind(stmt, "tt", text, tenant);
        rc = db_step(&db, stmt, err);
    }
    if (rc == 1)
        read_sandbox(stmt, ret);
    reader_give(store, &db);
    if (rc == 0)
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.63s'", text);
    return rc < 0 ? -1 : 0;
}

int store_sandbox_get(struct store *store, const char *tenant, const char *id,
                      struct store_sandbox *ret, struct err *err)
{
    return find(store, SQL_SANDBOX_GET, tenant, id, ret, err);
}

int store_sandbox_env(struct store *store, const char *id, char **ret, struct err *err)
{
    sqlite3_stmt *stmt;
    char *env = NULL;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_ENV_GET, err);
    if (stmt) {
        db_bind(stmt, "t", id);
        rc = db_step(&db, stmt, err);
    }
    if (rc == 1 && !(env = strdup(db_text(stmt, 0))))
        rc = err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    reader_give(store, &db);
    if (rc < 0)
        return -1;
    *ret = env;
    return 0;
}

int store_sandbox_find_name(struct store *store, const char *tenant, const char *name,
                            struct store_sandbox *ret, struct err *err)
{
    return find(store, SQL_SANDBOX_BY_NAME, tenant, name, ret, err);
}

int store_sandbox_find_idempotency(struct store *store, const char *tenant, const char *key,
                                   struct store_sandbox *ret, struct err *err)
{
    return find(store, SQL_SANDBOX_BY_IDEMPOTENCY, tenant, key, ret, err);
}

int store_sandbox_list(struct store *store, const char *tenant, uint64_t after, uint64_t limit,
                       store_sandbox_each *each, void *arg, struct err *err)
{
    struct store_sandbox sandbox;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_SANDBOX_LIST, err);
    if (stmt)
        db_bind(stmt, "tii", tenant, (int64_t) after, limit ? (int64_t) limit : (int64_t) -1);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        read_sandbox(stmt, &sandbox);
        if (each(arg, &sandbox, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}
