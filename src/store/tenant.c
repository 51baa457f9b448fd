#include "base/own.h"
#include "store/own.h"

#include <string.h>

#define AT(field) offsetof(struct store_quotas, field)
#define GiB       (1024ull * 1024 * 1024)

/* In the order of the columns, from column 2 on. */
/* clang-format off */
const struct quota_info quota_table[] = {
    { "sandboxes",      QUOTA_COUNT_UNIT, AT(sandboxes),      100,       "sandboxes at once" },
    { "cpus",           QUOTA_CPUS_UNIT,  AT(cpu_milli),      0,         "cores of all its sandboxes together" },
    { "memory",         QUOTA_BYTES_UNIT, AT(memory_bytes),   0,         "memory of all its sandboxes together" },
    { "disk",           QUOTA_BYTES_UNIT, AT(disk_bytes),     0,         "disk of all its sandboxes together" },
    { "creates-per-s",  QUOTA_COUNT_UNIT, AT(creates_per_s),  20,        "new sandboxes per second" },
    { "requests-per-s", QUOTA_COUNT_UNIT, AT(requests_per_s), 500,       "requests per second" },
    { "streams",        QUOTA_COUNT_UNIT, AT(streams),        100,       "long answers and terminals at once" },
    { "stored-bytes",   QUOTA_BYTES_UNIT, AT(stored_bytes),   0,         "bytes that its sandboxes hold on their disks" },
    { "images",         QUOTA_COUNT_UNIT, AT(images),         1000,      "snapshots, and sandboxes that are paused to disk" },
    { "isolation",      QUOTA_LEVEL_UNIT, AT(isolation),      0,         "the least isolation that its sandboxes have" },
};
/* clang-format on */
const size_t quota_table_count = ARRAY_LEN(quota_table);
_Static_assert(ARRAY_LEN(quota_table) * sizeof(uint64_t) == sizeof(struct store_quotas),
               "every quota has a row");

static uint64_t *quota_field(struct store_quotas *quotas, size_t i)
{
    return (uint64_t *) ((char *) quotas + quota_table[i].offset);
}

void store_quotas_default(struct store_quotas *quotas)
{
    for (size_t i = 0; i < ARRAY_LEN(quota_table); i++)
        *quota_field(quotas, i) = quota_table[i].fallback;
}

static void read_tenant(sqlite3_stmt *stmt, struct store_tenant *ret)
{
    db_copy(stmt, 0, ret->name, sizeof ret->name);
    ret->created_ms = db_number(stmt, 1);
    for (size_t i = 0; i < ARRAY_LEN(quota_table); i++)
        *quota_field(&ret->quotas, i) = db_number(stmt, 2 + (int) i);
}

static int no_tenant(struct err *err, const char *name)
{
    return err_set(err, ERR_NO_PATH, "there is no tenant '%.63s'", name);
}

int tenant_read(struct db *db, const char *name, struct store_tenant *ret, struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_TENANT_GET, err);
    int rc;

    if (!stmt)
        return -1;
    db_bind(stmt, "t", name);
    rc = db_step(db, stmt, err);
    if (rc == 0)
        return no_tenant(err, name);
    if (rc < 0)
        return -1;
    read_tenant(stmt, ret);
    (void) sqlite3_reset(stmt);
    return 0;
}

static uint64_t quota_of(const struct store_quotas *quotas, size_t i)
{
    return *(const uint64_t *) ((const char *) quotas + quota_table[i].offset);
}

static int check_quotas(const struct store_quotas *quotas, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(quota_table); i++)
        if (quota_of(quotas, i) > INT64_MAX / 2 && quota_of(quotas, i) != STORE_QUOTA_KEEP)
            return err_set(err, ERR_LIMIT, "%s: too large", quota_table[i].name);
    return 0;
}

static void merge_quotas(struct store_quotas *quotas, const struct store_quotas *fresh)
{
    for (size_t i = 0; i < ARRAY_LEN(quota_table); i++)
        if (quota_of(fresh, i) != STORE_QUOTA_KEEP)
            *quota_field(quotas, i) = quota_of(fresh, i);
}

/* ---- changes ---- */

static int add(struct db *db, const struct store_tenant *t, struct err *err)
{
    const struct store_quotas *q = &t->quotas;

    if (db_run(db, err, SQL_TENANT_ADD, "tiiiiiiiiiii", t->name, (int64_t) t->created_ms,
               (int64_t) q->sandboxes, (int64_t) q->cpu_milli, (int64_t) q->memory_bytes,
               (int64_t) q->disk_bytes, (int64_t) q->creates_per_s, (int64_t) q->requests_per_s,
               (int64_t) q->streams, (int64_t) q->stored_bytes, (int64_t) q->images,
               (int64_t) q->isolation) == 0)
        return 0;
    if (sqlite3_errcode(db->handle) == SQLITE_CONSTRAINT)
        return err_set(err, ERR_EXISTS, "there is a tenant '%s' already", t->name);
    return -1;
}

static int set(struct db *db, const struct store_tenant *t, struct err *err)
{
    const struct store_quotas *q = &t->quotas;

    return db_run(db, err, SQL_TENANT_SET, "tiiiiiiiiii", t->name, (int64_t) q->sandboxes,
                  (int64_t) q->cpu_milli, (int64_t) q->memory_bytes, (int64_t) q->disk_bytes,
                  (int64_t) q->creates_per_s, (int64_t) q->requests_per_s, (int64_t) q->streams,
                  (int64_t) q->stored_bytes, (int64_t) q->images, (int64_t) q->isolation);
}

struct change {
    bool add;
    const char *name;
    const struct store_quotas *quotas;
    const struct store_network_new *network;
    const char *login; /* sealed */
};

/* What stays is read in the transaction that writes: two changes at once both count. */
static int write_tenant(struct db *db, void *arg, struct err *err)
{
    const struct change *c = arg;
    struct store_tenant t = { .created_ms = store_now_ms() };

    if (c->add) {
        (void) snprintf(t.name, sizeof t.name, "%s", c->name);
        store_quotas_default(&t.quotas);
    } else if (tenant_read(db, c->name, &t, err) < 0) {
        return -1;
    }
    merge_quotas(&t.quotas, c->quotas);
    if ((c->add ? add : set)(db, &t, err) < 0)
        return -1;
    return c->network ? network_default_write(db, STORE_NETWORK_TENANT, c->name, c->network->rules,
                                              c->login, err)
                      : 0;
}

static int remove_tenant(struct db *db, void *arg, struct err *err)
{
    const char *name = arg;
    struct store_volume_usage volumes;
    unsigned long long sandboxes, snapshots;
    sqlite3_stmt *stmt = db_stmt(db, SQL_TENANT_HOLDS, err);

    if (!stmt)
        return -1;
    db_bind(stmt, "t", name);
    if (db_step(db, stmt, err) != 1)
        return -1;
    sandboxes = db_number(stmt, 0);
    snapshots = db_number(stmt, 1);
    (void) sqlite3_reset(stmt);
    if (sandboxes > 0)
        return err_set(err, ERR_NOT_EMPTY, "tenant '%.63s' has %llu sandboxes: end them first",
                       name, sandboxes);
    if (snapshots > 0)
        return err_set(err, ERR_NOT_EMPTY, "tenant '%.63s' has %llu snapshots: delete them first",
                       name, snapshots);
    if (volume_usage_read(db, name, &volumes, err) < 0)
        return -1;
    if (volumes.volumes > 0)
        return err_set(err, ERR_NOT_EMPTY, "tenant '%.63s' has %llu volumes: remove them first",
                       name, (unsigned long long) volumes.volumes);
    if (db_run(db, err, SQL_TENANT_KEYS_REMOVE, "t", name) < 0 ||
        db_run(db, err, SQL_TENANT_REMOVE, "t", name) < 0)
        return -1;
    return sqlite3_changes(db->handle) == 1 ? 0 : no_tenant(err, name);
}

/* ---- the functions of store.h ---- */

static int check_new_name(const char *name, struct err *err)
{
    if (!name_ok(name))
        return err_set(err, ERR_INVALID,
                       "a tenant's name is a-z, 0-9, inner '-', '_', '.', at most 63");
    if (strncmp(name, "cove.", 5) == 0) /* owners of images that are no tenant's (client/warm.h) */
        return err_set(err, ERR_INVALID, "names that begin with 'cove.' are reserved");
    return 0;
}

int store_tenant_write(struct store *store, bool add, const char *name,
                       const struct store_quotas *quotas, const struct store_network_new *network,
                       struct err *err)
{
    auto_free char *login = NULL;
    struct change c = { add, name, quotas, network, NULL };

    if (add && check_new_name(name, err) < 0)
        return -1;
    if (!name_ok(name))
        return no_tenant(err, name);
    if (check_quotas(quotas, err) < 0 ||
        (network && network_default_seal(store, STORE_NETWORK_TENANT, name, network->rules,
                                         network->login, &login, err) < 0))
        return -1;
    c.login = login;
    return store_write(store, write_tenant, &c, err);
}

int store_tenant_add(struct store *store, const char *name, const struct store_quotas *quotas,
                     struct err *err)
{
    return store_tenant_write(store, true, name, quotas, NULL, err);
}

int store_tenant_set(struct store *store, const char *name, const struct store_quotas *quotas,
                     struct err *err)
{
    return store_tenant_write(store, false, name, quotas, NULL, err);
}

int store_tenant_remove(struct store *store, const char *name, struct err *err)
{
    char copy[STORE_TENANT_MAX];

    if (strcmp(name, STORE_LOCAL_TENANT) == 0)
        return err_set(err, ERR_INVALID, "the tenant 'local' is always there");
    if (!name_ok(name))
        return no_tenant(err, name);
    (void) snprintf(copy, sizeof copy, "%s", name);
    return store_write(store, remove_tenant, copy, err);
}

int store_tenant_get(struct store *store, const char *name, struct store_tenant *ret,
                     struct err *err)
{
    struct db db;
    int rc;

    if (reader_take(store, &db, err) < 0)
        return -1;
    rc = tenant_read(&db, name, ret, err);
    reader_give(store, &db);
    return rc;
}

int store_tenant_list(struct store *store, store_tenant_each *each, void *arg, struct err *err)
{
    struct store_tenant tenant;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_TENANT_LIST, err);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        read_tenant(stmt, &tenant);
        if (each(arg, &tenant, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}
