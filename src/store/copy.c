/* SQLite's own way to copy a file that others write to: all pages of one moment, whatever comes meanwhile. */
#include "store/own.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int copy_pages(struct db *from, const char *to, struct err *err)
{
    struct db copy = { .handle = NULL };
    sqlite3_backup *backup;
    int r = 0;

    if (sqlite3_open_v2(to, &copy.handle, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        r = db_error(&copy, err);
        (void) sqlite3_close(copy.handle);
        return r;
    }
    backup = sqlite3_backup_init(copy.handle, "main", from->handle, "main");
    if (!backup || sqlite3_backup_step(backup, -1) != SQLITE_DONE ||
        sqlite3_backup_finish(backup) != SQLITE_OK)
        r = err_wrap((db_error(&copy, err), err), "copy the store");
    /* One file that stands alone: no journal beside it is needed to read it. */
    else if (sqlite3_exec(copy.handle, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) !=
             SQLITE_OK)
        r = db_error(&copy, err);
    (void) sqlite3_close(copy.handle);
    return r;
}

/* Beside the store. */
static void copy_path(const struct store *store, const char *ending, char ret[sizeof store->path])
{
    int len = (int) (strrchr(store->path, '/') - store->path);

    (void) snprintf(ret, sizeof store->path, "%.*s/" STORE_COPY "%s", len, store->path, ending);
}

/* Also the journal: SQLite would apply it to the next file of that name. */
void copy_clear(const struct store *store)
{
    static const char *const endings[] = { "", "-journal", "-wal", "-shm" };
    char path[sizeof store->path];

    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        copy_path(store, endings[i], path);
        (void) unlink(path);
    }
}

int store_copy(struct store *store, struct err *err)
{
    auto_close int fd = -1;
    char to[sizeof store->path];
    struct db from;
    int r;

    copy_clear(store);
    copy_path(store, "", to);
    if (store_audit_flush(store, err) < 0 || reader_take(store, &from, err) < 0)
        return -1;
    fd = open(to, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    r = fd < 0 ? err_sys(err, errno, "make %s", to) : copy_pages(&from, to, err);
    reader_give(store, &from);
    if (r < 0)
        copy_clear(store);
    return r;
}

uint64_t store_version(void)
{
    return DB_VERSION;
}
