#include "server/guard/keys.h"

#include "base/sha256.h"
#include "server/app/app.h"
#include "server/guard/audit.h"

#include <stdio.h>
#include <string.h>

#define USE_NOTED_MS 60000

_Static_assert((int) SCOPE_READ == STORE_SCOPE_READ && (int) SCOPE_RUN == STORE_SCOPE_RUN &&
                   (int) SCOPE_ADMIN == STORE_SCOPE_ADMIN &&
                   (int) SCOPE_OPERATOR == STORE_SCOPE_OPERATOR,
               "the store's scopes are the server's");

const char *scope_name(enum scope scope)
{
    return store_scope_name((int) scope);
}

bool key_shaped(const char *text)
{
    return store_key_shaped(text);
}

/* The first use, and then one a minute: that a key is in use is worth a record, each use is not. */
static void note_use(struct caller *caller, const struct store_key *key)
{
    uint64_t now = store_now_ms(),
             apart = now > key->last_used_ms ? now - key->last_used_ms : key->last_used_ms - now;
    bool noted = false;
    struct err ignored; /* a full disk is no reason to refuse a key; the store logs it */

    if (apart > USE_NOTED_MS &&
        store_key_used(caller->app->store, key->id, now, &noted, &ignored) == 0 && noted)
        audit_note(caller, "key.use", "", NULL);
}

int key_identify(struct caller *caller, const char *text, struct err *err)
{
    struct store_key key;

    if (store_key_find(caller->app->store, text, &key, err) < 0)
        return -1;
    (void) snprintf(caller->tenant, sizeof caller->tenant, "%s", key.tenant);
    (void) snprintf(caller->key_id, sizeof caller->key_id, "%s", key.id);
    caller->scope = (enum scope) key.scope;
    caller->key_expires_ms = key.expires_ms;
    note_use(caller, &key);
    return 0;
}

int key_act_for(struct caller *caller, const char *tenant, struct err *err)
{
    struct store_tenant record;

    if (strcmp(tenant, caller->tenant) == 0)
        return 0;
    if (caller->scope < SCOPE_OPERATOR)
        return err_set(
            err, ERR_DENIED,
            "only the operator may act for another tenant: a key of scope operator is needed");
    if (store_tenant_get(caller->app->store, tenant, &record, err) < 0)
        return -1;
    memcpy(caller->home, caller->tenant, sizeof caller->home);
    (void) snprintf(caller->tenant, sizeof caller->tenant, "%s", record.name);
    return 0;
}

int key_of(struct app *app, const char *key_id, struct store_key *ret, struct err *err)
{
    return store_key_get(app->store, key_id, ret, err);
}

bool key_of_tenant(struct app *app, const char *text, const char *tenant)
{
    struct store_key key;
    struct err ignored;

    return store_key_find(app->store, text, &key, &ignored) == 0 && strcmp(key.tenant, tenant) == 0;
}

int key_secret(struct app *app, const char *name, unsigned char ret[32], struct err *err)
{
    return store_secret(app->store, name, ret, err);
}

int token_traffic(struct app *app, const char *sandbox, char ret[TOKEN_MAX], struct err *err)
{
    return store_traffic_token(app->store, sandbox, ret, err);
}

_Static_assert(TOKEN_MAX == SHA256_HEX, "a token is a whole hash");

void token_access_of(const unsigned char secret[32], const char *sandbox, char ret[TOKEN_MAX])
{
    unsigned char mac[SHA256_LEN];

    sha256_hmac(secret, 32, sandbox, strlen(sandbox), mac);
    sha256_hex(mac, SHA256_LEN, ret);
}

int token_access(struct app *app, const char *sandbox, char ret[TOKEN_MAX], struct err *err)
{
    unsigned char secret[32];

    if (key_secret(app, TOKEN_ACCESS_SECRET, secret, err) < 0)
        return -1;
    token_access_of(secret, sandbox, ret);
    return 0;
}

int token_link_init(struct app *app, const char *sandbox, uint16_t port, struct store_link *ret,
                    struct err *err)
{
    return store_link_init(app->store, sandbox, port, ret, err);
}

int token_link_make(struct app *app, const struct store_link *link, char ret[STORE_LINK_MAX],
                    struct err *err)
{
    return store_link_make(app->store, link, ret, err);
}

int token_link_check(struct app *app, const char *text, struct store_link *link, struct err *err)
{
    return store_link_check(app->store, text, link, err);
}
