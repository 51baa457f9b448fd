#include "cli/copy.h"

#include "base/io.h"
#include "base/own.h"
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A keeper and an agent made for lying, in one child: each CONNECT gets a socket, and the request on
 * it an answer from `lies`. copy_out must not write outside its destination, whatever they say. */

struct lie {
    const char *dir; /* LIST of this path gives the item below */
    const char *path, *target;
    enum agent_entry_type type;
    uint32_t mode;
};

static const struct lie *lies;
static size_t lie_count;
static char dir[] = "/tmp/cove-copy-XXXXXX";

static void send_record(int fd, enum frame_type type, const struct agent_reply *reply)
{
    uint8_t bytes[FRAME_HEAD + 32768];
    struct err err;
    ssize_t n = agent_reply_encode(reply, bytes + FRAME_HEAD, 32768, &err);

    frame_head_put(bytes, type, (uint32_t) n);
    (void) io_write_all(fd, bytes, FRAME_HEAD + (size_t) n);
}

static void agent_answer(int fd)
{
    static uint8_t payload[65536];
    uint8_t head[FRAME_HEAD];
    struct agent_request request;
    struct frame_head h;
    struct err err;

    if (io_read_all(fd, head, sizeof head) < 0 || frame_head_get(head, &h, &err) < 0 ||
        h.len > sizeof payload || io_read_all(fd, payload, h.len) < 0 ||
        agent_request_decode(&request, payload, h.len, &err) < 0)
        return;
    if (request.op == AGENT_STAT) {
        send_record(fd, FRAME_REPLY,
                    &(struct agent_reply){ .path = request.path, .type = ENTRY_DIR, .mode = 0755 });
    } else if (request.op == AGENT_LIST) {
        for (size_t i = 0; i < lie_count; i++)
            if (strcmp(lies[i].dir, request.path) == 0)
                send_record(fd, FRAME_ITEM,
                            &(struct agent_reply){ .path = lies[i].path,
                                                   .target = lies[i].target,
                                                   .type = lies[i].type,
                                                   .mode = lies[i].mode });
        send_record(fd, FRAME_END, &(struct agent_reply){ .count = lie_count });
    } else if (request.op == AGENT_READ) {
        send_record(fd, FRAME_REPLY, &(struct agent_reply){ .type = ENTRY_FILE, .mode = 04777 });
        frame_head_put(head, FRAME_DATA, 4);
        (void) io_write_all(fd, head, sizeof head);
        (void) io_write_all(fd, "EVIL", 4);
        frame_head_put(head, FRAME_DATA_END, 0);
        (void) io_write_all(fd, head, sizeof head);
    }
}

static void keeper_serve(int link)
{
    struct keeper_request request;

    while (recv(link, &request, sizeof request, 0) == (ssize_t) sizeof request) {
        struct keeper_reply reply;
        int pair[2];

        memset(&reply, 0, sizeof reply);
        reply.magic = KEEPER_MAGIC;
        reply.version = KEEPER_VERSION;
        reply.op = request.op;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            _exit(1);
        (void) io_send_fds(link, &reply, sizeof reply, pair, 1);
        (void) close(pair[0]);
        agent_answer(pair[1]);
        (void) close(pair[1]);
    }
    _exit(0);
}

/* copy_out of "/src" to <dir>/out with these lies. Returns what copy_out returned. */
static int copy_lies(const struct lie *list, size_t count, struct copy *copy, struct err *err)
{
    auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct link link = { .patience_ms = 5000 };
    int pair[2], r;
    pid_t pid;

    lies = list;
    lie_count = count;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -2;
    pid = fork();
    if (pid == 0) {
        (void) close(pair[0]);
        keeper_serve(pair[1]);
    }
    (void) close(pair[1]);
    link.fd = pair[0];
    *copy = (struct copy){ .at = { .link = &link, .sandbox = "box" } };
    r = copy_out(copy, "/src", fd, "out", err);
    link_close(&link);
    (void) waitpid(pid, NULL, 0);
    return r;
}

static char *path_in(const char *name)
{
    static char path[256];

    (void) snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void clean(void)
{
    char command[128];

    (void) snprintf(command, sizeof command, "rm -rf %s/*", dir);
    CHECK(system(command) == 0);
}

static bool is_there(const char *name)
{
    struct stat st;

    return lstat(path_in(name), &st) == 0;
}

static void names_that_are_no_names_are_refused(void)
{
    static const char *const bad[] = { "/src/..", "/src/.", "/src/", "..", "", "/" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct lie lie = { "/src", bad[i], NULL, ENTRY_FILE, 0644 };
        struct copy copy;
        struct err err = { 0 };

        CHECK_INT(copy_lies(&lie, 1, &copy, &err), -1);
        CHECK_INT(err.kind, ERR_PROTOCOL);
        CHECK_STR(err.msg, "the sandbox listed an entry without a proper name");
        clean();
    }
}

static void only_the_last_component_of_a_listed_path_counts(void)
{
    static const struct lie list[] = {
        { "/src", "/etc/../../../tmp/passwd", NULL, ENTRY_FILE, 0644 },
        { "/src", "../../up", NULL, ENTRY_FILE, 0644 },
    };
    struct copy copy;
    struct err err;

    CHECK_INT(copy_lies(list, ARRAY_LEN(list), &copy, &err), 0);
    CHECK(is_there("out/passwd") && is_there("out/up"));
    CHECK(!is_there("up") && access("/tmp/passwd", F_OK) != 0);
    clean();
}

static void a_link_and_then_a_directory_of_one_name_lead_nowhere(void)
{
    char outside[256];
    const struct lie list[] = {
        { "/src", "/src/x", outside, ENTRY_LINK, 0777 },
        { "/src", "/src/x", NULL, ENTRY_DIR, 0755 },
        { "/src/x", "/src/x/file", NULL, ENTRY_FILE, 0644 },
    };
    struct copy copy;
    struct err err = { 0 };

    (void) snprintf(outside, sizeof outside, "%s/outside", dir);
    CHECK(mkdir(outside, 0755) == 0);
    CHECK_INT(copy_lies(list, ARRAY_LEN(list), &copy, &err), -1);
    CHECK_INT(err.kind, ERR_NOT_DIR);
    CHECK(!is_there("outside/file"));
    clean();
}

static void a_link_and_then_a_file_of_one_name_replace_the_link(void)
{
    char outside[256], text[16];
    const struct lie list[] = {
        { "/src", "/src/x", outside, ENTRY_LINK, 0777 },
        { "/src", "/src/x", NULL, ENTRY_FILE, 0644 },
    };
    struct copy copy;
    struct err err;

    (void) snprintf(outside, sizeof outside, "%s/outside", dir);
    (void) close(open(outside, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK_INT(io_write_text(AT_FDCWD, outside, "mine"), 0);
    CHECK_INT(copy_lies(list, ARRAY_LEN(list), &copy, &err), 0);
    CHECK(io_read_text(AT_FDCWD, outside, text, sizeof text) == 4);
    CHECK_STR(text, "mine");
    CHECK(io_read_text(AT_FDCWD, path_in("out/x"), text, sizeof text) == 4);
    CHECK_STR(text, "EVIL");
    clean();
}

static void setuid_bits_stay_behind(void)
{
    static const struct lie list[] = { { "/src", "/src/su", NULL, ENTRY_FILE, 06755 },
                                       { "/src", "/src/d", NULL, ENTRY_DIR, 07777 } };
    struct copy copy;
    struct stat st;
    struct err err;

    CHECK_INT(copy_lies(list, ARRAY_LEN(list), &copy, &err), 0);
    CHECK(stat(path_in("out/su"), &st) == 0 && (st.st_mode & 07777) == 0777);
    CHECK(stat(path_in("out/d"), &st) == 0 && (st.st_mode & 07777) == 0777);
    clean();
}

static void devices_and_nonsense_are_left_out(void)
{
    static const struct lie list[] = {
        { "/src", "/src/dev", NULL, ENTRY_BLOCK, 0666 },
        { "/src", "/src/fifo", NULL, ENTRY_FIFO, 0666 },
        { "/src", "/src/none", NULL, ENTRY_NONE, 0666 },
        { "/src", "/src/file", NULL, ENTRY_FILE, 0644 },
    };
    struct copy copy;
    struct err err;

    CHECK_INT(copy_lies(list, ARRAY_LEN(list), &copy, &err), 0);
    CHECK_INT(copy.skipped, 3);
    CHECK(is_there("out/file") && !is_there("out/dev") && !is_there("out/none"));
    clean();
}

static void a_directory_that_contains_itself_has_an_end(void)
{
    /* Every level lists one more: the agent is asked for /src/d/d/d… and always says the same. */
    static struct lie list[COPY_DEPTH_MAX + 8];
    static char paths[COPY_DEPTH_MAX + 8][3 * COPY_DEPTH_MAX + 64];
    struct copy copy;
    struct err err = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        (void) snprintf(paths[i], sizeof paths[i], "%s%s", i ? paths[i - 1] : "/src",
                        i ? "/d" : "");
        list[i] = (struct lie){ paths[i], "/src/d", NULL, ENTRY_DIR, 0755 };
    }
    CHECK_INT(copy_lies(list, ARRAY_LEN(list), &copy, &err), -1);
    CHECK_INT(err.kind, ERR_TOO_BIG);
    CHECK(strstr(err.msg, "deeper than 200 levels") != NULL);
    clean();
}

static void a_link_without_a_target_is_refused(void)
{
    static const struct lie lie = { "/src", "/src/x", NULL, ENTRY_LINK, 0777 };
    struct copy copy;
    struct err err = { 0 };

    CHECK_INT(copy_lies(&lie, 1, &copy, &err), -1);
    CHECK_STR(err.msg, "/src/x: a link without a target");
    clean();
}

static void names_are_checked(void)
{
    CHECK(copy_name_ok("a") && copy_name_ok("...") && copy_name_ok("-rf") && copy_name_ok("a\nb"));
    CHECK(!copy_name_ok("") && !copy_name_ok(".") && !copy_name_ok("..") && !copy_name_ok("a/b") &&
          !copy_name_ok("/"));
}

static void paths_are_joined_and_bounded(void)
{
    char out[AGENT_PATH_MAX], name[AGENT_PATH_MAX + 1];
    struct err err;

    CHECK_INT(copy_join(out, "/a", "b", &err), 0);
    CHECK_STR(out, "/a/b");
    CHECK_INT(copy_join(out, "/", "b", &err), 0);
    CHECK_STR(out, "/b");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_INT(copy_join(out, "/", name, &err), -1);
    CHECK_STR(err.msg, "a path is longer than 4095 bytes");
}

static void a_directory_is_made(void)
{
    CHECK(mkdtemp(dir) != NULL);
}

static void the_directory_is_removed(void)
{
    CHECK(rmdir(dir) == 0);
}

CHECK_MAIN(T(a_directory_is_made), T(names_that_are_no_names_are_refused),
           T(only_the_last_component_of_a_listed_path_counts),
           T(a_link_and_then_a_directory_of_one_name_lead_nowhere),
           T(a_link_and_then_a_file_of_one_name_replace_the_link), T(setuid_bits_stay_behind),
           T(devices_and_nonsense_are_left_out), T(a_directory_that_contains_itself_has_an_end),
           T(a_link_without_a_target_is_refused), T(names_are_checked),
           T(paths_are_joined_and_bounded), T(the_directory_is_removed))
