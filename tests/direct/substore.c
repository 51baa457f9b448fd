#include "direct/substore.h"

#include "base/admin_socket.h"
#include "base/own.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "client/warm.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void subverb_product(char **argv)
{
    auto_close int fd = -1;
    char path[PATH_MAX + 16], here[PATH_MAX], *slash;
    struct err err;

    if (admin_connect(report_state(), &fd, &err) < 0)
        return;
    if (program_find("coved", here, sizeof here, &err) < 0 || !(slash = strrchr(here, '/')))
        _exit(report_error(&err));
    *slash = '\0';
    (void) snprintf(path, sizeof path, "%s/../cove", here);
    (void) execv(
        path, argv - 1); /* what is before the verb is the program's name, or an option's value */
    perror(path);
    _exit(126);
}

int subverb_store(struct store **ret, struct err *err)
{
    return store_open(report_state(), ret, err);
}

static bool store_path(char *ret, size_t size)
{
    (void) snprintf(ret, size, "%s/server/cove.db", report_state());
    return access(ret, F_OK) == 0;
}

int subverb_audit(struct store *store, const char *tenant, const char *action, const char *detail,
                  struct err *err)
{
    char user[32];
    struct audit_record record = { .tenant = tenant,
                                   .user_id = user,
                                   .action = action,
                                   .outcome = "ok",
                                   .detail = detail,
                                   .resource_usage = "{}",
                                   .security_events = "[]",
                                   .duration_ms = -1,
                                   .exit_code = AUDIT_NO_EXIT };

    (void) snprintf(user, sizeof user, "cli/%u", (unsigned) getuid());
    if (store_audit_append(store, &record, STORE_ON_DISK, err) < 0)
        return err_wrap(err, "done, but not in the audit log");
    return 0;
}

/* ---- looking, also while a server writes ---- */

/* Calls fn for each row of a query with one text; returns how many there were. */
static int query(const char *sql, const char *text, void (*fn)(void *arg, sqlite3_stmt *row),
                 void *arg)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = NULL;
    char path[4096];
    int count = 0;

    if (store_path(path, sizeof path) &&
        sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK) {
        (void) sqlite3_busy_timeout(db, 10000);
        if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
            sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC) == SQLITE_OK)
            for (; sqlite3_step(stmt) == SQLITE_ROW; count++)
                fn(arg, stmt);
        (void) sqlite3_finalize(stmt);
    }
    (void) sqlite3_close(db);
    return count;
}

static void copy_name(void *arg, sqlite3_stmt *row)
{
    (void) snprintf(arg, KEEPER_NAME_MAX, "%s", (const char *) sqlite3_column_text(row, 0));
}

void saved_owner(const char *sandbox, char ret[KEEPER_NAME_MAX])
{
    ret[0] = '\0';
    (void) query("SELECT tenant FROM sandboxes WHERE id = ?", sandbox, copy_name, ret);
}

static int id_of(const char *name, char ret[KEEPER_NAME_MAX], struct err *err)
{
    static const char sql[] = "SELECT id FROM snapshots WHERE name = ? AND state = 1";
    int count = query(sql, name, copy_name, ret);

    if (count == 0)
        return err_set(err, ERR_NO_IMAGE, "there is no snapshot '%.63s'", name);
    return count == 1 ? 0
                      : err_set(err, ERR_INVALID,
                                "several tenants have a snapshot '%.63s': say its id", name);
}

int saved_snapshot(struct link *link, const char *snapshot, struct keeper_image *ret,
                   struct err *err)
{
    char id[KEEPER_NAME_MAX];

    if (!id_ok(snapshot)) {
        if (id_of(snapshot, id, err) < 0)
            return -1;
        snapshot = id;
    }
    if (image_get(link, snapshot, ret, err) < 0)
        return -1;
    if (strcmp(ret->owner, WARM_OWNER) == 0)
        return err_set(err, ERR_NO_IMAGE, "'%s' is of a template, not a snapshot", snapshot);
    return ret->flags & KEEPER_IMAGE_PAUSED
               ? err_set(err, ERR_NO_IMAGE, "'%s' is a paused sandbox, not a snapshot", snapshot)
               : 0;
}

int saved_load(struct link *link, const struct keeper_image *image, struct keeper_sandbox *ret,
               struct err *err)
{
    char id[ID_LEN + 1];
    const struct image_load_spec spec = { .image = image->id, .owner = image->owner, .id = id };

    return sandbox_new_id(id, err) < 0 ? -1 : image_load(link, &spec, ret, err);
}

/* ---- memory images of templates ---- */

struct source {
    char image[KEEPER_NAME_MAX];
    char start[STORE_COMMAND_MAX];
};

static void copy_source(void *arg, sqlite3_stmt *row)
{
    struct source *source = arg;

    copy_name(source->image, row);
    (void) snprintf(source->start, sizeof source->start, "%s",
                    (const char *) sqlite3_column_text(row, 1));
}

int saved_warm_create(struct link *link, const struct sandbox_spec *spec,
                      struct keeper_sandbox *ret, struct err *err)
{
    struct source found = { .image = "" };
    const struct warm_source source = { .image = found.image, .start = found.start };
    struct keeper_hello hello;
    struct err why;
    bool loaded;

    if (!spec->template && keeper_hello(link, &hello, err) < 0)
        return -1;
    if (query("SELECT image, start FROM warm WHERE template = ?",
              spec->template ? spec->template : hello.default_template, copy_source, &found) == 0)
        return sandbox_create(link, spec, ret, err);
    if (warm_create(link, spec, &source, ret, &loaded, &why, err) < 0)
        return -1;
    if (why.kind != ERR_NONE)
        report_note("the template's memory image was not loaded: %s", why.msg);
    return 0;
}
