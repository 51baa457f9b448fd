#include "jail/mountfd.h"

#include "base/own.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The kernel explains a refused option in the context's own log: one line, if there is one. */
static int refused(struct err *err, int fs, int errnum, const char *type, const char *what)
{
    char why[128];
    ssize_t n = read(fs, why, sizeof why - 1);

    if (n > 0) {
        why[n] = '\0';
        why[strcspn(why, "\n")] = '\0';
        return err_sys(err, errnum, "%s %s (%s)", type, what, why);
    }
    return err_sys(err, errnum, "%s %s", type, what);
}

int mountfd_proc(struct err *err)
{
    return mountfd_new("proc", (const char *const[]){ "source", "proc", NULL },
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
}

int mountfd_new(const char *type, const char *const *options, unsigned attributes, struct err *err)
{
    auto_close int fs = (int) syscall(__NR_fsopen, type, FSOPEN_CLOEXEC);
    int fd;

    if (fs < 0)
        return err_sys(err, errno, "open file system %s", type);
    for (; options[0]; options += 2) {
        bool flag = !options[1][0];

        if (syscall(__NR_fsconfig, fs, flag ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, options[0],
                    flag ? NULL : options[1], 0) < 0)
            return refused(err, fs, errno, type, options[0]);
    }
    if (syscall(__NR_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return refused(err, fs, errno, type, "create");
    fd = (int) syscall(__NR_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
    if (fd < 0)
        return refused(err, fs, errno, type, "mount");
    return fd;
}
