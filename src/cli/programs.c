#include "cli/programs.h"

#include "base/own.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static const char *const places[] = { "", "../libexec/cove/" };

int program_find(const char *name, char *out, size_t size, struct err *err)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (len < 0)
        return err_sys(err, errno, "read /proc/self/exe");
    self[len] = '\0';
    slash = strrchr(self, '/');
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int n = snprintf(out, size, "%s%s%s", self, places[i], name);

        if (n > 0 && (size_t) n < size && access(out, X_OK) == 0)
            return 0;
    }
    return err_set(err, ERR_UNAVAILABLE, "%s is neither beside cove (%s) nor in ../libexec/cove",
                   name, self);
}
