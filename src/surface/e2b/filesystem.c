/* filesystem.Filesystem, but for watching. */
#include "surface/e2b/envd.h"

#include "base/own.h"
#include "surface/e2b/rpc.h"

#include <string.h>

#define DEPTH_MOST 1000 /* of the agent */
#define PIECE      32768

/* The path of a message's field, and the user of the request. */
static int read_file(struct exchange *x, json_t *in, const char *field, struct ops_file *ret,
                     struct err *err)
{
    const char *user, *path = NULL;

    if (rpc_user(x, &user, err) < 0 || rpc_text(in, field, &path, err) < 0)
        return -1;
    return e2b_file(x, user, path, ret, err);
}

static int keep_entry(void *arg, const struct agent_reply *entry, struct err *err)
{
    json_t **ret = arg;

    json_decref(*ret);
    *ret = e2b_entry_json(entry);
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for an entry");
}

/* {"entry":{…}} */
static int reply_entry(struct exchange *x, const struct ops_file *file, json_t **ret,
                       struct err *err)
{
    struct agent_request request = { .op = AGENT_STAT, .flags = AGENT_NOFOLLOW | AGENT_RESOLVE };
    struct ops ops = ops_of(exchange_caller(x));
    json_t *entry = NULL;

    if (ops_file_entries(&ops, file, &request, keep_entry, &entry, NULL, err) < 0) {
        json_decref(entry);
        return err->kind == ERR_NO_PATH
                   ? err_set(err, ERR_NO_PATH, "file not found: '%.150s'", file->path)
                   : -1;
    }
    *ret = json_pack("{s:o}", "entry", entry);
    return 0;
}

static int stat_entry(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    struct ops_file file;

    return read_file(x, in, "path", &file, err) < 0 ? -1 : reply_entry(x, &file, ret, err);
}

static int make_dir(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    bool existed = false;

    if (read_file(x, in, "path", &file, err) < 0)
        return -1;
    if (ops_file_mkdir(&ops, &file, UINT32_MAX, AGENT_PARENTS, &existed, err) < 0)
        return err->kind == ERR_EXISTS
                   ? err_set(err, ERR_INVALID,
                             "path already exists but it is not a directory: %.150s", file.path)
                   : -1;
    if (existed)
        return err_set(err, ERR_EXISTS, "directory already exists: %.150s", file.path);
    return reply_entry(x, &file, ret, err);
}

static int move(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file from, to;

    if (read_file(x, in, "source", &from, err) < 0 || read_file(x, in, "destination", &to, err) < 0)
        return -1;
    if (ops_file_move(&ops, &from, to.path, AGENT_PARENTS, err) < 0)
        return -1;
    return reply_entry(x, &to, ret, err);
}

/* What is not there is removed already. */
static int remove_path(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;

    (void) ret;
    if (read_file(x, in, "path", &file, err) < 0)
        return -1;
    if (ops_file_remove(&ops, &file, AGENT_RECURSIVE, NULL, err) < 0 && err->kind != ERR_NO_PATH)
        return -1;
    return 0;
}

/* ---- ListDir: sent while it is read, however long it is ---- */

struct listing {
    struct exchange *x;
    size_t have;
    char piece[PIECE];
};

static int put_text(struct listing *list, const char *text, size_t len, struct err *err)
{
    if (len > sizeof list->piece - list->have) {
        if (exchange_write(list->x, list->piece, list->have, err) < 0)
            return -1;
        list->have = 0;
    }
    if (len > sizeof list->piece)
        return exchange_write(list->x, text, len, err);
    memcpy(list->piece + list->have, text, len);
    list->have += len;
    return 0;
}

/* The beginning of the answer, before its first entry; the comma before others. */
static int put_lead(struct listing *list, struct err *err)
{
    static const char lead[] = "{\"entries\":[";

    if (exchange_begun(list->x))
        return put_text(list, ",", 1, err);
    if (exchange_begin(list->x, 200, "application/json", -1, err) < 0)
        return -1;
    return put_text(list, lead, sizeof lead - 1, err);
}

static int put_entry(void *arg, const struct agent_reply *entry, struct err *err)
{
    json_t *json = e2b_entry_json(entry);
    auto_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for an entry");
    return put_lead(arg, err) < 0 ? -1 : put_text(arg, text, strlen(text), err);
}

static int end_listing(struct listing *list, struct err *err)
{
    if (!exchange_begun(list->x) && put_lead(list, err) < 0)
        return -1;
    if (put_text(list, "]}", 2, err) < 0 ||
        exchange_write(list->x, list->piece, list->have, err) < 0)
        return -1;
    return exchange_end(list->x, err);
}

static int list_dir(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    auto_free struct listing *list = malloc(sizeof *list);
    struct agent_request request = { .op = AGENT_LIST, .flags = AGENT_RESOLVE | AGENT_SORTED };
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    int64_t depth = 0;

    (void) ret;
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list");
    list->x = x;
    list->have = 0;
    if (read_file(x, in, "path", &file, err) < 0 ||
        rpc_int(in, "depth", 0, UINT32_MAX, &depth, err) < 0)
        return -1;
    request.depth = depth > DEPTH_MOST ? DEPTH_MOST : (uint32_t) depth;
    if (ops_file_entries(&ops, &file, &request, put_entry, list, NULL, err) < 0) {
        if (!exchange_begun(x) && err->kind == ERR_NOT_DIR)
            return err_set(err, ERR_NOT_DIR, "path is not a directory: %.150s", file.path);
        return -1;
    }
    return end_listing(list, err);
}

/* ---- handlers ---- */

int filesystem_stat(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, stat_entry, err);
}

int filesystem_make_dir(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, make_dir, err);
}

int filesystem_move(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, move, err);
}

int filesystem_remove(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, remove_path, err);
}

int filesystem_list_dir(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, list_dir, err);
}
