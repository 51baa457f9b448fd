#include "cli/api/build.h"

#include "base/base64.h"
#include "base/image_name.h"
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/make.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_MAX  (512u * 1024)
#define REQUEST_MAX (4u << 20) /* what a server takes */

bool build_is_dockerfile(int count, char *const *words)
{
    for (int i = 0; i < count; i++) {
        const char *word = words[i];

        if (strncmp(word, "-f", 2) == 0 || strcmp(word, "--file") == 0 ||
            strncmp(word, "--file=", 7) == 0)
            return true;
        if (word[0] != '-' &&
            (strchr(word, '/') || strcmp(word, ".") == 0 || strcmp(word, "..") == 0))
            return true;
    }
    return false;
}

/* ---- files of this host ---- */

/* Whole, NUL-terminated; the caller's to free. */
static int read_whole(const char *path, size_t most, char **ret, size_t *ret_len, struct err *err)
{
    auto_close int fd =
        strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    auto_free char *text = malloc(most + 2);
    size_t len = 0;
    ssize_t n = 1;

    if (fd < 0)
        return err_sys(err, errno, "%s", path);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for %s", path);
    while (len <= most && (n = read(fd, text + len, most + 1 - len)) > 0)
        len += (size_t) n;
    if (n < 0)
        return err_sys(err, errno, "read %s", path);
    if (len > most)
        return err_set(err, ERR_TOO_BIG, "%s: more than %zu bytes", path, most);
    text[len] = '\0';
    *ret_len = len;
    *ret = take_ptr(&text);
    return 0;
}

/* id=ID,src=FILE, id=ID,env=NAME, or id=ID: the variable of that name */
static int read_secret(const char *text, json_t *secrets, struct err *err)
{
    auto_free char *copy = strdup(text), *data = NULL, *base64 = NULL;
    const char *id = NULL, *src = NULL, *env = NULL;
    char *save = NULL;
    size_t len = 0;

    for (char *part = copy ? strtok_r(copy, ",", &save) : NULL; part;
         part = strtok_r(NULL, ",", &save)) {
        if (strncmp(part, "id=", 3) == 0)
            id = part + 3;
        else if (strncmp(part, "src=", 4) == 0)
            src = part + 4;
        else if (strncmp(part, "source=", 7) == 0)
            src = part + 7;
        else if (strncmp(part, "env=", 4) == 0)
            env = part + 4;
        else if (strcmp(part, "type=file") != 0 && strcmp(part, "type=env") != 0)
            return err_set(err, ERR_USAGE, "--secret: unknown part '%.40s'", part);
    }
    if (!id || !id[0] || (src && env))
        return err_set(err, ERR_USAGE, "--secret: id=ID,src=FILE or id=ID,env=NAME is needed");
    if (src ? read_whole(src, SECRET_MAX, &data, &len, err) < 0 : false)
        return err_wrap(err, "--secret %.60s", id);
    if (!src) {
        const char *value = getenv(env ? env : id);

        if (!value)
            return err_set(err, ERR_USAGE, "--secret %.60s: the variable %.60s is not set", id,
                           env ? env : id);
        data = strdup(value);
        len = strlen(value);
    }
    base64 = malloc(BASE64_SIZE(len));
    if (!data || !base64)
        return err_set(err, ERR_NO_MEMORY, "no memory for a secret");
    base64_put(base64, (const uint8_t *) data, len);
    (void) json_object_set_new(secrets, id, json_string(base64));
    return 0;
}

/* ---- what FROM names ---- */

struct bases {
    json_t *known;                     /* from: facts */
    const struct build_images *images; /* NULL: none can be pulled */
};

/* Variables that are of a login, not of the image. */
static bool is_of_login(const char *name)
{
    static const char *const names[] = { "HOME",   "USER",  "LOGNAME", "SHELL", "PWD",
                                         "OLDPWD", "SHLVL", "_",       "TERM",  "HOSTNAME" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return strncmp(name, "COVE_", 5) == 0;
}

/* user, directory, home, then the environment, each with a \1 behind it. */
static const char probe[] =
    "printf '%s\\1%s\\1%s\\1' \"$(id -un)\" \"$(pwd)\" \"$HOME\"; env -0 | tr '\\000' '\\001'";

static json_t *read_facts(char *text)
{
    const char *user = strsep(&text, "\1"), *dir = strsep(&text, "\1"), *home = strsep(&text, "\1");
    json_t *env = json_object();
    char *pair;

    if (!user || !dir || !home || !text) {
        json_decref(env);
        return NULL;
    }
    while ((pair = strsep(&text, "\1"))) {
        char *equals = strchr(pair, '=');

        if (!equals)
            continue;
        *equals = '\0';
        if (!is_of_login(pair))
            (void) json_object_set_new(env, pair, json_string(equals + 1));
    }
    /* A template has a user and a directory of its own where an image says none. */
    return json_pack("{s:o, s:s, s:s}", "env", env, "user",
                     strcmp(user, "user") == 0 ? "root" : user, "workdir",
                     strcmp(dir, home) == 0 || dir[0] != '/' ? "/" : dir);
}

/* What a command of the template writes. *ret NULL: it is not the facts. */
static int try_facts(const char *template, json_t *take_args, json_t **ret, struct err *err)
{
    json_t *answer = NULL;
    auto_free char *text = NULL;

    *ret = NULL;
    if (server_ask("POST", json_pack("{s:s, s:o}", "template", template, "args", take_args),
                   &answer, err, "/v1/run") < 0)
        return err->kind == ERR_NO_PATH ? 0 : -1;
    text = strdup(show_text(answer, "stdout"));
    json_decref(answer);
    *ret = text ? read_facts(text) : NULL;
    return 0;
}

/* By its shell, or by the program of cove that every template has. */
static int ask_facts(const char *template, json_t **ret, struct err *err)
{
    if (try_facts(template, json_pack("[s, s, s]", "/bin/sh", "-c", probe), ret, err) < 0 ||
        (!*ret &&
         try_facts(template, json_pack("[s, s]", "/opt/cove/bin/entrypoint", "--environment"), ret,
                   err) < 0))
        return -1;
    return *ret
               ? 0
               : err_set(err, ERR_UNSUPPORTED,
                         "the template '%.60s' has no shell, and an older version of cove made the "
                         "template: import the image again",
                         template);
}

/* A template by that name, else the one that the image is installed as. */
static int find_facts(const char *from, const char *installed, json_t **ret, struct err *err)
{
    if (!strpbrk(from, "/@")) {
        if (ask_facts(from, ret, err) == 0)
            return 0;
        if ((err->kind != ERR_NO_TEMPLATE && err->kind != ERR_INVALID) ||
            strcmp(from, installed) == 0)
            return -1;
    }
    return name_ok(installed) ? ask_facts(installed, ret, err)
                              : err_set(err, ERR_NO_TEMPLATE, "'%.60s' is no image's name", from);
}

/* Whether FROM names a digest that the template is not of; then the image is pulled. Elsewhere the server looks. */
static bool is_other(const struct bases *bases, const char *from, const char *installed)
{
    const char *digest = strchr(from, '@');

    return digest && bases->images && name_ok(installed) && bases->images->has &&
           !bases->images->has(installed, digest + 1);
}

static int base_facts(void *arg, const char *from, json_t **ret, struct err *err)
{
    struct bases *bases = arg;
    char installed[256];
    int r;

    *ret = strcmp(from, "scratch") == 0 ? json_pack("{s:{}}", "env")
                                        : json_incref(json_object_get(bases->known, from));
    if (*ret)
        return 0;
    image_template_name(from, installed, sizeof installed);
    r = is_other(bases, from, installed) ? err_set(err, ERR_NO_TEMPLATE, "another image")
                                         : find_facts(from, installed, ret, err);
    if (r < 0 && err->kind == ERR_NO_TEMPLATE && bases->images) {
        auto_free char *safe = report_safe(from);

        (void) fprintf(stderr, "pulling %s …\n", safe ? safe : "an image");
        if (bases->images->pull(from) != 0)
            return err_set(err, ERR_NO_TEMPLATE, "the image '%.80s' could not be pulled", from);
        r = ask_facts(installed, ret, err);
    }
    if (r < 0 && err->kind == ERR_NO_TEMPLATE)
        return err_set(err, ERR_NO_TEMPLATE,
                       "there is no template '%.60s': an administrator of the server installs "
                       "images with 'cove template pull'",
                       from);
    if (r == 0)
        (void) json_object_set(bases->known, from, *ret);
    return r;
}

/* ---- the request ---- */

/* NAME[:TAG], of the first --tag or of the directory; tags of the others. */
static int put_name(const struct build_values *values, const char *dir, json_t *body,
                    struct err *err)
{
    json_t *tags = json_array();
    char path[PATH_MAX], *base;

    for (size_t i = 0; i < values->tags.count; i++) {
        const char *first = values->tags.items[0], *one = values->tags.items[i];
        size_t len = strcspn(first, ":");

        if (strcspn(one, ":") != len || strncmp(one, first, len) != 0) {
            json_decref(tags);
            return err_set(err, ERR_USAGE, "--tag: '%.60s' and '%.60s' are two names", first, one);
        }
        if (i > 0)
            (void) json_array_append_new(tags, json_string(one[len] ? one + len + 1 : "default"));
    }
    (void) json_object_set_new(body, "tags", tags);
    if (values->tags.count > 0) {
        (void) json_object_set_new(body, "name", json_string(values->tags.items[0]));
        return 0;
    }
    if (!realpath(dir, path))
        return err_sys(err, errno, "%s", dir);
    base = strrchr(path, '/') + 1;
    for (char *c = base; *c; c++)
        *c = (char) tolower((unsigned char) *c);
    if (!name_ok(base))
        return err_set(err, ERR_USAGE,
                       "the name of the directory is no name for a template: give "
                       "one with --tag");
    (void) json_object_set_new(body, "name", json_string(base));
    return 0;
}

static int count_bytes(const char *text, size_t len, void *arg)
{
    size_t *left = arg;

    (void) text;
    if (len > *left)
        return -1;
    *left -= len;
    return 0;
}

/* Every RUN has the values of all ARG: a short Dockerfile can mean a long request. */
static int check_size(const json_t *body, struct err *err)
{
    size_t left = REQUEST_MAX;

    return json_dump_callback(body, count_bytes, &left, JSON_COMPACT) == 0
               ? 0
               : err_set(err, ERR_TOO_BIG,
                         "the steps and secrets of the build are longer than %u MiB",
                         REQUEST_MAX >> 20);
}

/* What a server says of steps[N], with the line of that step. */
static void name_line(const json_t *lines, const char *file, struct err *err)
{
    unsigned step;
    int at = 0;

    if (sscanf(err->msg, "steps[%3u]%n", &step, &at) != 1 || at == 0 ||
        step >= json_array_size(lines))
        return;
    at += (int) strspn(err->msg + at, ":. "); /* ": why", or ".field: why" */
    (void) memmove(err->msg, err->msg + at, strlen(err->msg + at) + 1);
    (void) err_wrap(err, "%.80s: line %lld", file,
                    (long long) json_integer_value(json_array_get(lines, step)));
}

static int send_request(const struct build_values *values, const char *dir, const char *file,
                        bool fresh, struct plan *plan, json_t *secrets, char build[64],
                        struct err *err)
{
    json_t *answer = NULL;

    if (put_name(values, dir, plan->body, err) < 0)
        return -1;
    (void) json_object_set_new(plan->body, "force", json_boolean(fresh));
    if (json_object_size(secrets) > 0)
        (void) json_object_set(plan->body, "secrets", secrets);
    if (values->start)
        (void) json_object_set_new(plan->body, "start", json_string(values->start));
    if (values->ready)
        (void) json_object_set_new(plan->body, "ready", json_string(values->ready));
    if (values->network)
        (void) json_object_set_new(plan->body, "network",
                                   json_pack("{s:s}", "mode", values->network));
    if (check_size(plan->body, err) < 0)
        return -1;
    if (server_ask("POST", json_incref(plan->body), &answer, err, "/v1/builds") < 0) {
        name_line(plan->lines, file, err);
        return -1;
    }
    (void) snprintf(build, 64, "%s", show_text(answer, "id"));
    json_decref(answer);
    return build[0] ? 0 : err_set(err, ERR_PROTOCOL, "the server answered without a build");
}

/* Whatever the Dockerfile says, as a request; the files are uploaded. */
static int prepare(const struct build_values *values, const char *dir, const char *file,
                   json_t *args, json_t *secrets, struct bases *bases, struct plan *ret,
                   struct err *err)
{
    struct plan_wish wish = {
        .target = values->target, .args = args, .secrets = secrets, .base = base_facts, .arg = bases
    };
    struct dockerfile dockerfile;
    auto_free char *text = NULL;
    const struct remote *remote;
    struct context context;
    size_t len;
    int r;

    if (read_whole(file, DOCKERFILE_MAX, &text, &len, err) < 0 || server_find(&remote, err) < 0)
        return -1;
    if (dockerfile_parse(text, len, &dockerfile, err) < 0)
        return err_wrap(err, "%s", file);
    r = plan_make(&dockerfile, &wish, ret, err);
    dockerfile_done(&dockerfile);
    if (r < 0)
        return strncmp(err->msg, "line ", 5) == 0 ? err_wrap(err, "%s", file) : -1;
    r = context_open(dir, file, remote, &context, err);
    for (size_t i = 0; r == 0 && i < ret->copy_count; i++)
        if (context_fill(&context, &ret->copies[i], err) < 0)
            r = err_wrap(err, "%s", file);
    context_close(&context);
    if (r < 0)
        plan_done(ret);
    return r;
}

static int report_end_of(const struct plan *plan, const char *file, const char *build,
                         const struct watch_end *end, uint64_t begun_ms, bool as_json)
{
    const char *name = show_text(plan->body, "name");
    uint64_t step = 0;
    struct err err;
    char span[32];

    if (as_json)
        show_json(
            json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:I, s:I, s:I}", "name", name, "build", build,
                      "state", end->state, "reason", end->reason[0] ? end->reason : NULL, "step",
                      end->step[0] ? end->step : NULL, "steps", (json_int_t) end->steps, "cached",
                      (json_int_t) end->cached, "wall_ms", (json_int_t) (io_now_ms() - begun_ms)));
    if (strcmp(end->state, "ready") == 0) {
        if (!as_json)
            (void) printf("%s is ready: %zu steps, %zu of them cached, in %s\n", name, end->steps,
                          end->cached, report_span(span, sizeof span, io_now_ms() - begun_ms));
        return report_end(0);
    }
    if (end->interrupted)
        return 128 + 2;
    if (parse_u64(end->step, &step, &err) == 0 && step > 0)
        err_set(&err, ERR_STATE, "%.80s: line %lld: %s", file,
                (long long) json_integer_value(json_array_get(plan->lines, (size_t) step - 1)),
                end->reason);
    else
        err_set(&err, ERR_STATE, "%s", end->reason[0] ? end->reason : end->state);
    (void) report_error(&err);
    return 1;
}

static int build(const struct build_values *values, const char *dir, const char *file, bool fresh,
                 bool as_json, json_t *args, json_t *secrets, struct bases *bases, struct err *err)
{
    uint64_t begun_ms = io_now_ms();
    const struct remote *remote;
    struct watch_end end;
    struct plan plan;
    char id[64];
    int code = -1;

    if (prepare(values, dir, file, args, secrets, bases, &plan, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(plan.unused); i++)
        report_note("--build-arg %s: no ARG declares it",
                    json_string_value(json_array_get(plan.unused, i)));
    if (server_find(&remote, err) == 0 &&
        send_request(values, dir, file, fresh, &plan, secrets, id, err) == 0 &&
        watch_build(remote, id, plan.lines, &end, err) == 0)
        code = report_end_of(&plan, file, id, &end, begun_ms, as_json);
    plan_done(&plan);
    return code;
}

int build_dockerfile(const struct build_values *values, const char *dir, bool fresh, bool as_json,
                     const struct build_images *images)
{
    struct bases bases = { .known = json_object(), .images = images };
    json_t *args = json_object(), *secrets = json_object();
    auto_free char *own = NULL;
    struct err err = { .kind = ERR_NONE };
    int r = 0, code = -1;

    if (values->tenant)
        r = server_act_for(values->tenant, &err);
    if (r == 0)
        r = make_assignments("build-arg", &values->args, true, args, &err);
    for (size_t i = 0; r == 0 && i < values->secrets.count; i++)
        r = read_secret(values->secrets.items[i], secrets, &err);
    if (r == 0 && !values->file && asprintf(&own, "%s/Dockerfile", dir) < 0)
        r = err_set(&err, ERR_NO_MEMORY, "no memory for a name");
    if (r == 0)
        code = build(values, dir, values->file ? values->file : own, fresh, as_json, args, secrets,
                     &bases, &err);
    json_decref(bases.known);
    json_decref(args);
    json_decref(secrets);
    return code < 0 ? report_error(&err) : code;
}
