/* own.h - the inside of a store, for its own modules: the writer's queue and the readers' pool. */
#ifndef COVE_STORE_OWN_H
#define COVE_STORE_OWN_H

#include "base/sha256.h"
#include "store/db.h"
#include "store/seal.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define STORE_READERS   16    /* idle connections that are kept; to open one is slow */
#define STORE_SECRETS   16    /* that are kept in memory */
#define STORE_QUEUE_MAX 16384 /* audit records that may wait for the disk */

struct store_job;
struct audit_entry;

struct store {
    char path[4096];
    int held_fd;      /* the lock of the only writer */
    struct db writer; /* of the thread that set `writing` */
    int journal_fd;   /* of the thread that set `syncing`; -1: not yet open */
    atomic_int journal_pages;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock;      /* all below */
    pthread_cond_t work, done; /* for the writer; for who waits for it */
    struct store_job *jobs, **jobs_end;
    struct audit_entry *entries, **entries_end;
    size_t entry_count;
    bool writing, syncing;    /* a thread is at it */
    uint64_t commits, synced; /* the last one, and the last one that is on disk */
    bool unsynced;            /* the last sync failed */
    bool idle, stopping;      /* the thread: nothing to do, and nothing to come */
    struct err trouble;       /* kind ERR_NONE: the last commit went well */

    size_t reader_count;
    struct db readers[STORE_READERS];

    /* Secrets never change: each is read once. */
    size_t secret_count;
    struct {
        char name[32];
        unsigned char value[32];
    } secrets[STORE_SECRETS];

    bool has_seal; /* read once */
    unsigned char seal[SEAL_KEY_LEN];
};

/* Runs in any thread that writes just then, in a transaction that is on disk when store_write returns; what a failing one
 * changed is undone. */
typedef int store_change(struct db *db, void *arg, struct err *err);
int store_write(struct store *store, store_change *change, void *arg, struct err *err);

/* The same, but it does not wait for the disk, which it reaches within about 100 ms, or with whatever is written behind
 * it and does wait. It survives the end of the program, however that ends, and is lost by a power cut in that time. */
int store_write_early(struct store *store, store_change *change, void *arg, struct err *err);

/* With the lock held, by who waits for something in the queue: a turn at writing, or until another's is over. */
void writer_turn(struct store *store);
/* With the lock held: there is something in the queue that no caller waits for. */
void writer_call(struct store *store);
/* Until that commit is on disk. */
int writer_sync(struct store *store, uint64_t commit, struct err *err);

int writer_start(struct store *store, struct err *err);
/* Everything that waits is written, or given up when the disk takes nothing. */
void writer_stop(struct store *store);

/* lock.c: <state>/server, which is made for its owner alone if it is not there; and a new file of root's in it, which becomes that
 * owner's (SQLite does the same for its journals). */
int server_directory(const char *state, int *ret_fd, struct stat *ret, struct err *err);
int server_hand_over(int fd, const struct stat *directory);
/* copy.c: what a copy left that was killed. */
void copy_clear(const struct store *store);

/* A connection for reading, for one thread at a time. */
int reader_take(struct store *store, struct db *ret, struct err *err);
void reader_give(struct store *store, struct db *db);

/* Within a transaction or a reader's turn. */
int tenant_read(struct db *db, const char *name, struct store_tenant *ret, struct err *err);
int network_default_write(struct db *db, enum store_network_kind kind, const char *name,
                          const char *rules, const char *login, struct err *err);
/* Of a login, before the transaction: what network_default_write takes; the caller's to free. */
int network_default_seal(struct store *store, enum store_network_kind kind, const char *name,
                         const char *rules, const char *login, char **ret, struct err *err);
int volume_usage_read(struct db *db, const char *tenant, struct store_volume_usage *ret,
                      struct err *err);
/* Of a sandbox or a snapshot. */
int volume_uses_write(struct db *db, const char *id, const struct store_volume_use *uses,
                      size_t count, struct err *err);
int usage_read(struct db *db, const char *tenant, struct store_usage *ret, struct err *err);

int private_join_in(struct db *db, const char *tenant, const struct private_member *join,
                    struct private_member *ret, struct err *err);
/* As store_hidden_set writes it: the caller's to free. */
int hidden_seal(struct store *store, const char *id, const char *text, char **ret, struct err *err);

#define STORE_ABOUT_MAX 512
/* Under the store's key (seal.h). */
int store_seal(struct store *store, const char *about, const char *text, size_t len, char **ret,
               struct err *err);
int store_unseal(struct store *store, const char *about, const char *sealed, char **ret,
                 size_t *ret_len, struct err *err);

/* A record in the queue, with its texts. */
struct audit_wait {
    int rc; /* 1: not yet */
    uint64_t commit;
    struct err err;
};
struct audit_entry {
    struct audit_entry *next;
    struct audit_wait *wait; /* who waits for it, on its own stack; NULL: no caller */
    struct audit_record record;
    char texts[];
};
/* In a transaction: gives each entry its number and hash, and adds it. */
int audit_write(struct db *db, struct audit_entry *first, struct err *err);

#endif
