#include "server/serve/sign.h"

#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "base/sha256.h"
#include "http/put.h"
#include "server/guard/audit.h"
#include "server/guard/keys.h"
#include "server/serve/exchange_own.h"

#include <inttypes.h>
#include <string.h>

#define SECRET_NAME "signed-urls"
#define TEXT_MAX                                                                                   \
    16384 /* of what is signed, and of a URL: paths have up to 4095 bytes, three times that encoded */

static const struct {
    enum method method;
    const char *path, *operation;
    enum scope scope;
} signable[] = {
    { METHOD_GET, "/v1/sandboxes/:id/files", "read", SCOPE_READ },
    { METHOD_PUT, "/v1/sandboxes/:id/files", "write", SCOPE_RUN },
    { METHOD_PUT, "/v1/builds/files/:hash", "write", SCOPE_RUN },
};

/* Each part with its length, so that no two requests have one text. */
static void put_part(struct put *put, const char *text)
{
    put_number(put, strlen(text));
    put_char(put, ':');
    put_text(put, text);
}

static int signature_of(struct app *app, const char *tenant, const char *key_id,
                        const struct sign *sign, char ret[SHA256_HEX], struct err *err)
{
    unsigned char secret[32], mac[SHA256_LEN];
    char text[TEXT_MAX];
    struct put put = { .buf = text, .size = sizeof text };

    if (key_secret(app, SECRET_NAME, secret, err) < 0)
        return -1;
    put_part(&put, "cove-url-1");
    put_part(&put, tenant);
    put_part(&put, key_id);
    put_part(&put, sign->sandbox);
    put_part(&put, sign->write ? "write" : "read");
    put_part(&put, sign->user);
    put_number(&put, sign->expires);
    put_part(&put, sign->path);
    if (!put_fits(&put))
        return err_set(err, ERR_TOO_BIG, "path: too long to be signed");
    sha256_hmac(secret, sizeof secret, text, put.len, mac);
    sha256_hex(mac, SHA256_LEN, ret);
    return 0;
}

static void put_pair(struct put *put, const char *key, const char *value)
{
    put_char(put, '&');
    put_text(put, key);
    put_char(put, '=');
    put_percent(put, slice_of(value));
}

int sign_url(struct exchange *x, const struct sign *sign, char **ret, struct err *err)
{
    auto_free char *text = malloc(TEXT_MAX);
    struct put put = { .buf = text, .size = TEXT_MAX - 1 };
    char signature[SHA256_HEX];
    struct slice host = head_get(&x->head, "Host");

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for a URL");
    if (signature_of(x->app, x->caller.tenant, x->caller.key_id, sign, signature, err) < 0)
        return -1;
    put_text(&put, x->conn->tls ? "https://" : "http://");
    put_bytes(&put, host.at, host.len);
    put_text(&put, sign->sandbox[0] ? "/v1/sandboxes/" : "/v1/builds/files/");
    put_text(&put, sign->sandbox);
    put_text(&put, sign->sandbox[0] ? "/files?path=" : "");
    put_percent(&put, slice_of(sign->path));
    put_text(&put, sign->sandbox[0] ? "&" : "?");
    put_text(&put, "expires=");
    put_number(&put, sign->expires);
    put_pair(&put, "operation", sign->write ? "write" : "read");
    if (sign->user[0])
        put_pair(&put, "user", sign->user);
    if (x->caller.key_id[0])
        put_pair(&put, "key", x->caller.key_id);
    put_pair(&put, "signature", signature);
    if (!put_fits(&put))
        return err_set(err, ERR_TOO_BIG, "path: too long for a URL");
    text[put.len] = '\0';
    *ret = take_ptr(&text);
    return 0;
}

/* ---- use ---- */

static size_t signable_row(const struct exchange *x)
{
    size_t i = 0;

    while (i < ARRAY_LEN(signable) && !(signable[i].method == x->route->method &&
                                        strcmp(signable[i].path, x->route->path) == 0))
        i++;
    return i;
}

bool sign_shown(struct exchange *x)
{
    return signable_row(x) < ARRAY_LEN(signable) && exchange_query(x, "signature");
}

static int refuse(struct exchange *x, int status, const char *sentence, struct err *err)
{
    err_set(err, ERR_DENIED, "%s", sentence);
    (void) exchange_blame_status(x, status);
    return exchange_blame(x, "signature", NULL, NULL);
}

/* Who made it: the key's tenant, or the local one. */
static int signer_of(struct exchange *x, const char *key_id, struct store_key *ret, struct err *err)
{
    struct err why;

    if (key_id[0]) {
        if (key_of(x->app, key_id, ret, &why) == 0)
            return 0;
        if (why.kind == ERR_DENIED)
            return refuse(x, 401, "the key that signed this URL is no longer valid", err);
        *err = why;
        return -1;
    }
    if (!x->app->loopback || !app_config(x->app)->local)
        return refuse(x, 401, "the signature does not fit this request", err);
    *ret = (struct store_key){ .scope = STORE_SCOPE_ADMIN };
    (void) strcpy(ret->tenant, STORE_LOCAL_TENANT);
    return 0;
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

int sign_check(struct exchange *x, struct err *err)
{
    const char *shown = text_or_empty(exchange_query(x, "signature"));
    const char *operation = text_or_empty(exchange_query(x, "operation"));
    const char *expires = exchange_query(x, "expires");
    size_t row = signable_row(x);
    const char *hash = exchange_param(x, "hash");
    struct sign sign = { .sandbox = exchange_param(x, "id"),
                         .path = hash[0] ? hash : text_or_empty(exchange_query(x, "path")),
                         .user = text_or_empty(exchange_query(x, "user")),
                         .write = strcmp(operation, "write") == 0 };
    char want[SHA256_HEX];
    struct store_key key;

    if (!expires || parse_u64(expires, &sign.expires, err) < 0 ||
        (!sign.write && strcmp(operation, "read") != 0))
        return refuse(x, 401, "a signed URL has operation, expires and signature", err);
    if (signer_of(x, text_or_empty(exchange_query(x, "key")), &key, err) < 0 ||
        signature_of(x->app, key.tenant, key.id, &sign, want, err) < 0)
        return -1;
    if (!same_secret_text(shown, want))
        return refuse(x, 401, "the signature does not fit this request", err);
    if (strcmp(operation, signable[row].operation) != 0)
        return refuse(x, 403,
                      sign.write ? "this URL is signed for writing, with PUT"
                                 : "this URL is signed for reading, with GET",
                      err);
    if (sign.expires <= io_real_ms() / 1000)
        return refuse(x, 403, "this URL has expired", err);
    if (key.scope < (int) signable[row].scope)
        return refuse(x, 403, "the key that signed this URL may no longer do that", err);
    exchange_set_caller(x, key.tenant, key.id, signable[row].scope);
    audit_note(exchange_caller(x), sign.write ? "url.write" : "url.read", sign.sandbox, NULL);
    return 0;
}
