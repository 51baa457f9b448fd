#include "cli/users.h"

#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static int user_make(const char *name, struct err *err)
{
    int status;
    pid_t pid = fork();

    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (pid == 0) {
        (void) execlp("useradd", "useradd", "--system", "--user-group", "--no-create-home",
                      "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", name,
                      (char *) NULL);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) < 0)
        return err_sys(err, errno, "wait for useradd");
    if (status != 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "the server needs a user '%s', and useradd could not make it; "
                       "make it, or use --no-server",
                       name);
    return 0;
}

int user_ensure(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct err *err)
{
    const struct passwd *user = getpwnam(name);

    if (!user) {
        /* Another `cove up` may have made it at the same moment. */
        int r = user_make(name, err);

        user = getpwnam(name);
        if (!user)
            return r < 0 ? -1 : err_set(err, ERR_UNAVAILABLE, "there is no user '%s'", name);
    }
    if (user->pw_uid == 0)
        return err_set(err, ERR_DENIED, "the user '%s' is root: the server must not be", name);
    *ret_uid = user->pw_uid;
    *ret_gid = user->pw_gid;
    return 0;
}
