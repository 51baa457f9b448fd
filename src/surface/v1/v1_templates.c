/* Templates that were built, their tags, and builds. */
#include "surface/v1/v1.h"

#include "base/own.h"
#include "server/build/build.h"
#include "server/guard/quota.h"

#include <string.h>

#define PAGE      100
#define LINES     200
#define FOLLOW_MS 10000

/* ---- templates ---- */

static json_t *template_json(const struct ops_template *t)
{
    return json_pack("{s:s, s:s, s:b, s:b, s:o, s:o}", "id", t->id, "name", t->name, "own", t->own,
                     "public", t->is_public, "created_at", form_time(t->created_ms), "updated_at",
                     form_time(t->updated_ms));
}

static int add_template(void *arg, const struct ops_template *template, struct err *err)
{
    (void) err;
    return json_array_append_new(arg, template_json(template));
}

/* Names, and which one a create gets that names none. */
static int add_installed(struct ops *ops, json_t *json, struct err *err)
{
    auto_free char(*names)[KEEPER_NAME_MAX] = NULL;
    json_t *array = json_array();
    char preset[KEEPER_NAME_MAX];
    size_t count = 0;

    (void) json_object_set_new(json, "installed", array);
    if (ops_template_installed(ops, &names, &count, preset, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        (void) json_array_append_new(array, json_string(names[i]));
    (void) json_object_set_new(json, "default", json_string(preset));
    return 0;
}

static int add_tag(void *arg, const struct ops_tag *tag, struct err *err)
{
    (void) err;
    return json_array_append_new(
        arg,
        json_pack("{s:s, s:s, s:o, s:I, s:o}", "tag", tag->tag, "build", tag->build, "created_at",
                  form_time(tag->created_ms), "bytes", (json_int_t) tag->bytes, "from",
                  tag->from[0] ? form_text(tag->from, strlen(tag->from)) : json_null()));
}

/* Every tag of every template. One that was removed meanwhile has none. */
static int add_tags(struct ops *ops, json_t *templates, struct err *err)
{
    json_t *template;
    size_t i;

    json_array_foreach(templates, i, template)
    {
        json_t *tags = json_array();
        int r = ops_template_tags(ops, json_string_value(json_object_get(template, "id")), add_tag,
                                  tags, err);

        (void) json_object_set_new(template, "tags", tags);
        if (r < 0 && err->kind != ERR_NO_TEMPLATE)
            return -1;
    }
    return 0;
}

int v1_template_list(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *array = json_array();
    json_t *json = json_pack("{s:o, s:I}", "templates", array, "upload_bytes",
                             (json_int_t) build_upload_most(exchange_app(x)));

    if (ops_template_list(&ops, add_template, array, err) == 0 && add_tags(&ops, array, err) == 0 &&
        add_installed(&ops, json, err) == 0)
        return exchange_reply_json(x, 200, json, err);
    json_decref(json);
    return -1;
}

static int reply_template(struct exchange *x, const char *name, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_template_ref ref;
    struct ops_template template;
    json_t *json, *tags, *said = NULL;
    struct err ignored;

    if (ops_template_get(&ops, name, &template, err) < 0)
        return -1;
    tags = json_array();
    if (ops_template_tags(&ops, name, add_tag, tags, err) < 0) {
        json_decref(tags);
        return -1;
    }
    json = template_json(&template);
    (void) json_object_set_new(json, "tags", tags);
    if (ops_template_ref_read(template.name, &ref, &ignored) == 0)
        (void) ops_template_settings(&ops, &ref, &said, &ignored);
    (void) json_object_set_new(json, "settings", said ? said : json_null());
    return exchange_reply_json(x, 200, json, err);
}

int v1_template_get(struct exchange *x, struct err *err)
{
    return reply_template(x, exchange_param(x, "name"), err);
}

int v1_template_delete(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_template_delete(&ops, exchange_param(x, "name"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

static const struct form_field patch_fields[] = {
    { "public", FORM_BOOL, .help = "every tenant may use it", .needed = true },
};
const struct form v1_template_form = FORM_OF(patch_fields);

int v1_template_patch(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    bool wish = false;

    if (v1_numbers(x, &v1_template_form, &wish, err) < 0 ||
        ops_template_publish(&ops, exchange_param(x, "name"), wish, err) < 0)
        return -1;
    return reply_template(x, exchange_param(x, "name"), err);
}

struct tag_body {
    const char *from;
    json_t *tags;
};

/* clang-format off */
static const struct form_field tag_fields[] = {
    { "from", FORM_TEXT, .at = offsetof(struct tag_body, from), .help = "the tag of the build", .fallback = "default" },
    { "tags", FORM_ARRAY, .at = offsetof(struct tag_body, tags), 1, 0, "tags that the build gets", .needed = true },
};
/* clang-format on */
const struct form v1_tag_form = FORM_OF(tag_fields);

static int tag(struct exchange *x, json_t *json, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct tag_body body = { .from = NULL };
    auto_free const char **tags = NULL;
    struct ops_template_ref ref;
    char build[OPS_BUILD_ID_MAX];
    size_t count = 0;

    if (form_read(exchange_caller(x), json, &v1_tag_form, &body, err) < 0 ||
        form_texts(exchange_caller(x), "tags", body.tags, &tags, &count, err) < 0)
        return -1;
    (void) snprintf(ref.name, sizeof ref.name, "%s", exchange_param(x, "name"));
    (void) snprintf(ref.tag, sizeof ref.tag, "%s", body.from);
    return ops_template_tag(&ops, &ref, tags, count, build, err);
}

int v1_template_tag(struct exchange *x, struct err *err)
{
    return v1_body(x, tag, err) < 0 ? -1 : reply_template(x, exchange_param(x, "name"), err);
}

int v1_template_untag(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_template_untag(&ops, exchange_param(x, "name"), exchange_param(x, "tag"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* ---- builds ---- */

static json_t *build_json(const struct build_view *b)
{
    json_t *tags = json_loads(b->tags, 0, NULL);

    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "id", b->id, "template", b->template, "state",
        b->state, "reason", b->reason[0] ? form_text(b->reason, strlen(b->reason)) : json_null(),
        "step", b->step[0] ? json_string(b->step) : json_null(), "tags", tags ? tags : json_array(),
        "created_at", form_time(b->created_ms), "ended_at", form_time(b->ended_ms));
}

struct build_body {
    const char *name;
    json_t *tags, *limits;
};

/* clang-format off */
static const struct form_field build_fields[] = {
    { "name", FORM_TEXT, .at = offsetof(struct build_body, name), .help = "NAME or NAME:TAG", .needed = true },
    { "tags", FORM_ARRAY, .at = offsetof(struct build_body, tags), .help = "more tags" },
    { "limits", FORM_OBJECT, .at = offsetof(struct build_body, limits), .help = "cpus, memory and disk of its sandboxes",
      .describe = v1_limits_schema },
};
/* clang-format on */
const struct form v1_build_form = FORM_OF(build_fields, .beside = &build_form);

/* Reads what is about the template and takes it out of the body; the rest are the steps. The values live in *ret_own. */
static int read_about(struct exchange *x, json_t *json, json_t **ret_own, struct build_body *ret,
                      struct err *err)
{
    *ret_own = json_object();
    for (size_t i = 0; i < v1_build_form.count; i++) {
        const char *name = v1_build_form.rows[i].name;
        json_t *value = json_object_get(json, name);

        if (value && json_object_set(*ret_own, name, value) < 0)
            return err_set(err, ERR_NO_MEMORY, "no memory for a build");
        (void) json_object_del(json, name);
    }
    return form_read(exchange_caller(x), *ret_own, &v1_build_form, ret, err);
}

static int create(struct exchange *x, json_t *json, struct err *err)
{
    struct build_body body = { .name = NULL };
    struct ops ops = ops_of(exchange_caller(x));
    auto_free const char **tags = NULL;
    struct build_want want = { .tags = NULL };
    struct limits limits = { .memory_bytes = 0 };
    struct build_view view;
    json_t *own = NULL;
    int r = read_about(x, json, &own, &body, err);

    if (r == 0 && ops_template_ref_read(body.name, &want.ref, err) < 0)
        r = exchange_blame(x, "name", NULL, NULL);
    if (r == 0 && body.tags)
        r = form_texts(exchange_caller(x), "tags", body.tags, &tags, &want.tag_count, err);
    if (r == 0 && body.limits)
        r = v1_limits_read(x, body.limits, &limits, err);
    want.tags = tags;
    want.cpu_milli = limits.cpu_milli;
    want.memory_bytes = limits.memory_bytes;
    want.disk_bytes = limits.disk_bytes;
    if (r == 0 && (limits.disk_inodes || limits.processes || limits.open_files || limits.ptys ||
                   limits.io_kib || limits.io_ops))
        r = form_bad(exchange_caller(x), err, "limits", "of a build: cpus, memory and disk");
    if (r == 0)
        r = build_prepare(&ops, &want, &view, err);
    if (r == 0 && build_submit(&ops, view.id, json, false, err) < 0) {
        struct err ignored;

        (void) build_cancel(&ops, view.id, &ignored);
        r = -1;
    }
    json_decref(own);
    if (r < 0 || build_get(&ops, view.id, &view, err) < 0)
        return -1;
    return exchange_reply_json(x, 202, build_json(&view), err);
}

int v1_build_create(struct exchange *x, struct err *err)
{
    return v1_body(x, create, err);
}

static int add_build(void *arg, const struct build_view *build, struct err *err)
{
    (void) err;
    return json_array_append_new(arg, build_json(build));
}

int v1_build_list(struct exchange *x, struct err *err)
{
    const char *name = exchange_query(x, "template");
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_template template;
    json_t *array;

    if (name && ops_template_get(&ops, name, &template, err) < 0)
        return -1;
    array = json_array();
    if (build_list(&ops, name ? template.id : NULL, PAGE, add_build, array, err) < 0) {
        json_decref(array);
        return -1;
    }
    return exchange_reply_json(x, 200, json_pack("{s:o}", "builds", array), err);
}

int v1_build_get(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct build_view view;

    if (build_get(&ops, exchange_param(x, "build"), &view, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, build_json(&view), err);
}

int v1_build_cancel(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (build_cancel(&ops, exchange_param(x, "build"), err) < 0)
        return -1;
    return exchange_reply_json(x, 202, json_object(), err);
}

static int add_line(void *arg, const struct build_line *line, struct err *err)
{
    (void) err;
    return json_array_append_new(arg, json_pack("{s:s, s:o, s:s, s:s, s:o}", "type", "line", "time",
                                                form_time(line->time_ms), "level", line->level,
                                                "step", line->step, "text",
                                                form_text(line->text, strlen(line->text))));
}

/* Lines as they come, until the build has ended; then its end. The lines are collected first: a client that does not read
 * holds up no build. */
static int send_log(struct exchange *x, struct v1_stream *stream, bool follow, struct err *err)
{
    const char *id = exchange_param(x, "build");
    struct ops ops = ops_of(exchange_caller(x));
    struct build_view view;
    size_t from = 0;

    for (;;) {
        json_t *lines = json_array(), *line;
        int n = -1;
        size_t i;

        if (build_get(&ops, id, &view, err) == 0)
            n = build_log(&ops, id, from, LINES, follow && !view.ended ? FOLLOW_MS : 0, add_line,
                          lines, err);
        if (n < 0) {
            struct err why = *err;

            json_decref(lines);
            return v1_stream_fail(stream, &why, err);
        }
        json_array_foreach(lines, i, line) if (v1_stream_event(stream, json_incref(line), err) < 0)
        {
            json_decref(lines);
            return -1;
        }
        json_decref(lines);
        from += (size_t) n;
        if (n == 0 && (view.ended || !follow))
            break;
        if (n == 0 && v1_stream_ping(stream, err) < 0)
            return -1;
    }
    return v1_stream_end(stream, build_json(&view), err);
}

int v1_build_logs(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct v1_stream stream;
    struct build_view view;
    bool follow = true;

    if (query_bool(x, "follow", &follow, err) < 0 ||
        build_get(&ops, exchange_param(x, "build"), &view, err) < 0 ||
        v1_stream_begin(&stream, x, v1_accepts(x) == V1_SSE, err) < 0)
        return -1;
    return send_log(x, &stream, follow, err);
}

/* ---- files for COPY ---- */

/* So that a client need not send what is there. */
int v1_build_files_get(struct exchange *x, struct err *err)
{
    const char *hash = exchange_param(x, "hash");

    if (!build_hash_ok(hash)) {
        err_set(err, ERR_INVALID, "hash: 64 hex digits are needed");
        return exchange_blame(x, "hash", NULL, NULL);
    }
    if (!build_files_have(exchange_app(x), exchange_caller(x)->tenant, hash))
        return err_set(err, ERR_NO_PATH, "there are no files of that name");
    return exchange_reply_json(x, 200, json_pack("{s:b}", "present", 1), err);
}

static int blame_upload(struct exchange *x, const struct err *err)
{
    const char *quota = quota_named(err);

    if (quota)
        return exchange_blame(x, NULL, quota, "quota");
    return err->kind == ERR_INVALID ? exchange_blame(x, "hash", NULL, NULL) : -1;
}

int v1_build_files_put(struct exchange *x, struct err *err)
{
    auto_free struct build_upload *upload = malloc(sizeof *upload);
    auto_free char *buf = malloc(65536);
    ssize_t n;

    if (!upload || !buf)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    if (build_upload_begin(exchange_app(x), exchange_caller(x)->tenant, exchange_param(x, "hash"),
                           upload, err) < 0)
        return blame_upload(x, err);
    while ((n = exchange_read(x, buf, 65536, err)) > 0)
        if (build_upload_take(upload, buf, (size_t) n, err) < 0) {
            n = -1;
            break;
        }
    if (n < 0) {
        struct err ignored;

        (void) build_upload_end(upload, false, &ignored);
        return blame_upload(x, err);
    }
    if (build_upload_end(upload, true, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:I}", "bytes", (json_int_t) upload->bytes),
                               err);
}
