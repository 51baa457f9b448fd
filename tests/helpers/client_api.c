/* client_api - every operation of the client library on a sandbox that is there.
 *
 *   client_api STATE SANDBOX      prints ok lines, as unit tests do */
#include "base/io.h"
#include "base/own.h"
#include "check.h"
#include "client/exec.h"
#include "client/files.h"
#include "client/sandbox.h"

#include <poll.h>
#include <signal.h>

static struct link to_keeper;
static struct files_at at = { .link = &to_keeper };
static struct err err;
static struct file_info info;

static void write_file(const char *path, const char *text, uint32_t flags)
{
    struct stream stream;

    CHECK_INT(files_write_open(&at, path, 0640, flags, &stream, &err), 0);
    CHECK_INT(files_write_next(&stream, text, strlen(text), &err), 0);
    CHECK_INT(files_write_end(&stream, &info, &err), 0);
    stream_close(&stream);
}

static void a_file_is_written_read_and_looked_at(void)
{
    struct stream stream;
    const void *data;
    uint32_t len;

    write_file("api/deep/file", "0123456789", AGENT_PARENTS);
    CHECK(info.size == 10 && info.type == ENTRY_FILE && info.mode == 0640);
    CHECK_INT(files_read_open(&at, "api/deep/file", 3, 4, &stream, &info, &err), 0);
    CHECK_INT(files_read_next(&stream, &data, &len, &err), 1);
    CHECK(len == 4 && memcmp(data, "3456", 4) == 0);
    CHECK_INT(files_read_next(&stream, &data, &len, &err), 0);
    stream_close(&stream);
    CHECK_INT(files_stat(&at, "api/deep/file", 0, &info, &err), 0);
    CHECK_STR(info.owner, "user");
    CHECK_STR(info.path, "/home/user/api/deep/file");
}

static void a_write_that_is_given_up_leaves_the_old_content(void)
{
    struct stream stream;

    CHECK_INT(files_write_open(&at, "api/deep/file", UINT32_MAX, AGENT_ATOMIC, &stream, &err), 0);
    CHECK_INT(files_write_next(&stream, "xxxx", 4, &err), 0);
    stream_close(&stream);
    CHECK_INT(files_stat(&at, "api/deep/file", 0, &info, &err), 0);
    CHECK_INT(info.size, 10);
}

static void what_exists_is_refused_when_asked_to_create(void)
{
    struct stream stream;

    CHECK_INT(files_write_open(&at, "api/deep/file", 0600, AGENT_CREATE, &stream, &err), -1);
    CHECK_INT(err.kind, ERR_EXISTS);
}

static void directories_are_made_moved_and_removed(void)
{
    bool existed = true;
    uint64_t count = 0;

    CHECK_INT(files_mkdir(&at, "api/new", 0711, 0, &existed, &err), 0);
    CHECK(!existed);
    CHECK_INT(files_mkdir(&at, "api/new", 0711, AGENT_PARENTS, &existed, &err), 0);
    CHECK(existed);
    write_file("api/new/f", "x", 0);
    CHECK_INT(files_move(&at, "api/new", "api/moved", 0, &err), 0);
    CHECK_INT(files_stat(&at, "api/moved/f", 0, &info, &err), 0);
    CHECK_INT(files_remove(&at, "api/moved", 0, &count, &err), -1);
    CHECK_INT(err.kind, ERR_NOT_EMPTY);
    CHECK_INT(files_remove(&at, "api/moved", AGENT_RECURSIVE, &count, &err), 0);
    CHECK_INT(count, 2);
    CHECK_INT(files_stat(&at, "api/moved", 0, &info, &err), -1);
    CHECK_INT(err.kind, ERR_NO_PATH);
}

static void modes_and_links_are_set(void)
{
    CHECK_INT(files_chmod(&at, "api/deep/file", 0600, 0, &err), 0);
    CHECK_INT(files_symlink(&at, "deep/file", "/home/user/api/link", &err), 0);
    CHECK_INT(files_stat(&at, "api/link", AGENT_NOFOLLOW, &info, &err), 0);
    CHECK(info.type == ENTRY_LINK);
    CHECK_STR(info.target, "deep/file");
    CHECK_INT(files_stat(&at, "api/link", 0, &info, &err), 0);
    CHECK(info.type == ENTRY_FILE && info.mode == 0600);
    CHECK_INT(files_symlink(&at, "x", "/proc/nowhere/link", &err), -1);
}

static int count_item(void *context, const struct agent_reply *item, struct err *unused)
{
    (void) item;
    (void) unused;
    (*(int *) context)++;
    return 0;
}

static int stop_at_once(void *context, const struct agent_reply *item, struct err *why)
{
    (void) context;
    (void) item;
    return err_set(why, ERR_STATE, "enough");
}

static void trees_are_listed_and_searched(void)
{
    struct agent_request glob = { .op = AGENT_GLOB, .path = "api", .pattern = "**/fi*" };
    struct agent_request grep = { .op = AGENT_GREP, .path = "api", .pattern = "345" };
    struct agent_request wrong = { .op = AGENT_STAT, .path = "api" };
    bool truncated = true;
    int count = 0;

    CHECK_INT(files_list(&at, "api", 9, 0, count_item, &count, &truncated, &err), 0);
    CHECK(count == 3 && !truncated);
    count = 0;
    CHECK_INT(files_list(&at, "api", 9, 1, count_item, &count, &truncated, &err), 0);
    CHECK(count == 1 && truncated);
    CHECK_INT(files_list(&at, "api", 9, 0, stop_at_once, NULL, NULL, &err), -1);
    CHECK_STR(err.msg, "enough");
    count = 0;
    CHECK_INT(files_search(&at, &glob, count_item, &count, NULL, &err), 0);
    CHECK_INT(count, 1);
    count = 0;
    CHECK_INT(files_search(&at, &grep, count_item, &count, NULL, &err), 0);
    CHECK(count >= 1);
    CHECK_INT(files_search(&at, &wrong, count_item, &count, NULL, &err), -1);
}

static void changes_are_watched(void)
{
    struct agent_reply event;
    struct stream stream;
    int r;

    CHECK_INT(files_watch_open(&at, "api", AGENT_RECURSIVE, &stream, &err), 0);
    write_file("api/deep/seen", "x", 0);
    while ((r = files_watch_poll(&stream, &event, &err)) == 0)
        CHECK_INT(poll(&(struct pollfd){ .fd = stream.fd, .events = POLLIN }, 1, 10000), 1);
    CHECK_INT(r, 1);
    CHECK(event.event == EVENT_CREATE || event.event == EVENT_WRITE);
    CHECK_STR(event.path, "/home/user/api/deep/seen");
    stream_close(&stream);
}

static void run(const char *const *words, size_t count, uint32_t flags, struct exec *ret)
{
    auto_free char *buffer = NULL;
    struct agent_request request = { .flags = flags };

    CHECK_INT(exec_texts(words, count, &request.args, &buffer, &err), 0);
    CHECK_INT(exec_start(ret, &to_keeper, at.sandbox, &request, &err), 0);
}

static void processes_are_fed_and_signalled(void)
{
    static const char *const cat[] = { "cat" }, *const nap[] = { "sleep", "100" };
    struct exec_event event;
    struct exec exec;
    uint64_t count = 0;

    run(cat, 1, AGENT_STDIN, &exec);
    CHECK_INT(exec_stdin(&exec, "hello", 5), 1);
    CHECK_INT(exec_stdin_end(&exec), 1);
    CHECK_INT(exec_flush(&exec, &err), 0);
    CHECK_INT(exec_next(&exec, &event, &err), 1);
    CHECK(event.type == EXEC_STDOUT && event.len == 5 && memcmp(event.data, "hello", 5) == 0);
    CHECK_INT(exec_next(&exec, &event, &err), 1);
    CHECK(event.type == EXEC_END && event.result.exit_code == 0);
    exec_close(&exec);

    run(nap, 2, 0, &exec);
    CHECK_INT(exec_kill(&to_keeper, at.sandbox, exec.proc, SIGUSR1, 0, &count, &err), 0);
    CHECK(count >= 1);
    CHECK_INT(exec_next(&exec, &event, &err), 1);
    CHECK(event.type == EXEC_END && event.result.ended == EXIT_SIGNAL);
    CHECK_INT(event.result.signal, SIGUSR1);
    exec_close(&exec);
    CHECK_INT(exec_kill(&to_keeper, at.sandbox, 4000, SIGTERM, 0, &count, &err), -1);
    CHECK_INT(err.kind, ERR_NO_PROCESS);
}

static void an_attached_reader_finds_status_and_output_again(void)
{
    static const char *const words[] = { "sh", "-c", "echo out; exit 4" };
    struct agent_request request = { .from_stdout = 1 };
    struct exec_event event;
    struct exec exec;

    run(words, 3, AGENT_DETACH, &exec);
    request.proc = exec.proc;
    exec_close(&exec);
    /* Byte 1 cannot be asked for before it was written. */
    for (int i = 0; i < 200; i++) {
        if (exec_attach(&exec, &to_keeper, at.sandbox, &request, &err) == 0 &&
            exec_next(&exec, &event, &err) == 1)
            break;
        exec_close(&exec);
        (void) usleep(10000);
    }
    CHECK(event.type == EXEC_STDOUT && event.offset == 1 && event.len == 3);
    CHECK_INT(exec_next(&exec, &event, &err), 1);
    CHECK(event.type == EXEC_END && event.result.exit_code == 4);
    exec_close(&exec);
}

#define SERVER                                                                                     \
    "import socket\ns = socket.create_server(('127.0.0.1', 8123))\nprint('up', flush=True)\n"      \
    "c, _ = s.accept()\nc.sendall(b'220 hello')\nd = c.recv(9)\nc.sendall(d)\nc.close()\n"

static void a_port_is_found_and_dialled(void)
{
    static const char *const words[] = { "python3", "-c", SERVER };
    struct exec_event event;
    char text[16] = "";
    struct exec exec;
    int count = 0, fd = -1;

    run(words, 3, AGENT_KILL_ON_CLOSE, &exec);
    CHECK_INT(exec_next(&exec, &event, &err), 1);
    CHECK_INT(exec_items(&to_keeper, at.sandbox, AGENT_PORTS, count_item, &count, &err), 0);
    CHECK_INT(count, 1);
    CHECK_INT(exec_dial(&to_keeper, at.sandbox, 8123, &fd, &err), 0);
    CHECK_INT(io_read_all(fd, text, 9), 0);
    CHECK_STR(text, "220 hello");
    CHECK_INT(io_write_all(fd, "pingpong!", 9), 0);
    CHECK_INT(io_read_all(fd, text, 9), 0);
    CHECK_STR(text, "pingpong!");
    own_close(&fd);
    exec_close(&exec);
    CHECK_INT(exec_dial(&to_keeper, at.sandbox, 9, &fd, &err), -1);
}

static void the_agent_tells_of_itself(void)
{
    struct exec_info told = { 0 };

    CHECK_INT(exec_info(&to_keeper, at.sandbox, &told, &err), 0);
    CHECK(told.uptime_ms > 0);
}

static void a_sandbox_can_be_waited_for(void)
{
    struct sandbox_spec spec = { .flags = KEEPER_FLAG_TIED };
    struct keeper_sandbox made;
    struct link owner;
    char state[64];

    limits_default(&spec.limits);
    (void) snprintf(state, sizeof state, "%s", getenv("COVE_STATE"));
    CHECK_INT(link_open(&owner, state, &err), 0);
    CHECK_INT(sandbox_create(&owner, &spec, &made, &err), 0);
    CHECK_INT(sandbox_freeze(&to_keeper, made.id, &err), 0);
    CHECK_INT(sandbox_get(&to_keeper, made.id, &made, &err), 0);
    CHECK_INT(made.life, LIFE_PAUSED);
    link_close(&owner); /* what is tied to it ends, paused or not */
    to_keeper.patience_ms = 10000;
    CHECK(sandbox_wait(&to_keeper, made.id, &err) == 0 || err.kind == ERR_NO_SANDBOX);
    CHECK_INT(sandbox_get(&to_keeper, made.id, &made, &err), -1);
    CHECK_INT(err.kind, ERR_NO_SANDBOX);
}

int main(int argc, char **argv)
{
    static const struct check_test tests[] = {
        T(a_file_is_written_read_and_looked_at),
        T(a_write_that_is_given_up_leaves_the_old_content),
        T(what_exists_is_refused_when_asked_to_create),
        T(directories_are_made_moved_and_removed),
        T(modes_and_links_are_set),
        T(trees_are_listed_and_searched),
        T(changes_are_watched),
        T(processes_are_fed_and_signalled),
        T(an_attached_reader_finds_status_and_output_again),
        T(a_port_is_found_and_dialled),
        T(the_agent_tells_of_itself),
        T(a_sandbox_can_be_waited_for),
    };

    if (argc != 3 || link_open(&to_keeper, argv[1], &err) < 0) {
        printf("not ok - a link to the keeper: %s\n", argc == 3 ? err.msg : "usage");
        return 1;
    }
    at.sandbox = argv[2];
    return check_run(tests, sizeof tests / sizeof tests[0]);
}
