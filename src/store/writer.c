#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "store/own.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Theory: one thread writes. It takes all changes and audit records that wait, runs them in one
 * transaction, commits, and tells those who wait: the cost of reaching the disk is shared by all
 * who came meanwhile. A change that fails is undone alone, by a savepoint. If the commit fails,
 * everybody is told the same error; only audit records for which nobody waits stay in the queue,
 * and are tried again a second later. Without anybody waiting, records gather for LINGER_MS. */

#define LINGER_MS 50
#define RETRY_MS  1000
#define GATHER    1024 /* so many records do not wait any longer */

struct store_job {
    struct store_job *next;
    store_change *change;
    void *arg;
    bool early; /* told when it is committed, which a later one brings to the disk */
    int rc;     /* 1: not yet */
    struct err err;
};

struct batch {
    struct store_job *jobs;
    struct audit_entry *entries;
};

static void wait_ms(struct store *store, unsigned ms)
{
    struct timespec until = io_after_ms(ms);

    (void) pthread_cond_timedwait(&store->work, &store->lock, &until);
}

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

/* Whether somebody relies on the disk. */
static bool needs_sync(const struct batch *batch)
{
    for (const struct store_job *job = batch->jobs; job; job = job->next)
        if (!job->early)
            return true;
    for (const struct audit_entry *entry = batch->entries; entry; entry = entry->next)
        if (entry->wait)
            return true;
    return !batch->jobs; /* records that gathered go to the disk together */
}

static int commit_batch(struct db *db, const struct batch *batch, struct err *err)
{
    if (db_sync(db, needs_sync(batch), err) < 0)
        return -1;
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

/* ---- the queue ---- */

static void take_all(struct store *store, struct batch *ret)
{
    *ret = (struct batch){ store->jobs, store->entries };
    store->jobs = NULL;
    store->jobs_end = &store->jobs;
    store->entries = NULL;
    store->entries_end = &store->entries;
    store->urgent = false;
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
            }
            store->entry_count--;
            free(entry);
        }
        entry = next;
    }
    put_back(store, kept, kept_end);
}

static void tell_jobs(struct store_job *job, int rc, const struct err *err)
{
    while (job) {
        struct store_job *next = job->next; /* once told, the job may be gone */

        if (rc < 0) {
            job->err = *err;
            job->rc = rc;
        }
        job->next = NULL;
        job->change = NULL; /* told: job->rc holds before */
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

/* Under the lock: until there is enough to write, or somebody waits for it. */
static void await_work(struct store *store)
{
    while (nothing_waits(store) && !store->stopping)
        (void) pthread_cond_wait(&store->work, &store->lock);
    if (!store->jobs && !store->urgent && !store->stopping && store->entry_count < GATHER)
        wait_ms(store, LINGER_MS);
    if (store->trouble.kind != ERR_NONE && !store->jobs && !store->urgent && !store->stopping)
        wait_ms(store, RETRY_MS);
}

static void *writer_main(void *arg)
{
    struct store *store = arg;
    struct batch batch;

    (void) pthread_mutex_lock(&store->lock);
    for (;;) {
        struct err err = { 0 };
        int rc;

        await_work(store);
        if (nothing_waits(store))
            break;
        take_all(store, &batch);
        (void) pthread_mutex_unlock(&store->lock);
        rc = commit_batch(&store->writer, &batch, &err);
        (void) pthread_mutex_lock(&store->lock);
        note_trouble(store, rc, &err);
        tell_jobs(batch.jobs, rc, &err);
        tell_entries(store, batch.entries, rc, &err);
        (void) pthread_cond_broadcast(&store->done);
        if (rc < 0 && store->stopping)
            break;
    }
    (void) pthread_mutex_unlock(&store->lock);
    return NULL;
}

/* ---- for the other modules ---- */

static int write_job(struct store *store, store_change *change, void *arg, bool early,
                     struct err *err)
{
    struct store_job job = { .change = change, .arg = arg, .early = early, .rc = 1 };

    (void) pthread_mutex_lock(&store->lock);
    *store->jobs_end = &job;
    store->jobs_end = &job.next;
    (void) pthread_cond_signal(&store->work);
    while (job.change)
        (void) pthread_cond_wait(&store->done, &store->lock);
    (void) pthread_mutex_unlock(&store->lock);
    if (job.rc < 0)
        *err = job.err;
    return job.rc;
}

int store_write(struct store *store, store_change *change, void *arg, struct err *err)
{
    return write_job(store, change, arg, false, err);
}

int store_write_early(struct store *store, store_change *change, void *arg, struct err *err)
{
    return write_job(store, change, arg, true, err);
}

int writer_start(struct store *store, struct err *err)
{
    pthread_attr_t attr;
    int rc;

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
    while (store->entries) {
        struct audit_entry *next = store->entries->next;

        free(store->entries);
        store->entries = next;
    }
}
