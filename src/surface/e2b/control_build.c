/* Template.build: a template gets a build, its files, then its steps; then the SDK asks for the status until the end. The words of a
 * failure and its step go back to the line of the user's program that made the step. */
#include "surface/e2b/control.h"

#include "base/io.h"
#include "base/own.h"
#include "server/build/build.h"
#include "server/serve/sign.h"

#include <string.h>

#define PAGE     100
#define UPLOAD_S 3600
#define MIB      (1024ull * 1024)

/* ---- templates ---- */

static json_t *names_json(const char *name)
{
    return json_pack("[s]", name);
}

static json_t *template_json(const struct ops_template *t)
{
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:s}", "templateID", t->id,
                     "public", t->is_public, "aliases", names_json(t->name), "names",
                     names_json(t->name), "createdAt", form_time(t->created_ms), "updatedAt",
                     form_time(t->updated_ms), "buildCount", 0, "cpuCount", 2, "memoryMB", 512,
                     "buildStatus", "ready");
}

static int add_template(void *arg, const struct ops_template *template, struct err *err)
{
    (void) err;
    return template->own ? json_array_append_new(arg, template_json(template)) : 0;
}

int control_template_list(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *array = json_array();

    if (ops_template_list(&ops, add_template, array, err) < 0) {
        json_decref(array);
        return -1;
    }
    return exchange_reply_json(x, 200, array, err);
}

/* The template of the route, the caller's own. */
static int own_template(struct exchange *x, const char *text, struct ops_template *ret,
                        struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_template_ref ref;

    if (control_template_ref(text, &ref, err) < 0)
        return -1;
    if (ops_template_get(&ops, ref.name, ret, err) == 0 && ret->own)
        return 0;
    return err_set(err, ERR_NO_TEMPLATE, "template '%.60s' not found", ref.name);
}

int control_template_get(struct exchange *x, struct err *err)
{
    struct ops_template template;

    if (own_template(x, exchange_param(x, "template"), &template, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, template_json(&template), err);
}

int control_template_patch(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_template template;
    json_t *json, *wish;
    int r = 0;

    if (own_template(x, exchange_param(x, "template"), &template, err) < 0 ||
        exchange_json(x, &json, err) < 0)
        return -1;
    wish = json_object_get(json, "public");
    if (json_is_boolean(wish) && json_is_true(wish) != template.is_public)
        r = ops_template_publish(&ops, template.name, json_is_true(wish), err);
    json_decref(json);
    return r < 0 ? -1
                 : exchange_reply_json(x, 200, json_pack("{s:[s]}", "names", template.name), err);
}

/* ---- tags ---- */

static int add_tag(void *arg, const struct ops_tag *tag, struct err *err)
{
    (void) err;
    return json_array_append_new(arg,
                                 json_pack("{s:s, s:s, s:o}", "tag", tag->tag, "buildID",
                                           tag->build, "createdAt", form_time(tag->created_ms)));
}

int control_template_tags(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_template template;
    json_t *array;

    if (own_template(x, exchange_param(x, "template"), &template, err) < 0)
        return -1;
    array = json_array();
    if (ops_template_tags(&ops, template.name, add_tag, array, err) < 0) {
        json_decref(array);
        return -1;
    }
    return exchange_reply_json(x, 200, array, err);
}

struct tags_body {
    const char *target, *name;
    json_t *tags;
};

static const struct form_field tags_fields[] = {
    { "target", FORM_TEXT, offsetof(struct tags_body, target) },
    { "name", FORM_TEXT, offsetof(struct tags_body, name) },
    { "tags", FORM_ARRAY, offsetof(struct tags_body, tags) },
};
static const struct form tags_form = FORM_OF(tags_fields, .open = true);

/* *ret_json keeps the texts: the caller's to json_decref. */
static int read_tags(struct exchange *x, json_t **ret_json, struct tags_body *body,
                     const char ***ret, size_t *ret_count, struct err *err)
{
    *body = (struct tags_body){ .tags = NULL };
    if (exchange_json(x, ret_json, err) < 0)
        return -1;
    if (form_read(exchange_caller(x), *ret_json, &tags_form, body, err) == 0 &&
        (json_array_size(body->tags) > 0 ||
         form_bad(exchange_caller(x), err, "tags", "at least one is needed") == 0) &&
        form_texts(exchange_caller(x), "tags", body->tags, ret, ret_count, err) == 0)
        return 0;
    json_decref(*ret_json);
    return -1;
}

int control_template_tag(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    auto_free const char **tags = NULL;
    char build[OPS_BUILD_ID_MAX];
    struct ops_template_ref ref;
    struct tags_body body;
    size_t count = 0;
    json_t *json, *answer = NULL;

    if (read_tags(x, &json, &body, &tags, &count, err) < 0)
        return -1;
    if (control_template_ref(body.target ? body.target : "", &ref, err) == 0 &&
        ops_template_tag(&ops, &ref, tags, count, build, err) == 0)
        answer = json_pack("{s:s, s:O}", "buildID", build, "tags", body.tags);
    json_decref(json);
    return answer ? exchange_reply_json(x, 201, answer, err) : -1;
}

int control_template_untag(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    auto_free const char **tags = NULL;
    struct ops_template_ref ref;
    struct tags_body body;
    size_t count = 0;
    json_t *json;
    int r;

    if (read_tags(x, &json, &body, &tags, &count, err) < 0)
        return -1;
    r = control_template_ref(body.name ? body.name : "", &ref, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = ops_template_untag(&ops, ref.name, tags[i], err);
    json_decref(json);
    return r < 0 ? -1 : exchange_reply_json(x, 204, NULL, err);
}

/* ---- builds ---- */

struct make_body {
    const char *name, *alias;
    json_t *tags;
    uint64_t cpus, memory, disk;
};

static int make(struct exchange *x, json_t *json, struct build_view *ret, struct err *err)
{
    static const struct form_field rows[] = {
        { "name", FORM_TEXT, offsetof(struct make_body, name) },
        { "alias", FORM_TEXT, offsetof(struct make_body, alias) },
        { "tags", FORM_ARRAY, offsetof(struct make_body, tags) },
        { "cpuCount", FORM_COUNT, offsetof(struct make_body, cpus), 1, 1024 },
        { "memoryMB", FORM_COUNT, offsetof(struct make_body, memory), 128, 1048576 },
        { "minFreeDiskMb", FORM_COUNT, offsetof(struct make_body, disk), 0, 1048576 },
    };
    static const struct form form = FORM_OF(rows, .open = true);
    struct make_body body = { .name = NULL };
    struct ops ops = ops_of(exchange_caller(x));
    auto_free const char **tags = NULL;
    struct build_want want = { .tags = NULL };

    if (form_read(exchange_caller(x), json, &form, &body, err) < 0)
        return -1;
    if (!body.name && !body.alias)
        return form_bad(exchange_caller(x), err, "name", "a template's name is needed");
    if (control_template_ref(body.name ? body.name : body.alias, &want.ref, err) < 0 ||
        (body.tags &&
         form_texts(exchange_caller(x), "tags", body.tags, &tags, &want.tag_count, err) < 0))
        return -1;
    want.tags = tags;
    want.cpu_milli = body.cpus * 1000;
    want.memory_bytes = body.memory * MIB;
    want.disk_bytes = body.disk * MIB;
    return build_prepare(&ops, &want, ret, err);
}

int control_template_make(struct exchange *x, struct err *err)
{
    struct build_view view;
    json_t *json, *tags;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = make(x, json, &view, err);
    json_decref(json);
    if (r < 0)
        return -1;
    tags = json_loads(view.tags, 0, NULL);
    return exchange_reply_json(x, 202,
                               json_pack("{s:s, s:s, s:b, s:[s], s:o, s:[s]}", "templateID",
                                         view.template, "buildID", view.id, "public", false,
                                         "names", view.name, "tags", tags ? tags : json_array(),
                                         "aliases", view.name),
                               err);
}

int control_build_files(struct exchange *x, struct err *err)
{
    const char *hash = exchange_param(x, "hash");
    struct sign sign = { .sandbox = "",
                         .path = hash,
                         .user = "",
                         .write = true,
                         .expires = io_real_ms() / 1000 + UPLOAD_S };
    struct ops_template template;
    auto_free char *url = NULL;

    if (own_template(x, exchange_param(x, "template"), &template, err) < 0)
        return -1;
    if (!build_hash_ok(hash))
        return form_bad(exchange_caller(x), err, "hash", "64 hex digits are needed");
    if (sign_url(x, &sign, &url, err) < 0)
        return -1;
    return exchange_reply_json(
        x, 201,
        json_pack("{s:b, s:s}", "present",
                  build_files_have(exchange_app(x), exchange_caller(x)->tenant, hash), "url", url),
        err);
}

/* {"type": "registry", "username", "password"}. Clouds' own kinds need a signature of that cloud. */
static int read_registry(struct exchange *x, json_t *said, json_t **ret, struct err *err)
{
    const char *type = json_string_value(json_object_get(said, "type"));

    *ret = NULL;
    if (!control_says(said))
        return 0;
    if (type && (strcmp(type, "aws") == 0 || strcmp(type, "gcp") == 0)) {
        err_set(err, ERR_UNSUPPORTED,
                "fromImageRegistry: the type '%s' is not supported; use 'registry' with a username "
                "and a password or token",
                type);
        return exchange_blame(x, "fromImageRegistry", NULL, NULL);
    }
    if (!type || strcmp(type, "registry") != 0 ||
        !json_is_string(json_object_get(said, "username")) ||
        !json_is_string(json_object_get(said, "password")))
        return form_bad(exchange_caller(x), err, "fromImageRegistry",
                        "type 'registry', username and password are needed");
    *ret = json_pack("{s:O, s:O}", "username", json_object_get(said, "username"), "password",
                     json_object_get(said, "password"));
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a build");
}

/* Into the words of server/build. */
static int steps_of(struct exchange *x, json_t *body, json_t **ret, struct err *err)
{
    json_t *image = json_object_get(body, "fromImage"),
           *template = json_object_get(body, "fromTemplate"),
           *from = json_is_string(template) ? template : image, *login = NULL;
    const char *text = json_string_value(from);

    if (read_registry(x, json_object_get(body, "fromImageRegistry"), &login, err) < 0)
        return -1;
    if (!text ||
        (!login && (strcmp(text, "e2bdev/base") == 0 || strncmp(text, "e2bdev/base:", 12) == 0)))
        text = "base";
    /* With credentials it is an image, whatever is installed. */
    *ret =
        json_pack("{s:s, s:o*, s:O*, s:O*, s:O*, s:b}", login && image == from ? "image" : "from",
                  text, "registry", login, "steps", json_object_get(body, "steps"), "start",
                  json_object_get(body, "startCmd"), "ready", json_object_get(body, "readyCmd"),
                  "force", json_is_true(json_object_get(body, "force")));
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a build");
}

static int of_route(struct exchange *x, struct build_view *ret, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_template template;

    if (own_template(x, exchange_param(x, "template"), &template, err) < 0)
        return -1;
    if (build_get(&ops, exchange_param(x, "build"), ret, err) < 0 ||
        strcmp(ret->template, template.id) != 0)
        return err_set(err, ERR_NO_TEMPLATE, "build not found");
    return 0;
}

int control_build_submit(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *body, *steps = NULL;
    struct build_view view;
    int r;

    if (of_route(x, &view, err) < 0 || exchange_json(x, &body, err) < 0)
        return -1;
    r = steps_of(x, body, &steps, err);
    if (r == 0)
        r = build_submit(&ops, view.id, steps, true, err);
    json_decref(steps);
    json_decref(body);
    if (r < 0)
        return err->kind == ERR_STATE ? exchange_blame_status(x, 400) : -1;
    return exchange_reply_json(x, 202, json_object(),
                               err); /* the SDK reads a body where there is no length */
}

static int add_line(void *arg, const struct build_line *line, struct err *err)
{
    json_t *entry = json_pack("{s:o, s:s, s:o}", "timestamp", form_time(line->time_ms), "level",
                              line->level, "message", form_text(line->text, strlen(line->text)));

    (void) err;
    if (line->step[0])
        (void) json_object_set_new(entry, "step", json_string(line->step));
    return json_array_append_new(arg, entry);
}

static const char *status_of(const struct build_view *view)
{
    static const char *const words[][2] = { { "new", "waiting" },
                                            { "waiting", "waiting" },
                                            { "building", "building" },
                                            { "ready", "ready" } };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i][0], view->state) == 0)
            return words[i][1];
    return "error";
}

int control_build_status(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    uint64_t offset = 0, limit = PAGE;
    struct build_view view;
    json_t *entries, *json;

    if (query_count(x, "logsOffset", 0, INT64_MAX, &offset, err) < 0 ||
        query_count(x, "limit", 0, PAGE, &limit, err) < 0 || of_route(x, &view, err) < 0)
        return -1;
    entries = json_array();
    if (build_log(&ops, view.id, offset, limit, 0, add_line, entries, err) < 0) {
        json_decref(entries);
        return -1;
    }
    json = json_pack("{s:s, s:s, s:s, s:o, s:[]}", "templateID", view.template, "buildID", view.id,
                     "status", status_of(&view), "logEntries", entries, "logs");
    if (view.reason[0]) {
        json_t *reason = json_pack("{s:o}", "message", form_text(view.reason, strlen(view.reason)));

        if (view.step[0])
            (void) json_object_set_new(reason, "step", json_string(view.step));
        (void) json_object_set_new(json, "reason", reason);
    }
    return exchange_reply_json(x, 200, json, err);
}
