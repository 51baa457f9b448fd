#include "server/serve/admin.h"

#include "base/log.h"
#include "base/own.h"
#include "base/parse.h"
#include "server/net/network.h"
#include "server/serve/listener.h"

#include <grp.h>

static int find_group(const char *name, gid_t *ret, struct err *err)
{
    const struct group *group;
    uint64_t gid;

    *ret = ADMIN_ROOT;
    if (!name[0])
        return 0;
    group = getgrnam(name);
    if (!group && (parse_u64(name, &gid, err) < 0 || gid > INT32_MAX))
        return err_set(err, ERR_USAGE, "admin_group: there is no group '%.60s'", name);
    *ret = group ? group->gr_gid : (gid_t) gid;
    return 0;
}

/* The keeper's socket is the way to more than this one. A server that can only use that one does so. */
static void open_own(struct app *app)
{
    struct err err;

    if (admin_listen(app_config(app)->state, app->admin_rule.group, &app->admin_fd, &err) < 0)
        log_line(LOG_WARNING, "no socket for administrators: %s", err.msg);
}

int admin_prepare(struct app *app, struct err *err)
{
    const struct config *config = app_config(app);

    app->admin_fd = -1;
    app->admin_rule = (struct admin_rule){
        .never = { network_uid(app), geteuid() ? geteuid() : ADMIN_NOBODY, ADMIN_NOBODY },
    };
    if (find_group(config->admin_group, &app->admin_rule.group, err) < 0 ||
        listener_inherited_local(&app->admin_fd, err) < 0)
        return -1;
    if (app->admin_fd < 0)
        open_own(app);
    return 0;
}

bool admin_knows(struct app *app, int fd, uid_t *ret_uid)
{
    return admin_peer(fd, &app->admin_rule, ret_uid);
}
