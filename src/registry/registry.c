#include "registry/registry.h"

#include "base/io.h"
#include "base/own.h"
#include "http/url.h"
#include "remote/call.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#define ACCEPT                                                                                     \
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "        \
    "application/vnd.docker.distribution.manifest.list.v2+json, "                                  \
    "application/vnd.docker.distribution.manifest.v2+json"
#define HOPS_MAX  5
#define TRIES     4
#define PIECE     65536
#define TOKEN_DOC 65536u

/* ---- places ---- */

/* What may stand in the first line of a request. */
static bool path_ok(const char *path)
{
    for (; *path; path++)
        if (*path <= ' ' || *path > '~')
            return false;
    return true;
}

int registry_place(const char *url, struct registry_place *ret, struct err *err)
{
    struct remote remote = { .kind = REMOTE_HTTP };
    char start[512];
    const char *path = strstr(url, "://");
    size_t len;

    if (!path)
        return err_set(err, ERR_PROTOCOL, "the registry leads to an invalid address");
    path += 3 + strcspn(path + 3, "/?#");
    len = (size_t) (path - url);
    if (len >= sizeof start)
        return err_set(err, ERR_PROTOCOL, "the registry leads to an address that is too long");
    memcpy(start, url, len);
    start[len] = '\0';
    if (remote_parse(start, &remote, err) < 0)
        return -1;
    if (!path_ok(path))
        return err_set(err, ERR_PROTOCOL, "the registry leads to an invalid address");
    *ret = (struct registry_place){ .tls = remote.kind == REMOTE_HTTPS, .port = remote.port };
    (void) snprintf(ret->host, sizeof ret->host, "%s", remote.host);
    if ((size_t) snprintf(ret->path, sizeof ret->path, "%s%.*s", path[0] == '/' ? "" : "/",
                          (int) strcspn(path, "#"), path) >= sizeof ret->path)
        return err_set(err, ERR_PROTOCOL, "the registry leads to an address that is too long");
    return 0;
}

/* An address, and no name that begins like one. */
static bool is_loopback(const char *host)
{
    unsigned char address[4];

    return strcasecmp(host, "localhost") == 0 ||
           (inet_pton(AF_INET, host, address) == 1 && address[0] == 127);
}

bool registry_is_here(const struct registry *r)
{
    const char *host = reference_registry(&r->reference);
    char name[256];

    (void) snprintf(name, sizeof name, "%.*s", (int) strcspn(host, ":"), host);
    return is_loopback(name);
}

/* Whether the operator's list has the place. tls: as the list says it. */
static bool is_listed(const struct registry *r, const struct registry_place *at, bool *ret_tls)
{
    for (const char *next = r->hosts; *(next += strspn(next, ", "));) {
        size_t len = strcspn(next, ", ");
        struct registry_place row;
        char url[300];
        struct err ignored;

        (void) snprintf(url, sizeof url, "%s%.*s", memmem(next, len, "://", 3) ? "" : "https://",
                        (int) len, next);
        next += len;
        *ret_tls = strncmp(url, "https:", 6) == 0;
        if (registry_place(url, &row, &ignored) == 0 && strcasecmp(row.host, at->host) == 0 &&
            row.port == at->port)
            return true;
    }
    return false;
}

static int home(const struct registry *r, struct registry_place *ret, struct err *err)
{
    const char *host = reference_registry(&r->reference);
    char url[300];
    bool tls;

    if (r->mirror[0])
        return registry_place(r->mirror, ret, err);
    (void) snprintf(url, sizeof url, "http://%s", host);
    if (registry_place(url, ret, err) < 0)
        return -1;
    if (r->plain_http || registry_is_here(r) || (is_listed(r, ret, &tls) && !tls))
        return 0;
    (void) snprintf(url, sizeof url, "https://%s", host);
    return registry_place(url, ret, err);
}

static bool must_be_public(const struct registry *r, const struct registry_place *own,
                           const struct registry_place *at)
{
    bool ignored;

    if (r->inner || is_listed(r, at, &ignored))
        return false;
    return (r->foreign && !r->mirror[0]) || strcasecmp(own->host, at->host) != 0;
}

/* Where the registry's word may lead. */
static int check_place(const struct registry *r, const struct registry_place *to, bool *ret_public,
                       struct err *err)
{
    struct registry_place own;

    if (home(r, &own, err) < 0)
        return -1;
    if (own.tls && !to->tls)
        return err_set(err, ERR_DENIED, "the registry leads to http://%.100s, which is not safe",
                       to->host);
    *ret_public = must_be_public(r, &own, to);
    return 0;
}

static bool is_late(const struct registry *r)
{
    return r->until_ms && io_now_ms() >= r->until_ms;
}

static int too_late(struct err *err)
{
    return err_set(err, ERR_TIMEOUT, "the registry takes too long for the whole image");
}

static void remote_of(const struct registry *r, const struct registry_place *at, bool public_only,
                      struct remote *ret)
{
    *ret = (struct remote){ .kind = at->tls ? REMOTE_HTTPS : REMOTE_HTTP,
                            .port = (uint16_t) at->port,
                            .public_only = public_only };
    memcpy(ret->host, at->host, sizeof ret->host);
    if (r->until_ms) {
        uint64_t now = io_now_ms();

        ret->seconds = now < r->until_ms ? (unsigned) ((r->until_ms - now + 999) / 1000) : 1;
    }
    (void) snprintf(ret->dialer, sizeof ret->dialer, "%s", r->dialer);
    if (!r->proxy_far || !is_loopback(at->host))
        (void) snprintf(ret->proxy, sizeof ret->proxy, "%s", r->proxy);
    (void) snprintf(ret->cacert, sizeof ret->cacert, "%s", r->cacert);
}

/* A registry that says nothing for that long is a broken connection. */
static int await(const struct registry *r, struct call *call, struct err *err)
{
    struct timeval limit = { .tv_sec = (time_t) (r->timeout_ms / 1000),
                             .tv_usec = (suseconds_t) (r->timeout_ms % 1000 * 1000) };

    (void) setsockopt(call->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (call_answer(call, err) == 0)
        return 0;
    if (is_late(r))
        return too_late(err);
    return err->kind == ERR_PROTOCOL
               ? -1
               : err_set(err, ERR_UNAVAILABLE, "the registry does not answer");
}

/* ---- logging in ---- */

/* A mirror is another's: credentials are not for it. */
static const char *credentials(const struct registry *r)
{
    return r->mirror[0] ? "" : r->basic;
}

static int take_token(struct registry *r, const char *text, size_t len, struct err *err)
{
    json_t *root = json_loadb(text, len, 0, NULL);
    const char *token = json_string_value(json_object_get(root, "token"));
    int rc = 0;

    if (!token)
        token = json_string_value(json_object_get(root, "access_token"));
    if (!token || strlen(token) >= sizeof r->bearer || strpbrk(token, "\r\n "))
        rc = err_set(err, ERR_PROTOCOL, "the login gave no token");
    else
        memcpy(r->bearer, token, strlen(token) + 1);
    json_decref(root);
    return rc;
}

static void add_query(char *path, size_t size, const char *key, const char *value)
{
    size_t len = strlen(path), n;
    char encoded[1600];

    if (!value[0])
        return;
    n = url_encode(slice_of(value), encoded, sizeof encoded - 1);
    if (n >= sizeof encoded)
        return;
    encoded[n] = '\0';
    (void) snprintf(path + len, size - len, "%c%s=%s", strchr(path, '?') ? '&' : '?', key, encoded);
}

static int get_token(struct registry *r, const struct challenge *challenge, struct err *err)
{
    struct registry_place at;
    struct remote remote;
    struct call call = CALL_NONE;
    char extra[AUTH_MAX + 64] = "";
    auto_free char *text = NULL;
    bool public_only;
    size_t len;
    int rc;

    if (registry_place(challenge->realm, &at, err) < 0 ||
        check_place(r, &at, &public_only, err) < 0)
        return -1;
    add_query(at.path, sizeof at.path, "service", challenge->service);
    add_query(at.path, sizeof at.path, "scope", challenge->scope);
    remote_of(r, &at, public_only, &remote);
    if (credentials(r)[0])
        (void) snprintf(extra, sizeof extra, "Authorization: Basic %s\r\nConnection: close\r\n",
                        credentials(r));
    rc = call_open(&call, &remote,
                   &(struct call_request){ .method = "GET", .path = at.path, .extra = extra }, err);
    if (rc == 0)
        rc = await(r, &call, err);
    if (rc == 0 && call.status != 200)
        rc = err_set(err, ERR_DENIED, "the registry's login refuses (%d)", call.status);
    if (rc == 0)
        rc = call_text(&call, TOKEN_DOC, &text, &len, err);
    call_close(&call);
    return rc < 0 ? err_wrap(err, "log in at %.100s", at.host) : take_token(r, text, len, err);
}

static int log_in(struct registry *r, const struct call *call, struct err *err)
{
    struct challenge challenge;
    char text[1400];

    if (!call_header(call, "WWW-Authenticate", text, sizeof text))
        return err_set(err, ERR_DENIED, "the registry refuses, and does not say what it wants");
    if (challenge_parse(text, &challenge, err) < 0)
        return -1;
    if (challenge.basic && (!credentials(r)[0] || r->login_basic))
        return err_set(err, ERR_DENIED,
                       credentials(r)[0] ? "the registry does not accept the credentials"
                       : r->foreign
                           ? "the registry wants credentials"
                           : "the registry wants credentials: 'docker login' writes them to "
                             "config.json");
    r->login_basic = challenge.basic;
    return challenge.basic ? 0 : get_token(r, &challenge, err);
}

/* ---- requests ---- */

static int refused(const struct call *call, struct err *err)
{
    char after[32];

    switch (call->status) {
    case 401:
    case 403:
        return err_set(err, ERR_DENIED,
                       "the registry refuses (%d): the image is private, or there is none",
                       call->status);
    case 404:
        return err_set(err, ERR_NO_PATH, "the registry has no such image");
    case 429:
        if (!call_header(call, "Retry-After", after, sizeof after))
            (void) snprintf(after, sizeof after, "some");
        return err_set(err, ERR_TOO_MANY,
                       "the registry wants fewer requests (429): try again in %.20s seconds",
                       after);
    }
    return err_set(err, ERR_UNAVAILABLE, "the registry answered with %d", call->status);
}

static void put_headers(const struct registry *r, bool own, uint64_t from, char *out, size_t size)
{
    int n = 0;

    out[0] = '\0';
    /* Credentials are for the registry, never for where it leads. */
    if (own && r->login_basic)
        n = snprintf(out, size, "Authorization: Basic %s\r\n", r->basic);
    else if (own && r->bearer[0])
        n = snprintf(out, size, "Authorization: Bearer %s\r\n", r->bearer);
    if (from > 0)
        n += snprintf(out + n, size - (size_t) n, "Range: bytes=%" PRIu64 "-\r\n", from);
    (void) snprintf(out + n, size - (size_t) n, "Connection: close\r\n");
}

static int next_place(const struct registry *r, const struct call *call, struct registry_place *at,
                      bool *ret_public, struct err *err)
{
    char url[2048];

    if (!call_header(call, "Location", url, sizeof url))
        return err_set(err, ERR_PROTOCOL, "the registry redirects to nowhere");
    if (url[0] == '/' && url[1] != '/') { /* of the host that it was asked of: its checks hold */
        if (!path_ok(url))
            return err_set(err, ERR_PROTOCOL, "the registry leads to an invalid address");
        (void) snprintf(at->path, sizeof at->path, "%.*s", (int) strcspn(url, "#"), url);
        return 0;
    }
    return registry_place(url, at, err) < 0 ? -1 : check_place(r, at, ret_public, err);
}

/* An answer of 200 or 206, through a login and redirects. */
static int get(struct registry *r, const char *path, const char *accept, uint64_t from,
               struct call *ret, struct err *err)
{
    struct registry_place start, at;
    bool public_only = false, logged_in = false;
    char extra[REGISTRY_TOKEN_MAX + 128];

    if (home(r, &start, err) < 0)
        return -1;
    if (is_late(r))
        return too_late(err);
    public_only = must_be_public(r, &start, &start);
    at = start;
    (void) snprintf(at.path, sizeof at.path, "%s", path);
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        bool own = strcasecmp(at.host, start.host) == 0 && at.port == start.port;
        struct remote remote;

        remote_of(r, &at, public_only, &remote);
        put_headers(r, own, from, extra, sizeof extra);
        if (call_open(ret, &remote,
                      &(struct call_request){
                          .method = "GET", .path = at.path, .accept = accept, .extra = extra },
                      err) < 0)
            return -1;
        if (await(r, ret, err) < 0)
            break;
        if (ret->status == 200 || (ret->status == 206 && from > 0))
            return 0;
        if (ret->status == 401 && own && !logged_in) {
            logged_in = true;
            if (log_in(r, ret, err) < 0)
                break;
        } else if (ret->status == 301 || ret->status == 302 || ret->status == 303 ||
                   ret->status == 307 || ret->status == 308) {
            if (next_place(r, ret, &at, &public_only, err) < 0)
                break;
        } else {
            (void) refused(ret, err);
            break;
        }
        call_close(ret);
        err_set(err, ERR_PROTOCOL, "the registry redirects too often");
    }
    call_close(ret);
    return -1;
}

/* ---- documents and blobs ---- */

int registry_manifest(struct registry *r, const char *wanted, char **ret, size_t *ret_len,
                      char ret_digest[OCI_DIGEST], struct err *err)
{
    unsigned char digest[SHA256_LEN];
    struct call call = CALL_NONE;
    char path[600];
    int rc;

    (void) snprintf(path, sizeof path, "/v2/%s/manifests/%s", r->reference.path, wanted);
    if (get(r, path, ACCEPT, 0, &call, err) < 0)
        return -1;
    rc = call_text(&call, OCI_MANIFEST_MAX, ret, ret_len, err);
    call_close(&call);
    if (rc < 0)
        return -1;
    sha256_of(*ret, *ret_len, digest);
    (void) strcpy(ret_digest, "sha256:");
    sha256_hex(digest, sizeof digest, ret_digest + 7);
    if (!oci_digest_ok(wanted) || strcmp(wanted, ret_digest) == 0)
        return 0;
    free(take_ptr(ret));
    return err_set(err, ERR_INVALID, "the manifest is not what its digest says");
}

/* What is there of the blob already. */
static int hash_file(int fd, struct sha256 *sha, uint64_t *ret_len, struct err *err)
{
    char piece[PIECE];
    ssize_t n;

    sha256_init(sha);
    *ret_len = 0;
    while ((n = pread(fd, piece, sizeof piece, (off_t) *ret_len)) > 0) {
        sha256_add(sha, piece, (size_t) n);
        *ret_len += (uint64_t) n;
    }
    return n < 0 ? err_sys(err, errno, "read a layer") : 0;
}

/* 1: the connection broke, and what came is kept. */
static int fetch(struct registry *r, const struct oci_descriptor *blob, int fd, struct sha256 *sha,
                 uint64_t *have, struct err *err)
{
    struct call call = CALL_NONE;
    char path[600], piece[PIECE];
    ssize_t n;

    (void) snprintf(path, sizeof path, "/v2/%s/blobs/%s", r->reference.path, blob->digest);
    if (get(r, path, "*/*", *have, &call, err) < 0)
        return err->kind == ERR_UNAVAILABLE ? 1 : -1;
    if (call.status == 200 && *have > 0) { /* all of it again */
        sha256_init(sha);
        *have = 0;
    }
    while ((n = call_read(&call, piece, sizeof piece, err)) > 0) {
        if ((uint64_t) n > blob->size - *have) {
            call_close(&call);
            return err_set(err, ERR_INVALID, "a layer is longer than the manifest says");
        }
        if (lseek(fd, (off_t) *have, SEEK_SET) < 0 || io_write_all(fd, piece, (size_t) n) < 0) {
            call_close(&call);
            return err_sys(err, errno, "write a layer");
        }
        sha256_add(sha, piece, (size_t) n);
        *have += (uint64_t) n;
        if (r->progress)
            r->progress(r->context, *have);
        if (is_late(r))
            break;
    }
    call_close(&call);
    if (*have < blob->size && is_late(r))
        return too_late(err);
    if (*have < blob->size)
        err_set(err, ERR_UNAVAILABLE, "the registry's answer was cut short");
    return *have == blob->size ? 0 : 1;
}

static int download(struct registry *r, const struct oci_descriptor *blob, int fd, struct err *err)
{
    unsigned char digest[SHA256_LEN];
    char hex[SHA256_HEX];
    struct sha256 sha;
    uint64_t have;
    int rc = 1;

    if (hash_file(fd, &sha, &have, err) < 0)
        return -1;
    if (have > blob->size) {
        sha256_init(&sha);
        have = 0;
    }
    if (have == blob->size && have > 0)
        rc = 0;
    for (int i = 0; rc == 1 && i < TRIES; i++)
        rc = fetch(r, blob, fd, &sha, &have, err);
    if (rc == 0) {
        sha256_done(&sha, digest);
        sha256_hex(digest, sizeof digest, hex);
        if (strcmp(hex, oci_digest_hex(blob->digest)) != 0)
            rc = err_set(err, ERR_INVALID, "a layer is not what its digest says");
    }
    if (rc < 0)
        IGNORE(ftruncate(fd, 0) < 0);
    if (rc == 0 && (ftruncate(fd, (off_t) blob->size) < 0 || fsync(fd) < 0))
        return err_sys(err, errno, "write a layer");
    return rc == 0 ? 0 : -1;
}

bool registry_leave_mirror(struct registry *r, const struct err *err)
{
    if (!r->mirror[0] || err->kind == ERR_TIMEOUT || err->kind == ERR_DISK_FULL)
        return false;
    r->mirror[0] = '\0';
    r->bearer[0] = '\0';
    r->login_basic = false;
    return true;
}

/* What a mirror began is continued; if it was wrong, the file is empty now, and the registry is asked for all of it. */
int registry_blob(struct registry *r, const struct oci_descriptor *blob, int fd, struct err *err)
{
    int rc = download(r, blob, fd, err);

    if (rc == 0 || !registry_leave_mirror(r, err))
        return rc;
    rc = download(r, blob, fd, err);
    return rc < 0 && err->kind == ERR_INVALID ? download(r, blob, fd, err) : rc;
}
