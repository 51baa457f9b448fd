/* db.h - one connection to the file: opening, the statements, and SQLite's errors in our words.
 *
 * Owns:    every SQL text (db_sql.c), each prepared once per connection.
 * Callers: the modules of store. A connection is one thread's at a time. */
#ifndef COVE_STORE_DB_H
#define COVE_STORE_DB_H

#include "base/err.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DB_VERSION 19 /* of the schema */

enum sql {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVE,
    SQL_SAVE_UNDO,
    SQL_SAVE_DONE,
    SQL_SECRET_ADD,
    SQL_SECRET_GET,
    SQL_TENANT_ADD,
    SQL_TENANT_SET,
    SQL_TENANT_GET,
    SQL_TENANT_LIST,
    SQL_TENANT_HOLDS,
    SQL_TENANT_IMAGES,
    SQL_TENANT_REMOVE,
    SQL_TENANT_KEYS_REMOVE,
    SQL_KEY_ADD,
    SQL_KEY_FIND,
    SQL_KEY_LIST,
    SQL_KEY_REVOKE,
    SQL_KEY_USED,
    SQL_SANDBOX_ADD,
    SQL_SANDBOX_GET,
    SQL_SANDBOX_BY_NAME,
    SQL_SANDBOX_BY_IDEMPOTENCY,
    SQL_SANDBOX_SET_DEADLINE,
    SQL_SANDBOX_SHIFT,
    SQL_SANDBOX_SET_METADATA,
    SQL_SANDBOX_SET_SLEEP,
    SQL_SANDBOX_RENEW,
    SQL_SANDBOX_REMOVE_OLD,
    SQL_SANDBOX_REMOVE,
    SQL_SANDBOX_LIST,
    SQL_ENV_ADD,
    SQL_ENV_GET,
    SQL_ENV_REMOVE,
    SQL_USAGE,
    SQL_SNAPSHOT_ADD,
    SQL_SNAPSHOT_KEEP,
    SQL_SNAPSHOT_READY,
    SQL_SNAPSHOT_BYTES,
    SQL_SNAPSHOT_UNNAME,
    SQL_SNAPSHOT_GET,
    SQL_SNAPSHOT_BY_NAME,
    SQL_SNAPSHOT_KEPT,
    SQL_SNAPSHOT_LIST,
    SQL_SNAPSHOT_REMOVE,
    SQL_NETWORK_SET,
    SQL_NETWORK_GET,
    SQL_NETWORK_LIST,
    SQL_NETWORK_DEFAULT_SET,
    SQL_NETWORK_DEFAULT_GET,
    SQL_NETWORK_DEFAULT_REMOVE,
    SQL_PREVIEW_SET,
    SQL_PREVIEW_ROLL,
    SQL_PREVIEW_GET,
    SQL_PRIVATE_ADD,
    SQL_PRIVATE_GET,
    SQL_PRIVATE_LIST,
    SQL_PRIVATE_REMOVE,
    SQL_PRIVATE_COUNT,
    SQL_PRIVATE_LAST,
    SQL_PRIVATE_NUMBERS,
    SQL_PRIVATE_SANDBOX,
    SQL_PRIVATE_ALIAS,
    SQL_PRIVATE_JOINS,
    SQL_PRIVATE_MEMBER_ADD,
    SQL_PRIVATE_MEMBER_SET,
    SQL_PRIVATE_MEMBER_NOTE,
    SQL_PRIVATE_MEMBER_GET,
    SQL_PRIVATE_MEMBER_REMOVE,
    SQL_PRIVATE_MEMBER_LAST,
    SQL_PRIVATE_MEMBER_NUMBERS,
    SQL_PRIVATE_MEMBERS,
    SQL_PRIVATE_CHANGED,
    SQL_VOLUME_ADD,
    SQL_VOLUME_GET,
    SQL_VOLUME_LIST,
    SQL_VOLUME_REMOVE,
    SQL_VOLUME_USAGE,
    SQL_VOLUME_USE_ADD,
    SQL_VOLUME_USES_OF,
    SQL_VOLUME_USERS,
    SQL_POOLS_CLEAR,
    SQL_POOL_ADD,
    SQL_POOL_LIST,
    SQL_POOL_RULE_SET,
    SQL_POOL_RULE_REMOVE,
    SQL_POOL_RULE_LIST,
    SQL_WARM_SET,
    SQL_WARM_REMOVE,
    SQL_WARM_GET,
    SQL_WARM_LIST,
    SQL_TEMPLATE_ADD,
    SQL_TEMPLATE_COUNT,
    SQL_TEMPLATE_OWN,
    SQL_TEMPLATE_PUBLIC,
    SQL_TEMPLATE_LIST,
    SQL_TEMPLATE_PUBLISH,
    SQL_TEMPLATE_REMOVE,
    SQL_BUILD_ADD,
    SQL_BUILD_GET,
    SQL_BUILD_LIST,
    SQL_BUILD_OPEN,
    SQL_BUILD_SET,
    SQL_BUILD_SETTINGS,
    SQL_BUILD_SETTINGS_GET,
    SQL_BUILD_UPDATED,
    SQL_BUILD_OLD,
    SQL_BUILD_REMOVE,
    SQL_TAG_SET,
    SQL_TAGS_SET,
    SQL_TAG_GET,
    SQL_TAG_REMOVE,
    SQL_TAG_LIST,
    SQL_STEP_ADD,
    SQL_STEP_GET,
    SQL_STEP_USED,
    SQL_STEP_LIST,
    SQL_STEP_REMOVE,
    SQL_PULLED_ADD,
    SQL_PULLED_SET,
    SQL_PULLED_LIST,
    SQL_PULLED_IDLE,
    SQL_PULLED_USAGE,
    SQL_PULLED_REMOVE,
    SQL_TEMPLATE_IMAGE_USED,
    SQL_TEMPLATE_IMAGES_UNUSED,
    SQL_VAULT_SET,
    SQL_VAULT_GET,
    SQL_VAULT_COUNT,
    SQL_VAULT_LIST,
    SQL_VAULT_REMOVE,
    SQL_VAULT_STAMP,
    SQL_HIDDEN_SET,
    SQL_HIDDEN_GET,
    SQL_HIDDEN_LIST,
    SQL_CHAIN_GET,
    SQL_CHAIN_HEAD,
    SQL_CHAIN_ANCHOR,
    SQL_AUDIT_ADD,
    SQL_AUDIT_WALK,
    SQL_AUDIT_CUT,
    SQL_AUDIT_HASH,
    SQL_AUDIT_PRUNE,
    SQL_SIZE,
    SQL_QUICK_CHECK,
    SQL_COUNT
};
extern const char *const db_sql[SQL_COUNT];
extern const char db_schema[];
extern const char *const db_upgrades[DB_VERSION - 1];

struct db {
    sqlite3 *handle;
    sqlite3_stmt *stmts[SQL_COUNT];
};

/* Opens the file and checks that it is ours; a writer makes what is missing in it. */
int db_open(struct db *db, const char *path, bool writer, struct err *err);
void db_close(struct db *db);

/* Prepared, reset and unbound; NULL with err. Borrowed from the connection. */
sqlite3_stmt *db_stmt(struct db *db, enum sql which, struct err *err);
/* 't' const char * (NULL is ""), 'i' int64_t, 'h' a hash of 32 bytes; in order, from parameter 1. */
void db_bind(sqlite3_stmt *stmt, const char *types, ...);
/* 1: a row, 0: no more (and reset), -1. */
int db_step(struct db *db, sqlite3_stmt *stmt, struct err *err);
/* Prepares, binds and runs a statement that gives no rows. */
int db_run(struct db *db, struct err *err, enum sql which, const char *types, ...);

/* Columns, never NULL; cut to size. */
const char *db_text(sqlite3_stmt *stmt, int column);
void db_copy(sqlite3_stmt *stmt, int column, char *out, size_t size);
uint64_t db_number(sqlite3_stmt *stmt, int column);

/* What SQLite's last error means. Returns -1. */
int db_error(struct db *db, struct err *err);

#endif
