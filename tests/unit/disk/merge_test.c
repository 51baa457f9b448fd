#include "check.h"

#include "base/io.h"
#include "base/own.h"
#include "disk/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LAYERS 3

static char scratch[] = "/tmp/cove-merge.XXXXXX";
static int layer[LAYERS], to, links;
static struct err err;

static void run(const char *command)
{
    CHECK(system(command) == 0); /* NOLINT: names are ours */
}

/* The uppermost is 0. */
static void begin(void)
{
    static int n;
    char name[16], command[64];

    CHECK((n > 0 || mkdtemp(scratch)) && chdir(scratch) == 0);
    (void) snprintf(command, sizeof command, "mkdir %d && cd %d && mkdir 0 1 2 to links", n, n);
    run(command);
    (void) snprintf(name, sizeof name, "%d", n++);
    CHECK(chdir(name) == 0);
    for (int i = 0; i < LAYERS; i++) {
        (void) snprintf(name, sizeof name, "%d", i);
        layer[i] = open(name, O_RDONLY | O_DIRECTORY);
    }
    to = open("to", O_RDONLY | O_DIRECTORY);
    links = open("links", O_RDONLY | O_DIRECTORY);
}

static int merge(void)
{
    int rc = merge_trees(layer, LAYERS, to, links, &err);

    for (int i = 0; i < LAYERS; i++)
        (void) close(layer[i]);
    (void) close(to);
    (void) close(links);
    return rc;
}

static void whiteout(const char *path)
{
    CHECK(mknod(path, S_IFCHR, makedev(0, 0)) == 0);
}

static void opaque(const char *path)
{
    CHECK(setxattr(path, "trusted.overlay.opaque", "y", 1, 0) == 0);
}

static bool is_opaque(const char *path)
{
    char value = 0;

    return getxattr(path, "trusted.overlay.opaque", &value, 1) == 1 && value == 'y';
}

static bool is_whiteout(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == 0;
}

static const char *text_of(const char *path)
{
    static char text[64];

    return io_read_text(AT_FDCWD, path, text, sizeof text) < 0 ? "(none)" : text;
}

static void the_uppermost_counts(void)
{
    begin();
    run("mkdir 0/d 1/d 2/d; echo 0 >0/a; echo 1 >1/a; echo 2 >2/b; echo 1 >1/d/x; echo 2 >2/d/x; "
        "echo 2 >2/d/y;"
        "chmod 0750 0/d; chmod 0700 1/d");
    CHECK(merge() == 0);
    CHECK_STR(text_of("to/a"), "0\n");
    CHECK_STR(text_of("to/b"), "2\n");
    CHECK_STR(text_of("to/d/x"), "1\n");
    CHECK_STR(text_of("to/d/y"), "2\n");
    run("test $(stat -c %a to/d) = 750");
    CHECK(!is_opaque("to/d"));
}

static void what_was_deleted_stays_so_also_below_all(void)
{
    begin();
    run("echo 1 >1/a; mkdir 0/d 2/d; echo 2 >2/d/x");
    whiteout("0/a");
    whiteout("0/d/x");
    whiteout("2/template");
    CHECK(merge() == 0);
    CHECK(is_whiteout("to/a") && is_whiteout("to/d/x") && is_whiteout("to/template"));
    /* or the kernel would list it where there is no such directory below */
    CHECK(getxattr("to/d", "trusted.overlay.origin", NULL, 0) == 0);
}

static void a_directory_that_begins_anew_hides_all_below(void)
{
    begin();
    run("mkdir -p 0/d 1/d 2/d; echo 0 >0/d/a; echo 1 >1/d/b; echo 2 >2/d/c");
    opaque("1/d");
    whiteout("0/d/t");
    CHECK(merge() == 0);
    CHECK(is_opaque("to/d"));
    CHECK(access("to/d/a", F_OK) == 0 && access("to/d/b", F_OK) == 0 && access("to/d/c", F_OK) < 0);
    CHECK(access("to/d/t", F_OK) < 0); /* there is nothing that it could hide */
}

static void a_directory_over_something_else_is_one_that_begins_anew(void)
{
    begin();
    run("mkdir -p 0/d 2/d 0/e 2/e; echo 1 >1/d; echo 2 >2/d/c; echo 2 >2/e/c; ln -s nowhere 1/f; "
        "mkdir 0/f");
    whiteout("1/e");
    CHECK(merge() == 0);
    CHECK(is_opaque("to/d") && is_opaque("to/e") && is_opaque("to/f"));
    CHECK(access("to/d/c", F_OK) < 0 && access("to/e/c", F_OK) < 0);
}

static void a_file_over_a_directory_is_a_file(void)
{
    begin();
    run("echo 0 >0/d; mkdir 1/d; echo 1 >1/d/x");
    CHECK(merge() == 0);
    CHECK_STR(text_of("to/d"), "0\n");
}

static void names_of_one_file_are_names_of_one_file(void)
{
    begin();
    run("mkdir 1/d; echo 1 >1/a; ln 1/a 1/d/b; ln 1/a 1/c; echo 0 >0/c; echo 2 >2/x; ln 2/x 2/y");
    CHECK(merge() == 0);
    run("test $(stat -c %i to/a) = $(stat -c %i to/d/b)");
    run("test $(stat -c %i to/a) != $(stat -c %i to/c)");
    run("test $(stat -c %i to/x) = $(stat -c %i to/y)");
    run("test $(stat -c %i to/a) != $(stat -c %i to/x)");
}

static void all_that_a_file_is_comes_along(void)
{
    begin();
    run("echo x >1/f; chown 7:8 1/f; chmod 4711 1/f; touch -d @1234.5 1/f;"
        "truncate -s 1M 1/hole; printf end >>1/hole; mkfifo -m 0620 1/p; ln -s ../over/there 1/l;"
        "chown -h 9:9 1/l; touch -hd @77 1/l; mkdir 1/d; touch 1/d/x; touch -d @99 1/d");
    CHECK(setxattr("1/f", "user.note", "v", 1, 0) == 0);
    CHECK(setxattr("1/f", "trusted.overlay.origin", "v", 1, 0) == 0);
    CHECK(setxattr("1/f", "trusted.overlay.overlay.opaque", "y", 1, 0) == 0);
    CHECK(merge() == 0);
    run("test \"$(stat -c '%a %u %g %.1Y' to/f)\" = '4711 7 8 1234.5'");
    run("cmp 1/hole to/hole && test $(stat -c %b to/hole) -lt 100");
    run("test \"$(stat -c '%F %a' to/p)\" = 'fifo 620'");
    run("test \"$(readlink to/l) $(stat -c '%u %Y' to/l) $(stat -c %Y to/d)\" = '../over/there 9 "
        "77 99'");
    CHECK(getxattr("to/f", "user.note", NULL, 0) == 1);
    CHECK(getxattr("to/f", "trusted.overlay.overlay.opaque", NULL, 0) == 1);
    CHECK(getxattr("to/f", "trusted.overlay.origin", NULL, 0) < 0); /* of another layer's */
}

static void a_link_leads_nowhere(void)
{
    begin();
    run("mkdir 2/d; echo 2 >2/d/x; ln -s / 1/d; ln -s d 0/e; mkdir 1/e; echo 1 >1/e/y");
    CHECK(merge() == 0);
    run("test -L to/d && test -L to/e && test \"$(readlink to/d)\" = /");
}

static void bytes_that_are_elsewhere_are_refused(void)
{
    begin();
    run("echo 1 >1/f");
    CHECK(setxattr("1/f", "trusted.overlay.metacopy", "", 0, 0) == 0);
    CHECK(merge() == -1);
    CHECK_STR(err.msg, "a layer has files whose bytes are elsewhere");
    begin();
    run("mkdir 1/d");
    CHECK(setxattr("1/d", "trusted.overlay.redirect", "/x", 2, 0) == 0);
    CHECK(merge() == -1);
}

static void directories_that_are_too_deep_are_refused(void)
{
    struct rlimit files = { 8192, 8192 };
    char name[16] = "d";
    int at;

    (void) setrlimit(RLIMIT_NOFILE, &files);
    begin();
    at = dup(layer[1]);
    for (int i = 0; i <= MERGE_DEPTH_MAX; i++) {
        int next;

        CHECK(mkdirat(at, name, 0700) == 0);
        next = openat(at, name, O_RDONLY | O_DIRECTORY);
        (void) close(at);
        at = next;
    }
    (void) close(at);
    CHECK(merge() == -1);
    CHECK_STR(err.msg, "directories are more than 1000 deep");
}

static void no_layer_and_too_many_are_refused(void)
{
    int many[MERGE_MAX + 1] = { 0 };

    CHECK(merge_trees(many, 0, -1, -1, &err) == -1);
    CHECK(merge_trees(many, MERGE_MAX + 1, -1, -1, &err) == -1);
}

static void the_scratch_directory_goes(void)
{
    char command[64];

    (void) snprintf(command, sizeof command, "cd / && rm -rf %s", scratch);
    run(command);
    CHECK(access(scratch, F_OK) < 0);
}

CHECK_MAIN(T(the_uppermost_counts), T(what_was_deleted_stays_so_also_below_all),
           T(a_directory_that_begins_anew_hides_all_below),
           T(a_directory_over_something_else_is_one_that_begins_anew),
           T(a_file_over_a_directory_is_a_file), T(names_of_one_file_are_names_of_one_file),
           T(all_that_a_file_is_comes_along), T(a_link_leads_nowhere),
           T(bytes_that_are_elsewhere_are_refused), T(directories_that_are_too_deep_are_refused),
           T(no_layer_and_too_many_are_refused), T(the_scratch_directory_goes))
