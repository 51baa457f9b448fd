#include "agent/core/user.h"
#include "base/io.h"
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char etc[64];

static void write_file(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    (void) snprintf(path, sizeof path, "%s/%s", etc, name);
    (void) unlink(path);
    file = fopen(path, "w");
    if (file) {
        (void) fputs(text, file);
        (void) fclose(file);
    }
}

static bool parses(const char *line)
{
    struct user user;

    return user_parse_passwd(line, strlen(line), &user);
}

static void lines_that_are_not_whole_are_nobody(void)
{
    char longer[400];

    CHECK(parses("user:x:1000:1000:,,,:/home/user:/bin/sh"));
    CHECK(!parses(""));
    CHECK(!parses("user"));
    CHECK(!parses(":x:0:0::/:/bin/sh"));
    CHECK(!parses("user:x:1000:1000:/home/user:/bin/sh"));
    CHECK(!parses("user:x:1000:1000::/home/user:/bin/sh:more"));
    CHECK(!parses("user:x::1000::/home/user:/bin/sh"));
    CHECK(!parses("user:x:-1:1000::/home/user:/bin/sh"));
    CHECK(!parses("user:x: 0:1000::/home/user:/bin/sh"));
    CHECK(!parses("user:x:0x0:1000::/home/user:/bin/sh"));
    CHECK(!parses("user:x:1000a:1000::/home/user:/bin/sh"));
    CHECK(!parses("user:x:4294967295:1000::/home/user:/bin/sh"));
    CHECK(!parses("user:x:4294967296:1000::/home/user:/bin/sh"));
    CHECK(!parses("us\ter:x:1000:1000::/home/user:/bin/sh"));
    (void) snprintf(longer, sizeof longer, "%0100d:x:1:1::/:/bin/sh", 7);
    CHECK(!parses(longer));
}

static void a_user_is_found_with_its_groups(void)
{
    struct user user;
    struct err err;

    write_file("passwd", "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1001::/home/user:/bin/zsh");
    write_file("group", "user:x:1001:user\nA:x:5:other,user\nbad:x:y:user\nB:x:6:users,use\n"
                        "C:x:7:user\nD:x:7:user\n");
    CHECK(user_find(etc, "user", false, &user, &err) == 0);
    CHECK_INT(user.uid, 1000);
    CHECK_INT(user.gid, 1001);
    CHECK_STR(user.home, "/home/user");
    CHECK_STR(user.shell, "/bin/zsh");
    CHECK_INT(user.group_count, 2);
    CHECK_INT(user.groups[0], 5);
    CHECK_INT(user.groups[1], 7);
}

static void an_unknown_user_is_an_error_and_never_root(void)
{
    struct user user;
    struct err err;

    write_file("passwd", "root:x:0:0:root:/root:/bin/sh\nroot2:x:0:0::/:/bin/sh\n");
    CHECK(user_find(etc, "use", true, &user, &err) < 0);
    CHECK_INT(err.kind, ERR_NO_USER);
    CHECK_STR(err.msg, "no user 'use' in the sandbox");
    CHECK(user_find(etc, "", true, &user, &err) < 0);
    CHECK(user_find(etc, "root2", false, &user, &err) < 0);
    CHECK_INT(err.kind, ERR_NO_ROOT);
    CHECK(user_find(etc, "root2", true, &user, &err) == 0);
}

static void the_first_of_two_lines_counts(void)
{
    struct user user;
    struct err err;

    write_file("passwd", "user:x:5:5::/a:/bin/sh\nuser:x:0:0::/b:/bin/sh\n");
    CHECK(user_find(etc, "user", false, &user, &err) == 0);
    CHECK_INT(user.uid, 5);
}

static void long_lines_are_skipped_and_do_not_split(void)
{
    static char text[9000];
    struct user user;
    struct err err;

    memset(text, 'x', 5000);
    (void) strcpy(text + 5000, "user:x:7:7::/x:/bin/sh\nuser:x:8:8::/y:/bin/sh\n");
    write_file("passwd", text);
    CHECK(user_find(etc, "user", false, &user, &err) == 0);
    CHECK_INT(user.uid, 8);
}

static void a_pipe_or_a_link_is_no_passwd_file(void)
{
    struct user user;
    struct err err;
    char path[128];

    (void) snprintf(path, sizeof path, "%s/passwd", etc);
    (void) unlink(path);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK(user_find(etc, "user", false, &user, &err) < 0);
    (void) unlink(path);
    CHECK(symlink("/etc/passwd", path) == 0);
    CHECK(user_find(etc, "user", false, &user, &err) < 0);
    (void) unlink(path);
    CHECK(user_find(etc, "user", false, &user, &err) < 0);
    CHECK_INT(err.kind, ERR_NO_PATH);
    CHECK(user_find(etc, "root", false, &user, &err) < 0);
    CHECK(user_find(etc, "root", true, &user, &err) == 0);
}

static void names_and_numbers_are_found_both_ways(void)
{
    char name[16];
    uint32_t id = 0;

    write_file("passwd", "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n");
    write_file("group", "staff:x:50:\nverylongnameofgroup:x:51:\n");
    CHECK(user_name_of(etc, 1000, name, sizeof name));
    CHECK_STR(name, "user");
    CHECK(!user_name_of(etc, 1001, name, sizeof name));
    CHECK(user_group_name_of(etc, 50, name, sizeof name));
    CHECK_STR(name, "staff");
    CHECK(!user_group_name_of(etc, 51, name, sizeof name));
    CHECK(user_uid_of(etc, "user", &id) && id == 1000);
    CHECK(user_gid_of(etc, "staff", &id) && id == 50);
    CHECK(!user_gid_of(etc, "user", &id));
}

static void an_owner_is_a_name_or_else_a_number(void)
{
    uint32_t uid = 0, gid = 0;
    struct err err = { .kind = ERR_NONE };

    write_file("passwd", "user:x:1000:1001::/home/user:/bin/sh\n7:x:70:71::/:/bin/sh\n");
    write_file("group", "staff:x:50:\n");
    CHECK_INT(user_owner_of(etc, "user", "staff", &uid, &gid, &err), 0);
    CHECK(uid == 1000 && gid == 50);
    CHECK_INT(user_owner_of(etc, "7", "8", &uid, &gid, &err), 0);
    CHECK(uid == 70 && gid == 8);
    CHECK_INT(user_owner_of(etc, NULL, "4294967294", &uid, &gid, &err), 0);
    CHECK(uid == UINT32_MAX && gid == 4294967294u);
    CHECK_INT(user_owner_of(etc, "user", "nogroup", &uid, &gid, &err), -1);
    CHECK_INT(err.kind, ERR_NO_USER);
    CHECK_INT(user_owner_of(etc, "4294967295", NULL, &uid, &gid, &err), -1);
    CHECK_STR(err.msg, "no user '4294967295'");
    CHECK(user_group_of(etc, 1000) == 1001 && user_group_of(etc, 5) == 5);
}

static void scratch_is_removed(void)
{
    static const char *const files[] = { "passwd", "group" };
    char path[128];

    for (size_t i = 0; i < 2; i++) {
        (void) snprintf(path, sizeof path, "%s/%s", etc, files[i]);
        (void) unlink(path);
    }
    CHECK(rmdir(etc) == 0);
}

int main(void)
{
    static const struct check_test tests[] = {
        T(lines_that_are_not_whole_are_nobody),
        T(a_user_is_found_with_its_groups),
        T(an_unknown_user_is_an_error_and_never_root),
        T(the_first_of_two_lines_counts),
        T(long_lines_are_skipped_and_do_not_split),
        T(a_pipe_or_a_link_is_no_passwd_file),
        T(names_and_numbers_are_found_both_ways),
        T(an_owner_is_a_name_or_else_a_number),
        T(scratch_is_removed),
    };

    (void) strcpy(etc, "/tmp/cove-user-XXXXXX");
    if (!mkdtemp(etc))
        return 1;
    return check_run(tests, sizeof tests / sizeof tests[0]);
}
