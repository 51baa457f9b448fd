#include "client/link.h"

#include "base/io.h"
#include "base/own.h"
#include "check.h"
#include "client/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static char dir[] = "/tmp/cove-link-XXXXXX";

/* A keeper that answers each request with what `answer` makes of it. */
typedef ssize_t (*answer_fn)(const struct keeper_request *request, struct keeper_reply *reply);

static int listen_in(const char *state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    (void) snprintf(address.sun_path, sizeof address.sun_path, "%s/keeper.sock", state);
    (void) unlink(address.sun_path);
    if (bind(fd, (const struct sockaddr *) &address, sizeof address) < 0 || listen(fd, 8) < 0)
        return -1;
    return fd;
}

static void serve(int listener, answer_fn answer)
{
    for (;;) {
        struct keeper_request request;
        struct keeper_reply reply;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        while (recv(fd, &request, sizeof request, 0) == (ssize_t) sizeof request) {
            ssize_t n;

            memset(&reply, 0, sizeof reply);
            reply.magic = KEEPER_MAGIC;
            reply.version = KEEPER_VERSION;
            reply.op = request.op;
            n = answer(&request, &reply);
            if (n < 0)
                break;
            if (n > 0 && send(fd, &reply, (size_t) n, MSG_NOSIGNAL) != n)
                break;
        }
        (void) close(fd);
    }
}

static pid_t keeper_start(answer_fn answer)
{
    int listener = listen_in(dir);
    pid_t pid = fork();

    if (pid == 0)
        serve(listener, answer);
    (void) close(listener);
    return pid;
}

static void keeper_stop(pid_t pid)
{
    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);
}

static ssize_t done(const struct keeper_request *request, struct keeper_reply *reply)
{
    if (request->op == KEEPER_GET || request->op == KEEPER_CREATE) {
        reply->count = 1;
        memcpy(reply->sandbox[0].id, request->sandbox, KEEPER_NAME_MAX);
        memcpy(reply->sandbox[0].template, request->template, KEEPER_NAME_MAX);
    }
    if (request->op == KEEPER_HELLO)
        strcpy(reply->hello.default_template, "host");
    return sizeof *reply;
}

static ssize_t refuse(const struct keeper_request *request, struct keeper_reply *reply)
{
    (void) request;
    (void) err_set(&reply->err, ERR_NO_SANDBOX, "there is no sandbox '%s'", request->sandbox);
    return sizeof *reply;
}

static ssize_t cut(const struct keeper_request *request, struct keeper_reply *reply)
{
    (void) request;
    (void) reply;
    return 100;
}

static ssize_t hang_up(const struct keeper_request *request, struct keeper_reply *reply)
{
    (void) request;
    (void) reply;
    return -1;
}

static ssize_t say_nothing(const struct keeper_request *request, struct keeper_reply *reply)
{
    (void) request;
    (void) reply;
    return 0;
}

/* 40 sandboxes, three pages. */
static ssize_t pages(const struct keeper_request *request, struct keeper_reply *reply)
{
    for (uint32_t i = request->cursor; i < 40 && reply->count < KEEPER_LIST_MAX; i++)
        (void) snprintf(reply->sandbox[reply->count++].id, KEEPER_NAME_MAX, "i%020u", i);
    reply->next = request->cursor + reply->count < 40 ? request->cursor + reply->count : 0;
    return sizeof *reply;
}

static ssize_t endless(const struct keeper_request *request, struct keeper_reply *reply)
{
    (void) request;
    reply->next = 1;
    return sizeof *reply;
}

static void no_keeper_is_said_with_what_to_do(void)
{
    struct link link;
    struct err err;

    CHECK_INT(link_open(&link, "/nonexistent/state", &err), -1);
    CHECK_INT(err.kind, ERR_UNAVAILABLE);
    CHECK_STR(err.msg,
              "no keeper answers at /nonexistent/state/keeper.sock: start it with 'cove up'");
    CHECK_INT(link.fd, -1);
}

static void a_keeper_that_left_its_socket_is_no_keeper(void)
{
    struct link link;
    struct err err;

    (void) close(listen_in(dir));
    CHECK_INT(link_open(&link, dir, &err), -1);
    CHECK_INT(err.kind, ERR_UNAVAILABLE);
}

static void a_long_state_directory_is_reached(void)
{
    char path[400], part[120];
    pid_t pid = keeper_start(done);
    struct link link;
    struct err err;
    struct keeper_sandbox sandbox;

    memset(part, 'd', sizeof part - 1);
    part[sizeof part - 1] = '\0';
    (void) snprintf(path, sizeof path, "%s/%s", dir, part);
    CHECK(symlink(dir, path) == 0);
    CHECK_INT(link_open(&link, path, &err), 0);
    CHECK_INT(sandbox_get(&link, "box", &sandbox, &err), 0);
    CHECK_STR(sandbox.id, "box");
    link_close(&link);
    (void) unlink(path);
    keeper_stop(pid);
}

static void calls_fail_in_words(void)
{
    static const struct {
        answer_fn answer;
        enum err_kind kind;
        const char *wording;
    } cases[] = {
        { refuse, ERR_NO_SANDBOX, "there is no sandbox 'box'" },
        { cut, ERR_PROTOCOL, "the keeper answered something else" },
        { hang_up, ERR_UNAVAILABLE, "the keeper went away (closed)" },
        { say_nothing, ERR_UNAVAILABLE, "the keeper did not answer 'get' within 0 s" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        pid_t pid = keeper_start(cases[i].answer);
        struct keeper_sandbox sandbox;
        struct link link;
        struct err err = { 0 };

        CHECK_INT(link_open(&link, dir, &err), 0);
        if (cases[i].answer == say_nothing)
            link.patience_ms = 200;
        CHECK_INT(sandbox_get(&link, "box", &sandbox, &err), -1);
        CHECK_STR(err.msg, cases[i].wording);
        CHECK_INT(err.kind, cases[i].kind);
        link_close(&link);
        keeper_stop(pid);
    }
}

static void a_connection_without_a_descriptor_is_refused(void)
{
    pid_t pid = keeper_start(done);
    struct link link;
    struct err err;
    int fd = 4711;

    CHECK_INT(link_open(&link, dir, &err), 0);
    CHECK_INT(link_connect(&link, "box", &fd, &err), -1);
    CHECK_STR(err.msg, "the keeper sent 0 descriptors, not 1");
    CHECK_INT(fd, 4711);
    link_close(&link);
    keeper_stop(pid);
}

static void what_is_no_name_is_not_even_sent(void)
{
    struct link link = { .fd = -1 };
    struct keeper_sandbox sandbox;
    struct err err;

    CHECK_INT(sandbox_get(&link, "../x", &sandbox, &err), -1);
    CHECK_INT(err.kind, ERR_INVALID);
    CHECK_STR(err.msg, "sandbox: '../x' is not a name (a-z, 0-9, inner '-', '_', '.', at most 63)");
}

static void all_pages_of_a_list_are_read(void)
{
    auto_free struct keeper_sandbox *list = NULL;
    pid_t pid = keeper_start(pages);
    size_t count = 0;
    struct link link;
    struct err err;

    CHECK_INT(link_open(&link, dir, &err), 0);
    CHECK_INT(sandbox_list(&link, &list, &count, &err), 0);
    CHECK_INT(count, 40);
    CHECK_STR(list[39].id, "i00000000000000000039");
    link_close(&link);
    keeper_stop(pid);
}

static void a_list_that_does_not_end_is_refused(void)
{
    struct keeper_sandbox *list = NULL;
    pid_t pid = keeper_start(endless);
    size_t count;
    struct link link;
    struct err err;

    CHECK_INT(link_open(&link, dir, &err), 0);
    CHECK_INT(sandbox_list(&link, &list, &count, &err), -1);
    CHECK_STR(err.msg, "the keeper's list does not end");
    CHECK(list == NULL);
    link_close(&link);
    keeper_stop(pid);
}

static void create_fills_in_id_and_template(void)
{
    struct sandbox_spec spec = { .name = "box" };
    pid_t pid = keeper_start(done);
    struct keeper_sandbox sandbox;
    struct link link;
    struct err err;

    limits_default(&spec.limits);
    CHECK_INT(link_open(&link, dir, &err), 0);
    CHECK_INT(sandbox_create(&link, &spec, &sandbox, &err), 0);
    CHECK(id_ok(sandbox.id));
    CHECK_STR(sandbox.template, "host");
    spec.name = "i01234567890123456789";
    CHECK_INT(sandbox_create(&link, &spec, &sandbox, &err), -1);
    CHECK_STR(err.msg, "name: 'i01234567890123456789' looks like an id");
    link_close(&link);
    keeper_stop(pid);
}

static void ids_share_the_node_and_nothing_else(void)
{
    char a[ID_LEN + 1], b[ID_LEN + 1];
    struct err err;

    CHECK_INT(sandbox_new_id(a, &err), 0);
    CHECK_INT(sandbox_new_id(b, &err), 0);
    CHECK(id_ok(a) && id_ok(b));
    CHECK(strncmp(a, b, 5) == 0);
    CHECK(strcmp(a + 5, b + 5) != 0);
}

static void the_directory_is_removed(void)
{
    char path[64];

    (void) snprintf(path, sizeof path, "%s/keeper.sock", dir);
    (void) unlink(path);
    CHECK(rmdir(dir) == 0);
}

static void a_directory_is_made(void)
{
    CHECK(mkdtemp(dir) != NULL);
}

CHECK_MAIN(T(a_directory_is_made), T(no_keeper_is_said_with_what_to_do),
           T(a_keeper_that_left_its_socket_is_no_keeper), T(a_long_state_directory_is_reached),
           T(calls_fail_in_words), T(a_connection_without_a_descriptor_is_refused),
           T(what_is_no_name_is_not_even_sent), T(all_pages_of_a_list_are_read),
           T(a_list_that_does_not_end_is_refused), T(create_fills_in_id_and_template),
           T(ids_share_the_node_and_nothing_else), T(the_directory_is_removed))
