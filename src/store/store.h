/* store.h - what the server remembers: tenants, keys, sandboxes and the audit log, in one SQLite file.
 *
 * Every function may be called from any thread. Reads and writes use connections of their own, so that
 * reads continue while a write waits for the disk, and also when the disk is full. Writes that come together share one
 * commit. A function that writes returns when its change is on disk; those that say "written" return when it is
 * committed, which kill -9 cannot undo, and a power cut can for another 100 ms.
 *
 * There is one writer: store_open takes the lock <state>/server/lock, which coved holds as long as it runs.
 *
 * Owns:    <state>/server/cove.db, its journal files and its lock.
 * Callers: the server; while the server is down, the command line of root (cli/records.c).
 * Never:   keeps a key: only its SHA-256, and the public part that finds it. */
#ifndef COVE_STORE_STORE_H
#define COVE_STORE_STORE_H

#include "base/err.h"
#include "base/parse.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_TENANT_MAX      64 /* with the NUL; name_ok() */
#define STORE_NAME_MAX        64
#define STORE_KEY_ID_MAX      13   /* 12 hex digits: the public part of a key */
#define STORE_KEY_TEXT_MAX    45   /* "e2b_" and 40 hex digits */
#define STORE_METADATA_MAX    8192 /* JSON text of an object */
#define STORE_IDEMPOTENCY_MAX 129
#define STORE_HASH_MAX        65 /* SHA-256 in hex */

struct store;
struct private_member;

/* The lock of the only writer, until the descriptor is closed or the process ends. ERR_STATE: another process has it. */
int store_lock(const char *state, int *ret_fd, struct err *err);

/* Opens or makes <state>/server/cove.db, and locks it. A damaged file, one of a newer cove, another process that has the
 * lock, or no permission: a clear error and nothing is changed. */
int store_open(const char *state, struct store **ret, struct err *err);
/* Writes what waits, then closes. Accepts NULL. */
void store_close(struct store *store);
/* auto_store: closed with its scope, as auto_close in base/own.h; NULL until it is opened. */
static inline void store_own(struct store **store)
{
    store_close(*store);
}
#define auto_store __attribute__((cleanup(store_own)))
/* All of it as it is at one moment, while others continue writing, as <state>/server/STORE_COPY in the place of what is there. Secrets
 * stay sealed. Not by two threads at once. What is left of it goes with the next copy, and when the store is opened. */
#define STORE_COPY "copy.db"
int store_copy(struct store *store, struct err *err);
/* Of the schema: a file of a higher one was written by a later cove. */
uint64_t store_version(void);
/* Whether the last commit failed: a sentence for /health and /metrics, or NULL if all is well. */
const char *store_trouble(struct store *store, char *out, size_t size);
/* Milliseconds since 1970. */
uint64_t store_now_ms(void);
/* 32 random bytes that stay the same for this store; made at first use (signing of URLs). */
int store_secret(struct store *store, const char *name, unsigned char ret[32], struct err *err);

/* ---- tenants ---- */

/* 0 anywhere: no limit. */
struct store_quotas {
    /* at once; this and the next three are exact: store_sandbox_add checks them */
    uint64_t sandboxes;
    uint64_t cpu_milli, memory_bytes, disk_bytes; /* sums of the limits of its sandboxes */
    uint64_t creates_per_s, requests_per_s;
    uint64_t streams; /* long answers and terminals at once */
    /* that its sandboxes hold on their disks now, not what they could hold */
    uint64_t stored_bytes;
    uint64_t images; /* snapshots, and sandboxes that are paused to disk */
    /* a least level and no amount: a number of enum isolation that is one (isolation_level) */
    uint64_t isolation;
};

struct store_tenant {
    char name[STORE_TENANT_MAX];
    uint64_t created_ms;
    struct store_quotas quotas;
};

/* One row per quota: options of `cove tenant`, columns and texts. */
enum quota_unit { QUOTA_COUNT_UNIT, QUOTA_BYTES_UNIT, QUOTA_CPUS_UNIT, QUOTA_LEVEL_UNIT };
struct quota_info {
    const char *name; /* option, without dashes; '_' for '-' in the column and in JSON */
    enum quota_unit unit;
    size_t offset;     /* in struct store_quotas: uint64_t */
    uint64_t fallback; /* the default: of a new tenant */
    const char *help;
};
extern const struct quota_info quota_table[];
extern const size_t quota_table_count;
void store_quotas_default(struct store_quotas *quotas);

/* The tenant that loopback uses without a key; there from the start, without limits, never removed. */
#define STORE_LOCAL_TENANT "local"

#define STORE_QUOTA_KEEP UINT64_MAX /* of a write: this quota stays; of a new tenant, the default */
/* Default rules of the network; rules NULL: none any more. login: as store_network_default_set has it. */
struct store_network_new {
    const char *rules, *login;
};
/* Quotas and network in one transaction: both are changed, or nothing. add: ERR_EXISTS when there is one of that name; else
 * ERR_NO_PATH when there is none. network NULL: stays as it is. */
int store_tenant_write(struct store *store, bool add, const char *name,
                       const struct store_quotas *quotas, const struct store_network_new *network,
                       struct err *err);
int store_tenant_add(struct store *store, const char *name, const struct store_quotas *quotas,
                     struct err *err);
/* ERR_NO_PATH "there is no tenant '…'". */
int store_tenant_get(struct store *store, const char *name, struct store_tenant *ret,
                     struct err *err);
int store_tenant_set(struct store *store, const char *name, const struct store_quotas *quotas,
                     struct err *err);
/* With its keys. ERR_NOT_EMPTY while it has sandboxes or snapshots. */
int store_tenant_remove(struct store *store, const char *name, struct err *err);
typedef int store_tenant_each(void *arg, const struct store_tenant *tenant, struct err *err);
/* By name. A callback of this header that returns -1 ends the walk, which then returns -1. */
int store_tenant_list(struct store *store, store_tenant_each *each, void *arg, struct err *err);

/* ---- keys ---- */

/* Same numbers as enum scope of the API. */
enum store_scope { STORE_SCOPE_READ = 1, STORE_SCOPE_RUN, STORE_SCOPE_ADMIN, STORE_SCOPE_OPERATOR };
const char *store_scope_name(int scope); /* "read", "run", "admin", "operator" */
int store_scope_parse(const char *text, int *ret, struct err *err);

struct store_key {
    char id[STORE_KEY_ID_MAX];
    char tenant[STORE_TENANT_MAX];
    char label[STORE_NAME_MAX]; /* the user's own words, may be "" */
    int scope;
    uint64_t created_ms, expires_ms /* 0: never */, revoked_ms /* 0: not */, last_used_ms;
};

/* The only time that the key's text is to be seen: it goes to ret_text, to be shown and wiped. An operator's key is one of
 * the tenant `local`. */
int store_key_create(struct store *store, const char *tenant, int scope, const char *label,
                     uint64_t expires_ms, struct store_key *ret, char ret_text[STORE_KEY_TEXT_MAX],
                     struct err *err);
/* ERR_DENIED for a text that is no key, unknown, expired or revoked: msg says which of
 * "not a key of this server", "has expired", "was revoked" (the latter two only to who has the key). */
int store_key_find(struct store *store, const char *text, struct store_key *ret, struct err *err);
/* The same by its public id alone: for what was signed in a key's name. Proves nothing by itself. */
int store_key_get(struct store *store, const char *id, struct store_key *ret, struct err *err);
/* Whether it looks like a key of a server such as this, known or not. */
bool store_key_shaped(const char *text);
/* Notes the use of a key, at most once a minute and key. *ret_noted: this call did. */
int store_key_used(struct store *store, const char *id, uint64_t now_ms, bool *ret_noted,
                   struct err *err);
/* ERR_NO_PATH for an unknown id; revoking twice is no error. ret: the key, expired or not; may be NULL. */
int store_key_revoke(struct store *store, const char *id, struct store_key *ret, struct err *err);
typedef int store_key_each(void *arg, const struct store_key *key, struct err *err);
/* tenant NULL: all. Newest first. */
int store_key_list(struct store *store, const char *tenant, store_key_each *each, void *arg,
                   struct err *err);

/* ---- volumes ---- */

#define STORE_VOLUME_ID_MAX   24
#define STORE_VOLUME_PATH_MAX 128
#define STORE_VOLUMES_MAX     1000 /* of one tenant */

struct store_volume {
    char id[STORE_VOLUME_ID_MAX]; /* what the keeper knows it by */
    char tenant[STORE_TENANT_MAX];
    char name[STORE_NAME_MAX]; /* unique in its tenant */
    uint64_t bytes, inodes, created_ms;
};

/* Checks, in the same transaction: the name (ERR_EXISTS), and that the sizes of all the tenant's volumes stay within its
 * quota of stored bytes (ERR_TOO_MANY). */
int store_volume_add(struct store *store, const struct store_volume *volume, struct err *err);
/* By name or id. ERR_NO_VOLUME for a foreign one as for an unknown one. */
int store_volume_get(struct store *store, const char *tenant, const char *name,
                     struct store_volume *ret, struct err *err);
typedef int store_volume_each(void *arg, const struct store_volume *volume, struct err *err);
/* By name; tenant NULL: all. */
int store_volume_list(struct store *store, const char *tenant, store_volume_each *each, void *arg,
                      struct err *err);
/* One that is not there is no error. */
int store_volume_remove(struct store *store, const char *id, struct err *err);

/* Sizes, not what is in them. */
struct store_volume_usage {
    uint64_t volumes, bytes;
};
int store_volume_usage(struct store *store, const char *tenant, struct store_volume_usage *ret,
                       struct err *err);

/* A volume in a sandbox that has a record, whether it runs or not. */
struct store_volume_use {
    char sandbox[ID_LEN + 1];
    char volume[STORE_VOLUME_ID_MAX];
    char name[STORE_NAME_MAX]; /* of the volume */
    char path[STORE_VOLUME_PATH_MAX];
    bool read_only;
};
typedef int store_volume_use_each(void *arg, const struct store_volume_use *use, struct err *err);
int store_volume_uses_of(struct store *store, const char *sandbox, store_volume_use_each *each,
                         void *arg, struct err *err);
int store_volume_users(struct store *store, const char *volume, store_volume_use_each *each,
                       void *arg, struct err *err);

/* ---- sandboxes ---- */

enum store_on_timeout { STORE_TIMEOUT_KILL, STORE_TIMEOUT_PAUSE };
/* Beside one of them: it is paused until a client resumes it, and deadline_ms is when that began. */
#define STORE_TIMEOUT_HELD 16

/* Where a paused one is. The numbers are in the store. */
enum store_tier { STORE_AWAKE, STORE_HOT, STORE_WARM, STORE_DISK };
enum store_paused_by { STORE_BY_REQUEST, STORE_BY_DEADLINE, STORE_BY_IDLENESS };

/* What is meant; the keeper knows what is. All zero: awake. */
struct store_sleep {
    int tier, aim; /* enum store_tier: where it is, and where it is still to be moved to, or 0 */
    int by;        /* enum store_paused_by */
    bool memory;   /* its image has its processes in it, or is to have them */
    uint64_t since_ms, bytes; /* bytes: of its image, 0 without one */
};

struct store_sandbox {
    uint64_t seq; /* grows with every sandbox: the cursor of lists */
    char id[ID_LEN + 1];
    char tenant[STORE_TENANT_MAX];
    char name[STORE_NAME_MAX]; /* "" or unique in its tenant */
    char template[STORE_NAME_MAX];
    char metadata[STORE_METADATA_MAX]; /* "" or a JSON object */
    uint64_t created_ms, deadline_ms;  /* real time; deadline 0: none */
    int on_timeout;                    /* enum store_on_timeout, and perhaps STORE_TIMEOUT_HELD */
    char idempotency_key[STORE_IDEMPOTENCY_MAX];  /* "" or unique in its tenant */
    char request_hash[STORE_HASH_MAX];            /* of what was asked for with that key */
    uint64_t cpu_milli, memory_bytes, disk_bytes; /* its limits: they count against the quotas */
    /* for store_sandbox_add, borrowed: a JSON array of K=V, or NULL. Read by store_sandbox_env */
    const char *env;
    const char *network; /* for store_sandbox_add: as store_network_set; NULL: none. Borrowed */
    const char *preview; /* the same, as store_preview_set */
    /* for store_sandbox_add: private.h; their sandbox is this one. Borrowed */
    const struct private_member *joins;
    size_t join_count;
    const struct store_volume_use *volumes; /* for store_sandbox_add: volume, path, read_only */
    size_t volume_count;
    const char *hidden;  /* for store_sandbox_add: as store_hidden_set; NULL: none. Borrowed */
    uint64_t timeout_ms; /* that its create asked for */
    /* idle for so long: it is paused, moved to disk; 0: not */
    uint64_t idle_pause_ms, idle_disk_ms;
    bool auto_resume;         /* a request to it wakes it, whatever paused it */
    bool forgets;             /* a pause at its deadline keeps its files only */
    bool has_volumes;         /* when it is read: store_volume_uses_of has something to say */
    struct store_sleep sleep; /* not for store_sandbox_add */
};

/* Written. seq is ignored. Checks, in the same transaction: the quotas of the tenant (ERR_TOO_MANY, says which), the name
 * (ERR_NAME_TAKEN), the idempotency key (ERR_EXISTS).
 * That a sandbox is there, ends or lives longer need not outlast a power cut, which ends it; what sleeps on disk does. */
/* A timeout_ms without an end; deadline_ms is 0 then. */
#define STORE_NEVER_MS ((uint64_t) INT64_MAX)
static inline uint64_t store_deadline(uint64_t now_ms, uint64_t timeout_ms)
{
    return timeout_ms == STORE_NEVER_MS ? 0 : now_ms + timeout_ms;
}

int store_sandbox_add(struct store *store, const struct store_sandbox *sandbox, struct err *err);
/* tenant NULL: any. ERR_NO_SANDBOX for a foreign one as for an unknown one. */
int store_sandbox_get(struct store *store, const char *tenant, const char *id,
                      struct store_sandbox *ret, struct err *err);
/* Of any tenant's: what the record had as env, for the caller to free; NULL without. */
int store_sandbox_env(struct store *store, const char *id, char **ret, struct err *err);
int store_sandbox_find_name(struct store *store, const char *tenant, const char *name,
                            struct store_sandbox *ret, struct err *err);
int store_sandbox_find_idempotency(struct store *store, const char *tenant, const char *key,
                                   struct store_sandbox *ret, struct err *err);
/* Written. */
int store_sandbox_set_deadline(struct store *store, const char *id, uint64_t deadline_ms,
                               int on_timeout, struct err *err);
/* The clock was set by so much: every deadline and time of creation moves along. */
int store_sandbox_shift(struct store *store, int64_t by_ms, struct err *err);
int store_sandbox_set_metadata(struct store *store, const char *id, const char *metadata,
                               struct err *err);
/* On disk if the sandbox is, else written. */
int store_sandbox_set_sleep(struct store *store, const char *id, const struct store_sleep *sleep,
                            struct err *err);
/* Before a sandbox that is on disk is brought back: the quotas, as store_sandbox_add checks them. It then counts as
 * one that is paused in memory. Written. */
int store_sandbox_claim(struct store *store, const struct store_sandbox *sandbox, struct err *err);
/* It is being made again: its times, as they are from now on. ERR_NO_SANDBOX when it is not there any more. Written. */
int store_sandbox_renew(struct store *store, const char *id, uint64_t created_ms,
                        uint64_t deadline_ms, struct err *err);
/* One that is not there is no error. Written. */
int store_sandbox_remove(struct store *store, const char *id, struct err *err);
/* Only if it was not renewed since it was read. *ret_removed: it is gone. Written. */
int store_sandbox_remove_old(struct store *store, const char *id, uint64_t created_ms,
                             bool *ret_removed, struct err *err);
typedef int store_sandbox_each(void *arg, const struct store_sandbox *sandbox, struct err *err);
/* Newest first, those behind the cursor `after` (a seq; 0: from the start); tenant NULL: all;
 * limit 0: all. */
int store_sandbox_list(struct store *store, const char *tenant, uint64_t after, uint64_t limit,
                       store_sandbox_each *each, void *arg, struct err *err);

/* The rules of its egress, a JSON text. They go with the sandbox's record. */
int store_network_set(struct store *store, const char *id, const char *rules, struct err *err);
/* "" if it has none. The text is the caller's to free. */
int store_network_get(struct store *store, const char *id, char **ret, struct err *err);
typedef int store_network_each(void *arg, const char *id, const char *rules, struct err *err);
int store_network_list(struct store *store, store_network_each *each, void *arg, struct err *err);

/* The rules of sandboxes whose create says none: of a tenant, of a template. The login of their proxy apart from them,
 * "user\npassword" or "", which lies sealed in the file. They go with their tenant. */
enum store_network_kind { STORE_NETWORK_TENANT, STORE_NETWORK_TEMPLATE, STORE_NETWORK_KINDS };
/* rules NULL: none any more. ERR_NO_PATH when there is no such tenant. */
int store_network_default_set(struct store *store, enum store_network_kind kind, const char *name,
                              const char *rules, const char *login, struct err *err);
/* Both NULL if there is none; the caller's to free, the login by seal_wipe. ret_login may be NULL. */
int store_network_default_get(struct store *store, enum store_network_kind kind, const char *name,
                              char **ret_rules, char **ret_login, struct err *err);

/* ---- previews: who may reach the ports of a sandbox from outside ----
 *
 * Tokens are made of a secret of the store, the sandbox's id and its generation: nothing is kept of one, and a roll
 * takes all of them back. */

#define STORE_PREVIEW_MAX 1024
struct store_preview {
    uint64_t generation;           /* grows with every roll */
    char rules[STORE_PREVIEW_MAX]; /* a JSON text; "" where nothing was said */
};

int store_preview_get(struct store *store, const char *id, struct store_preview *ret,
                      struct err *err);
int store_preview_set(struct store *store, const char *id, const char *rules, struct err *err);
int store_preview_roll(struct store *store, const char *id, struct err *err);

#define STORE_TRAFFIC_MAX 65
/* Opens every port of the sandbox, for as long as it is there or until the next roll. */
int store_traffic_token(struct store *store, const char *sandbox, char ret[STORE_TRAFFIC_MAX],
                        struct err *err);

#define STORE_LINK_MAX 128
/* Opens one port until `expires`: characters that need no quoting in URLs and cookies. */
struct store_link {
    const char *sandbox; /* borrowed */
    uint16_t port;
    uint64_t generation;           /* of the sandbox */
    uint64_t expires;              /* seconds since 1970 */
    char key_id[STORE_KEY_ID_MAX]; /* the key that it was made with, and goes with; "": none */
};
/* Of a port as it is now; without an end and a key. */
int store_link_init(struct store *store, const char *sandbox, uint16_t port, struct store_link *ret,
                    struct err *err);
int store_link_make(struct store *store, const struct store_link *link, char ret[STORE_LINK_MAX],
                    struct err *err);
/* Fills in expires and key_id of a link that store_link_init began. ERR_DENIED with a sentence for the client that showed the text:
 * not good (altered, for another port, taken back), over, or its key is no longer good. */
int store_link_check(struct store *store, const char *text, struct store_link *link,
                     struct err *err);

/* ---- tenants' secrets: sealed on disk (seal.h) ---- */

#define STORE_VAULT_MOST 100  /* of one tenant */
#define STORE_VALUE_MAX  8192 /* bytes of one, without a NUL */
#define STORE_HOSTS_MAX  8192 /* of the text of its hosts, with the NUL */

struct store_vault {
    char name[STORE_NAME_MAX];
    char hosts[STORE_HOSTS_MAX]; /* the caller's own: a JSON array */
    uint64_t created_ms, updated_ms;
};

/* 1 to 63 letters, digits and '_', no digit first: also the name of a variable. */
bool store_vault_name_ok(const char *name);
/* Whether a value can stand in a header: one line, no control characters, no blanks at its ends, not empty or too long. */
bool store_vault_value_ok(const char *value, size_t len);
/* Makes the key of the seals if there is none yet. */
int store_vault_ready(struct store *store, struct err *err);
/* A login of a proxy as it may lie in rules: sealed as values are. `proxy` is part of the seal. The caller's to free, by
 * seal_wipe what was opened. */
int store_login_seal(struct store *store, const char *proxy, const char *login, char **ret,
                     struct err *err);
int store_login_open(struct store *store, const char *proxy, const char *sealed, char **ret,
                     size_t *ret_len, struct err *err);
/* A new one, or another value and other hosts for one that is there. ERR_TOO_MANY, ERR_TOO_BIG; ERR_NO_PATH: no such
 * tenant. */
int store_vault_set(struct store *store, const char *tenant, const char *name, const char *hosts,
                    const char *value, size_t len, struct err *err);
/* ret_value: NUL-terminated, for the caller to seal_wipe. ERR_NO_PATH without one. */
int store_vault_get(struct store *store, const char *tenant, const char *name,
                    struct store_vault *ret, char **ret_value, size_t *ret_len, struct err *err);
/* ERR_NO_PATH without one. */
int store_vault_remove(struct store *store, const char *tenant, const char *name, struct err *err);
typedef int store_vault_each(void *arg, const struct store_vault *secret, struct err *err);
/* By name. */
int store_vault_list(struct store *store, const char *tenant, store_vault_each *each, void *arg,
                     struct err *err);
/* Another number after every change, by this process or another. */
int store_vault_stamp(struct store *store, uint64_t *ret, struct err *err);

/* What a sandbox has to do with secrets, a text that is sealed. It goes with the sandbox's record. */
int store_hidden_set(struct store *store, const char *id, const char *text, struct err *err);
/* *ret NULL: there is none. For the caller to seal_wipe. */
int store_hidden_get(struct store *store, const char *id, char **ret, size_t *ret_len,
                     struct err *err);
typedef int store_hidden_each(void *arg, const char *id, const char *tenant, struct err *err);
/* tenant NULL: of all. */
int store_hidden_list(struct store *store, const char *tenant, store_hidden_each *each, void *arg,
                      struct err *err);

/* ---- snapshots ---- */

/* One that is being made, or was when the server ended, cannot be used; a temporary one is a fork's own. */
/* One of a template is in no list: it goes when no build and no step speaks of it any more (template.h). */
enum store_snapshot_state {
    STORE_SNAPSHOT_MAKING,
    STORE_SNAPSHOT_READY,
    STORE_SNAPSHOT_TEMPORARY,
    STORE_SNAPSHOT_TEMPLATE
};
/* Pure: it is whole, and stays when its maker is gone. */
static inline bool store_snapshot_stays(int state)
{
    return state == STORE_SNAPSHOT_READY || state == STORE_SNAPSHOT_TEMPLATE;
}

struct store_snapshot {
    uint64_t seq;
    char id[ID_LEN + 1];
    char tenant[STORE_TENANT_MAX];
    char name[STORE_NAME_MAX]; /* "" or unique in its tenant */
    char sandbox[ID_LEN + 1];  /* that it was made of */
    char template[STORE_NAME_MAX];
    char metadata[STORE_METADATA_MAX]; /* of that sandbox */
    uint64_t created_ms, bytes;
    int state; /* enum store_snapshot_state */
    bool memory;
    /* For store_snapshot_add, as in struct store_sandbox; borrowed. hidden and volumes are read as those of a sandbox. */
    const char *env, *network, *hidden;
    const struct store_volume_use *volumes;
    size_t volume_count;
};

/* ERR_NAME_TAKEN. */
int store_snapshot_add(struct store *store, const struct store_snapshot *snapshot, struct err *err);
/* It is whole: state, memory and bytes of `snapshot` count from now on, and its name, which another may have had. */
int store_snapshot_ready(struct store *store, const struct store_snapshot *snapshot,
                         struct err *err);
/* Its image takes more or less than it did. One that is not there is no error. */
int store_snapshot_set_bytes(struct store *store, const char *id, uint64_t bytes, struct err *err);
/* By id, or else by name; tenant NULL: any, and only by id. ERR_NO_IMAGE. */
int store_snapshot_get(struct store *store, const char *tenant, const char *id,
                       struct store_snapshot *ret, struct err *err);
/* What its record had as env and network, each the caller's to free; NULL without. */
int store_snapshot_kept(struct store *store, const char *id, char **ret_env, char **ret_network,
                        struct err *err);
typedef int store_snapshot_each(void *arg, const struct store_snapshot *snapshot, struct err *err);
/* As store_sandbox_list; every state. */
int store_snapshot_list(struct store *store, const char *tenant, uint64_t after, uint64_t limit,
                        store_snapshot_each *each, void *arg, struct err *err);
/* One that is not there is no error. */
int store_snapshot_remove(struct store *store, const char *id, struct err *err);

struct store_usage {
    uint64_t sandboxes, cpu_milli, memory_bytes, disk_bytes; /* without those that are on disk */
};
int store_usage(struct store *store, const char *tenant, struct store_usage *ret, struct err *err);
/* Its snapshots, whole or being made, and its sandboxes that are on disk or to be moved there. */
int store_images(struct store *store, const char *tenant, uint64_t *ret, struct err *err);
/* Pure: whether `more` fits beside what is used. ERR_TOO_MANY, says which quota. */
int store_quotas_allow(const struct store_quotas *quotas, const struct store_usage *used,
                       const struct store_usage *more, struct err *err);

/* ---- audit ---- */

/* Texts may be NULL, which counts as "". They are copied. */
struct audit_record {
    uint64_t seq;     /* set by the store: 1, 2, 3 … without gaps */
    uint64_t time_ms; /* 0: now */
    const char *tenant;
    const char *user_id; /* "tenant" or "tenant/key id"; "cli/<uid>" for the command line */
    const char *sandbox_id;
    /* "sandbox.create", "exec.run", "file.write", "key.use", "auth.refused" … */
    const char *action;
    const char *outcome; /* "ok", or the name of the error's kind */
    const char *request_id, *peer;
    const char *code_hash;       /* SHA-256 of the command or code, in hex; never the text itself */
    const char *resource_usage;  /* JSON object */
    const char *security_events; /* JSON array */
    const char *detail;          /* a short sentence: what a refusal said; never content */
    int64_t duration_ms;         /* -1: not known */
    int64_t exit_code;           /* AUDIT_NO_EXIT: there is none */
    const char *hash;            /* of this record and the one before; set by the store */
};
#define AUDIT_NO_EXIT INT64_MIN

/* When it returns: in memory, and written within about 50 ms; written, which a program that is killed does not undo; or on
 * disk, which a power cut does not undo. What is written is on disk within about another 50 ms. */
enum store_safety { STORE_QUEUED, STORE_WRITTEN, STORE_ON_DISK };
/* -1, STORE_QUEUED: the queue is full because the disk takes nothing. */
int store_audit_append(struct store *store, const struct audit_record *record,
                       enum store_safety safety, struct err *err);
/* Everything appended so far is on disk, or -1. */
int store_audit_flush(struct store *store, struct err *err);

struct audit_filter {
    const char *tenant, *sandbox_id, *user_id, *outcome; /* NULL: any */
    const char *action;          /* whole, or a prefix that ends with '.': "exec." */
    uint64_t since_ms, until_ms; /* 0: open; until is exclusive */
    bool oldest_first;
    uint64_t after; /* cursor: the seq of the last record seen; 0: from the start */
    uint64_t limit; /* 0: all */
};
typedef int store_audit_each(void *arg, const struct audit_record *record, struct err *err);
int store_audit_list(struct store *store, const struct audit_filter *filter, store_audit_each *each,
                     void *arg, struct err *err);

struct audit_chain {
    uint64_t first, last, count; /* seqs; 0 when empty */
    char head[STORE_HASH_MAX];   /* hash of the last one */
    uint64_t broken_at;          /* 0: whole; else the first record that does not fit */
    char why[120];
};
/* Recomputes the chain. -1 only when it cannot be read; a broken chain is told in *ret. */
int store_audit_verify(struct store *store, struct audit_chain *ret, struct err *err);
/* Forgets records older than before_ms; the chain continues from the hash of the last one forgotten. note: a record about it, added
 * in the transaction that forgets the first ones, and only if there are any; may be NULL. */
int store_audit_prune(struct store *store, uint64_t before_ms, const struct audit_record *note,
                      uint64_t *ret_count, struct err *err);
/* Forgets the oldest, if the store is larger than `most` bytes. The newest thousand stay. */
int store_audit_shrink(struct store *store, uint64_t most, const struct audit_record *note,
                       uint64_t *ret_count, struct err *err);

/* ---- pools: what the server last said of its own, and what it was told ---- */

#define STORE_TEMPLATE_MAX 64
#define STORE_POOL_MOST    256 /* sandboxes of one pool */

/* One template in one size. */
struct store_pool {
    char template[STORE_TEMPLATE_MAX];
    bool root;
    bool warm; /* of the template's memory image */
    bool once; /* for one command each; such rows are not saved */
    uint64_t isolation;
    uint64_t memory_bytes, disk_bytes, disk_inodes, cpu_milli, processes, open_files, ptys;
    uint64_t ready, target, least, most; /* now; wanted; and the bounds of that */
    uint64_t hits, misses;               /* creates that got one, and that did not */
    uint64_t updated_ms;
};
/* In the place of all that there were. */
int store_pools_save(struct store *store, const struct store_pool *list, size_t count,
                     struct err *err);
typedef int store_pool_each(void *arg, const struct store_pool *pool, struct err *err);
int store_pools_list(struct store *store, store_pool_each *each, void *arg, struct err *err);

/* How many may wait of a template, in each size; "*": of every other. Wins over the configuration. */
struct store_pool_rule {
    char template[STORE_TEMPLATE_MAX];
    uint64_t least, most;
};
int store_pool_rule_set(struct store *store, const struct store_pool_rule *rule, struct err *err);
/* ERR_NO_TEMPLATE when there is none. */
int store_pool_rule_remove(struct store *store, const char *template, struct err *err);
typedef int store_pool_rule_each(void *arg, const struct store_pool_rule *rule, struct err *err);
int store_pool_rules(struct store *store, store_pool_rule_each *each, void *arg, struct err *err);

/* ---- templates with a memory image ---- */

#define STORE_COMMAND_MAX 2048

struct store_warm {
    char template[STORE_TEMPLATE_MAX];
    char image[ID_LEN + 1];
    char start[STORE_COMMAND_MAX]; /* what runs in it; "": no command */
    char ready[STORE_COMMAND_MAX]; /* how it was known to be ready */
    /* of the kernel that waits in it, with commas; "": there is none */
    char modules[STORE_COMMAND_MAX];
    uint64_t made_ms, bytes;
};
/* In the place of what the template had. */
int store_warm_set(struct store *store, const struct store_warm *warm, struct err *err);
/* One that is not there is no error. */
int store_warm_remove(struct store *store, const char *template, struct err *err);
/* 1: there is one, 0: there is none. */
int store_warm_get(struct store *store, const char *template, struct store_warm *ret,
                   struct err *err);
/* Whether a template has this image: 1, 0. */
int store_warm_has(struct store *store, const char *image, struct err *err);
typedef int store_warm_each(void *arg, const struct store_warm *warm, struct err *err);
int store_warm_list(struct store *store, store_warm_each *each, void *arg, struct err *err);

#endif
