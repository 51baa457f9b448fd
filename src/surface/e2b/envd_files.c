/* GET /files, and putting files together. */
#include "surface/e2b/envd.h"

#include "base/own.h"
#include "http/url.h"
#include "http/value.h"
#include "server/preview/download.h"
#include "surface/e2b/rpc.h"

#include <string.h>

int envd_file(struct exchange *x, const char *path, struct ops_file *ret, struct err *err)
{
    const char *user = exchange_query(x, "username");

    if (!user && rpc_user(x, &user, err) < 0)
        return exchange_blame_status(x, 401);
    return e2b_file(x, user, path, ret, err);
}

/* The agent names the path as it was resolved inside: "/home/user/x: No such file or directory". */
static struct slice path_of(const struct ops_file *file, const char *message)
{
    const char *end = NULL;

    for (const char *at = message; message[0] == '/' && (at = strstr(at, ": ")); at++)
        end = at;
    return end ? (struct slice){ message, (size_t) (end - message) } : slice_of(file->path);
}

int envd_fail(struct exchange *x, const struct ops_file *file, struct err *err)
{
    struct err said = *err;
    struct slice path = path_of(file, said.msg);
    struct ops_sandbox sandbox;

    switch (err->kind) {
    case ERR_NO_PATH:
        return err_set(err, ERR_NO_PATH, "path '%.*s' does not exist", (int) path.len, path.at);
    case ERR_IS_DIR:
        return err_set(err, ERR_IS_DIR, "path '%.*s' is a directory", (int) path.len, path.at);
    case ERR_DISK_FULL:
        return err_set(err, ERR_DISK_FULL, "not enough disk space available");
    case ERR_NO_USER:
        err_set(err, ERR_NO_USER, "error looking up user '%.64s'", file->user ? file->user : "");
        return exchange_blame_status(x, 401);
    case ERR_UNAVAILABLE: /* perhaps it ended meanwhile */
        if (e2b_target_caller(x, &sandbox, &said) < 0)
            *err = said;
        return -1;
    default:
        return -1;
    }
}

/* ---- GET /files ---- */

/* Whether the client takes content as it is: it does unless it says otherwise. */
static bool identity_ok(struct exchange *x)
{
    struct head_list list = head_list(exchange_head(x), "Accept-Encoding");
    bool ok = true, named = false, found;
    struct slice item;
    char q[8];

    while (head_list_next(&list, &item)) {
        struct slice coding = value_main(item);
        bool identity = slice_is_nocase(coding, "identity");
        bool none = value_param(item, "q", q, sizeof q, &found) > 0 && q[0] == '0' &&
                    q[1 + strspn(q + 1, ".0")] == '\0';

        if (identity || (slice_is(coding, "*") && !named))
            ok = !none;
        named |= identity;
    }
    return ok;
}

static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= ' ' || text.at[i] >= 0x7f || strchr("()<>@,;:\\\"/[]?=", text.at[i]))
            return false;
    return text.len > 0;
}

static bool is_printable(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < ' ' || text.at[i] >= 0x7f)
            return false;
    return true;
}

/* inline; filename=a.txt, filename="a b.txt", or filename*=utf-8''%C3%A4.txt */
static int add_disposition(struct exchange *x, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    struct slice name = slice_of(slash ? slash + 1 : path);
    char out[1024];
    size_t n;

    if (name.len > 255)
        name.len = 255;
    if (is_token(name)) {
        (void) snprintf(out, sizeof out, "inline; filename=%.*s", (int) name.len, name.at);
    } else if (is_printable(name)) {
        n = (size_t) snprintf(out, sizeof out, "inline; filename=\"");
        for (size_t i = 0; i < name.len; i++) {
            if (name.at[i] == '"' || name.at[i] == '\\')
                out[n++] = '\\';
            out[n++] = name.at[i];
        }
        (void) strcpy(out + n, "\"");
    } else {
        n = (size_t) snprintf(out, sizeof out, "inline; filename*=utf-8''");
        n += url_encode(name, out + n, sizeof out - n); /* 255 bytes are 765 at most: it fits */
        out[n] = '\0';
    }
    return exchange_add_header(x, "Content-Disposition", out, err);
}

int envd_download(struct exchange *x, struct err *err)
{
    struct ops_file file;

    if (envd_file(x, exchange_query(x, "path"), &file, err) < 0)
        return -1;
    if (!identity_ok(x)) {
        err_set(err, ERR_INVALID, "no acceptable encoding: identity is what there is");
        return exchange_blame_status(x, 406);
    }
    file.attr_prefix = NULL;
    if (exchange_add_header(x, "Vary", "Accept-Encoding", err) < 0 ||
        add_disposition(x, file.path, err) < 0)
        return -1;
    if (download_reply(x, &file, err) < 0)
        return exchange_begun(x) ? -1 : envd_fail(x, &file, err);
    return 0;
}

/* ---- POST /files/compose ---- */

#define COMPOSE_MAX 1024 /* sources */

struct compose {
    struct ops ops;
    struct ops_file to;
    struct stream out;
    struct file_info *info; /* of the source being read, then of the whole */
    json_t *sources;        /* their paths as the sandbox resolved them */
};

static int append_one(struct exchange *x, struct compose *c, const char *path, struct err *err)
{
    struct ops_file from;
    struct stream in;
    const void *data;
    uint32_t len;
    int r;

    if (e2b_file(x, c->to.user, path, &from, err) < 0)
        return -1;
    if (ops_file_read(&c->ops, &from, 0, 0, &in, c->info, err) < 0)
        return envd_fail(x, &from, err);
    while ((r = files_read_next(&in, &data, &len, err)) == 1)
        if (files_write_next(&c->out, data, len, err) < 0) {
            r = -1;
            break;
        }
    stream_close(&in);
    (void) json_array_append_new(c->sources, json_string(c->info->path));
    return r < 0 ? envd_fail(x, &c->to, err) : 0;
}

/* All sources, one behind the other; until they are all there, what was at the destination stays. */
static int append_all(struct exchange *x, struct compose *c, json_t *paths, struct err *err)
{
    size_t i;
    json_t *path;

    json_array_foreach(paths, i, path)
    {
        if (!json_is_string(path))
            return err_set(err, ERR_INVALID, "source_paths: item %zu is not a text", i);
        if (append_one(x, c, json_string_value(path), err) < 0)
            return -1;
    }
    if (ops_file_write_end(&c->ops, &c->to, &c->out, c->info, err) < 0)
        return envd_fail(x, &c->to, err);
    return 0;
}

/* The sources go, but for one that became the destination. */
static int remove_sources(struct exchange *x, struct compose *c, struct err *err)
{
    size_t i;
    json_t *path;

    json_array_foreach(c->sources, i, path)
    {
        struct ops_file from = c->to;

        from.path = json_string_value(path);
        if (strcmp(from.path, c->info->path) != 0 &&
            ops_file_remove(&c->ops, &from, 0, NULL, err) < 0 && err->kind != ERR_NO_PATH)
            return envd_fail(x, &from, err);
    }
    return 0;
}

static int compose(struct exchange *x, json_t *body, struct compose *c, struct err *err)
{
    const char *to = NULL, *user = NULL;
    json_t *paths = NULL;
    int r;

    if (rpc_array(body, "sourcePaths", &paths, err) < 0 ||
        rpc_text(body, "destination", &to, err) < 0 || rpc_text(body, "username", &user, err) < 0)
        return -1;
    if (json_array_size(paths) == 0 || json_array_size(paths) > COMPOSE_MAX || !to || !to[0])
        return err_set(err, ERR_INVALID, "source_paths (1 to %d) and destination are needed",
                       COMPOSE_MAX);
    if (e2b_file(x, user, to, &c->to, err) < 0)
        return -1;
    if (ops_file_write(&c->ops, &c->to, UINT32_MAX, AGENT_ATOMIC | AGENT_PARENTS, &c->out, err) < 0)
        return envd_fail(x, &c->to, err);
    r = append_all(x, c, paths, err);
    stream_close(&c->out);
    return r < 0 ? -1 : remove_sources(x, c, err);
}

int envd_compose(struct exchange *x, struct err *err)
{
    auto_free struct file_info *info = malloc(sizeof *info);
    struct compose c = { .ops = ops_of(exchange_caller(x)), .info = info, .out = STREAM_NONE };
    json_t *body;
    int r;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory to put files together");
    if (exchange_json(x, &body, err) < 0)
        return -1;
    c.sources = json_array();
    r = compose(x, body, &c, err);
    json_decref(c.sources);
    json_decref(body);
    if (r < 0)
        return -1;
    return exchange_reply_json(x, 200,
                               json_pack("{s:o, s:s, s:o}", "name", e2b_name_json(info->path),
                                         "type", "file", "path", json_string(info->path)),
                               err);
}
