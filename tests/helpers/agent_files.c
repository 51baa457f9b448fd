/* The agent's file operations, as root and as an ordinary user. Run by tests/e2e/agent_files_test. */
#include "drive.h"

#include "check.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define REQ(...) ((struct agent_request){ __VA_ARGS__ })

static void a_path_that_is_not_there_is_not_found(void)
{
    static const uint32_t ops[] = { AGENT_STAT,   AGENT_READ,       AGENT_LIST,
                                    AGENT_REMOVE, AGENT_XATTR_LIST, AGENT_WATCH };

    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        CHECK_INT(ask(REQ(.op = ops[i], .path = "nothing/here"), NOBODY), ERR_NO_PATH);
    CHECK_INT(ask(REQ(.op = AGENT_STAT, .path = "nothing"), NOBODY), ERR_NO_PATH);
    CHECK(strstr(last_error, "/nothing: No such file or directory"));
    CHECK_INT(ask(REQ(.op = AGENT_MOVE, .path = "nothing", .to = "x"), NOBODY), ERR_NO_PATH);
    CHECK_INT(put("nothing/file", 0, "x", NOBODY), ERR_NO_PATH);
    CHECK_INT(ask(REQ(.op = AGENT_CHMOD, .path = "nothing", .mode = AGENT_MODE_SET), NOBODY),
              ERR_NO_PATH);
}

static void what_the_user_may_not_do_is_denied(void)
{
    make_file(at("secret"), "root's\n", 0600);
    CHECK_INT(get(REQ(.path = "secret"), NOBODY, (char[64]){ 0 }, 64, NULL), ERR_DENIED);
    CHECK(strstr(last_error, "/secret: Permission denied"));
    CHECK_INT(put("secret", 0, "x", NOBODY), ERR_DENIED);
    CHECK_INT(put("secret", AGENT_ATOMIC, "x", NOBODY), ERR_DENIED);
    CHECK_STR(content(at("secret")), "root's\n");
    CHECK_INT(put("/usr/cove-test", 0, "x", NOBODY), ERR_DENIED);
    CHECK_INT(ask(REQ(.op = AGENT_CHMOD, .path = "secret", .mode = AGENT_MODE_SET | 0777), NOBODY),
              ERR_DENIED);
    CHECK_INT(ask(REQ(.op = AGENT_CHOWN, .path = "secret", .owner = "4242"), NOBODY), ERR_DENIED);
    CHECK_INT(get(REQ(.path = "secret"), ROOT, (char[64]){ 0 }, 64, NULL), ERR_NONE);
    (void) unlink(at("secret"));
}

static void a_directory_is_no_file_and_a_file_no_directory(void)
{
    (void) mkdir(at("d"), 0755);
    make_file(at("f"), "", 0644);
    CHECK_INT(get(REQ(.path = "d"), NOBODY, (char[8]){ 0 }, 8, NULL), ERR_IS_DIR);
    CHECK_INT(put("d", 0, "x", ROOT), ERR_IS_DIR);
    CHECK_INT(put("d", AGENT_ATOMIC, "x", ROOT), ERR_IS_DIR);
    CHECK_INT(put("new/", AGENT_PARENTS, "x", ROOT), ERR_IS_DIR);
    CHECK_INT(put("/", 0, "x", ROOT), ERR_IS_DIR);
    CHECK_INT(ask(REQ(.op = AGENT_LIST, .path = "f"), NOBODY), ERR_NOT_DIR);
    CHECK_INT(ask(REQ(.op = AGENT_STAT, .path = "f/x"), NOBODY), ERR_NOT_DIR);
    CHECK_INT(put("f/x", AGENT_PARENTS, "x", ROOT), ERR_NOT_DIR);
    CHECK_INT(ask(REQ(.op = AGENT_MKDIR, .path = "f"), ROOT), ERR_EXISTS);
    (void) rmdir(at("d"));
    (void) unlink(at("f"));
}

static void fifos_devices_and_sockets_are_refused_at_once(void)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    auto_close int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static const char *const paths[] = { "fifo", "sock", "/dev/zero", "/dev/null", "/dev/tty" };

    (void) mkfifo(at("fifo"), 0666);
    (void) snprintf(name.sun_path, sizeof name.sun_path, "%s", at("sock"));
    CHECK(bind(sock, (struct sockaddr *) &name, sizeof name) == 0);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CHECK_INT(get(REQ(.path = paths[i]), ROOT, (char[8]){ 0 }, 8, NULL), ERR_NOT_FILE);
        CHECK_INT(put(paths[i], 0, "x", ROOT), ERR_NOT_FILE);
        CHECK_INT(put(paths[i], AGENT_ATOMIC, "x", ROOT), ERR_NOT_FILE);
        CHECK_INT(items(REQ(.op = AGENT_GREP, .path = paths[i], .pattern = "x"), ROOT, NULL, NULL),
                  ERR_NOT_FILE);
    }
    CHECK(strstr(last_error, "/dev/tty: not a regular file"));
    (void) unlink(at("fifo"));
    (void) unlink(at("sock"));
}

static void reading_gives_the_whole_file_or_a_range(void)
{
    char text[64];
    uint64_t total;

    make_file(at("f"), "0123456789", 0644);
    CHECK_INT(get(REQ(.path = "f"), NOBODY, text, sizeof text, NULL), ERR_NONE);
    CHECK_STR(text, "0123456789");
    CHECK_INT(get(REQ(.path = "~/f", .offset = 3, .length = 4), NOBODY, text, sizeof text, NULL),
              0);
    CHECK_STR(text, "3456");
    CHECK_INT(get(REQ(.path = at("f"), .offset = 8, .length = 99), NOBODY, text, sizeof text, NULL),
              0);
    CHECK_STR(text, "89");
    CHECK_INT(get(REQ(.path = "f", .offset = 10), NOBODY, text, sizeof text, &total), 0);
    CHECK_INT(total, 0);
    CHECK_INT(get(REQ(.path = "f", .offset = UINT64_MAX), NOBODY, text, sizeof text, &total), 0);
    CHECK_INT(total, 0);
    (void) unlink(at("f"));
}

static void empty_files_and_those_of_proc_read_right(void)
{
    char text[4096];
    uint64_t total;

    make_file(at("empty"), "", 0644);
    CHECK_INT(get(REQ(.path = "empty"), NOBODY, text, sizeof text, &total), ERR_NONE);
    CHECK_INT(total, 0);
    CHECK_INT(get(REQ(.path = "/proc/self/status"), NOBODY, text, sizeof text, &total), ERR_NONE);
    CHECK(total > 100 && strstr(text, "Uid:\t4242"));
    (void) unlink(at("empty"));
}

static void a_reader_that_goes_ends_the_reading_of_a_terabyte(void)
{
    struct drive *d = &once;
    int fd = open(at("sparse"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (ftruncate(fd, 1ll << 40) < 0 && ftruncate(fd, 1ll << 33) < 0)
        SKIP("no sparse files here");
    (void) close(fd);
    drive_start(d, REQ(.op = AGENT_READ, .path = "sparse"), NOBODY);
    CHECK_INT(drive_next(d), FRAME_REPLY);
    for (int i = 0; i < 100; i++)
        CHECK_INT(drive_next(d), FRAME_DATA);
    own_close(&d->sock);
    CHECK(drive_ends_within(d, 5000));
    (void) unlink(at("sparse"));
}

static void writing_truncates_appends_and_makes_parents(void)
{
    struct stat st;

    CHECK_INT(put("a/b/c/f", 0, "x", NOBODY), ERR_NO_PATH);
    CHECK_INT(put("a/b/c/f", AGENT_PARENTS, "one two", NOBODY), ERR_NONE);
    CHECK_STR(content(at("a/b/c/f")), "one two");
    CHECK(stat(at("a/b/c/f"), &st) == 0 && st.st_uid == NOBODY && (st.st_mode & 0777) == 0644);
    CHECK_INT(once.reply.size, 7);
    CHECK_INT(put("a/b/c/f", 0, "three", NOBODY), ERR_NONE);
    CHECK_STR(content(at("a/b/c/f")), "three");
    CHECK_INT(put("a/b/c/f", AGENT_APPEND, " four", NOBODY), ERR_NONE);
    CHECK_STR(content(at("a/b/c/f")), "three four");
    CHECK_INT(put("a/b/c/f", AGENT_CREATE, "five", NOBODY), ERR_EXISTS);
    CHECK_INT(put("a/b/c/f", AGENT_CREATE | AGENT_ATOMIC, "five", NOBODY), ERR_EXISTS);
    CHECK_STR(content(at("a/b/c/f")), "three four");
    CHECK_INT(put("a/b/g", AGENT_CREATE | AGENT_ATOMIC, "six", NOBODY), ERR_NONE);
    CHECK_STR(content(at("a/b/g")), "six");
    CHECK_INT(entries_in(at("a/b")), 2);
    CHECK_INT(put("a/b/g", AGENT_APPEND | AGENT_ATOMIC, "x", NOBODY), ERR_INVALID);
    CHECK_INT(ask(REQ(.op = AGENT_REMOVE, .path = "a", .flags = AGENT_RECURSIVE), NOBODY), 0);
    CHECK_INT(once.reply.count, 5);
}

static void a_write_takes_what_came_with_its_request(void)
{
    uint8_t early[2 * FRAME_HEAD + 5];

    frame_head_put(early, FRAME_DATA, 5);
    memcpy(early + FRAME_HEAD, "early", 5);
    frame_head_put(early + FRAME_HEAD + 5, FRAME_DATA_END, 0);
    once.early = early;
    once.early_len = sizeof early;
    drive_start(&once, REQ(.op = AGENT_WRITE, .path = "e", .mode = AGENT_MODE_SET | 0640), NOBODY);
    once.early_len = 0;
    CHECK_INT(drive_next(&once), FRAME_REPLY);
    CHECK_INT(drive_next(&once), FRAME_END);
    CHECK_INT(once.reply.mode, 0640);
    drive_end(&once);
    CHECK_STR(content(at("e")), "early");
    (void) unlink(at("e"));
}

static void a_write_refuses_other_frames(void)
{
    drive_start(&once, REQ(.op = AGENT_WRITE, .path = "w"), NOBODY);
    CHECK_INT(drive_next(&once), FRAME_REPLY);
    drive_frame(&once, FRAME_STDIN, "x", 1);
    CHECK_INT(drive_kind(&once, drive_next(&once), FRAME_END), ERR_PROTOCOL);
    drive_end(&once);
    (void) unlink(at("w"));
}

/* Without O_TMPFILE and openat2, as on an old kernel. */
static void old_kernel(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 2, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
    };
    struct sock_fprog prog = { .len = ARRAY_LEN(filter), .filter = filter };

    (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
        _exit(97);
}

/* The writer goes in the middle of an atomic write. */
static void interrupt_atomic(void)
{
    drive_start(&once, REQ(.op = AGENT_WRITE, .path = "at/f", .flags = AGENT_ATOMIC), NOBODY);
    CHECK_INT(drive_next(&once), FRAME_REPLY);
    drive_frame(&once, FRAME_DATA, "new and only half", 17);
    own_close(&once.sock);
    CHECK(drive_ends_within(&once, 5000));
    CHECK_STR(content(at("at/f")), "old");
    CHECK_INT(entries_in(at("at")), 1);
}

static void an_atomic_write_is_all_or_nothing(void)
{
    struct stat st;

    for (int old = 0; old < 2; old++) {
        once.prepare = old ? old_kernel : NULL;
        (void) mkdir(at("at"), 0777);
        (void) chown(at("at"), NOBODY, NOBODY);
        make_file(at("at/f"), "old", 0604);
        (void) chown(at("at/f"), NOBODY, NOBODY);
        interrupt_atomic();
        CHECK_INT(put("at/f", AGENT_ATOMIC, "new", NOBODY), ERR_NONE);
        CHECK_STR(content(at("at/f")), "new");
        CHECK(stat(at("at/f"), &st) == 0 && (st.st_mode & 07777) == 0604 && st.st_uid == NOBODY);
        CHECK_INT(put("at/f", AGENT_ATOMIC, "root's", ROOT), ERR_NONE);
        CHECK(stat(at("at/f"), &st) == 0 && st.st_uid == NOBODY && st.st_gid == NOBODY);
        CHECK_INT(put("at/g", AGENT_ATOMIC | AGENT_CREATE, "g", NOBODY), ERR_NONE);
        CHECK_INT(entries_in(at("at")), 2);
        once.prepare = NULL;
        (void) ask(REQ(.op = AGENT_REMOVE, .path = "at", .flags = AGENT_RECURSIVE), ROOT);
    }
}

static void an_atomic_write_goes_through_a_link(void)
{
    struct stat st;

    make_file(at("target"), "old", 0644);
    (void) chown(at("target"), NOBODY, NOBODY);
    IGNORE(symlink("target", at("link")) < 0);
    CHECK_INT(put("link", AGENT_ATOMIC, "new", NOBODY), ERR_NONE);
    CHECK_STR(content(at("target")), "new");
    CHECK(lstat(at("link"), &st) == 0 && S_ISLNK(st.st_mode));
    (void) unlink(at("target"));
    CHECK_INT(put("link", AGENT_ATOMIC, "new", NOBODY), ERR_NO_PATH);
    (void) unlink(at("link"));
}

static void a_full_disk_is_its_own_error_and_loses_nothing(void)
{
    static char big[100000];

    memset(big, 'x', sizeof big - 1);
    (void) mkdir(at("small"), 0777);
    if (mount("small", at("small"), "tmpfs", 0, "size=64k,nr_inodes=16,mode=0777") < 0) {
        SKIP("no tmpfs: %s", strerror(errno));
        return;
    }
    CHECK_INT(put("small/keep", 0, "kept", NOBODY), ERR_NONE);
    for (size_t i = 0; i < 2; i++) {
        drive_start(&once, REQ(.op = AGENT_WRITE, .path = "small/keep", .flags = AGENT_ATOMIC),
                    NOBODY);
        CHECK_INT(drive_next(&once), FRAME_REPLY);
        drive_frame(&once, FRAME_DATA, big, 60000);
        drive_frame(&once, FRAME_DATA, big, 60000);
        drive_frame(&once, FRAME_DATA_END, NULL, 0);
        CHECK_INT(drive_kind(&once, drive_next(&once), FRAME_END), ERR_DISK_FULL);
        CHECK(strstr(last_error, "/small/keep: the disk is full"));
        drive_end(&once);
    }
    CHECK_STR(content(at("small/keep")), "kept");
    CHECK_INT(entries_in(at("small")), 1);
    for (int i = 0; i < 20; i++) {
        char name[64];

        (void) snprintf(name, sizeof name, "small/d%d", i);
        if (ask(REQ(.op = AGENT_MKDIR, .path = name), NOBODY) != ERR_NONE)
            break;
    }
    CHECK(strstr(last_error, "the disk is full"));
    CHECK_INT(put("small/more", 0, "x", NOBODY), ERR_DISK_FULL);
    CHECK_INT(put("small/more", AGENT_ATOMIC, "x", NOBODY), ERR_DISK_FULL);
    (void) umount2(at("small"), MNT_DETACH);
    (void) rmdir(at("small"));
}

static void a_directory_is_made_once(void)
{
    CHECK_INT(ask(REQ(.op = AGENT_MKDIR, .path = "m/n"), NOBODY), ERR_NO_PATH);
    CHECK_INT(ask(REQ(.op = AGENT_MKDIR, .path = "m/n", .flags = AGENT_PARENTS,
                      .mode = AGENT_MODE_SET | 0700),
                  NOBODY),
              ERR_NONE);
    CHECK_INT(once.reply.flags, 0);
    CHECK_INT(once.reply.mode, 0700);
    CHECK_INT(once.reply.type, ENTRY_DIR);
    CHECK_INT(ask(REQ(.op = AGENT_MKDIR, .path = "m/n", .flags = AGENT_PARENTS), NOBODY), ERR_NONE);
    CHECK_INT(once.reply.flags, AGENT_EXISTED);
    CHECK_INT(ask(REQ(.op = AGENT_MKDIR, .path = "m/n"), NOBODY), ERR_EXISTS);
    (void) rmdir(at("m/n"));
    (void) rmdir(at("m"));
}

static void a_rename_keeps_what_it_moves(void)
{
    make_file(at("one"), "1", 0644);
    (void) mkdir(at("dir"), 0755);
    (void) chown(at("dir"), NOBODY, NOBODY);
    CHECK_INT(ask(REQ(.op = AGENT_MOVE, .path = "one", .to = "x/y/two"), NOBODY), ERR_NO_PATH);
    CHECK_INT(
        ask(REQ(.op = AGENT_MOVE, .path = "one", .to = "x/y/two", .flags = AGENT_PARENTS), NOBODY),
        ERR_NONE);
    CHECK_STR(content(at("x/y/two")), "1");
    CHECK_STR(once.reply.path, at("x/y/two"));
    CHECK_INT(ask(REQ(.op = AGENT_MOVE, .path = "dir", .to = "dir/inside"), NOBODY), ERR_INVALID);
    CHECK_INT(ask(REQ(.op = AGENT_MOVE, .path = "dir", .to = "x/y"), NOBODY), ERR_NOT_EMPTY);
    CHECK_INT(ask(REQ(.op = AGENT_MOVE, .path = "/", .to = "x/y"), ROOT), ERR_INVALID);
    (void) rmdir(at("dir"));
    (void) ask(REQ(.op = AGENT_REMOVE, .path = "x", .flags = AGENT_RECURSIVE), ROOT);
}

static void attributes_can_be_set_read_listed_and_removed(void)
{
    struct bytes value = { .data = "v\0w", .len = 3 };
    uint64_t count;

    make_file(at("x"), "", 0644);
    (void) chown(at("x"), NOBODY, NOBODY);
    if (ask(REQ(.op = AGENT_XATTR_SET, .path = "x", .name = "user.cove", .value = value), NOBODY) ==
        ERR_UNSUPPORTED) {
        SKIP("%s", last_error);
    } else {
        CHECK_STR(last_error, "");
        CHECK_INT(ask(REQ(.op = AGENT_XATTR_GET, .path = "x", .name = "user.cove"), NOBODY), 0);
        CHECK(once.reply.data.len == 3 && memcmp(once.reply.data.data, "v\0w", 3) == 0);
        CHECK_INT(items(REQ(.op = AGENT_XATTR_LIST, .path = "x"), NOBODY, NULL, &count), 0);
        CHECK_INT(count, 1);
        CHECK_INT(ask(REQ(.op = AGENT_XATTR_REMOVE, .path = "x", .name = "user.cove"), NOBODY), 0);
        CHECK_INT(ask(REQ(.op = AGENT_XATTR_GET, .path = "x", .name = "user.cove"), NOBODY),
                  ERR_NO_PATH);
        CHECK(strstr(last_error, "no such attribute"));
        CHECK_INT(ask(REQ(.op = AGENT_XATTR_SET, .path = "x", .name = "trusted.x", .value = value),
                      NOBODY),
                  ERR_DENIED);
    }
    (void) unlink(at("x"));
}

static void what_cannot_be_a_reply_is_refused(void)
{
    static char big[40000];
    struct bytes value = { .data = big, .len = sizeof big };

    make_file(at("x"), "", 0644);
    CHECK_INT(
        ask(REQ(.op = AGENT_XATTR_SET, .path = "x", .name = "user.big", .value = value), ROOT),
        ERR_TOO_BIG);
    (void) unlink(at("x"));
}

static void stat_tells_a_link_from_what_it_names(void)
{
    make_file(at("t"), "four", 0640);
    IGNORE(symlink("t", at("l")) < 0);
    CHECK_INT(ask(REQ(.op = AGENT_STAT, .path = "l"), NOBODY), ERR_NONE);
    CHECK(once.reply.type == ENTRY_FILE && once.reply.size == 4 && once.reply.mode == 0640);
    CHECK_STR(once.reply.owner, "root");
    CHECK(once.reply.mtime_ns > 1700000000ll * 1000000000);
    CHECK_INT(ask(REQ(.op = AGENT_STAT, .path = "l", .flags = AGENT_NOFOLLOW), NOBODY), ERR_NONE);
    CHECK(once.reply.type == ENTRY_LINK);
    CHECK_STR(once.reply.target, "t");
    (void) unlink(at("t"));
    CHECK_INT(ask(REQ(.op = AGENT_STAT, .path = "l"), NOBODY), ERR_NO_PATH);
    (void) unlink(at("l"));
}

static const struct check_test tests[] = {
    T(a_path_that_is_not_there_is_not_found),
    T(what_the_user_may_not_do_is_denied),
    T(a_directory_is_no_file_and_a_file_no_directory),
    T(fifos_devices_and_sockets_are_refused_at_once),
    T(a_write_refuses_other_frames),
    T(what_cannot_be_a_reply_is_refused),
    T(reading_gives_the_whole_file_or_a_range),
    T(empty_files_and_those_of_proc_read_right),
    T(a_reader_that_goes_ends_the_reading_of_a_terabyte),
    T(writing_truncates_appends_and_makes_parents),
    T(a_write_takes_what_came_with_its_request),
    T(an_atomic_write_is_all_or_nothing),
    T(an_atomic_write_goes_through_a_link),
    T(a_full_disk_is_its_own_error_and_loses_nothing),
    T(a_directory_is_made_once),
    T(a_rename_keeps_what_it_moves),
    T(attributes_can_be_set_read_listed_and_removed),
    T(stat_tells_a_link_from_what_it_names),
};

int main(int argc, char **argv)
{
    if (drive_setup(argc, argv) < 0)
        return 2;
    return check_run(tests, ARRAY_LEN(tests));
}
