#include "cli/template_image.h"

#include "base/base64.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/image.h"
#include "cli/api/server.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/template_maker.h"
#include "cli/users.h"
#include "registry/image.h"
#include "template/image_import.h"
#include "template/image_store.h"
#include "template/template_store.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define IMPORT_USER "cove-import"
#define PATIENCE_MS 30000

static void json_imported(const char *name, const struct image_result *result)
{
    struct json_out json;

    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "name", name);
    json_out_bool(&json, "was_there", result->was_there);
    json_out_number(&json, "bytes", result->bytes);
    json_out_number(&json, "files", result->files);
    json_out_number(&json, "wall_ms", result->wall_ms);
    json_out_end(&json);
    (void) json_out_finish(&json);
}

static void say_imported(const char *name, const struct image_result *result)
{
    char size[32], span[32];

    (void) printf("%s is ready: %s in %llu files, %s in %s\n", name,
                  report_size(size, sizeof size, result->bytes), (unsigned long long) result->files,
                  result->was_there ? "which were here already," : "imported",
                  report_span(span, sizeof span, result->wall_ms));
}

/* Common to both verbs: with spec->name, spec->from and the source set. `maker` is the caller's to fill in for. */
static int import(struct image_spec *spec, struct maker *maker, bool as_json, struct err *err)
{
    struct image_result result = { 0 };
    char program[PATH_MAX];
    int r;

    if (program_find("cove-import", program, sizeof program, err) < 0 ||
        user_ensure(IMPORT_USER, &spec->uid, &spec->gid, err) < 0)
        return -1;
    spec->program = program;
    maker_init(maker, spec->name);
    maker->how = spec->open_blob ? "pull" : "import";
    maker->from = spec->from;
    r = template_import(&maker->way, report_state(), spec, &result, err);
    maker_done(maker);
    if (r < 0)
        return -1;
    (as_json ? json_imported : say_imported)(spec->name, &result);
    return maker_recorded(maker, err);
}

/* Root on this host makes templates for all tenants; everybody else, and for a tenant, a server does. */
static bool image_is_servers(const struct image_values *values)
{
    return values->tenant || server_is_elsewhere() || geteuid() != 0;
}

int template_image_import(const char *path, const struct image_values *values, bool as_json)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct image_spec spec = {
        .archive_fd = -1, .layout_fd = -1, .tag = values->tag, .squash_ids = values->squash_ids
    };
    const char *slash = strrchr(path, '/');
    char name[NAME_MAX + 1];
    struct maker maker;
    struct stat st;
    struct err err = { 0 };

    if (image_is_servers(values)) {
        const struct image_wish wish = { .name = values->name,
                                         .tenant = values->tenant,
                                         .file = path,
                                         .tag = values->tag,
                                         .as_json = as_json };

        return image_by_server(&wish);
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        err_sys(&err, errno, "%s", path);
    else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        err_set(&err, ERR_INVALID, "%s is neither a file nor a directory", path);
    if (err.kind != ERR_NONE)
        return report_error(&err);
    image_name_of_file(path, name, sizeof name);
    spec.name = values->name ? values->name : name;
    spec.from = slash && slash[1] ? slash + 1 : path;
    *(S_ISDIR(st.st_mode) ? &spec.layout_fd : &spec.archive_fd) = fd;
    if (!name_ok(spec.name))
        err_set(&err, ERR_INVALID, "'%.60s' cannot be a template's name: --name gives another",
                spec.name);
    else if (import(&spec, &maker, as_json, &err) == 0)
        return report_end(0);
    return report_error(&err);
}

/* ---- pull ---- */

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

static int read_credentials(const char *given, const char *host, char ret[AUTH_MAX],
                            struct err *err)
{
    const char *dir = getenv("DOCKER_CONFIG"), *home = getenv("HOME");
    char path[PATH_MAX];
    auto_free char *text = malloc(1 << 20);
    ssize_t len;

    ret[0] = '\0';
    (void) snprintf(path, sizeof path, "%s%s",
                    given  ? given
                    : dir  ? dir
                    : home ? home
                           : "",
                    given ? ""
                    : dir ? "/config.json"
                          : "/.docker/config.json");
    len = text ? io_read_text(AT_FDCWD, path, text, 1 << 20) : -1;
    if (len < 0)
        return given || errno != ENOENT ? err_sys(err, errno, "read %s", path) : 0;
    return auth_find(text, (size_t) len, host, ret, err);
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

    if (values->plain_http || values->inner || values->proxy || values->timeout_ms ||
        values->squash_ids)
        err_set(
            &err, ERR_USAGE,
            "template pull: --plain-http, --allow-inner, --proxy, --timeout and --squash-ids are "
            "for this host's administrator; a server has settings (registry_hosts, …)");
    else if (reference_parse(image, &reference, &err) == 0 &&
             read_credentials(values->config, reference.host, basic, &err) == 0) {
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

/* "http://proxy.example.com:3128/" or "proxy.example.com:3128". */
static int find_proxy(const char *given, bool local, char *out, size_t size, struct err *err)
{
    const char *proxy = given ? given : getenv("HTTPS_PROXY");

    proxy = proxy ? proxy : getenv("https_proxy");
    out[0] = '\0';
    if (!proxy || !proxy[0] || (!given && local))
        return 0;
    if (strncmp(proxy, "http://", 7) == 0)
        proxy += 7;
    (void) snprintf(out, size, "%.*s", (int) strcspn(proxy, "/"), proxy);
    return strchr(proxy, '@') || !strchr(out, ':') || strstr(proxy, "://")
               ? err_set(err, ERR_INVALID, "the proxy '%.60s' is not HOST:PORT or http://HOST:PORT",
                         proxy)
               : 0;
}

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
    if (program_find("cove-dial", p->registry.dialer, sizeof p->registry.dialer, err) < 0 ||
        find_proxy(values->proxy, registry_is_here(&p->registry), p->registry.proxy,
                   sizeof p->registry.proxy, err) < 0 ||
        read_credentials(values->config, reference->host, p->registry.basic, err) < 0 ||
        template_store_open(report_state(), &templates_fd, err) < 0 ||
        image_store_blobs(templates_fd, &p->blobs_fd, err) < 0 ||
        registry_image_find(&p->registry, &p->image, err) < 0)
        return err_wrap(err, "%.150s", from);
    return import(&spec, &p->maker, as_json, err);
}

int template_image_pull(const char *image, const struct image_values *values, bool as_json)
{
    auto_free struct pull *p = calloc(1, sizeof *p);
    struct err err = { 0 };
    int r = -1;

    if (image_is_servers(values))
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
