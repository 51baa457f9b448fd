#include "base/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>

bool kernel_at_least(const char *release, unsigned major, unsigned minor)
{
    unsigned has_major, has_minor;

    if (sscanf(release, "%u.%u", &has_major, &has_minor) != 2)
        return false;
    return has_major > major || (has_major == major && has_minor >= minor);
}

int kernel_check(struct err *err)
{
    struct utsname name;

    if (uname(&name) < 0)
        return err_sys(err, errno, "uname");
    if (!kernel_at_least(name.release, KERNEL_LEAST_MAJOR, KERNEL_LEAST_MINOR))
        return err_set(err, ERR_UNSUPPORTED,
                       "cove needs " KERNEL_LEAST " or newer; this is Linux %.60s", name.release);
    return 0;
}
