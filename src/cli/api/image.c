#include "cli/api/image.h"

#include "base/image_name.h"
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/build.h"
#include "cli/api/build_archive.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void image_name_of_file(const char *path, char *out, size_t size)
{
    static const char *const ends[] = { ".tar", ".oci", ".docker" };
    char whole[PATH_MAX];
    const char *slash;
    size_t len;

    if (!realpath(path, whole))
        (void) snprintf(whole, sizeof whole, "%s", path);
    slash = strrchr(whole, '/');
    (void) snprintf(out, size, "%s", slash ? slash + 1 : whole);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        len = strlen(out);
        if (len > strlen(ends[i]) && strcmp(out + len - strlen(ends[i]), ends[i]) == 0)
            out[len - strlen(ends[i])] = '\0';
    }
    for (char *c = out; *c; c++)
        *c = (char) tolower((unsigned char) *c);
}

static int put_name(const struct image_wish *wish, json_t *body, struct err *err)
{
    char name[NAME_MAX + 1];

    if (wish->image)
        image_template_name(wish->image, name, sizeof name);
    else
        image_name_of_file(wish->file, name, sizeof name);
    if (!wish->name && !name_ok(name))
        return err_set(err, ERR_INVALID,
                       "'%.60s' cannot be a template's name: --name gives another", name);
    (void) json_object_set_new(body, "name", json_string(wish->name ? wish->name : name));
    return 0;
}

/* Sent unless the server has it: its name is its hash. */
static int put_file(const struct image_wish *wish, const struct remote *remote, json_t *body,
                    struct err *err)
{
    struct context context = { .dir = ".", .remote = remote };
    const struct archive list = { .context = &context };
    auto_close int dir = -1;
    char hash[SHA256_HEX], whole[PATH_MAX], *slash;
    struct stat st;

    if (!realpath(wish->file, whole) || stat(whole, &st) < 0)
        return err_sys(err, errno, "%s", wish->file);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_UNSUPPORTED,
                       "%.100s is a directory: a server takes archives ('skopeo copy oci:DIR "
                       "oci-archive:FILE')",
                       wish->file);
    slash = strrchr(whole, '/');
    *slash = '\0';
    dir = open(whole[0] ? whole : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(err, errno, "%s", wish->file);
    context.fd = dir;
    if (archive_send(&list, slash + 1, hash, err) < 0)
        return -1;
    (void) json_object_set_new(body, "archive", json_string(hash));
    if (wish->tag)
        (void) json_object_set_new(body, "archive_tag", json_string(wish->tag));
    return 0;
}

static int put_image(const struct image_wish *wish, json_t *body)
{
    (void) json_object_set_new(body, "image", json_string(wish->image));
    if (wish->username)
        (void) json_object_set_new(
            body, "registry",
            json_pack("{s:s, s:s}", "username", wish->username, "password", wish->password));
    return 0;
}

static int submit(const struct image_wish *wish, const struct remote *remote, json_t *body,
                  char build[64], struct err *err)
{
    json_t *answer = NULL;

    if (put_name(wish, body, err) < 0 ||
        (wish->image ? put_image(wish, body) : put_file(wish, remote, body, err)) < 0 ||
        server_ask("POST", json_incref(body), &answer, err, "/v1/builds") < 0)
        return -1;
    (void) snprintf(build, 64, "%s", show_text(answer, "id"));
    json_decref(answer);
    return build[0] ? 0 : err_set(err, ERR_PROTOCOL, "the server answered without a build");
}

static int report_end_of(const char *name, const char *build, const struct watch_end *end,
                         uint64_t begun_ms, bool as_json)
{
    struct err err;
    char span[32];

    if (as_json)
        show_json(json_pack("{s:s, s:s, s:s, s:s*, s:I}", "name", name, "build", build, "state",
                            end->state, "reason", end->reason[0] ? end->reason : NULL, "wall_ms",
                            (json_int_t) (io_now_ms() - begun_ms)));
    if (strcmp(end->state, "ready") == 0) {
        if (!as_json)
            (void) printf("%s is ready, in %s\n", name,
                          report_span(span, sizeof span, io_now_ms() - begun_ms));
        return report_end(0);
    }
    if (end->interrupted)
        return 128 + 2;
    err_set(&err, ERR_STATE, "%s", end->reason[0] ? end->reason : end->state);
    (void) report_error(&err);
    return 1;
}

int image_by_server(const struct image_wish *wish)
{
    uint64_t begun_ms = io_now_ms();
    json_t *body = json_object();
    const struct remote *remote;
    struct watch_end end;
    char build[64];
    struct err err;
    int code = -1;

    if (server_act_for(wish->tenant, &err) == 0 && server_find(&remote, &err) == 0 &&
        submit(wish, remote, body, build, &err) == 0 &&
        watch_build(remote, build, NULL, &end, &err) == 0)
        code = report_end_of(show_text(body, "name"), build, &end, begun_ms, wish->as_json);
    json_decref(body);
    return code < 0 ? report_error(&err) : code;
}
