#include "agent/worker/xattr.h"

#include "agent/worker/answer.h"
#include "agent/worker/path.h"
#include "base/own.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

/* What a reply can carry; what can be set can also be read. */
#define VALUE_MAX 32768u
#define LIST_MAX  65536u /* the kernel's own limit */

static int xattr_err(struct err *err, int errnum, const char *path, const char *name)
{
    if (errnum == ENODATA)
        return path_fail(err, ERR_NO_PATH, path, "no such attribute");
    if (errnum == EOPNOTSUPP)
        return path_fail(err, ERR_UNSUPPORTED, path, "no attributes of this kind here");
    if (errnum == ERANGE || errnum == E2BIG)
        return err_set(err, ERR_TOO_BIG, "%s: the attribute is over %u bytes", name, VALUE_MAX);
    return path_err(err, errnum, path);
}

int xattr_get(struct worker *w, struct err *err)
{
    static char value[VALUE_MAX];
    char path[PATH_TEXT_MAX];
    struct agent_reply reply = { 0 };
    ssize_t n;

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    n = getxattr(path, w->request->name, value, sizeof value);
    if (n < 0)
        return xattr_err(err, errno, path, w->request->name);
    reply.name = w->request->name;
    reply.data = (struct bytes){ .data = value, .len = (uint32_t) n };
    return answer_record(w, FRAME_REPLY, &reply, err);
}

int xattr_set(struct worker *w, struct err *err)
{
    const struct agent_request *r = w->request;
    char path[PATH_TEXT_MAX];
    struct agent_reply reply = { 0 };

    if (path_resolve(w->user->home, r->path, path, err) < 0)
        return -1;
    if (r->value.len > VALUE_MAX)
        return xattr_err(err, E2BIG, path, r->name);
    if (setxattr(path, r->name, r->value.len ? r->value.data : "", r->value.len, 0) < 0)
        return xattr_err(err, errno, path, r->name);
    return answer_record(w, FRAME_REPLY, &reply, err);
}

int xattr_list(struct worker *w, struct err *err)
{
    static char names[LIST_MAX];
    char path[PATH_TEXT_MAX];
    struct agent_reply end = { 0 };
    ssize_t n;

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    n = listxattr(path, names, sizeof names);
    if (n < 0)
        return xattr_err(err, errno, path, "the list");
    for (const char *name = names; name < names + n; name += strlen(name) + 1) {
        struct agent_reply item = { .name = name };

        if (answer_record(w, FRAME_ITEM, &item, err) < 0)
            return -1;
        end.count++;
    }
    return answer_record(w, FRAME_END, &end, err);
}

int xattr_remove(struct worker *w, struct err *err)
{
    char path[PATH_TEXT_MAX];
    struct agent_reply reply = { 0 };

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    if (removexattr(path, w->request->name) < 0)
        return xattr_err(err, errno, path, w->request->name);
    return answer_record(w, FRAME_REPLY, &reply, err);
}

/* Behind the prefix, or NULL. */
static const char *rest_of(const char *name, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(name, prefix, len) == 0 && name[len] ? name + len : NULL;
}

uint32_t xattr_collect(const char *path, const char *prefix, char *out, size_t size)
{
    static char names[LIST_MAX];
    size_t used = 0;
    ssize_t n = listxattr(path, names, sizeof names);

    for (const char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
        const char *rest = rest_of(name, prefix);
        size_t len = rest ? strlen(rest) + 1 : 0;
        ssize_t got;

        if (!rest || used + len + 1 > size)
            continue;
        got = getxattr(path, name, out + used + len, size - used - len - 1);
        if (got < 0 || memchr(out + used + len, '\0', (size_t) got))
            continue;
        memcpy(out + used, rest, len);
        used += len + (size_t) got;
        out[used++] = '\0';
    }
    return (uint32_t) used;
}

static int remove_all(int fd, const char *path, const char *prefix, struct err *err)
{
    static char names[LIST_MAX];
    ssize_t n = flistxattr(fd, names, sizeof names);

    if (n < 0 && errno != EOPNOTSUPP)
        return xattr_err(err, errno, path, "the list");
    for (const char *name = names; n > 0 && name < names + n; name += strlen(name) + 1)
        if (rest_of(name, prefix) && fremovexattr(fd, name) < 0 && errno != ENODATA)
            return xattr_err(err, errno, path, name);
    return 0;
}

int xattr_replace(int fd, const char *path, const char *prefix, const struct texts *attrs,
                  struct err *err)
{
    char name[512];

    if (remove_all(fd, path, prefix, err) < 0)
        return -1;
    for (const char *rest = NULL; (rest = texts_next(attrs, rest));) {
        const char *value = texts_next(attrs, rest);

        if (!value)
            return err_set(err, ERR_INVALID, "attrs: a name without a value");
        if (snprintf(name, sizeof name, "%s%s", prefix, rest) >= (int) sizeof name)
            return err_set(err, ERR_INVALID, "attrs: a name that is too long");
        if (fsetxattr(fd, name, value, strlen(value), 0) < 0)
            return xattr_err(err, errno, path, name);
        rest = value;
    }
    return 0;
}
