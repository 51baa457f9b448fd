#include "store/store.h"

#include "base/io.h"
#include "base/own.h"
#include "store/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

uint64_t store_now_ms(void)
{
    return io_real_ms();
}

/* The directory and an empty file, both for the owner alone. */
static int make_file(const char *state, char *path, size_t size, struct err *err)
{
    auto_close int server = -1, file = -1;
    struct stat st;

    if ((size_t) snprintf(path, size, "%s/server/cove.db", state) >= size)
        return err_set(err, ERR_INVALID, "the state directory's name is too long");
    if (server_directory(state, &server, &st, err) < 0)
        return -1;
    file = openat(server, "cove.db", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return errno == EEXIST ? 0 : err_sys(err, errno, "make %s", path);
    return server_hand_over(file, &st) < 0 ? err_sys(err, errno, "hand over %s", path) : 0;
}

static void init_conditions(struct store *store)
{
    pthread_condattr_t attr;

    (void) pthread_mutex_init(&store->lock, NULL);
    (void) pthread_condattr_init(&attr);
    (void) pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&store->work, &attr);
    (void) pthread_cond_init(&store->done, &attr);
    (void) pthread_condattr_destroy(&attr);
}

int store_open(const char *state, struct store **ret, struct err *err)
{
    struct store *store = calloc(1, sizeof *store);

    if (!store)
        return err_set(err, ERR_NO_MEMORY, "no memory for the store");
    init_conditions(store);
    /* Its count of bytes is behind one lock, which every allocation of every connection would take. Refused when there is a
     * store already, which has said so before. */
    (void) sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    store->jobs_end = &store->jobs;
    store->entries_end = &store->entries;
    store->journal_fd = store->held_fd = -1;
    if (store_lock(state, &store->held_fd, err) < 0 ||
        make_file(state, store->path, sizeof store->path, err) < 0)
        goto undo;
    if (db_open(&store->writer, store->path, true, err) < 0) {
        err_wrap(err, "%s", store->path);
        goto undo;
    }
    copy_clear(store);
    if (writer_start(store, err) < 0)
        goto undo;
    *ret = store;
    return 0;

undo:
    store_close(store);
    return -1;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    writer_stop(store);
    while (store->reader_count > 0)
        db_close(&store->readers[--store->reader_count]);
    db_close(&store->writer);
    (void) pthread_cond_destroy(&store->work);
    (void) pthread_cond_destroy(&store->done);
    (void) pthread_mutex_destroy(&store->lock);
    own_close(&store->held_fd);
    free(store);
}

const char *store_trouble(struct store *store, char *out, size_t size)
{
    bool bad;

    (void) pthread_mutex_lock(&store->lock);
    bad = store->trouble.kind != ERR_NONE;
    if (bad)
        (void) snprintf(out, size, "%s", store->trouble.msg);
    (void) pthread_mutex_unlock(&store->lock);
    return bad ? out : NULL;
}

int reader_take(struct store *store, struct db *ret, struct err *err)
{
    bool found;

    (void) pthread_mutex_lock(&store->lock);
    found = store->reader_count > 0;
    if (found)
        *ret = store->readers[--store->reader_count];
    (void) pthread_mutex_unlock(&store->lock);
    return found ? 0 : db_open(ret, store->path, false, err);
}

void reader_give(struct store *store, struct db *db)
{
    bool kept;

    /* A statement left in the middle would hold an old view of the file, and its journal. */
    for (size_t i = 0; i < SQL_COUNT; i++)
        if (sqlite3_stmt_busy(db->stmts[i]))
            (void) sqlite3_reset(db->stmts[i]);
    (void) pthread_mutex_lock(&store->lock);
    kept = store->reader_count < STORE_READERS;
    if (kept)
        store->readers[store->reader_count++] = *db;
    (void) pthread_mutex_unlock(&store->lock);
    if (!kept)
        db_close(db);
}

/* ---- secrets ---- */

struct secret {
    const char *name;
    unsigned char value[32];
};

static int add_secret(struct db *db, void *arg, struct err *err)
{
    struct secret *secret = arg;
    sqlite3_stmt *stmt;

    if (db_run(db, err, SQL_SECRET_ADD, "th", secret->name, secret->value) < 0 ||
        !(stmt = db_stmt(db, SQL_SECRET_GET, err)))
        return -1;
    db_bind(stmt, "t", secret->name);
    if (db_step(db, stmt, err) != 1 || sqlite3_column_bytes(stmt, 0) != sizeof secret->value)
        return err_set(err, ERR_UNAVAILABLE, "the store is damaged: a secret is not whole");
    memcpy(secret->value, sqlite3_column_blob(stmt, 0), sizeof secret->value);
    (void) sqlite3_reset(stmt);
    return 0;
}

static bool find_secret(struct store *store, const char *name, unsigned char ret[32])
{
    bool found = false;

    (void) pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->secret_count && !found; i++)
        if (strcmp(store->secrets[i].name, name) == 0) {
            memcpy(ret, store->secrets[i].value, sizeof store->secrets[i].value);
            found = true;
        }
    (void) pthread_mutex_unlock(&store->lock);
    return found;
}

/* Twice by two threads at once does no harm. */
static void keep_secret(struct store *store, const struct secret *secret)
{
    (void) pthread_mutex_lock(&store->lock);
    if (store->secret_count < STORE_SECRETS &&
        strlen(secret->name) < sizeof store->secrets[0].name) {
        size_t i = store->secret_count++;

        (void) strcpy(store->secrets[i].name, secret->name);
        memcpy(store->secrets[i].value, secret->value, sizeof secret->value);
    }
    (void) pthread_mutex_unlock(&store->lock);
}

int store_secret(struct store *store, const char *name, unsigned char ret[32], struct err *err)
{
    struct secret secret = { .name = name };

    if (find_secret(store, name, ret))
        return 0;
    if (getrandom(secret.value, sizeof secret.value, 0) != sizeof secret.value)
        return err_sys(err, errno, "random bytes");
    if (store_write(store, add_secret, &secret, err) < 0)
        return -1;
    keep_secret(store, &secret);
    memcpy(ret, secret.value, sizeof secret.value);
    return 0;
}
