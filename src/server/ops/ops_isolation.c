/* Which isolation a create gets, and whether its tenant may have that one. */
#include "server/guard/quota.h"
#include "server/ops/ops_own.h"
#include "server/ops/ops_template.h"

#include <string.h>

int ops_check_isolation(struct ops *ops, uint32_t isolation, struct err *err)
{
    uint32_t least;

    if (quota_isolation(ops->caller, &least, err) < 0)
        return -1;
    if (isolation_level(isolation) >= least)
        return 0;
    err_set(err, ERR_DENIED, "isolation: sandboxes of this tenant have '%s' or more, not '%s'",
            isolation_name(least), isolation_name(isolation));
    return caller_blame(ops->caller, "isolation", NULL, NULL);
}

int ops_wanted_isolation(struct ops *ops, const struct ops_create *create, uint32_t *ret,
                         struct err *err)
{
    const char *said = create->isolation ? create->isolation : create->wish;
    uint32_t least;

    if (isolation_parse(said ? said : app_config(ops->app)->isolation, ret, err) < 0)
        return said == create->wish && said ? err_wrap(err, "label " OPS_LABEL_ISOLATION) : -1;
    if (quota_isolation(ops->caller, &least, err) < 0)
        return -1;
    if (!create->isolation && isolation_level(*ret) < least)
        *ret = least;
    return 0;
}

static int choose_fixed(struct ops *ops, const struct ops_create *create, struct err *err)
{
    if (!create->isolation || strcmp(create->isolation, isolation_name(create->chosen)) == 0)
        return ops_check_isolation(ops, create->chosen, err);
    err_set(err, ERR_UNSUPPORTED,
            "isolation: the processes of the snapshot are of a sandbox with isolation '%s'",
            isolation_name(create->chosen));
    return caller_blame(ops->caller, "isolation", NULL, NULL);
}

int ops_choose_isolation(struct ops *ops, struct ops_create *create, struct err *err)
{
    uint32_t least;

    if (create->fixed)
        return choose_fixed(ops, create, err);
    if (create->isolation || !create->snapshot)
        return ops_wanted_isolation(ops, create, &create->chosen, err) < 0
                   ? -1
                   : ops_check_isolation(ops, create->chosen, err);
    if (quota_isolation(ops->caller, &least, err) < 0)
        return -1;
    if (isolation_level(create->chosen) < least)
        create->chosen = least;
    return 0;
}
