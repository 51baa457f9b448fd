/* sign.h - URLs whose holders may read or write one file for a while, without a key.
 *
 * A signature is an HMAC-SHA-256, with a secret of the store, of everything that it allows: tenant, the key it was made with,
 * sandbox, operation, user, path and the second in which it ends. All but the tenant are in the URL's query in
 * plain text; the tenant is the key's. A key that is revoked, has expired or lost its scope takes its URLs along; those of
 * the local tenant have no key, and work while the server has that tenant.
 *
 * Callers: auth.c for requests without a key, v1_sign.c. */
#ifndef COVE_SERVER_SERVE_SIGN_H
#define COVE_SERVER_SERVE_SIGN_H

#include "server/serve/exchange.h"

#include <jansson.h>

#define SIGN_SECONDS_MOST (7u * 24 * 3600)

struct sign {
    const char *sandbox, *path,
        *user; /* user "": the template's; sandbox "": path is the hash of files for builds */
    bool write;
    uint64_t expires; /* seconds since 1970 */
};

/* The URL in the caller's name, of the host that was asked; the result is the caller's to free. */
int sign_url(struct exchange *x, const struct sign *sign, char **ret, struct err *err);

/* Whether the request shows a signature, on a route that heeds one. */
bool sign_shown(struct exchange *x);
/* Fills in the caller: one who may do just this. Or -1 with 401 (the signature is not one of ours, or its key no longer
 * good) or 403 (it was, but is over, or for something else). */
int sign_check(struct exchange *x, struct err *err);

#endif
