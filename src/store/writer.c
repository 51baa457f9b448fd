#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "store/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Theory: there is one connection for writing, and at any time one thread at most that uses it. Who has something to write
 * puts it into the queue; if no other writes, it writes itself all that waits, its own among it, in one transaction, and
 * tells those who wait: no thread has to be woken for a lone change, and those who come meanwhile share the next
 * transaction. A change that fails is undone alone, by a savepoint. If the commit fails, everybody is told the same
 * error; only audit records without a waiting caller stay in the queue, and are tried again a second later.
 *
 * A commit puts the change into the journal, where it survives the end of this program, however it ends (SQLite's
 * synchronous=NORMAL). Reaching the disk, against a power cut, is a second step, outside of the queue: commits are
 * counted, and a sync covers all that came before it. A caller that relies on the disk waits for a sync that covers its
 * commit, made by himself or by another. For all others a thread of our own does it, LINGER_MS after the first of them;
 * it also writes records without a waiting caller, and moves the journal into the file (a checkpoint), so that no request
 * has to. */

#define LINGER_MS  50
#define RETRY_MS   1000
#define GATHER     1024 /* so many records do not wait any longer */
#define MOVE_PAGES 1000 /* in the journal: moved by the thread */
#define MOST_PAGES 4000 /* the thread does not keep up: moved at once by the writer */

struct store_job {
    struct store_job *next;
    store_change *change; /* NULL: told, the rest holds */
    void *arg;
    int rc; /* 1: not yet */
    uint64_t commit;
    struct err err;
};

struct batch {
    struct store_job *jobs;
    struct audit_entry *entries;
};

/* ---- one transaction ---- */

/* 0, also when the change was refused; -1: the whole transaction is lost. */
static int run_job(struct db *db, struct store_job *job, struct err *err)
{
    if (db_run(db, err, SQL_SAVE, "") < 0)
        return -1;
    job->rc = job->change(db, job->arg, &job->err);
    if (job->rc == 0)
        return db_run(db, err, SQL_SAVE_DONE, "");
    /* A full disk may have ended the transaction by itself. */
    if (sqlite3_get_autocommit(db->handle)) {
        *err = job->err;
        return -1;
    }
    return db_run(db, err, SQL_SAVE_UNDO, "") < 0 || db_run(db, err, SQL_SAVE_DONE, "") < 0 ? -1
                                                                                            : 0;
}

static int commit_batch(struct db *db, const struct batch *batch, struct err *err)
{
    if (db_run(db, err, SQL_BEGIN, "") < 0)
        return -1;
    for (struct store_job *job = batch->jobs; job; job = job->next)
        if (run_job(db, job, err) < 0)
            goto undo;
    if (batch->entries && audit_write(db, batch->entries, err) < 0)
        goto undo;
    if (db_run(db, err, SQL_COMMIT, "") < 0)
        goto undo;
    return 0;

undo:
    if (!sqlite3_get_autocommit(db->handle)) {
        struct err ignored;

        (void) db_run(db, &ignored, SQL_ROLLBACK, "");
    }
    return -1;
}

/* ---- the queue; all with the lock held ---- */

static void take_all(struct store *store, struct batch *ret)
{
    *ret = (struct batch){ store->jobs, store->entries };
    store->jobs = NULL;
    store->jobs_end = &store->jobs;
    store->entries = NULL;
    store->entries_end = &store->entries;
}

/* Back in front of what came meanwhile: the order of records is the order of events. */
static void put_back(struct store *store, struct audit_entry *first, struct audit_entry **end)
{
    if (!first)
        return;
    *end = store->entries;
    if (!store->entries)
        store->entries_end = end;
    store->entries = first;
}

static void tell_entries(struct store *store, struct audit_entry *entry, int rc,
                         const struct err *err)
{
    struct audit_entry *kept = NULL, **kept_end = &kept;

    while (entry) {
        struct audit_entry *next = entry->next;

        if (rc < 0 && !entry->wait) {
            entry->next = NULL;
            *kept_end = entry;
            kept_end = &entry->next;
        } else {
            if (entry->wait) {
                entry->wait->err = *err;
                entry->wait->rc = rc;
                entry->wait->commit = store->commits;
            }
            store->entry_count--;
            free(entry);
        }
        entry = next;
    }
    put_back(store, kept, kept_end);
}

static void tell_jobs(const struct store *store, struct store_job *job, int rc,
                      const struct err *err)
{
    while (job) {
        struct store_job *next = job->next; /* once told, the job may be gone */

        if (rc < 0) {
            job->err = *err;
            job->rc = rc;
        }
        job->next = NULL;
        job->commit = store->commits;
        job->change = NULL;
        job = next;
    }
}

static void note_trouble(struct store *store, int rc, const struct err *err)
{
    bool before = store->trouble.kind != ERR_NONE;

    if (rc < 0 && !before)
        log_line(LOG_ERROR, "store cannot write: %s", err->msg);
    if (rc == 0 && before)
        log_line(LOG_WARNING, "store writes again");
    if (rc < 0)
        store->trouble = *err;
    else
        store->trouble.kind = ERR_NONE;
}

static bool nothing_waits(const struct store *store)
{
    return !store->jobs && !store->entries;
}

/* The caller found that no thread writes. */
static void write_batch(struct store *store)
{
    struct err err = { 0 };
    struct batch batch;
    int rc;

    take_all(store, &batch);
    store->writing = true;
    (void) pthread_mutex_unlock(&store->lock);
    rc = commit_batch(&store->writer, &batch, &err);
    (void) pthread_mutex_lock(&store->lock);
    store->writing = false;
    if (rc < 0 || !store->unsynced)
        note_trouble(store, rc, &err);
    store->commits += rc == 0;
    tell_jobs(store, batch.jobs, rc, &err);
    tell_entries(store, batch.entries, rc, &err);
    (void) pthread_cond_broadcast(&store->done);
    writer_call(store); /* it is to be brought to the disk */
}

void writer_call(struct store *store)
{
    if (store->idle || store->entry_count == GATHER)
        (void) pthread_cond_signal(&store->work);
}

void writer_turn(struct store *store)
{
    if (store->writing)
        (void) pthread_cond_wait(&store->done, &store->lock);
    else
        write_batch(store);
}

/* ---- the disk ---- */

/* The journal is a new file: so that its name is on the disk, too. */
static int sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[512];
    auto_close int fd = -1;

    (void) snprintf(directory, sizeof directory, "%.*s", slash ? (int) (slash - path) + 1 : 1,
                    slash ? path : ".");
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : fsync(fd);
}

static int sync_journal(struct store *store, struct err *err)
{
    if (store->journal_fd < 0) {
        char path[sizeof store->path + 8];

        (void) snprintf(path, sizeof path, "%s-wal", store->path);
        /* The same file as long as any connection is open. */
        store->journal_fd = open(path, O_RDONLY | O_CLOEXEC);
        if (store->journal_fd < 0 || sync_directory(store->path) < 0)
            return err_sys(err, errno, "open the store's journal");
    }
    if (fdatasync(store->journal_fd) == 0)
        return 0;
    if (errno == ENOSPC || errno == EDQUOT)
        return err_set(err, ERR_DISK_FULL, "the store's disk is full");
    return err_sys(err, errno, "bring the store to its disk");
}

/* With the lock held, which is let go meanwhile. */
static int sync_to(struct store *store, uint64_t commit, struct err *err)
{
    while (store->synced < commit) {
        uint64_t covered = store->commits;
        int rc;

        if (store->syncing) {
            (void) pthread_cond_wait(&store->done, &store->lock);
            continue;
        }
        store->syncing = true;
        (void) pthread_mutex_unlock(&store->lock);
        rc = sync_journal(store, err);
        (void) pthread_mutex_lock(&store->lock);
        store->syncing = false;
        (void) pthread_cond_broadcast(&store->done);
        if (rc < 0 || store->unsynced)
            note_trouble(store, rc, err);
        store->unsynced = rc < 0;
        if (rc < 0)
            return -1;
        store->synced = covered;
    }
    return 0;
}

int writer_sync(struct store *store, uint64_t commit, struct err *err)
{
    int rc;

    (void) pthread_mutex_lock(&store->lock);
    rc = sync_to(store, commit, err);
    (void) pthread_mutex_unlock(&store->lock);
    return rc;
}

/* Called by SQLite behind each commit. */
static int on_journal(void *arg, sqlite3 *handle, const char *name, int pages)
{
    struct store *store = arg;

    atomic_store(&store->journal_pages, pages);
    if (pages >= MOST_PAGES)
        (void) sqlite3_wal_checkpoint_v2(handle, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

/* By a connection of its own, beside those who write. What fails is tried again when the journal has grown. */
static void move_journal(struct store *store)
{
    struct err ignored;
    struct db db;

    if (reader_take(store, &db, &ignored) < 0)
        return;
    (void) sqlite3_wal_checkpoint_v2(db.handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    reader_give(store, &db);
}

/* ---- the thread ---- */

static void linger(struct store *store, unsigned ms)
{
    struct timespec until = io_after_ms(ms);

    while (!store->stopping && store->entry_count < GATHER &&
           pthread_cond_timedwait(&store->work, &store->lock, &until) != ETIMEDOUT)
        ;
}

static void *writer_main(void *arg)
{
    struct store *store = arg;
    struct err err;

    (void) pthread_mutex_lock(&store->lock);
    for (;;) {
        int rc;

        store->idle = true;
        while (nothing_waits(store) && store->synced == store->commits && !store->stopping)
            (void) pthread_cond_wait(&store->work, &store->lock);
        store->idle = false;
        linger(store, store->trouble.kind != ERR_NONE ? RETRY_MS : LINGER_MS);
        if (!nothing_waits(store))
            writer_turn(store);
        rc = sync_to(store, store->commits, &err);
        if (store->stopping && (nothing_waits(store) || store->trouble.kind != ERR_NONE || rc < 0))
            break;
        if (atomic_load(&store->journal_pages) < MOVE_PAGES)
            continue;
        atomic_store(&store->journal_pages, 0);
        (void) pthread_mutex_unlock(&store->lock);
        move_journal(store);
        (void) pthread_mutex_lock(&store->lock);
    }
    (void) pthread_mutex_unlock(&store->lock);
    return NULL;
}

/* ---- for the other modules ---- */

static int write_job(struct store *store, store_change *change, void *arg, bool on_disk,
                     struct err *err)
{
    struct store_job job = { .change = change, .arg = arg, .rc = 1 };

    (void) pthread_mutex_lock(&store->lock);
    *store->jobs_end = &job;
    store->jobs_end = &job.next;
    while (job.change)
        writer_turn(store);
    if (job.rc == 0 && on_disk && sync_to(store, job.commit, &job.err) < 0)
        job.rc = -1;
    (void) pthread_mutex_unlock(&store->lock);
    if (job.rc < 0)
        *err = job.err;
    return job.rc;
}

int store_write(struct store *store, store_change *change, void *arg, struct err *err)
{
    return write_job(store, change, arg, true, err);
}

int store_write_early(struct store *store, store_change *change, void *arg, struct err *err)
{
    return write_job(store, change, arg, false, err);
}

int writer_start(struct store *store, struct err *err)
{
    pthread_attr_t attr;
    int rc;

    (void) sqlite3_wal_hook(store->writer.handle, on_journal, store);
    (void) pthread_attr_init(&attr);
    rc = pthread_create(&store->thread, &attr, writer_main, store);
    (void) pthread_attr_destroy(&attr);
    if (rc != 0)
        return err_sys(err, rc, "start the store's writer");
    store->started = true;
    return 0;
}

void writer_stop(struct store *store)
{
    if (!store->started)
        return;
    (void) pthread_mutex_lock(&store->lock);
    store->stopping = true;
    (void) pthread_cond_signal(&store->work);
    (void) pthread_mutex_unlock(&store->lock);
    (void) pthread_join(store->thread, NULL);
    if (store->entry_count > 0)
        log_line(LOG_ERROR, "store gives up audit records=%zu: %s", store->entry_count,
                 store->trouble.msg);
    own_close(&store->journal_fd);
    while (store->entries) {
        struct audit_entry *next = store->entries->next;

        free(store->entries);
        store->entries = next;
    }
}
