/* A command that is packed for another process arrives as it was, or not at all. */
#include "agent/core/spawn_pack.h"
#include "base/own.h"
#include "check.h"

static char first[] = "/bin/sh", second[] = "", third[] = "with a space", key[] = "K=v",
            empty[] = "EMPTY=";
static char *argv_room[] = { NULL, first, second, third, NULL };
static char *envp[] = { key, empty, NULL };

static struct spawn whole(void)
{
    struct spawn spawn = { .user = { .name = "user", .uid = 1000, .home = "/home/user" },
                           .pty = true,
                           .own_cwd = true,
                           .shell = true,
                           .cwd = "sub",
                           .argv = argv_room + 1,
                           .envp = envp,
                           .open_files = 4096,
                           .stdio = { 7, 8, 9 } };

    return spawn;
}

static void a_command_arrives_as_it_was(void)
{
    struct spawn sent = whole(), got;
    char bytes[4096];
    size_t len = spawn_pack(&sent, bytes, sizeof bytes);

    CHECK(len > 0);
    CHECK_INT(spawn_unpack(&got, bytes, len), 0);
    CHECK_STR(got.user.name, "user");
    CHECK_INT(got.user.uid, 1000);
    CHECK(got.pty && got.own_cwd && got.shell && !got.root_profile);
    CHECK_INT((int) got.open_files, 4096);
    CHECK_STR(got.cwd, "sub");
    CHECK_STR(got.argv[0], "/bin/sh");
    CHECK_STR(got.argv[1], "");
    CHECK_STR(got.argv[2], "with a space");
    CHECK(!got.argv[3] && !got.argv[-1]); /* the place in front is spawn.c's */
    CHECK_STR(got.envp[0], "K=v");
    CHECK_STR(got.envp[1], "EMPTY=");
    CHECK(!got.envp[2]);
    CHECK(got.stdio[0] == 0 && got.stdio[1] == 0 && got.stdio[2] == 0);
    spawn_done(&got);
}

static void a_command_without_directory_and_environment_arrives(void)
{
    static char *none[] = { NULL };
    struct spawn sent = whole(), got;
    char bytes[4096];
    size_t len;

    sent.cwd = NULL;
    sent.envp = none;
    len = spawn_pack(&sent, bytes, sizeof bytes);
    CHECK_INT(spawn_unpack(&got, bytes, len), 0);
    CHECK(!got.cwd && !got.envp[0]);
    spawn_done(&got);
}

static void what_does_not_fit_is_not_packed(void)
{
    struct spawn sent = whole();
    char bytes[4096];
    size_t len = spawn_pack(&sent, bytes, sizeof bytes);

    for (size_t room = 0; room < len; room++)
        CHECK_INT(spawn_pack(&sent, bytes, room), 0);
    CHECK_INT(spawn_pack(&sent, bytes, len), len);
}

static void bytes_that_are_missing_or_too_many_are_refused(void)
{
    struct spawn sent = whole(), got;
    char bytes[4096] = { 0 };
    size_t len = spawn_pack(&sent, bytes, sizeof bytes);

    for (size_t cut = 0; cut < len; cut++)
        CHECK_INT(spawn_unpack(&got, bytes, cut), -1);
    CHECK_INT(spawn_unpack(&got, bytes, len + 1), -1);
}

int main(void)
{
    static const struct check_test tests[] = {
        T(a_command_arrives_as_it_was),
        T(a_command_without_directory_and_environment_arrives),
        T(what_does_not_fit_is_not_packed),
        T(bytes_that_are_missing_or_too_many_are_refused),
    };

    return check_run(tests, ARRAY_LEN(tests));
}
