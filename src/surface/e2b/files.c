#include "surface/e2b/files.h"

#include "base/own.h"
#include "server/form/form.h"
#include "surface/e2b/rpc.h"

#include <string.h>
#include <time.h>

int e2b_file(struct exchange *x, const char *user, const char *path, struct ops_file *ret,
             struct err *err)
{
    if (!path || !path[0])
        path = "~";
    if (path[0] == '~' && path[1] != '\0' && path[1] != '/')
        return err_set(err, ERR_INVALID,
                       "error resolving path: cannot expand user-specific home dir");
    if (strlen(path) >= AGENT_PATH_MAX)
        return err_set(err, ERR_INVALID, "error resolving path: longer than %u bytes",
                       AGENT_PATH_MAX - 1);
    *ret = (struct ops_file){ .sandbox = exchange_param(x, "sandbox"),
                              .user = user && user[0] ? user : NULL,
                              .path = path,
                              .as_root = true,
                              .attr_prefix = E2B_ATTR_PREFIX };
    return 0;
}

/* ---- entries ---- */

static json_t *text(const char *t)
{
    return form_text(t, strlen(t));
}

json_t *e2b_name_json(const char *path)
{
    const char *slash = strrchr(path, '/');

    return text(slash && slash[1] ? slash + 1 : path);
}

json_t *e2b_metadata_json(const struct texts *attrs)
{
    json_t *metadata = NULL;

    for (const char *name = NULL; (name = texts_next(attrs, name));) {
        const char *value = texts_next(attrs, name);

        if (!value)
            break;
        if (!metadata)
            metadata = json_object();
        /* A name or a value that is no UTF-8 was not set by an upload. */
        (void) json_object_set_new(metadata, name, json_string(value));
        name = value;
    }
    if (json_object_size(metadata) > 0)
        return metadata;
    json_decref(metadata);
    return NULL;
}

static const char *type_name(uint32_t type)
{
    return type == ENTRY_FILE  ? "FILE_TYPE_FILE"
           : type == ENTRY_DIR ? "FILE_TYPE_DIRECTORY"
                               : "FILE_TYPE_UNSPECIFIED";
}

/* As Go writes a mode: letters of the type and of the special bits, or a dash, and then rwx three times. */
static void put_permissions(const struct agent_reply *e, char out[20])
{
    static const char *const types[] = {
        [ENTRY_DIR] = "d",    [ENTRY_LINK] = "L",  [ENTRY_FIFO] = "p",
        [ENTRY_SOCKET] = "S", [ENTRY_BLOCK] = "D", [ENTRY_CHAR] = "D"
    };
    const char *type = e->type < ARRAY_LEN(types) ? types[e->type] : NULL;
    size_t n = 0;

    if (type)
        out[n++] = type[0];
    if (e->mode & 04000)
        out[n++] = 'u';
    if (e->mode & 02000)
        out[n++] = 'g';
    if (e->type == ENTRY_CHAR)
        out[n++] = 'c';
    if (e->mode & 01000)
        out[n++] = 't';
    if (n == 0)
        out[n++] = '-';
    for (int bit = 8; bit >= 0; bit--)
        out[n++] = e->mode & (1u << bit) ? "xwr"[bit % 3] : '-';
    out[n] = '\0';
}

/* RFC 3339 with as many digits as the time has: none, 3, 6 or 9. */
static json_t *time_json(int64_t ns)
{
    int64_t seconds = ns / 1000000000, rest = ns % 1000000000;
    time_t t;
    struct tm tm;
    char day[32], out[64];

    if (rest < 0) {
        rest += 1000000000;
        seconds--;
    }
    t = (time_t) seconds;
    if (!gmtime_r(&t, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return json_string("1970-01-01T00:00:00Z");
    if (rest == 0)
        (void) snprintf(out, sizeof out, "%sZ", day);
    else if (rest % 1000000 == 0)
        (void) snprintf(out, sizeof out, "%s.%03dZ", day, (int) (rest / 1000000));
    else if (rest % 1000 == 0)
        (void) snprintf(out, sizeof out, "%s.%06dZ", day, (int) (rest / 1000));
    else
        (void) snprintf(out, sizeof out, "%s.%09dZ", day, (int) rest);
    return json_string(out);
}

/* A name, else the number. */
static json_t *who(const char *name, uint32_t id)
{
    return name && name[0] ? text(name) : json_sprintf("%u", id);
}

json_t *e2b_entry_json(const struct agent_reply *e)
{
    bool link = e->type == ENTRY_LINK;
    const char *path = e->path ? e->path : "";
    json_t *metadata = e2b_metadata_json(&e->attrs), *json;
    char permissions[20];

    put_permissions(e, permissions);
    json = json_pack("{s:o, s:s, s:o, s:o, s:I, s:s, s:o, s:o, s:o}", "name", e2b_name_json(path),
                     "type", type_name(link ? e->target_type : e->type), "path", text(path), "size",
                     rpc_int64((int64_t) e->size), "mode",
                     (json_int_t) ((link ? e->target_mode : e->mode) & 0777), "permissions",
                     permissions, "owner", who(e->owner, e->uid), "group", who(e->group, e->gid),
                     "modifiedTime", time_json(e->mtime_ns));
    if (link) /* one that leads nowhere names itself */
        (void) json_object_set_new(
            json, "symlinkTarget",
            text(e->target && e->target_type != ENTRY_NONE ? e->target : path));
    if (metadata)
        (void) json_object_set_new(json, "metadata", metadata);
    return json;
}
