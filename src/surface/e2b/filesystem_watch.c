#include "surface/e2b/filesystem_watch.h"

#include "base/own.h"
#include "server/form/form.h"
#include "surface/e2b/envd.h"
#include "surface/e2b/rpc.h"

#include <poll.h>
#include <string.h>

void fs_watch_close(struct fs_watch *watch)
{
    if (watch->root)
        stream_close(&watch->stream);
    free(watch->root);
    *watch = FS_WATCH_NONE;
}

static int look_at(struct ops *ops, const struct ops_file *file, struct fs_watch *ret,
                   struct err *err)
{
    auto_free struct file_info *info = malloc(sizeof *info);

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory to watch");
    if (ops_file_stat(ops, file, 0, info, err) < 0)
        return -1;
    if (info->type != ENTRY_DIR)
        return err_set(err, ERR_NOT_DIR, "path %.150s not a directory", file->path);
    ret->root = strdup(info->path);
    return ret->root ? 0 : err_set(err, ERR_NO_MEMORY, "no memory to watch");
}

int fs_watch_open(struct exchange *x, json_t *in, struct fs_watch *ret, struct err *err)
{
    struct fs_watch watch = FS_WATCH_NONE;
    const char *user, *path = NULL;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;

    if (rpc_user(x, &user, err) < 0 || rpc_text(in, "path", &path, err) < 0 ||
        rpc_bool(in, "recursive", &watch.recursive, err) < 0 ||
        rpc_bool(in, "includeEntry", &watch.entries, err) < 0 ||
        e2b_file(x, user, path, &file, err) < 0)
        return -1;
    if (!watch.entries)
        file.attr_prefix = NULL;
    if (look_at(&ops, &file, &watch, err) < 0)
        return -1;
    if (ops_file_watch(&ops, &file,
                       (watch.recursive ? AGENT_RECURSIVE : 0) |
                           (watch.entries ? AGENT_RESOLVE : 0),
                       &watch.stream, err) < 0) {
        free(watch.root);
        return -1;
    }
    *ret = watch;
    return 0;
}

/* ---- events ---- */

/* Relative to the root; the root itself is ".". What an agent says of elsewhere keeps its whole path. */
static json_t *name_json(const char *root, const char *path)
{
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strcmp(root, path) == 0)
        path = ".";
    else if (strncmp(path, root, len) == 0 && path[len] == '/')
        path += len + 1;
    return form_text(path, strlen(path));
}

static int add_event(const struct fs_watch *watch, json_t *events, const char *type,
                     const char *path, const struct agent_reply *entry, struct err *err)
{
    json_t *event = json_pack("{s:o, s:s}", "name", name_json(watch->root, path), "type", type);

    if (entry && (entry->flags & AGENT_ENTRY))
        (void) json_object_set_new(event, "entry", e2b_entry_json(entry));
    return json_array_append_new(events, event) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for an event")
               : 0;
}

/* A rename is two events, as inotify has it: the old name goes, the new one comes. The item has no room for where a
 * renamed link leads: its entry is left out. */
static int add_rename(const struct fs_watch *watch, json_t *events, const struct agent_reply *item,
                      struct err *err)
{
    struct agent_reply entry = *item;

    entry.path = item->target;
    if (entry.type == ENTRY_LINK)
        entry.flags = 0;
    if (item->path && add_event(watch, events, "EVENT_TYPE_RENAME", item->path, NULL, err) < 0)
        return -1;
    if (!item->target)
        return 0;
    return add_event(watch, events, "EVENT_TYPE_CREATE", item->target, &entry, err);
}

int fs_watch_poll(struct fs_watch *watch, json_t *events, struct err *err)
{
    static const char *const types[] = { [EVENT_CREATE] = "EVENT_TYPE_CREATE",
                                         [EVENT_WRITE] = "EVENT_TYPE_WRITE",
                                         [EVENT_REMOVE] = "EVENT_TYPE_REMOVE",
                                         [EVENT_CHMOD] = "EVENT_TYPE_CHMOD" };
    struct agent_reply item;
    int r;

    if (watch->trouble.kind != ERR_NONE) { /* it does not continue as if nothing had been */
        *err = watch->trouble;
        return -1;
    }
    r = files_watch_poll(&watch->stream, &item, err);
    if (r == 1 && item.event == EVENT_OVERFLOW)
        r = err_set(err, ERR_PROTOCOL, "watcher error: events were lost");
    if (r < 0)
        watch->trouble = *err;
    if (r <= 0)
        return r;
    if (item.event == EVENT_RENAME)
        r = add_rename(watch, events, &item, err);
    else if (item.event < ARRAY_LEN(types) && types[item.event] && item.path)
        r = add_event(watch, events, types[item.event], item.path, &item, err);
    return r < 0 ? -1 : 1;
}

/* ---- WatchDir ---- */

static int send_events(struct rpc *rpc, json_t *events, struct err *err)
{
    size_t i;
    json_t *event;

    json_array_foreach(events, i, event)
    {
        if (rpc_send(rpc, json_pack("{s:O}", "filesystem", event), err) < 0)
            return -1;
    }
    (void) json_array_clear(events);
    return 0;
}

static int follow(struct rpc *rpc, struct fs_watch *watch, json_t *events, struct err *err)
{
    if (rpc_send(rpc, json_pack("{s:{}}", "start"), err) < 0)
        return -1;
    rpc->keepalive = "{\"keepalive\":{}}";
    for (;;) {
        int r = fs_watch_poll(watch, events, err);

        if (r < 0)
            return err->kind == ERR_NO_PATH ? 0 : -1;
        if (send_events(rpc, events, err) < 0)
            return -1;
        if (r == 0 && rpc_wait(rpc, watch->stream.fd, POLLIN, err) < 0)
            return -1;
    }
}

static int watch_dir(struct rpc *rpc, json_t *in, struct err *err)
{
    struct fs_watch watch = FS_WATCH_NONE;
    json_t *events;
    int r;

    if (fs_watch_open(rpc->x, in, &watch, err) < 0)
        return -1;
    events = json_array();
    r = follow(rpc, &watch, events, err);
    json_decref(events);
    fs_watch_close(&watch);
    return r;
}

int filesystem_watch_dir(struct exchange *x, struct err *err)
{
    return rpc_serve_stream(x, watch_dir, err);
}
