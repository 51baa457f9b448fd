#include "agent/xattr.h"

#include "agent/answer.h"
#include "agent/path.h"
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
