#include "surface/v1/v1.h"

#include "base/own.h"

#include <inttypes.h>
#include <string.h>

int v1_query_file(struct exchange *x, struct ops_file *ret, struct err *err)
{
    const char *path = exchange_query(x, "path");

    if (!path || !path[0])
        return form_bad(exchange_caller(x), err, "path",
                        "a path is needed in the query: ?path=/home/user/file");
    if (strlen(path) >= AGENT_PATH_MAX)
        return form_bad(exchange_caller(x), err, "path", "longer than %u bytes",
                        AGENT_PATH_MAX - 1);
    *ret = (struct ops_file){ .sandbox = exchange_param(x, "id"),
                              .user = exchange_query(x, "user"),
                              .path = path };
    return 0;
}

#define LIST_DEFAULT 1000
#define LIST_MOST    10000
#define DEPTH_MOST   64

int v1_file_stat(struct exchange *x, struct err *err)
{
    auto_free struct file_info *info = malloc(sizeof *info);
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    bool follow = true;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for a file");
    if (v1_query_file(x, &file, err) < 0 || query_bool(x, "follow", &follow, err) < 0 ||
        ops_file_stat(&ops, &file, follow ? 0 : AGENT_NOFOLLOW, info, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, v1_info_json(info), err);
}

int v1_file_delete(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    bool recursive = false;
    uint64_t count = 0;

    if (v1_query_file(x, &file, err) < 0 || query_bool(x, "recursive", &recursive, err) < 0 ||
        ops_file_remove(&ops, &file, recursive ? AGENT_RECURSIVE : 0, &count, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:I}", "removed", (json_int_t) count), err);
}

/* ---- lists ---- */

static int reply_items(struct exchange *x, const char *name, struct v1_items *items, int result,
                       bool truncated, struct err *err)
{
    if (result < 0) {
        json_decref(items->array);
        return -1;
    }
    return exchange_reply_json(
        x, 200, json_pack("{s:o, s:b}", name, items->array, "truncated", truncated), err);
}

int v1_file_list(struct exchange *x, struct err *err)
{
    struct v1_items items = { .convert = v1_entry_json };
    uint64_t depth = 1, limit = LIST_DEFAULT;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    bool truncated = false;
    int r;

    if (v1_query_file(x, &file, err) < 0 ||
        query_count(x, "depth", 1, DEPTH_MOST, &depth, err) < 0 ||
        query_count(x, "limit", 1, LIST_MOST, &limit, err) < 0)
        return -1;
    items.array = json_array();
    r = ops_file_list(&ops, &file, (uint32_t) depth, limit, v1_add_item, &items, &truncated, err);
    return reply_items(x, "entries", &items, r, truncated, err);
}

static int read_pattern(struct exchange *x, struct agent_request *request, struct err *err)
{
    request->pattern = exchange_query(x, "pattern");
    if (!request->pattern || !request->pattern[0])
        return form_bad(exchange_caller(x), err, "pattern", "a pattern is needed in the query");
    return 0;
}

/* A flag of the agent's by a boolean of the query. */
static int read_flag(struct exchange *x, const char *name, uint32_t flag,
                     struct agent_request *request, struct err *err)
{
    bool set = false;

    if (query_bool(x, name, &set, err) < 0)
        return -1;
    if (set)
        request->flags |= flag;
    return 0;
}

int v1_file_glob(struct exchange *x, struct err *err)
{
    struct v1_items items = { .convert = v1_entry_json };
    struct agent_request request = { .op = AGENT_GLOB, .limit = LIST_DEFAULT };
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    bool truncated = false;
    int r;

    if (v1_query_file(x, &file, err) < 0 || read_pattern(x, &request, err) < 0 ||
        read_flag(x, "hidden", AGENT_HIDDEN, &request, err) < 0 ||
        query_count(x, "limit", 1, LIST_MOST, &request.limit, err) < 0)
        return -1;
    items.array = json_array();
    r = ops_file_search(&ops, &file, &request, v1_add_item, &items, &truncated, err);
    return reply_items(x, "entries", &items, r, truncated, err);
}

static json_t *match_json(const struct agent_reply *m)
{
    json_t *json = json_pack("{s:o}", "path",
                             form_text(m->path ? m->path : "", m->path ? strlen(m->path) : 0));

    if (m->line > 0)
        (void) json_object_set_new(json, "line", json_integer((json_int_t) m->line));
    if (m->column > 0)
        (void) json_object_set_new(json, "column", json_integer((json_int_t) m->column));
    if (m->data.data)
        (void) json_object_set_new(json, "text",
                                   form_text((const char *) m->data.data, m->data.len));
    if (m->flags & AGENT_CONTEXT)
        (void) json_object_set_new(json, "context", json_true());
    if (m->flags & AGENT_BINARY)
        (void) json_object_set_new(json, "binary", json_true());
    return json;
}

int v1_file_search(struct exchange *x, struct err *err)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } flags[] = { { "hidden", AGENT_HIDDEN },
                  { "ignore_case", AGENT_IGNORE_CASE },
                  { "fixed", AGENT_FIXED },
                  { "files_only", AGENT_FILES_ONLY } };
    struct v1_items items = { .convert = match_json };
    struct agent_request request = { .op = AGENT_GREP, .limit = LIST_DEFAULT };
    uint64_t before = 0, after = 0;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    bool truncated = false;
    int r;

    if (v1_query_file(x, &file, err) < 0 || read_pattern(x, &request, err) < 0 ||
        query_count(x, "limit", 1, LIST_MOST, &request.limit, err) < 0 ||
        query_count(x, "before", 0, 100, &before, err) < 0 ||
        query_count(x, "after", 0, 100, &after, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (read_flag(x, flags[i].name, flags[i].flag, &request, err) < 0)
            return -1;
    request.context_before = (uint32_t) before;
    request.context_after = (uint32_t) after;
    request.include = exchange_query(x, "include");
    items.array = json_array();
    r = ops_file_search(&ops, &file, &request, v1_add_item, &items, &truncated, err);
    return reply_items(x, "matches", &items, r, truncated, err);
}

/* ---- changes ---- */

struct change_body {
    const char *path, *to, *mode, *user;
    bool parents, recursive;
};

#define AT(field) offsetof(struct change_body, field)
/* clang-format off */
#define PATH_FIELD  { "path", FORM_TEXT, .at = AT(path), 0, AGENT_PATH_MAX - 1, "absolute, or relative to the user's home", .needed = true }
#define USER_FIELD  { "user", FORM_TEXT, .at = AT(user), .help = "whose rights; default: the template's user" }
#define MODE_HELP   "octal permission bits"
#define MODE_SCHEMA "{\"examples\": [\"755\"]}"
#define PARENTS     { "parents", FORM_BOOL, .at = AT(parents), .help = "missing directories above it are made", .fallback = "true" }

static const struct form_field mkdir_fields[] = {
    PATH_FIELD,
    USER_FIELD,
    { "mode", FORM_TEXT, .at = AT(mode), .help = MODE_HELP, .schema = MODE_SCHEMA },
    PARENTS,
};
const struct form v1_mkdir_form = FORM_OF(mkdir_fields);

static const struct form_field move_fields[] = {
    PATH_FIELD,
    { "to", FORM_TEXT, .at = AT(to), 0, AGENT_PATH_MAX - 1, "the new path", .needed = true },
    USER_FIELD,
    PARENTS,
};
const struct form v1_move_form = FORM_OF(move_fields);

static const struct form_field chmod_fields[] = {
    PATH_FIELD,
    { "mode", FORM_TEXT, .at = AT(mode), .help = MODE_HELP, .needed = true, .schema = MODE_SCHEMA },
    USER_FIELD,
    { "recursive", FORM_BOOL, .at = AT(recursive), .help = "also everything below it", .fallback = "false" },
};
const struct form v1_chmod_form = FORM_OF(chmod_fields);
/* clang-format on */

/* Reads the body, checks path and mode, and calls `act` while the texts last. */
static int change(struct exchange *x, const struct form *form,
                  int (*act)(struct exchange *, struct ops *, const struct ops_file *,
                             const struct change_body *, uint32_t mode, struct err *),
                  struct err *err)
{
    struct change_body body = { .path = NULL };
    struct ops ops = ops_of(exchange_caller(x));
    uint32_t mode = UINT32_MAX;
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, form, &body, err);
    if (r == 0 && body.mode && parse_mode(body.mode, &mode, err) < 0)
        r = form_bad(exchange_caller(x), err, "mode",
                     "must be octal permission bits, such as \"644\"");
    if (r == 0) {
        struct ops_file file = { .sandbox = exchange_param(x, "id"),
                                 .user = body.user,
                                 .path = body.path };

        r = act(x, &ops, &file, &body, mode, err);
    }
    json_decref(json);
    return r;
}

static int act_mkdir(struct exchange *x, struct ops *ops, const struct ops_file *file,
                     const struct change_body *body, uint32_t mode, struct err *err)
{
    bool existed = false;

    if (ops_file_mkdir(ops, file, mode, body->parents ? AGENT_PARENTS : 0, &existed, err) < 0)
        return -1;
    return exchange_reply_json(x, existed ? 200 : 201, json_pack("{s:b}", "existed", existed), err);
}

static int act_move(struct exchange *x, struct ops *ops, const struct ops_file *file,
                    const struct change_body *body, uint32_t mode, struct err *err)
{
    (void) mode;
    if (ops_file_move(ops, file, body->to, body->parents ? AGENT_PARENTS : 0, err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

static int act_chmod(struct exchange *x, struct ops *ops, const struct ops_file *file,
                     const struct change_body *body, uint32_t mode, struct err *err)
{
    if (ops_file_chmod(ops, file, mode, body->recursive ? AGENT_RECURSIVE : 0, err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

int v1_file_mkdir(struct exchange *x, struct err *err)
{
    return change(x, &v1_mkdir_form, act_mkdir, err);
}

int v1_file_move(struct exchange *x, struct err *err)
{
    return change(x, &v1_move_form, act_move, err);
}

int v1_file_chmod(struct exchange *x, struct err *err)
{
    return change(x, &v1_chmod_form, act_chmod, err);
}
