/* The sandbox's authority and the operator's, where its programs find them: in a bundle beside those that its template trusts, since most
 * variables that name a bundle put it in the place of all others; and by themselves, for Node, which adds to its own. */
#include "server/net/secrets.h"

#include "base/own.h"
#include "client/files.h"
#include "store/seal.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUNDLE_MOST      (1 << 20)
#define AUTHORITIES_MOST (2 * 1024 * 1024) /* bytes of a setting's file */
#define TEMPLATE_CA      "/etc/ssl/certs/ca-certificates.crt"

const char *secrets_place(bool root)
{
    return root
               ? "/etc/cove"
               : "/tmp/.cove"; /* who is not root cannot write anywhere that stays out of the way */
}

int secrets_authorities(const char *setting, const char *path, char **ret, struct err *err)
{
    auto_file FILE *file = NULL;
    auto_free char *text = NULL;
    size_t len;

    *ret = NULL;
    if (!path[0])
        return 0;
    file = fopen(path, "re");
    text = calloc(1, AUTHORITIES_MOST + 1);
    if (!file || !text)
        return err_sys(err, errno, "%s: read %s", setting, path);
    len = fread(text, 1, AUTHORITIES_MOST + 1, file);
    if (len == 0 || len > AUTHORITIES_MOST)
        return err_set(err, ERR_INVALID, "%s: %s is empty or too large", setting, path);
    if (strlen(text) != len || !strstr(text, "-----BEGIN CERTIFICATE-----"))
        return err_set(err, ERR_INVALID, "%s: %s has no certificates in PEM", setting, path);
    if (strstr(text, "PRIVATE KEY-----"))
        return err_set(err, ERR_INVALID, "%s: %s has a private key in it", setting, path);
    *ret = take_ptr(&text);
    return 0;
}

int secrets_start(struct app *app, struct err *err)
{
    return secrets_authorities("sandbox_ca", app_config(app)->sandbox_ca, &app->sandbox_ca, err);
}

struct bundle {
    char *data;
    size_t len;
};

/* What the sandbox's own template has; that is its agent's word, and it stays inside. */
static bool read_inside(const struct files_at *at, struct bundle *bundle)
{
    struct file_info info;
    struct stream stream;
    const void *data;
    struct err ignored;
    uint32_t len;
    int rc;

    if (files_read_open(at, TEMPLATE_CA, 0, UINT64_MAX, &stream, &info, &ignored) < 0)
        return false;
    while ((rc = files_read_next(&stream, &data, &len, &ignored)) == 1 &&
           len <= BUNDLE_MOST - bundle->len) {
        memcpy(bundle->data + bundle->len, data, len);
        bundle->len += len;
    }
    stream_close(&stream);
    if (rc != 0)
        bundle->len = 0;
    return bundle->len > 0;
}

/* A template without one trusts whom this host trusts. */
static void read_here(struct bundle *bundle)
{
    auto_close int fd = open(TEMPLATE_CA, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;

    while (fd >= 0 && bundle->len < BUNDLE_MOST &&
           (n = read(fd, bundle->data + bundle->len, BUNDLE_MOST - bundle->len)) > 0)
        bundle->len += (size_t) n;
}

static int write_file(const struct files_at *at, const char *path, const char *data, size_t len,
                      struct err *err)
{
    struct file_info info;
    struct stream stream;
    int r;

    if (files_write_open(at, path, 0644, AGENT_PARENTS | AGENT_CREATE, &stream, err) < 0)
        return -1;
    r = files_write_next(&stream, data, len, err) < 0 || files_write_end(&stream, &info, err) < 0
            ? -1
            : 0;
    stream_close(&stream);
    return r;
}

static int install(const struct files_at *at, bool root, const char *cert, struct err *err)
{
    struct bundle bundle = { .data = malloc(BUNDLE_MOST + strlen(cert) + 2) };
    char path[64];
    int r = -1;

    if (!bundle.data)
        return err_set(err, ERR_NO_MEMORY, "no memory for certificates");
    if (!read_inside(at, &bundle))
        read_here(&bundle);
    if (bundle.len > 0 && bundle.data[bundle.len - 1] != '\n')
        bundle.data[bundle.len++] = '\n';
    memcpy(bundle.data + bundle.len, cert, strlen(cert));
    bundle.len += strlen(cert);
    (void) snprintf(path, sizeof path, "%s/" SECRETS_AUTHORITY, secrets_place(root));
    if (write_file(at, path, cert, strlen(cert), err) == 0) {
        (void) snprintf(path, sizeof path, "%s/" SECRETS_BUNDLE, secrets_place(root));
        r = write_file(at, path, bundle.data, bundle.len, err);
    }
    free(bundle.data);
    return r < 0 ? err_wrap(err, "certificates of the sandbox") : 0;
}

int secrets_install(struct app *app, struct link *link, const char *sandbox, bool root,
                    struct err *err)
{
    struct files_at at = { .link = link, .sandbox = sandbox, .user = root ? "root" : NULL };
    const char *given = app->sandbox_ca ? app->sandbox_ca : "", *own;
    char *text = NULL, *certs = NULL;
    json_t *hidden = NULL;
    size_t len;
    int r = 0;

    if (store_hidden_get(app->store, sandbox, &text, &len, err) < 0)
        return -1;
    if (text) {
        hidden = json_loadb(text, len, 0, NULL);
        seal_wipe(text, len);
    }
    own = json_string_value(json_object_get(hidden, "cert"));
    if (own || given[0])
        r = asprintf(&certs, "%s%s%s", own ? own : "", own ? "\n" : "", given) < 0
                ? err_set(err, ERR_NO_MEMORY, "no memory for certificates")
                : install(&at, root, certs, err);
    free(certs);
    json_decref(hidden);
    return r;
}
