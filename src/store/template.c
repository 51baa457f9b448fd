#include "store/template.h"

#include "base/own.h"
#include "store/own.h"

#include <string.h>

static void read_template(sqlite3_stmt *stmt, struct store_template *ret)
{
    db_copy(stmt, 0, ret->id, sizeof ret->id);
    db_copy(stmt, 1, ret->tenant, sizeof ret->tenant);
    db_copy(stmt, 2, ret->name, sizeof ret->name);
    ret->is_public = db_number(stmt, 3) != 0;
    ret->created_ms = db_number(stmt, 4);
    ret->updated_ms = db_number(stmt, 5);
}

static void read_build(sqlite3_stmt *stmt, struct store_build *ret)
{
    db_copy(stmt, 0, ret->id, sizeof ret->id);
    db_copy(stmt, 1, ret->template, sizeof ret->template);
    db_copy(stmt, 2, ret->tenant, sizeof ret->tenant);
    ret->state = (int) db_number(stmt, 3);
    db_copy(stmt, 4, ret->reason, sizeof ret->reason);
    db_copy(stmt, 5, ret->step, sizeof ret->step);
    db_copy(stmt, 6, ret->sandbox, sizeof ret->sandbox);
    db_copy(stmt, 7, ret->snapshot, sizeof ret->snapshot);
    db_copy(stmt, 8, ret->tags, sizeof ret->tags);
    ret->cpu_milli = db_number(stmt, 9);
    ret->memory_bytes = db_number(stmt, 10);
    ret->disk_bytes = db_number(stmt, 11);
    ret->created_ms = db_number(stmt, 12);
    ret->ended_ms = db_number(stmt, 13);
}

/* ---- reading: one row, or all of them ---- */

/* What a query is asked with; it takes as many of them as it has parameters. */

typedef int row_fn(void *arg, sqlite3_stmt *stmt, struct err *err);

static int rows(struct store *store, enum sql which, const char *types, const char *first,
                const char *second, int64_t number, row_fn *each, void *arg, struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1, count = 0;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, which, err);
    if (stmt && strcmp(types, "ti") == 0)
        db_bind(stmt, types, first, number);
    else if (stmt)
        db_bind(stmt, types, first, second, number);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        count++;
        if (each(arg, stmt, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc < 0 ? -1 : count;
}

static int take_template(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    (void) err;
    read_template(stmt, arg);
    return 0;
}

static int take_build(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    (void) err;
    read_build(stmt, arg);
    return 0;
}

struct walk {
    union {
        store_template_each *template;
        store_build_each *build;
        store_tag_each *tag;
        store_step_each *step;
        store_template_image_each *image;
    } each;
    void *arg;
};

static int walk_template(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    struct store_template template;
    struct walk *walk = arg;

    read_template(stmt, &template);
    return walk->each.template(walk->arg, &template, err);
}

static int walk_build(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    struct store_build build;
    struct walk *walk = arg;

    read_build(stmt, &build);
    return walk->each.build(walk->arg, &build, err);
}

static int walk_tag(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    struct walk *walk = arg;
    const struct store_tag tag = { .tag = db_text(stmt, 0),
                                   .build = db_text(stmt, 1),
                                   .created_ms = db_number(stmt, 2),
                                   .bytes = db_number(stmt, 3),
                                   .from = db_text(stmt, 4) };

    return walk->each.tag(walk->arg, &tag, err);
}

static int walk_step(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    struct walk *walk = arg;

    return walk->each.step(walk->arg, db_text(stmt, 0), db_text(stmt, 1), db_number(stmt, 2), err);
}

static int walk_image(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    struct walk *walk = arg;

    return walk->each.image(walk->arg, db_text(stmt, 0), err);
}

/* ---- templates ---- */

/* The first number of a query of one text; in a transaction. */
static int count_of(struct db *db, enum sql which, const char *text, uint64_t *ret, struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, which, err);

    if (!stmt)
        return -1;
    db_bind(stmt, "t", text);
    if (db_step(db, stmt, err) != 1)
        return -1;
    *ret = db_number(stmt, 0);
    (void) sqlite3_reset(stmt);
    return 0;
}

static int add_template(struct db *db, void *arg, struct err *err)
{
    const struct store_template *t = arg;
    sqlite3_stmt *stmt = db_stmt(db, SQL_TEMPLATE_OWN, err);
    uint64_t count;
    int rc;

    if (!stmt)
        return -1;
    db_bind(stmt, "tt", t->tenant, t->name);
    rc = db_step(db, stmt, err);
    (void) sqlite3_reset(stmt);
    if (rc != 0)
        return rc < 0 ? -1 : err_set(err, ERR_EXISTS, "there is a template '%s' already", t->name);
    if (count_of(db, SQL_TEMPLATE_COUNT, t->tenant, &count, err) < 0)
        return -1;
    if (count >= STORE_TEMPLATES_MAX)
        return err_set(err, ERR_TOO_MANY, "there are %d templates, as many as a tenant may have",
                       STORE_TEMPLATES_MAX);
    return db_run(db, err, SQL_TEMPLATE_ADD, "tttiii", t->id, t->tenant, t->name,
                  (int64_t) t->is_public, (int64_t) t->created_ms, (int64_t) t->updated_ms);
}

int store_template_add(struct store *store, const struct store_template *template, struct err *err)
{
    return store_write(store, add_template, (void *) template, err);
}

int store_template_find(struct store *store, const char *tenant, const char *name, bool own,
                        struct store_template *ret, struct err *err)
{
    int rc = rows(store, SQL_TEMPLATE_OWN, "tti", tenant, name, 0, take_template, ret, err);

    if (rc == 0 && !own)
        rc = rows(store, SQL_TEMPLATE_PUBLIC, "t", name, NULL, 0, take_template, ret, err);
    if (rc == 0)
        return err_set(err, ERR_NO_TEMPLATE, "there is no template '%.63s'", name);
    return rc < 0 ? -1 : 0;
}

int store_template_list(struct store *store, const char *tenant, store_template_each *each,
                        void *arg, struct err *err)
{
    struct walk walk = { .each.template = each, .arg = arg };

    return rows(store, SQL_TEMPLATE_LIST, "t", tenant, NULL, 0, walk_template, &walk, err) < 0 ? -1
                                                                                               : 0;
}

struct pair {
    const char *id, *text, *more;
    int64_t number;
};

static int publish(struct db *db, void *arg, struct err *err)
{
    const struct pair *pair = arg;

    return db_run(db, err, SQL_TEMPLATE_PUBLISH, "ti", pair->id, pair->number);
}

int store_template_publish(struct store *store, const char *id, bool is_public, struct err *err)
{
    struct pair pair = { .id = id, .number = is_public };

    return store_write(store, publish, &pair, err);
}

static int remove_template(struct db *db, void *arg, struct err *err)
{
    return db_run(db, err, SQL_TEMPLATE_REMOVE, "t", (const char *) arg);
}

int store_template_remove(struct store *store, const char *id, struct err *err)
{
    return store_write(store, remove_template, (void *) id, err);
}

/* ---- builds ---- */

static int add_build(struct db *db, void *arg, struct err *err)
{
    const struct store_build *b = arg;

    return db_run(db, err, SQL_BUILD_ADD, "tttitttttiiiii", b->id, b->template, b->tenant,
                  (int64_t) b->state, b->reason, b->step, b->sandbox, b->snapshot, b->tags,
                  (int64_t) b->cpu_milli, (int64_t) b->memory_bytes, (int64_t) b->disk_bytes,
                  (int64_t) b->created_ms, (int64_t) b->ended_ms);
}

int store_build_add(struct store *store, const struct store_build *build, struct err *err)
{
    return store_write(store, add_build, (void *) build, err);
}

int store_build_get(struct store *store, const char *tenant, const char *id,
                    struct store_build *ret, struct err *err)
{
    int rc = rows(store, SQL_BUILD_GET, "tti", tenant, id, 0, take_build, ret, err);

    if (rc == 0)
        return err_set(err, ERR_NO_PATH, "there is no build '%.36s'", id);
    return rc < 0 ? -1 : 0;
}

int store_build_list(struct store *store, const char *tenant, const char *template, uint64_t limit,
                     store_build_each *each, void *arg, struct err *err)
{
    struct walk walk = { .each.build = each, .arg = arg };

    return rows(store, SQL_BUILD_LIST, "tti", tenant, template ? template : "", (int64_t) limit,
                walk_build, &walk, err) < 0
               ? -1
               : 0;
}

int store_build_open(struct store *store, store_build_each *each, void *arg, struct err *err)
{
    struct walk walk = { .each.build = each, .arg = arg };

    return rows(store, SQL_BUILD_OPEN, "", NULL, NULL, 0, walk_build, &walk, err) < 0 ? -1 : 0;
}

static int set_build(struct db *db, void *arg, struct err *err)
{
    const struct store_build *b = arg;

    return db_run(db, err, SQL_BUILD_SET, "titttti", b->id, (int64_t) b->state, b->reason, b->step,
                  b->sandbox, b->snapshot, (int64_t) b->ended_ms);
}

int store_build_set(struct store *store, const struct store_build *build, struct err *err)
{
    return store_write(store, set_build, (void *) build, err);
}

struct finished {
    const struct store_build *build;
    const char *settings;
};

static int set_tag(struct db *db, const char *template, const char *tag, const char *build,
                   struct err *err)
{
    return db_run(db, err, SQL_TAG_SET, "ttti", template, tag, build, (int64_t) store_now_ms());
}

static int ready(struct db *db, void *arg, struct err *err)
{
    const struct finished *f = arg;
    const struct store_build *b = f->build;

    if (set_build(db, (void *) b, err) < 0)
        return -1;
    if (sqlite3_changes(db->handle) != 1)
        return err_set(err, ERR_NO_TEMPLATE, "the template was deleted while it was built");
    if (db_run(db, err, SQL_BUILD_SETTINGS, "tt", b->id, f->settings) < 0 ||
        db_run(db, err, SQL_BUILD_UPDATED, "ti", b->template, (int64_t) store_now_ms()) < 0)
        return -1;
    return db_run(db, err, SQL_TAGS_SET, "ttit", b->template, b->id, (int64_t) store_now_ms(),
                  b->tags);
}

int store_build_ready(struct store *store, const struct store_build *build, const char *settings,
                      struct err *err)
{
    struct finished finished = { build, settings };

    return store_write(store, ready, &finished, err);
}

static int take_text(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    char **ret = arg;

    *ret = strdup(db_text(stmt, 0));
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for the settings of a template");
}

int store_build_settings(struct store *store, const char *id, char **ret, struct err *err)
{
    int rc = rows(store, SQL_BUILD_SETTINGS_GET, "t", id, NULL, 0, take_text, ret, err);

    return rc == 0 ? err_set(err, ERR_NO_PATH, "there is no build '%.36s'", id) : rc < 0 ? -1 : 0;
}

int store_build_old(struct store *store, const char *template, uint64_t keep,
                    store_build_each *each, void *arg, struct err *err)
{
    struct walk walk = { .each.build = each, .arg = arg };

    return rows(store, SQL_BUILD_OLD, "ti", template, NULL, (int64_t) keep, walk_build, &walk,
                err) < 0
               ? -1
               : 0;
}

static int remove_build(struct db *db, void *arg, struct err *err)
{
    return db_run(db, err, SQL_BUILD_REMOVE, "t", (const char *) arg);
}

int store_build_remove(struct store *store, const char *id, struct err *err)
{
    return store_write(store, remove_build, (void *) id, err);
}

/* ---- tags ---- */

int store_tag_get(struct store *store, const char *template, const char *tag,
                  struct store_build *ret, struct err *err)
{
    int rc = rows(store, SQL_TAG_GET, "tti", template, tag, 0, take_build, ret, err);

    if (rc == 0)
        return err_set(err, ERR_NO_TEMPLATE, "the template has no tag '%.63s'", tag);
    return rc < 0 ? -1 : 0;
}

static int tag_one(struct db *db, void *arg, struct err *err)
{
    const struct pair *pair = arg;

    return set_tag(db, pair->id, pair->text, pair->more, err);
}

static int count_tag(void *arg, const struct store_tag *tag, struct err *err)
{
    (void) tag;
    (void) err;
    ++*(size_t *) arg;
    return 0;
}

int store_tag_set(struct store *store, const char *template, const char *tag, const char *build,
                  struct err *err)
{
    struct pair pair = { .id = template, .text = tag, .more = build };
    size_t count = 0;

    if (store_tag_list(store, template, count_tag, &count, err) < 0)
        return -1;
    if (count >= STORE_TAGS_OF_ONE_MAX)
        return err_set(err, ERR_TOO_MANY, "the template has %d tags, as many as there may be",
                       STORE_TAGS_OF_ONE_MAX);
    return store_write(store, tag_one, &pair, err);
}

static int untag(struct db *db, void *arg, struct err *err)
{
    const struct pair *pair = arg;

    if (db_run(db, err, SQL_TAG_REMOVE, "tt", pair->id, pair->text) < 0)
        return -1;
    return sqlite3_changes(db->handle) == 1
               ? 0
               : err_set(err, ERR_NO_PATH, "the template has no tag '%.63s'", pair->text);
}

int store_tag_remove(struct store *store, const char *template, const char *tag, struct err *err)
{
    struct pair pair = { .id = template, .text = tag };

    return store_write(store, untag, &pair, err);
}

int store_tag_list(struct store *store, const char *template, store_tag_each *each, void *arg,
                   struct err *err)
{
    struct walk walk = { .each.tag = each, .arg = arg };

    return rows(store, SQL_TAG_LIST, "t", template, NULL, 0, walk_tag, &walk, err) < 0 ? -1 : 0;
}

/* ---- steps ---- */

struct step {
    const char *tenant, *key, *snapshot;
    uint64_t bytes;
};

static int add_step(struct db *db, void *arg, struct err *err)
{
    const struct step *s = arg;

    return db_run(db, err, SQL_STEP_ADD, "tttii", s->tenant, s->key, s->snapshot,
                  (int64_t) s->bytes, (int64_t) store_now_ms());
}

int store_step_add(struct store *store, const char *tenant, const char *key, const char *snapshot,
                   uint64_t bytes, struct err *err)
{
    struct step step = { tenant, key, snapshot, bytes };

    return store_write(store, add_step, &step, err);
}

static int take_snapshot(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    (void) err;
    db_copy(stmt, 0, arg, ID_LEN + 1);
    return 0;
}

static int use_step(struct db *db, void *arg, struct err *err)
{
    const struct step *s = arg;

    return db_run(db, err, SQL_STEP_USED, "tti", s->tenant, s->key, (int64_t) store_now_ms());
}

int store_step_get(struct store *store, const char *tenant, const char *key,
                   char ret_snapshot[ID_LEN + 1], struct err *err)
{
    struct step step = { .tenant = tenant, .key = key };
    int rc = rows(store, SQL_STEP_GET, "tti", tenant, key, 0, take_snapshot, ret_snapshot, err);

    return rc > 0 && store_write_early(store, use_step, &step, err) < 0 ? -1 : rc;
}

int store_step_list(struct store *store, const char *tenant, store_step_each *each, void *arg,
                    struct err *err)
{
    struct walk walk = { .each.step = each, .arg = arg };

    return rows(store, SQL_STEP_LIST, "t", tenant, NULL, 0, walk_step, &walk, err) < 0 ? -1 : 0;
}

static int remove_step(struct db *db, void *arg, struct err *err)
{
    const struct step *s = arg;

    return db_run(db, err, SQL_STEP_REMOVE, "tt", s->tenant, s->key);
}

int store_step_remove(struct store *store, const char *tenant, const char *key, struct err *err)
{
    struct step step = { .tenant = tenant, .key = key };

    return store_write(store, remove_step, &step, err);
}

/* ---- snapshots of templates ---- */

static int seen(void *arg, sqlite3_stmt *stmt, struct err *err)
{
    (void) arg;
    (void) stmt;
    (void) err;
    return 0;
}

int store_template_image_used(struct store *store, const char *snapshot, struct err *err)
{
    return rows(store, SQL_TEMPLATE_IMAGE_USED, "t", snapshot, NULL, 0, seen, NULL, err);
}

int store_template_images_unused(struct store *store, store_template_image_each *each, void *arg,
                                 struct err *err)
{
    struct walk walk = { .each.image = each, .arg = arg };

    return rows(store, SQL_TEMPLATE_IMAGES_UNUSED, "", NULL, NULL, 0, walk_image, &walk, err) < 0
               ? -1
               : 0;
}
