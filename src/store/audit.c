#include "base/own.h"
#include "base/utf8.h"
#include "store/own.h"

#include <string.h>

/* Theory of the chain: hash(n) = SHA-256(hash(n-1), seq, time_ms, duration_ms, exit_code, texts in the
 * order of `texts`); numbers as 8 bytes, big end first, each text behind its length as such a number. The
 * table `chain` has the head (last number and hash) and the anchor (those of the last record that was
 * pruned; zeros at first), both changed in the transaction that adds or removes records. So a record that
 * was changed, removed or put in is found by verifying, unless everything behind it is written again:
 * compare the head with one that was noted elsewhere. */

/* The texts of a record; column and place in the hash follow from the order. */
static const struct {
    size_t offset;
    int column;
    size_t most; /* longer ones are cut: a record is no place for content */
} texts[] = {
    { offsetof(struct audit_record, tenant), 2, 64 },
    { offsetof(struct audit_record, user_id), 3, 128 },
    { offsetof(struct audit_record, sandbox_id), 4, 64 },
    { offsetof(struct audit_record, action), 5, 64 },
    { offsetof(struct audit_record, outcome), 6, 64 },
    { offsetof(struct audit_record, request_id), 7, 128 },
    { offsetof(struct audit_record, peer), 8, 64 },
    { offsetof(struct audit_record, code_hash), 9, 80 },
    { offsetof(struct audit_record, resource_usage), 10, 1024 },
    { offsetof(struct audit_record, security_events), 11, 4096 },
    { offsetof(struct audit_record, detail), 12, 256 },
};
#define COLUMN_HASH 15
#define TEXTS_MOST  6144 /* all of them together, each with its NUL */

static const char **text_field(struct audit_record *record, size_t i)
{
    return (const char **) ((char *) record + texts[i].offset);
}

static void add_number(struct sha256 *hash, uint64_t value)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char) (value >> (56 - 8 * i));
    sha256_add(hash, bytes, sizeof bytes);
}

/* From the hash before it to its own, in place. */
static void chain_hash(const struct audit_record *record, unsigned char hash[SHA256_LEN])
{
    struct sha256 sum;

    sha256_init(&sum);
    sha256_add(&sum, hash, SHA256_LEN);
    add_number(&sum, record->seq);
    add_number(&sum, record->time_ms);
    add_number(&sum, (uint64_t) record->duration_ms);
    add_number(&sum, (uint64_t) record->exit_code);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = *text_field((struct audit_record *) record, i);

        add_number(&sum, strlen(text));
        sha256_add(&sum, text, strlen(text));
    }
    sha256_done(&sum, hash);
}

struct chain {
    uint64_t anchor_seq, head_seq;
    unsigned char anchor[SHA256_LEN], head[SHA256_LEN];
};

static int read_chain(struct db *db, struct chain *ret, struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_CHAIN_GET, err);
    int rc = stmt ? db_step(db, stmt, err) : -1;

    if (rc < 0)
        return -1;
    if (rc == 0 || sqlite3_column_bytes(stmt, 1) != SHA256_LEN ||
        sqlite3_column_bytes(stmt, 3) != SHA256_LEN)
        return err_set(err, ERR_UNAVAILABLE, "the store is damaged: the audit chain has no head");
    ret->anchor_seq = db_number(stmt, 0);
    memcpy(ret->anchor, sqlite3_column_blob(stmt, 1), SHA256_LEN);
    ret->head_seq = db_number(stmt, 2);
    memcpy(ret->head, sqlite3_column_blob(stmt, 3), SHA256_LEN);
    (void) sqlite3_reset(stmt);
    return 0;
}

int audit_write(struct db *db, struct audit_entry *first, struct err *err)
{
    struct chain chain;

    if (read_chain(db, &chain, err) < 0)
        return -1;
    for (struct audit_entry *entry = first; entry; entry = entry->next) {
        struct audit_record *r = &entry->record;

        r->seq = ++chain.head_seq;
        chain_hash(r, chain.head);
        if (db_run(db, err, SQL_AUDIT_ADD, "iitttttttttttiih", (int64_t) r->seq,
                   (int64_t) r->time_ms, r->tenant, r->user_id, r->sandbox_id, r->action,
                   r->outcome, r->request_id, r->peer, r->code_hash, r->resource_usage,
                   r->security_events, r->detail, r->duration_ms, r->exit_code, chain.head) < 0)
            return -1;
    }
    return db_run(db, err, SQL_CHAIN_HEAD, "ih", (int64_t) chain.head_seq, chain.head);
}

/* ---- appending ---- */

/* Copies the texts to `at` and points the record to the copies. They are UTF-8 then, whatever they were made of: a path inside a
 * sandbox, a message that was cut within a character. What reads them makes JSON of them. */
static void take_texts(struct audit_record *record, char *at)
{
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char **text = text_field(record, i);
        size_t len = strnlen(*text ? *text : "", texts[i].most);

        memcpy(at, *text ? *text : "", len);
        at[len] = '\0';
        utf8_clean(at, len);
        *text = at;
        at += len + 1;
    }
}

/* A copy of the record, with its texts behind it. */
static struct audit_entry *entry_new(const struct audit_record *record)
{
    size_t size = sizeof(struct audit_entry);
    struct audit_record copy = *record;
    struct audit_entry *entry;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char **text = text_field(&copy, i);

        size += strnlen(*text ? *text : "", texts[i].most) + 1;
    }
    entry = malloc(size);
    if (!entry)
        return NULL;
    take_texts(&copy, entry->texts);
    copy.hash = NULL;
    if (copy.time_ms == 0)
        copy.time_ms = store_now_ms();
    entry->record = copy;
    entry->next = NULL;
    entry->wait = NULL;
    return entry;
}

int store_audit_append(struct store *store, const struct audit_record *record,
                       enum store_safety safety, struct err *err)
{
    struct audit_entry *entry = entry_new(record);
    struct audit_wait wait = { .rc = 1 };

    if (!entry)
        return err_set(err, ERR_NO_MEMORY, "no memory for an audit record");
    (void) pthread_mutex_lock(&store->lock);
    if (store->entry_count >= STORE_QUEUE_MAX) {
        err_set(err, store->trouble.kind != ERR_NONE ? store->trouble.kind : ERR_UNAVAILABLE,
                "%d audit records wait for the disk already", STORE_QUEUE_MAX);
        (void) pthread_mutex_unlock(&store->lock);
        free(entry);
        return -1;
    }
    entry->wait = safety == STORE_QUEUED ? NULL : &wait;
    store->entry_count++;
    *store->entries_end = entry;
    store->entries_end = &entry->next;
    if (safety == STORE_QUEUED)
        writer_call(store);
    else
        while (wait.rc == 1)
            writer_turn(store);
    (void) pthread_mutex_unlock(&store->lock);
    if (wait.rc == 0 && safety == STORE_ON_DISK)
        wait.rc = writer_sync(store, wait.commit, &wait.err);
    if (wait.rc >= 0)
        return 0;
    *err = wait.err;
    return -1;
}

static int nothing(struct db *db, void *arg, struct err *err)
{
    (void) db;
    (void) arg;
    (void) err;
    return 0;
}

/* A change waits for its whole batch, which has every record from before it. */
int store_audit_flush(struct store *store, struct err *err)
{
    return store_write(store, nothing, NULL, err);
}

/* ---- verifying and pruning ---- */

static void read_record(sqlite3_stmt *stmt, struct audit_record *ret)
{
    ret->seq = db_number(stmt, 0);
    ret->time_ms = db_number(stmt, 1);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *text_field(ret, i) = db_text(stmt, texts[i].column);
    ret->duration_ms = sqlite3_column_int64(stmt, 13);
    ret->exit_code = sqlite3_column_int64(stmt, 14);
}

static void broken(struct audit_chain *ret, uint64_t seq, const char *why)
{
    ret->broken_at = seq;
    (void) snprintf(ret->why, sizeof ret->why, "%s", why);
}

static int walk_chain(struct db *db, struct audit_chain *ret, struct err *err)
{
    struct audit_record record = { 0 };
    unsigned char hash[SHA256_LEN];
    struct chain chain;
    sqlite3_stmt *stmt;
    uint64_t seq;
    int rc;

    if (read_chain(db, &chain, err) < 0 || !(stmt = db_stmt(db, SQL_AUDIT_WALK, err)))
        return -1;
    memcpy(hash, chain.anchor, sizeof hash);
    seq = chain.anchor_seq;
    while ((rc = db_step(db, stmt, err)) == 1) {
        read_record(stmt, &record);
        if (record.seq != ++seq) {
            broken(ret, seq, "is missing");
            return 0;
        }
        chain_hash(&record, hash);
        if (sqlite3_column_bytes(stmt, COLUMN_HASH) != SHA256_LEN ||
            memcmp(sqlite3_column_blob(stmt, COLUMN_HASH), hash, SHA256_LEN) != 0) {
            broken(ret, seq, "or the one before it was changed");
            return 0;
        }
        ret->first = ret->count++ ? ret->first : seq;
        ret->last = seq;
    }
    if (rc < 0)
        return -1;
    if (seq != chain.head_seq)
        broken(ret, seq + 1, "and the records after it are missing");
    else if (memcmp(hash, chain.head, sizeof hash) != 0)
        broken(ret, seq, "is not the head of the chain");
    sha256_hex(hash, sizeof hash, ret->head);
    return 0;
}

/* In one transaction, so that the head belongs to the records seen. */
int store_audit_verify(struct store *store, struct audit_chain *ret, struct err *err)
{
    struct db db;
    sqlite3_stmt *stmt;
    int rc = -1;

    memset(ret, 0, sizeof *ret);
    if (store_audit_flush(store, err) < 0 || reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_QUICK_CHECK, err);
    if (stmt && db_step(&db, stmt, err) == 1) {
        bool fine = strcmp(db_text(stmt, 0), "ok") == 0;

        (void) sqlite3_reset(stmt);
        if (!fine)
            err_set(err, ERR_UNAVAILABLE, "the store is damaged: restore cove.db from a copy");
        else if (sqlite3_exec(db.handle, "BEGIN", NULL, NULL, NULL) == SQLITE_OK)
            rc = walk_chain(&db, ret, err);
        else
            db_error(&db, err);
    }
    if (db.stmts[SQL_AUDIT_WALK])
        (void) sqlite3_reset(db.stmts[SQL_AUDIT_WALK]);
    if (!sqlite3_get_autocommit(db.handle))
        (void) sqlite3_exec(db.handle, "ROLLBACK", NULL, NULL, NULL);
    reader_give(store, &db);
    return rc;
}

/* A transaction holds up all others: what goes, goes in pieces. */
#define PRUNE_PIECE 10000
#define KEEP_LEAST  1000 /* of the newest records, however large the store is otherwise */

struct prune {
    uint64_t before_ms, upto; /* older than this time, or up to this number */
    struct audit_entry *note; /* about it; NULL: none, or written already */
    uint64_t count;           /* that went */
    bool more;
};

/* The last record that goes now. */
static int find_cut(struct db *db, const struct prune *p, const struct chain *chain, uint64_t *ret,
                    struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_AUDIT_CUT, err);

    if (!stmt)
        return -1;
    db_bind(stmt, "i", (int64_t) p->before_ms);
    if (db_step(db, stmt, err) != 1)
        return -1;
    *ret = db_number(stmt, 0);
    (void) sqlite3_reset(stmt);
    if (*ret < p->upto)
        *ret = p->upto;
    if (*ret > chain->anchor_seq + PRUNE_PIECE)
        *ret = chain->anchor_seq + PRUNE_PIECE;
    return 0;
}

static int prune(struct db *db, void *arg, struct err *err)
{
    struct prune *p = arg;
    unsigned char hash[SHA256_LEN];
    struct chain chain;
    sqlite3_stmt *stmt;
    uint64_t cut;

    p->count = 0;
    p->more = false;
    if (read_chain(db, &chain, err) < 0 || find_cut(db, p, &chain, &cut, err) < 0 ||
        !(stmt = db_stmt(db, SQL_AUDIT_HASH, err)))
        return -1;
    db_bind(stmt, "i", (int64_t) cut);
    switch (db_step(db, stmt, err)) {
    case 0:
        return 0; /* nothing is that old */
    case 1:
        break;
    default:
        return -1;
    }
    if (sqlite3_column_bytes(stmt, 0) != SHA256_LEN)
        return err_set(err, ERR_UNAVAILABLE, "the store is damaged: a record without its hash");
    memcpy(hash, sqlite3_column_blob(stmt, 0), sizeof hash);
    (void) sqlite3_reset(stmt);
    if (db_run(db, err, SQL_AUDIT_PRUNE, "i", (int64_t) cut) < 0)
        return -1;
    p->count = (uint64_t) sqlite3_changes(db->handle);
    p->more = cut == chain.anchor_seq + PRUNE_PIECE;
    if (db_run(db, err, SQL_CHAIN_ANCHOR, "ih", (int64_t) cut, hash) < 0)
        return -1;
    return p->note && p->count > 0 ? audit_write(db, p->note, err) : 0;
}

static int prune_all(struct store *store, struct prune *p, const struct audit_record *note,
                     uint64_t *ret_count, struct err *err)
{
    auto_free struct audit_entry *entry = note ? entry_new(note) : NULL;

    if (note && !entry)
        return err_set(err, ERR_NO_MEMORY, "no memory for an audit record");
    p->note = entry;
    *ret_count = 0;
    do {
        if (store_write(store, prune, p, err) < 0)
            return -1;
        if (p->count > 0)
            p->note = NULL;
        *ret_count += p->count;
    } while (p->more);
    return 0;
}

int store_audit_prune(struct store *store, uint64_t before_ms, const struct audit_record *note,
                      uint64_t *ret_count, struct err *err)
{
    struct prune p = { .before_ms = before_ms };

    return prune_all(store, &p, note, ret_count, err);
}

static int read_size(struct store *store, struct chain *ret_chain, uint64_t *ret_used,
                     struct err *err)
{
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_SIZE, err);
    if (stmt && db_step(&db, stmt, err) == 1) {
        *ret_used = db_number(stmt, 0);
        (void) sqlite3_reset(stmt);
        rc = read_chain(&db, ret_chain, err);
    }
    reader_give(store, &db);
    return rc;
}

/* Records are about the same size: as large a part of them goes as is too much, and a bit more, so that there is room for a
 * while. What the file had for them is used again; the file itself does not shrink. */
int store_audit_shrink(struct store *store, uint64_t most, const struct audit_record *note,
                       uint64_t *ret_count, struct err *err)
{
    struct prune p = { .before_ms = 0 };
    struct chain chain;
    uint64_t used, count, keep;

    *ret_count = 0;
    if (read_size(store, &chain, &used, err) < 0)
        return -1;
    count = chain.head_seq - chain.anchor_seq;
    if (used <= most || count <= KEEP_LEAST)
        return 0;
    keep = (uint64_t) ((double) count * (double) most * 0.9 / (double) used);
    p.upto = chain.head_seq - (keep > KEEP_LEAST ? keep : KEEP_LEAST);
    return prune_all(store, &p, note, ret_count, err);
}

/* ---- listing ---- */

static int build_query(const struct audit_filter *f, char *sql, size_t size)
{
    bool prefix = f->action && f->action[0] && f->action[strlen(f->action) - 1] == '.';

    return snprintf(
        sql, size, "SELECT * FROM audit WHERE 1%s%s%s%s%s%s%s%s ORDER BY seq %s LIMIT ?9",
        f->tenant ? " AND tenant = ?1" : "", f->sandbox_id ? " AND sandbox_id = ?2" : "",
        f->user_id ? " AND user_id = ?3" : "", f->outcome ? " AND outcome = ?4" : "",
        !f->action ? ""
        : prefix   ? " AND substr(action, 1, length(?5)) = ?5"
                   : " AND action = ?5",
        f->since_ms ? " AND time_ms >= ?6" : "", f->until_ms ? " AND time_ms < ?7" : "",
        !f->after         ? ""
        : f->oldest_first ? " AND seq > ?8"
                          : " AND seq < ?8",
        f->oldest_first ? "ASC" : "DESC");
}

static int walk_rows(struct db *db, sqlite3_stmt *stmt, store_audit_each *each, void *arg,
                     struct err *err)
{
    struct audit_record record = { 0 };
    char hash[STORE_HASH_MAX], copies[TEXTS_MOST];
    int rc;

    while ((rc = db_step(db, stmt, err)) == 1) {
        read_record(stmt, &record);
        take_texts(&record, copies); /* earlier versions kept any bytes */
        hash[0] = '\0';
        if (sqlite3_column_bytes(stmt, COLUMN_HASH) == SHA256_LEN)
            sha256_hex(sqlite3_column_blob(stmt, COLUMN_HASH), SHA256_LEN, hash);
        record.hash = hash;
        if (each(arg, &record, err) < 0)
            return -1;
    }
    return rc;
}

int store_audit_list(struct store *store, const struct audit_filter *f, store_audit_each *each,
                     void *arg, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    char sql[512];
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    (void) build_query(f, sql, sizeof sql);
    if (sqlite3_prepare_v2(db.handle, sql, -1, &stmt, NULL) != SQLITE_OK) {
        db_error(&db, err);
    } else {
        db_bind(stmt, "tttttiiii", f->tenant, f->sandbox_id, f->user_id, f->outcome, f->action,
                (int64_t) f->since_ms, (int64_t) f->until_ms, (int64_t) f->after,
                f->limit ? (int64_t) f->limit : (int64_t) -1);
        rc = walk_rows(&db, stmt, each, arg, err);
    }
    (void) sqlite3_finalize(stmt);
    reader_give(store, &db);
    return rc;
}
