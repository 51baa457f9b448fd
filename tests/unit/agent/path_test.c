#include "agent/worker/path.h"

#include "check.h"

#include <errno.h>

static const char *resolved(const char *home, const char *text)
{
    static char out[PATH_TEXT_MAX];
    static struct err err;

    return path_resolve(home, text, out, &err) < 0 ? err.msg : out;
}

static void a_path_that_does_not_fit_is_refused(void)
{
    static char text[PATH_TEXT_MAX + 10];
    static char out[PATH_TEXT_MAX];
    struct err err;

    memset(text, 'x', sizeof text - 1);
    CHECK(path_resolve("/home/user", text, out, &err) == -1);
    CHECK_INT(err.kind, ERR_INVALID);
    CHECK_STR(err.msg, "path: longer than 8192 bytes");
}

static void paths_are_absolute_or_below_home(void)
{
    CHECK_STR(resolved("/home/user", "/etc/passwd"), "/etc/passwd");
    CHECK_STR(resolved("/home/user", "a/b"), "/home/user/a/b");
    CHECK_STR(resolved("/home/user", "~"), "/home/user");
    CHECK_STR(resolved("/home/user", "~/a"), "/home/user/a");
    CHECK_STR(resolved("/home/user", "~other"), "/home/user/~other");
    CHECK_STR(resolved("/home/user", "/~"), "/~");
    CHECK_STR(resolved("/home/user/", "."), "/home/user");
    CHECK_STR(resolved("/", "."), "/");
    CHECK_STR(resolved("/", "a"), "/a");
}

static void text_is_tidied_but_the_kernel_resolves(void)
{
    CHECK_STR(resolved("/h", "//a///b/./c/"), "/a/b/c");
    CHECK_STR(resolved("/h", "/a/../b"), "/a/../b"); /* a may be a link */
    CHECK_STR(resolved("/h", ".."), "/h/..");
    CHECK_STR(resolved("/h", "/"), "/");
    CHECK_STR(resolved("/h", "/..."), "/...");
}

static void special_names_are_known(void)
{
    CHECK(path_is_special("/"));
    CHECK(path_is_special("/a/.."));
    CHECK(path_is_special("/a/."));
    CHECK(!path_is_special("/a/..."));
    CHECK(!path_is_special("/a"));
    CHECK_STR(path_base("/a/b"), "b");
}

static void an_error_keeps_its_reason_whatever_the_path(void)
{
    char path[1000];
    struct err err;

    CHECK(path_err(&err, ENOENT, "/a") == -1);
    CHECK_STR(err.msg, "/a: No such file or directory");
    CHECK_INT(err.kind, ERR_NO_PATH);
    CHECK(path_err(&err, ENOSPC, "/a") == -1);
    CHECK_STR(err.msg, "/a: the disk is full");
    CHECK_INT(err.kind, ERR_DISK_FULL);
    CHECK(path_err(&err, EDQUOT, "/a") == -1);
    CHECK_STR(err.msg, "/a: the disk is full");
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    memcpy(path + sizeof path - 5, "/end", 4);
    (void) path_err(&err, EACCES, path);
    CHECK(strncmp(err.msg, "...x", 4) == 0);
    CHECK(strstr(err.msg, "/end: Permission denied"));
}

CHECK_MAIN(T(a_path_that_does_not_fit_is_refused), T(paths_are_absolute_or_below_home),
           T(text_is_tidied_but_the_kernel_resolves), T(special_names_are_known),
           T(an_error_keeps_its_reason_whatever_the_path))
