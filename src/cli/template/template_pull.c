#include "base/base64.h"
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/image.h"
#include "cli/credentials.h"
#include "cli/programs.h"
#include "cli/question.h"
#include "cli/report.h"
#include "cli/template/template_image.h"
#include "cli/template/template_maker.h"
#include "registry/image.h"
#include "template/image_import.h"
#include "template/image_store.h"
#include "template/template_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#define PATIENCE_MS  30000
#define SETTINGS_MAX 32768
#define SETTINGS_MS  10000

struct pull {
    struct registry registry;
    struct registry_image image;
    const struct oci_descriptor *now; /* the blob that arrives */
    struct maker maker;
    int blobs_fd;
};

static void show(void *context, uint64_t bytes)
{
    struct pull *p = context;
    char done[32], all[32], text[80];

    (void) snprintf(text, sizeof text, "%s of %s", report_size(done, sizeof done, bytes),
                    report_size(all, sizeof all, p->now->size));
    template_step(&p->maker.way, p->now->size ? (unsigned) (bytes * 99 / p->now->size) : 99,
                  "downloading", text);
}

/* The manifest itself, which is here already. */
static int open_manifest(const struct pull *p, int *ret_fd, struct err *err)
{
    auto_close int fd = memfd_create("manifest", MFD_CLOEXEC);

    if (fd < 0 || io_write_all(fd, p->image.text, p->image.len) < 0)
        return err_sys(err, errno, "keep the manifest");
    *ret_fd = take_fd(&fd);
    return 0;
}

/* Another pull may be at the same blob: it is waited for. What a broken one left is gone on with. */
static int download(struct pull *p, const char *hex, struct err *err)
{
    auto_close int fd = -1;
    char part[80];

    (void) snprintf(part, sizeof part, "%s.part", hex);
    fd = openat(p->blobs_fd, part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return err_sys(err, errno, "keep a layer");
    if (faccessat(p->blobs_fd, hex, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (registry_blob(&p->registry, p->now, fd, err) < 0)
        return -1;
    return renameat(p->blobs_fd, part, p->blobs_fd, hex) < 0 ? err_sys(err, errno, "keep a layer")
                                                             : 0;
}

static int open_blob(void *context, const char *hex, int *ret_fd, struct err *err)
{
    struct pull *p = context;

    if (strcmp(hex, oci_digest_hex(p->image.digest)) == 0)
        return open_manifest(p, ret_fd, err);
    p->now = registry_image_blob(&p->image, hex);
    if (!p->now)
        return err_set(err, ERR_NO_PATH, "the image has no blob %.64s", hex);
    *ret_fd = openat(p->blobs_fd, hex, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd >= 0)
        return 0;
    if (download(p, hex, err) < 0)
        return -1;
    *ret_fd = openat(p->blobs_fd, hex, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(err, errno, "open a layer") : 0;
}

/* By a server: what docker's config.json has for the registry goes with the request. */
static int pull_by_server(const char *image, const struct image_values *values, bool as_json)
{
    struct image_wish wish = {
        .name = values->name, .tenant = values->tenant, .image = image, .as_json = as_json
    };
    char basic[AUTH_MAX], login[AUTH_MAX], *colon = NULL;
    struct reference reference;
    struct err err;
    ssize_t len;
    int code;

    if (values->plain_http || values->inner || values->proxy || values->mirror ||
        values->max_bytes || values->timeout_ms || values->squash_ids)
        err_set(&err, ERR_USAGE,
                "template pull: --plain-http, --allow-inner, --proxy, --mirror, --max-bytes, "
                "--timeout and --squash-ids are for this host's administrator; a server has "
                "settings (registry_hosts, …)");
    else if (reference_parse(image, &reference, &err) == 0 &&
             credentials_find(values->config, reference.host, PATIENCE_MS, basic, &err) == 0) {
        len = base64_get(basic, strlen(basic), (uint8_t *) login);
        if (len > 0) {
            login[len] = '\0';
            colon = strchr(login, ':');
        }
        if (colon) {
            *colon = '\0';
            wish.username = login;
            wish.password = colon + 1;
        }
        code = image_by_server(&wish);
        explicit_bzero(basic, sizeof basic);
        explicit_bzero(login, sizeof login);
        return code;
    }
    return report_error(&err);
}

/* ---- mirrors and proxies ---- */

struct settings {
    char registry_mirrors[1024], registry_proxy[304];
};

static void take_setting(const char *line, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);

    if (strncmp(line, name, len) == 0 && strncmp(line + len, " = ", 3) == 0)
        (void) snprintf(out, size, "%s", line + len + 3);
}

/* Those of the server hold for root's own pulls, too. coved says what they are, of its file and of the environment. */
static int read_settings(struct settings *ret, struct err *err)
{
    char program[PATH_MAX], *save = NULL;
    const char *argv[] = { program, "--show-config", NULL };
    auto_free char *text = malloc(SETTINGS_MAX);
    const struct question question = {
        .argv = argv, .uid = geteuid(), .most_ms = SETTINGS_MS, .out = text, .size = SETTINGS_MAX
    };
    struct err none;
    int code;

    memset(ret, 0, sizeof *ret);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for settings");
    if (program_find("coved", program, sizeof program, &none) < 0)
        return 0;
    code = question_ask(&question, err);
    if (code != 0)
        return code < 0 ? -1
                        : err_set(err, ERR_INVALID,
                                  "the settings of the server are invalid ('coved "
                                  "--check-config')");
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        take_setting(line, "registry_mirrors", ret->registry_mirrors, sizeof ret->registry_mirrors);
        take_setting(line, "registry_proxy", ret->registry_proxy, sizeof ret->registry_proxy);
    }
    return 0;
}

/* "http://proxy.example.com:3128/" or "proxy.example.com:3128". One that was not named for this pull is not for this host. */
static int find_proxy(const char *given, const char *setting, struct registry *r, struct err *err)
{
    const char *proxy = given ? given : getenv("HTTPS_PROXY");

    proxy = proxy ? proxy : getenv("https_proxy");
    proxy = proxy && (given || proxy[0]) ? proxy : setting;
    r->proxy_far = !given;
    if (!proxy[0])
        return 0;
    if (strncmp(proxy, "http://", 7) == 0)
        proxy += 7;
    (void) snprintf(r->proxy, sizeof r->proxy, "%.*s", (int) strcspn(proxy, "/"), proxy);
    return strchr(proxy, '@') || !strchr(r->proxy, ':') || strstr(proxy, "://")
               ? err_set(err, ERR_INVALID, "the proxy '%.60s' is not HOST:PORT or http://HOST:PORT",
                         proxy)
               : 0;
}

static int find_mirror(const char *given, const char *setting, struct registry *r, struct err *err)
{
    struct registry_place at;
    struct err why;

    if (!given) {
        registry_mirror_find(setting, r->reference.host, r->mirror, sizeof r->mirror);
        return 0;
    }
    if (strlen(given) >= sizeof r->mirror || registry_place(given, &at, &why) < 0 ||
        strcmp(at.path, "/") != 0)
        return err_set(err, ERR_INVALID, "the mirror '%.60s' is not http[s]://HOST[:PORT]", given);
    (void) snprintf(r->mirror, sizeof r->mirror, "%s", given);
    return 0;
}

static int find_way(struct registry *r, const struct image_values *values, struct err *err)
{
    struct settings settings;

    return program_find("cove-dial", r->dialer, sizeof r->dialer, err) < 0 ||
                   read_settings(&settings, err) < 0 ||
                   find_proxy(values->proxy, settings.registry_proxy, r, err) < 0 ||
                   find_mirror(values->mirror, settings.registry_mirrors, r, err) < 0 ||
                   credentials_find(values->config, r->reference.host, r->timeout_ms, r->basic,
                                    err) < 0
               ? -1
               : 0;
}

/* ---- the pull ---- */

static int pull(struct pull *p, const struct image_values *values, bool as_json, struct err *err)
{
    const struct reference *reference = &p->registry.reference;
    auto_close int templates_fd = -1;
    char name[256], from[700];
    struct image_spec spec = { .archive_fd = -1,
                               .layout_fd = -1,
                               .manifest = p->image.digest,
                               .open_blob = open_blob,
                               .context = p,
                               .squash_ids = values->squash_ids,
                               .from = from };

    reference_template_name(reference, name, sizeof name);
    reference_text(reference, from, sizeof from);
    spec.name = values->name ? values->name : name;
    if (!name_ok(spec.name))
        return err_set(err, ERR_INVALID,
                       "'%.60s' cannot be a template's name: --name gives another", spec.name);
    if (find_way(&p->registry, values, err) < 0 ||
        template_store_open(report_state(), &templates_fd, err) < 0 ||
        image_store_blobs(templates_fd, &p->blobs_fd, err) < 0 ||
        registry_image_find(&p->registry, &p->image, err) < 0 ||
        registry_image_check(&p->image.manifest,
                             values->max_bytes ? values->max_bytes : REGISTRY_IMAGE_MAX, err) < 0)
        return err_wrap(err, "%.150s", from);
    return template_image_make(&spec, &p->maker, as_json, err);
}

int template_image_pull(const char *image, const struct image_values *values, bool as_json)
{
    auto_free struct pull *p = calloc(1, sizeof *p);
    struct err err = { 0 };
    int r = -1;

    if (template_image_is_servers(values))
        return pull_by_server(image, values, as_json);
    if (!p)
        err_set(&err, ERR_NO_MEMORY, "no memory");
    else if (reference_parse(image, &p->registry.reference, &err) == 0) {
        p->blobs_fd = -1;
        p->registry.plain_http = values->plain_http;
        p->registry.inner = values->inner;
        p->registry.timeout_ms = values->timeout_ms ? values->timeout_ms : PATIENCE_MS;
        p->registry.progress = show;
        p->registry.context = p;
        r = pull(p, values, as_json, &err);
        own_close(&p->blobs_fd);
        registry_image_done(&p->image);
        explicit_bzero(p->registry.basic, sizeof p->registry.basic);
        explicit_bzero(p->registry.bearer, sizeof p->registry.bearer);
    }
    return r < 0 ? report_error(&err) : report_end(0);
}
