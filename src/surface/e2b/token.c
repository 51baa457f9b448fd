#include "surface/e2b/e2b.h"

#include "base/base64.h"
#include "base/io.h"
#include "base/sha256.h"
#include "server/guard/keys.h"

#include <stdio.h>
#include <string.h>

void e2b_signature(const char *path, const char *operation, const char *user, const char *token,
                   const char *expiration, char ret[E2B_SIGNATURE_MAX])
{
    const char *const parts[] = { path, operation, user, token, expiration };
    unsigned char digest[SHA256_LEN];
    char text[BASE64_SIZE(SHA256_LEN)];
    struct sha256 hash;

    sha256_init(&hash);
    for (size_t i = 0; i < (expiration ? 5 : 4); i++) {
        if (i > 0)
            sha256_add(&hash, ":", 1);
        sha256_add(&hash, parts[i], strlen(parts[i]));
    }
    sha256_done(&hash, digest);
    base64_put(text, digest, sizeof digest);
    text[strcspn(text, "=")] = '\0';
    (void) snprintf(ret, E2B_SIGNATURE_MAX, "v1_%s", text);
}

static int refuse(struct exchange *x, const char *sentence, struct err *err)
{
    err_set(err, ERR_DENIED, "%s", sentence);
    return exchange_blame_status(x, 401);
}

static int check_signature(struct exchange *x, const char *token, const char *operation,
                           struct err *err)
{
    const char *path = exchange_query(x, "path"), *user = exchange_query(x, "username");
    const char *signature = exchange_query(x, "signature");
    const char *expiration = exchange_query(x, "signature_expiration");
    char expected[E2B_SIGNATURE_MAX];
    uint64_t until;

    if (!signature)
        return refuse(x, "missing signature query parameter", err);
    e2b_signature(path ? path : "", operation, user ? user : "", token, expiration, expected);
    if (!same_secret_text(signature, expected))
        return refuse(x, "invalid signature", err);
    if (expiration && (parse_u64(expiration, &until, err) < 0 || until < io_real_ms() / 1000))
        return refuse(x, "signature is already expired", err);
    return 0;
}

int e2b_check_access(struct exchange *x, const char *sandbox, const char *operation,
                     struct err *err)
{
    const char *shown = exchange_header(x, "X-Access-Token");
    char token[TOKEN_MAX];

    if (token_access(exchange_app(x), sandbox, token, err) < 0)
        return -1;
    if (shown && same_secret_text(shown, token))
        return 0;
    if (!operation)
        return refuse(x,
                      "unauthorized access, please provide a valid access token or method "
                      "signing if supported",
                      err);
    if (shown)
        return refuse(x, "access token present in header but does not match", err);
    return check_signature(x, token, operation, err);
}
