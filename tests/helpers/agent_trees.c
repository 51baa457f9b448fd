/* The agent's operations on whole trees: deep, wide, with links and mounts in them. Run by
 * tests/e2e/agent_files_test. */
#include "drive.h"

#include "check.h"

#include <sys/mount.h>

#define REQ(...) ((struct agent_request){ __VA_ARGS__ })

#define DEEP 10000
#define WIDE 50000

/* A chain of directories "d", `levels` of them, with a file at the end. */
static void make_chain(const char *path, int levels)
{
    int fd, next;

    (void) mkdir(path, 0755);
    (void) chown(path, NOBODY, NOBODY);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < levels; i++) {
        (void) mkdirat(fd, "d", 0755);
        (void) fchownat(fd, "d", NOBODY, NOBODY, 0);
        next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void) close(fd);
        fd = next;
    }
    (void) close(openat(fd, "end", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    (void) fchownat(fd, "end", NOBODY, NOBODY, 0);
    (void) close(fd);
}

/* Mode of the directory `levels` below path, or -1. */
static int mode_at(const char *path, int levels)
{
    int fd = open(path, O_PATH | O_CLOEXEC), next;
    struct stat st;

    for (int i = 0; i < levels && fd >= 0; i++) {
        next = openat(fd, "d", O_PATH | O_NOFOLLOW | O_CLOEXEC);
        (void) close(fd);
        fd = next;
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    (void) close(fd);
    return (int) (st.st_mode & 07777);
}

static uint32_t remove_all(const char *path, uint32_t uid)
{
    return ask(REQ(.op = AGENT_REMOVE, .path = path, .flags = AGENT_RECURSIVE), uid);
}

static void the_root_and_mount_points_are_not_removed(void)
{
    (void) mkdir(at("t"), 0755);
    (void) mkdir(at("t/m"), 0755);
    (void) mkdir(at("src"), 0755);
    make_file(at("src/f"), "kept", 0644);
    CHECK_INT(remove_all("/", ROOT), ERR_INVALID);
    CHECK(strstr(last_error, "is the root directory"));
    CHECK_INT(remove_all("t/..", ROOT), ERR_INVALID);
    CHECK_INT(remove_all("/.", ROOT), ERR_INVALID);
    if (mount("m", at("t/m"), "tmpfs", 0, "size=64k") < 0) {
        SKIP("no tmpfs: %s", strerror(errno));
        return;
    }
    make_file(at("t/m/f"), "kept", 0644);
    CHECK_INT(remove_all("t/m", ROOT), ERR_STATE);
    CHECK(strstr(last_error, "t/m: is a mount point"));
    CHECK_INT(ask(REQ(.op = AGENT_REMOVE, .path = "t/m"), ROOT), ERR_STATE);
    CHECK_INT(remove_all("t", ROOT), ERR_STATE);
    CHECK_STR(content(at("t/m/f")), "kept");
    (void) umount2(at("t/m"), MNT_DETACH);
    /* A bind of the same file system looks like any directory, but for the kernel. */
    CHECK(mount(at("src"), at("t/m"), NULL, MS_BIND, NULL) == 0);
    CHECK_INT(remove_all("t", ROOT), ERR_STATE);
    CHECK_STR(content(at("src/f")), "kept");
    (void) umount2(at("t/m"), MNT_DETACH);
    CHECK_INT(remove_all("t", ROOT), ERR_NONE);
    CHECK_INT(remove_all("src", ROOT), ERR_NONE);
}

static void removing_needs_the_word_recursive_and_the_right(void)
{
    (void) mkdir(at("r"), 0755);
    make_file(at("r/f"), "", 0644);
    CHECK_INT(ask(REQ(.op = AGENT_REMOVE, .path = "r"), ROOT), ERR_NOT_EMPTY);
    CHECK_INT(remove_all("r", NOBODY), ERR_DENIED);
    CHECK_INT(entries_in(at("r")), 1);
    CHECK_INT(ask(REQ(.op = AGENT_REMOVE, .path = "r/f"), ROOT), ERR_NONE);
    CHECK_INT(ask(REQ(.op = AGENT_REMOVE, .path = "r/f"), ROOT), ERR_NO_PATH);
    (void) chmod(at("r"), 0); /* unreadable, but empty and in the user's own directory */
    CHECK_INT(remove_all("r", NOBODY), ERR_NONE);
    CHECK_INT(once.reply.count, 1);
}

static void links_are_removed_not_followed(void)
{
    (void) mkdir(at("victim"), 0755);
    make_file(at("victim/f"), "kept", 0644);
    (void) mkdir(at("l"), 0755);
    IGNORE(symlink("../victim", at("l/link")) < 0);
    IGNORE(symlink("victim", at("top")) < 0);
    CHECK_INT(remove_all("l", ROOT), ERR_NONE);
    CHECK_INT(once.reply.count, 2);
    CHECK_INT(remove_all("top", ROOT), ERR_NONE);
    CHECK_STR(content(at("victim/f")), "kept");
    CHECK_INT(remove_all("victim", ROOT), ERR_NONE);
}

/* Swaps a directory for a link to the victim and back, as fast as it can. */
static pid_t start_swapper(void)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    for (;;) {
        (void) rename(at("race/d"), at("aside"));
        IGNORE(symlink(at("victim"), at("race/d")) < 0);
        (void) unlink(at("race/d"));
        (void) rename(at("aside"), at("race/d"));
    }
}

static void a_directory_swapped_for_a_link_leads_nowhere(void)
{
    struct stat st;
    pid_t pid;

    (void) mkdir(at("victim"), 0700);
    make_file(at("victim/f"), "kept", 0600);
    (void) mkdir(at("race"), 0777);
    (void) mkdir(at("race/d"), 0777);
    make_file(at("race/d/f"), "", 0644);
    pid = start_swapper();
    CHECK(pid > 0);
    for (int i = 0; i < 300; i++) {
        (void) ask(REQ(.op = AGENT_CHMOD, .path = "race", .mode = AGENT_MODE_SET | 0777,
                       .flags = AGENT_RECURSIVE),
                   ROOT);
        (void) remove_all("race", ROOT);
        (void) mkdir(at("race"), 0777);
        (void) mkdir(at("race/d"), 0777);
        make_file(at("race/d/x"), "", 0644);
    }
    if (pid > 0) {
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
    }
    CHECK_STR(content(at("victim/f")), "kept");
    CHECK(stat(at("victim/f"), &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(stat(at("victim"), &st) == 0 && (st.st_mode & 0777) == 0700);
    (void) remove_all("race", ROOT);
    (void) remove_all("aside", ROOT);
    (void) remove_all("victim", ROOT);
}

static char listed[4096];

static void note_listed(const struct agent_reply *item)
{
    size_t used = strlen(listed);

    (void) snprintf(listed + used, sizeof listed - used, "%s:%s%s%s ",
                    agent_entry_type_name(item->type), item->path + strlen(dir),
                    item->target ? "->" : "", item->target ? item->target : "");
}

static void a_listing_goes_as_deep_as_asked_and_past_what_it_may_not_read(void)
{
    uint64_t count;

    (void) mkdir(at("l"), 0755);
    (void) mkdir(at("l/closed"), 0700);
    make_file(at("l/closed/f"), "", 0644);
    (void) mkdir(at("l/sub"), 0755);
    make_file(at("l/sub/f"), "", 0644);
    IGNORE(symlink("sub", at("l/link")) < 0);
    listed[0] = '\0';
    CHECK_INT(items(REQ(.op = AGENT_LIST, .path = "l"), NOBODY, note_listed, &count), ERR_NONE);
    CHECK_INT(count, 3);
    CHECK(strstr(listed, "symlink:/l/link->sub "));
    CHECK(strstr(listed, "directory:/l/closed "));
    listed[0] = '\0';
    CHECK_INT(items(REQ(.op = AGENT_LIST, .path = "l", .depth = 9), NOBODY, note_listed, &count),
              0);
    CHECK_INT(count, 4);
    CHECK(strstr(listed, "file:/l/sub/f "));
    CHECK(!strstr(listed, "/l/closed/f") && !strstr(listed, "/l/link/f"));
    CHECK_INT(once.reply.flags, 0);
    CHECK_INT(items(REQ(.op = AGENT_LIST, .path = "l", .depth = 9), ROOT, NULL, &count), ERR_NONE);
    CHECK_INT(count, 5);
    CHECK_INT(items(REQ(.op = AGENT_LIST, .path = "l", .limit = 2), ROOT, NULL, &count), ERR_NONE);
    CHECK_INT(count, 2);
    CHECK_INT(once.reply.flags, AGENT_TRUNCATED);
    CHECK_INT(ask(REQ(.op = AGENT_LIST, .path = "l/closed"), NOBODY), ERR_DENIED);
    (void) remove_all("l", ROOT);
}

static uint8_t seen[WIDE];
static int twice;

static void note_number(const struct agent_reply *item)
{
    int number = atoi(strrchr(item->path, '/') + 2);

    twice += number < 0 || number >= WIDE || seen[number];
    seen[number] = 1;
}

static void fifty_thousand_files_are_listed_once_each_and_removed(void)
{
    uint64_t count;
    int fd;

    (void) mkdir(at("wide"), 0755);
    (void) chown(at("wide"), NOBODY, NOBODY);
    fd = open(at("wide"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < WIDE; i++) {
        char name[32];

        (void) snprintf(name, sizeof name, "f%d", i);
        (void) close(openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    }
    (void) close(fd);
    CHECK_INT(items(REQ(.op = AGENT_LIST, .path = "wide"), NOBODY, note_number, &count), ERR_NONE);
    CHECK_INT(count, WIDE);
    CHECK_INT(twice, 0);
    CHECK_INT(remove_all("wide", NOBODY), ERR_NONE);
    CHECK_INT(once.reply.count, WIDE + 1);
}

static void ten_thousand_levels_can_be_listed_changed_and_removed(void)
{
    uint64_t count;

    make_chain(at("deep"), DEEP);
    CHECK_INT(items(REQ(.op = AGENT_LIST, .path = "deep", .depth = 1000), NOBODY, NULL, &count), 0);
    CHECK_INT(count, 1000);
    CHECK_INT(ask(REQ(.op = AGENT_CHMOD, .path = "deep", .mode = AGENT_MODE_SET | 0700,
                      .flags = AGENT_RECURSIVE),
                  NOBODY),
              ERR_NONE);
    CHECK_INT(once.reply.count, DEEP + 2);
    CHECK_INT(mode_at(at("deep"), DEEP), 0700);
    CHECK_INT(
        items(REQ(.op = AGENT_GLOB, .path = "deep", .pattern = "**/end"), NOBODY, NULL, &count),
        ERR_NONE);
    CHECK_INT(count, 0);
    CHECK_INT(once.reply.flags, AGENT_TRUNCATED); /* its path is longer than any reply */
    CHECK_INT(remove_all("deep", NOBODY), ERR_NONE);
    CHECK_INT(once.reply.count, DEEP + 2);
}

static void a_mode_that_locks_out_can_be_given_and_taken_back(void)
{
    make_chain(at("locked"), 40); /* deeper than what stays open */
    CHECK_INT(ask(REQ(.op = AGENT_CHMOD, .path = "locked", .mode = AGENT_MODE_SET,
                      .flags = AGENT_RECURSIVE),
                  NOBODY),
              ERR_NONE);
    CHECK_INT(mode_at(at("locked"), 40), 0);
    CHECK_INT(ask(REQ(.op = AGENT_CHMOD, .path = "locked", .mode = AGENT_MODE_SET | 0755,
                      .flags = AGENT_RECURSIVE),
                  NOBODY),
              ERR_NONE);
    CHECK_INT(mode_at(at("locked"), 40), 0755);
    (void) remove_all("locked", ROOT);
}

static void owners_change_by_name_and_number_but_not_through_links(void)
{
    struct stat st;

    (void) mkdir(at("o"), 0755);
    make_file(at("o/f"), "", 0644);
    make_file(at("outside"), "", 0644);
    IGNORE(symlink("../outside", at("o/l")) < 0);
    CHECK_INT(ask(REQ(.op = AGENT_CHOWN, .path = "o", .owner = "nosuchuser"), ROOT), ERR_NO_USER);
    CHECK_STR(last_error, "no user 'nosuchuser'");
    CHECK_INT(ask(REQ(.op = AGENT_CHOWN, .path = "o", .group = "12x"), ROOT), ERR_NO_USER);
    CHECK_INT(ask(REQ(.op = AGENT_CHOWN, .path = "o", .owner = "daemon", .group = "77",
                      .flags = AGENT_RECURSIVE),
                  ROOT),
              ERR_NONE);
    CHECK_INT(once.reply.count, 3);
    CHECK_STR(once.reply.owner, "daemon");
    CHECK(stat(at("o/f"), &st) == 0 && st.st_uid == 1 && st.st_gid == 77);
    CHECK(lstat(at("o/l"), &st) == 0 && st.st_uid == 1);
    CHECK(stat(at("outside"), &st) == 0 && st.st_uid == 0 && st.st_gid == 0);
    (void) unlink(at("outside"));
    (void) remove_all("o", ROOT);
}

static void a_tree_moves_to_another_file_system_whole_or_not_at_all(void)
{
    static char big[90000];
    struct stat st;

    (void) mkdir(at("other"), 0777);
    if (mount("other", at("other"), "tmpfs", 0, "size=4m,nr_inodes=3000,mode=0777") < 0) {
        SKIP("no tmpfs: %s", strerror(errno));
        return;
    }
    make_chain(at("chain"), 2000);
    make_file(at("chain/run"), "content", 0750);
    (void) chown(at("chain/run"), NOBODY, NOBODY);
    IGNORE(symlink("/nowhere", at("chain/link")) < 0);
    (void) mkfifo(at("chain/fifo"), 0644);
    CHECK_INT(ask(REQ(.op = AGENT_MOVE, .path = "chain", .to = "other/moved"), NOBODY), ERR_NONE);
    CHECK_INT(mode_at(at("other/moved"), 2000), 0755);
    CHECK(stat(at("other/moved/run"), &st) == 0 && (st.st_mode & 07777) == 0750);
    CHECK_STR(content(at("other/moved/run")), "content");
    CHECK(lstat(at("other/moved/link"), &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(lstat(at("chain"), &st) < 0);
    CHECK_INT(entries_in(at("other")), 1);

    memset(big, 'x', sizeof big - 1);
    (void) mkdir(at("big"), 0755);
    for (int i = 0; i < 60; i++) {
        char name[32];

        (void) snprintf(name, sizeof name, "big/%d", i);
        make_file(at(name), big, 0644);
    }
    CHECK_INT(ask(REQ(.op = AGENT_MOVE, .path = "big", .to = "other/big"), ROOT), ERR_DISK_FULL);
    CHECK_INT(entries_in(at("big")), 60);
    CHECK_INT(entries_in(at("other")), 1);
    CHECK_INT(ask(REQ(.op = AGENT_MOVE, .path = "other", .to = "away"), ROOT), ERR_STATE);
    (void) umount2(at("other"), MNT_DETACH);
    (void) rmdir(at("other"));
    (void) remove_all("big", ROOT);
}

static void a_caller_that_goes_stops_the_work(void)
{
    make_chain(at("long"), 5000);
    drive_start(&once, REQ(.op = AGENT_LIST, .path = "/", .depth = 1000), ROOT);
    CHECK_INT(drive_next(&once), FRAME_ITEM);
    own_close(&once.sock);
    CHECK(drive_ends_within(&once, 10000));
    CHECK_INT(remove_all("long", ROOT), ERR_NONE);
}

static const struct check_test tests[] = {
    T(the_root_and_mount_points_are_not_removed),
    T(removing_needs_the_word_recursive_and_the_right),
    T(links_are_removed_not_followed),
    T(a_directory_swapped_for_a_link_leads_nowhere),
    T(a_listing_goes_as_deep_as_asked_and_past_what_it_may_not_read),
    T(fifty_thousand_files_are_listed_once_each_and_removed),
    T(ten_thousand_levels_can_be_listed_changed_and_removed),
    T(a_mode_that_locks_out_can_be_given_and_taken_back),
    T(owners_change_by_name_and_number_but_not_through_links),
    T(a_tree_moves_to_another_file_system_whole_or_not_at_all),
    T(a_caller_that_goes_stops_the_work),
};

int main(int argc, char **argv)
{
    if (drive_setup(argc, argv) < 0)
        return 2;
    return check_run(tests, ARRAY_LEN(tests));
}
