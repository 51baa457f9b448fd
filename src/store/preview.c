/* A link is "<expires>.<key id or ->.<HMAC in hex>". What is signed has every part with its length before it, so that no
 * two links have one text. */
#include "base/own.h"
#include "base/parse.h"
#include "base/sha256.h"
#include "store/own.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINK_SECRET    "previews"
#define TRAFFIC_SECRET "e2b.traffic" /* the name that it had before there were others */
#define NO_KEY         "-"

struct change {
    const char *id, *rules;
};

static int set(struct db *db, void *arg, struct err *err)
{
    const struct change *c = arg;

    return db_run(db, err, SQL_PREVIEW_SET, "tt", c->id, c->rules);
}

int store_preview_set(struct store *store, const char *id, const char *rules, struct err *err)
{
    struct change c = { id, rules };

    if (strlen(rules) >= STORE_PREVIEW_MAX)
        return err_set(err, ERR_TOO_BIG, "rules of a preview: too long");
    return store_write(store, set, &c, err);
}

static int roll(struct db *db, void *arg, struct err *err)
{
    return db_run(db, err, SQL_PREVIEW_ROLL, "t", (const char *) arg);
}

int store_preview_roll(struct store *store, const char *id, struct err *err)
{
    char copy[ID_LEN + 1];

    (void) snprintf(copy, sizeof copy, "%s", id);
    return store_write(store, roll, copy, err);
}

int store_preview_get(struct store *store, const char *id, struct store_preview *ret,
                      struct err *err)
{
    struct store_preview found = { .generation = 0 };
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_PREVIEW_GET, err);
    if (stmt) {
        db_bind(stmt, "t", id);
        rc = db_step(&db, stmt, err);
    }
    if (rc == 1) {
        found.generation = db_number(stmt, 0);
        db_copy(stmt, 1, found.rules, sizeof found.rules);
    }
    reader_give(store, &db);
    if (rc < 0)
        return -1;
    *ret = found;
    return 0;
}

/* ---- tokens ---- */

/* Before the first roll it is what it was when there was no roll yet. */
int store_traffic_token(struct store *store, const char *sandbox, char ret[STORE_TRAFFIC_MAX],
                        struct err *err)
{
    unsigned char secret[32], mac[SHA256_LEN];
    struct store_preview preview;
    char text[64];
    int len;

    if (store_secret(store, TRAFFIC_SECRET, secret, err) < 0 ||
        store_preview_get(store, sandbox, &preview, err) < 0)
        return -1;
    len = preview.generation == 0
              ? snprintf(text, sizeof text, "%s", sandbox)
              : snprintf(text, sizeof text, "%s:%" PRIu64, sandbox, preview.generation);
    sha256_hmac(secret, sizeof secret, text, (size_t) len, mac);
    sha256_hex(mac, SHA256_LEN, ret);
    return 0;
}

static int link_mac(struct store *store, const struct store_link *link, char ret[SHA256_HEX],
                    struct err *err)
{
    unsigned char secret[32], mac[SHA256_LEN];
    char text[256];
    int len;

    if (store_secret(store, LINK_SECRET, secret, err) < 0)
        return -1;
    len = snprintf(text, sizeof text, "cove-preview-1 %zu:%s %" PRIu64 " %u %" PRIu64 " %zu:%s",
                   strlen(link->sandbox), link->sandbox, link->generation, link->port,
                   link->expires, strlen(link->key_id), link->key_id);
    if (len < 0 || (size_t) len >= sizeof text)
        return err_set(err, ERR_DENIED, "the link does not fit");
    sha256_hmac(secret, sizeof secret, text, (size_t) len, mac);
    sha256_hex(mac, SHA256_LEN, ret);
    return 0;
}

int store_link_init(struct store *store, const char *sandbox, uint16_t port, struct store_link *ret,
                    struct err *err)
{
    struct store_preview preview;

    if (store_preview_get(store, sandbox, &preview, err) < 0)
        return -1;
    *ret =
        (struct store_link){ .sandbox = sandbox, .port = port, .generation = preview.generation };
    return 0;
}

int store_link_make(struct store *store, const struct store_link *link, char ret[STORE_LINK_MAX],
                    struct err *err)
{
    char mac[SHA256_HEX];

    if (link_mac(store, link, mac, err) < 0)
        return -1;
    (void) snprintf(ret, STORE_LINK_MAX, "%" PRIu64 ".%s.%s", link->expires,
                    link->key_id[0] ? link->key_id : NO_KEY, mac);
    return 0;
}

static int no_link(struct err *err)
{
    return err_set(err, ERR_DENIED,
                   "this link is not valid: it was altered, is for another port, or was revoked");
}

/* The parts of a link's text; what they say is not yet believed. */
static int link_split(const char *text, struct store_link *link, char mac[SHA256_HEX],
                      struct err *err)
{
    char copy[STORE_LINK_MAX];
    char *key, *sum;

    if (strlen(text) >= sizeof copy)
        return no_link(err);
    (void) strcpy(copy, text);
    key = strchr(copy, '.');
    sum = key ? strchr(key + 1, '.') : NULL;
    if (!sum)
        return no_link(err);
    *key++ = *sum++ = '\0';
    if (parse_u64(copy, &link->expires, err) < 0 || strlen(key) >= sizeof link->key_id ||
        strlen(sum) >= SHA256_HEX)
        return no_link(err);
    (void) strcpy(link->key_id, strcmp(key, NO_KEY) == 0 ? "" : key);
    (void) strcpy(mac, sum);
    return 0;
}

int store_link_check(struct store *store, const char *text, struct store_link *link,
                     struct err *err)
{
    char shown[SHA256_HEX], good[SHA256_HEX];
    struct store_key key;

    if (link_split(text, link, shown, err) < 0 || link_mac(store, link, good, err) < 0)
        return -1;
    if (!same_secret_text(shown, good))
        return no_link(err);
    if (link->expires <= store_now_ms() / 1000)
        return err_set(err, ERR_DENIED, "this link has expired");
    if (!link->key_id[0])
        return 0;
    if (store_key_get(store, link->key_id, &key, err) < 0)
        return err->kind == ERR_DENIED
                   ? err_set(err, ERR_DENIED, "the key that made this link is no longer valid")
                   : -1;
    return key.scope >= STORE_SCOPE_RUN
               ? 0
               : err_set(err, ERR_DENIED, "the key that made this link may no longer do that");
}
