/* registry.h - images in a registry (OCI distribution): manifests by tag or digest, blobs by digest.
 *
 * Everything that comes is checked: documents and blobs against digest and size while they arrive. The registry's word leads to
 * two other places, the login and redirects. Those are reached by https, and only at public addresses, unless they are on
 * the registry's own host or the operator said otherwise. Of a registry that a tenant names that holds for the registry, too.
 * Addresses are judged after the name was looked up, by cove-dial, for every connection.
 *
 * Owns:    nothing but memory; connections end with each call. */
#ifndef COVE_REGISTRY_REGISTRY_H
#define COVE_REGISTRY_REGISTRY_H

#include "base/err.h"
#include "oci/reference.h"
#include "registry/auth.h"

#include <limits.h>

#define REGISTRY_TOKEN_MAX 8192

struct registry {
    struct reference reference;
    bool plain_http; /* http for the registry itself; of a loopback host always */
    bool inner;      /* login and redirects may lead to addresses that are not public */
    /* who names the registry may be anybody: the registry itself must be public, too */
    bool foreign;
    char hosts
        [1024]; /* registries, HOST[:PORT] with spaces or commas between, that may be at any address; http://HOST: without TLS */
    char mirror
        [300]; /* http[s]://HOST[:PORT], asked in the registry's place, without credentials; "": none */
    char dialer[PATH_MAX];
    char cacert[PATH_MAX]; /* "": the authorities of this host */
    char proxy[300];       /* HOST:PORT; "": none */
    bool proxy_far;        /* which is not asked for loopback addresses */
    char basic[AUTH_MAX];  /* credentials; "": none */
    char bearer[REGISTRY_TOKEN_MAX];
    bool login_basic;    /* the registry wants the credentials themselves */
    uint64_t timeout_ms; /* without a byte from the registry */
    uint64_t until_ms;   /* a moment of io_now_ms() when all must be done; 0: none */
    /* how far a blob is; may be NULL */
    void (*progress)(void *context, uint64_t bytes);
    void *context;
};

/* The document of a tag or a digest; for the caller to free. ret_digest: of what came, which is compared with a digest that
 * was asked for. ERR_TOO_MANY: the registry wants us to wait (429). */
int registry_manifest(struct registry *registry, const char *wanted, char **ret, size_t *ret_len,
                      char ret_digest[OCI_DIGEST], struct err *err);

/* Writes a blob to a file behind what is there already of it, and checks all of it. ERR_INVALID: it is not what its digest says,
 * and the file is empty again. A connection that breaks is made again, a few times. What a mirror does not have, or has wrong,
 * is asked of the registry. */
int registry_blob(struct registry *registry, const struct oci_descriptor *blob, int fd,
                  struct err *err);

/* Whether there is a mirror that failed in this way, and the registry itself is to be asked from now on. */
bool registry_leave_mirror(struct registry *registry, const struct err *err);

/* Whether the registry's host is this one: loopback. */
bool registry_is_here(const struct registry *registry);

/* Pure: the address in a Location header, or a realm, as a remote with a path. */
struct registry_place {
    bool tls;
    char host[256];
    unsigned port;
    char path[2048];
};
int registry_place(const char *url, struct registry_place *ret, struct err *err);

#endif
