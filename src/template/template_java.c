#include "template/template_java.h"

#include "template/embed.h"
#include "template/tree.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

EMBED(java_launcher, "inside/java.sh")

bool template_has_java(int root_fd)
{
    struct stat st; /* Debian's is a link to an absolute path: what it leads to is not looked for */

    return fstatat(root_fd, root_fd == AT_FDCWD ? "/usr/bin/java" : "usr/bin/java", &st,
                   AT_SYMLINK_NOFOLLOW) == 0;
}

int template_put_java(int root_fd, struct err *err)
{
    static const char file[] = "opt/cove/bin/java";

    if (tree_holds(root_fd, file, kernel_java_launcher))
        return 0;
    if (tree_remove(root_fd, file, err) < 0)
        return -1;
    return tree_put(root_fd, file, kernel_java_launcher, strlen(kernel_java_launcher), 0755, 0,
                    err);
}
