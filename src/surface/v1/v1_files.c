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

#define LIST_PRESET 1000
#define LIST_MOST   10000
#define DEPTH_MOST  64

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
    uint64_t depth = 1, limit = LIST_PRESET;
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
    struct agent_request request = { .op = AGENT_GLOB, .limit = LIST_PRESET };
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
    struct agent_request request = { .op = AGENT_GREP, .limit = LIST_PRESET };
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
static const struct form_field mkdir_fields[] = {
    { "path", FORM_TEXT, AT(path), 0, 0 },
    { "user", FORM_TEXT, AT(user), 0, 0 },
    { "mode", FORM_TEXT, AT(mode), 0, 0 },
    { "parents", FORM_BOOL, AT(parents), 0, 0 },
};
static const struct form_field move_fields[] = {
    { "path", FORM_TEXT, AT(path), 0, 0 },
    { "to", FORM_TEXT, AT(to), 0, 0 },
    { "user", FORM_TEXT, AT(user), 0, 0 },
    { "parents", FORM_BOOL, AT(parents), 0, 0 },
};
static const struct form_field chmod_fields[] = {
    { "path", FORM_TEXT, AT(path), 0, 0 },
    { "user", FORM_TEXT, AT(user), 0, 0 },
    { "mode", FORM_TEXT, AT(mode), 0, 0 },
    { "recursive", FORM_BOOL, AT(recursive), 0, 0 },
};

static int path_ok(struct exchange *x, const char *field, const char *path, struct err *err)
{
    if (!path)
        return form_bad(exchange_caller(x), err, field, "a path is needed");
    return strlen(path) < AGENT_PATH_MAX ? 0
                                         : form_bad(exchange_caller(x), err, field,
                                                    "longer than %u bytes", AGENT_PATH_MAX - 1);
}

/* Reads the body, checks path and mode, and calls `act` while the texts last. */
static int change(struct exchange *x, const struct form_field *fields, size_t count,
                  int (*act)(struct exchange *, struct ops *, const struct ops_file *,
                             const struct change_body *, uint32_t mode, struct err *),
                  struct err *err)
{
    struct change_body body = { .parents = true };
    struct ops ops = ops_of(exchange_caller(x));
    uint32_t mode = UINT32_MAX;
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, fields, count, &body, err);
    if (r == 0)
        r = path_ok(x, "path", body.path, err);
    if (r == 0 && body.mode && parse_mode(body.mode, &mode, err) < 0)
        r = form_bad(exchange_caller(x), err, "mode",
                     "octal permission bits are needed, such as \"644\"");
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
    if (path_ok(x, "to", body->to, err) < 0 ||
        ops_file_move(ops, file, body->to, body->parents ? AGENT_PARENTS : 0, err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

static int act_chmod(struct exchange *x, struct ops *ops, const struct ops_file *file,
                     const struct change_body *body, uint32_t mode, struct err *err)
{
    if (mode == UINT32_MAX)
        return form_bad(exchange_caller(x), err, "mode",
                        "octal permission bits are needed, such as \"644\"");
    if (ops_file_chmod(ops, file, mode, body->recursive ? AGENT_RECURSIVE : 0, err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

int v1_file_mkdir(struct exchange *x, struct err *err)
{
    return change(x, mkdir_fields, ARRAY_LEN(mkdir_fields), act_mkdir, err);
}

int v1_file_move(struct exchange *x, struct err *err)
{
    return change(x, move_fields, ARRAY_LEN(move_fields), act_move, err);
}

int v1_file_chmod(struct exchange *x, struct err *err)
{
    return change(x, chmod_fields, ARRAY_LEN(chmod_fields), act_chmod, err);
}
