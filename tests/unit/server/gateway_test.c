/* coved against a gateway that was taken over: a program on the socket that says what it likes. */
#include "server/gateway/gateway.h"

#include "base/io.h"
#include "base/own.h"
#include "check.h"
#include "client/gateway_start.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#define MINE   "iaaaaaaaaaaaaaaaaaaaa"
#define FRIEND "ibbbbbbbbbbbbbbbbbbbb"
#define ALIEN  "icccccccccccccccccccc" /* another tenant's */

static char directory[64];
static int listen_fd = -1;
static struct gateway *gateway;
static struct err err;

/* ---- what coved makes of it ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned events, asks, dials, ups;
static struct egress_dial last_dial;

static void count(unsigned *what)
{
    (void) pthread_mutex_lock(&lock);
    ++*what;
    (void) pthread_mutex_unlock(&lock);
}

static unsigned now(const unsigned *what)
{
    unsigned value;

    (void) pthread_mutex_lock(&lock);
    value = *what;
    (void) pthread_mutex_unlock(&lock);
    return value;
}

static void on_event(void *context, const struct egress_event *event)
{
    (void) context;
    (void) event;
    count(&events);
}

static bool on_ask(void *context, const struct egress_ask *ask)
{
    (void) context;
    (void) ask;
    count(&asks);
    return true;
}

static void on_dial(void *context, const struct egress_dial *dial)
{
    (void) context;
    last_dial = *dial;
    count(&dials);
}

static void on_up(void *context)
{
    (void) context;
    count(&ups);
}

/* ---- the fake gateway ---- */

static bool read_message(int fd, struct message_head *head, uint8_t *body, size_t size)
{
    int fds[EGRESS_FDS];
    size_t n = 0;

    if (io_recv_fds(fd, head, sizeof *head, fds, EGRESS_FDS, &n) != (ssize_t) sizeof *head)
        return false;
    for (size_t i = 0; i < n; i++)
        (void) close(fds[i]);
    return head->size <= size && (head->size == 0 || io_read_all(fd, body, head->size) == 0);
}

static void say_result(int fd, uint64_t serial, enum err_kind kind)
{
    struct message_result result = { .err.kind = kind };
    struct message_out out = { .data = NULL };

    CHECK(message_put_result(&out, serial, &result, &err) == 0);
    CHECK(io_write_all(fd, out.data, out.len) == 0);
    message_out_done(&out);
}

/* A connection of coved, greeted and with its first answers. */
static int accept_coved(void)
{
    static uint8_t body[1 << 16];
    struct message_head head;
    unsigned before = now(&ups);
    int fd = accept(listen_fd, NULL, NULL);

    CHECK(read_message(fd, &head, body, sizeof body) && head.kind == MESSAGE_CONFIG);
    say_result(fd, head.serial, ERR_NONE);
    while (now(&ups) == before)
        (void) poll(NULL, 0, 1);
    return fd;
}

struct answers { /* what a helping thread answers to calls of coved */
    int fd;
    unsigned count;
    enum err_kind kind;
};

static void *answer(void *arg)
{
    static uint8_t body[1 << 16];
    struct answers *a = arg;
    struct message_head head;

    for (unsigned i = 0; i < a->count && read_message(a->fd, &head, body, sizeof body); i++)
        say_result(a->fd, head.serial, a->kind);
    return NULL;
}

static int set(int fd, const char *sandbox)
{
    static const struct reach rules = { .mode = REACH_PUBLIC };
    struct answers answers = { fd, 1, ERR_NONE };
    int fds[EGRESS_FDS];
    pthread_t thread;
    int r;

    for (size_t i = 0; i < EGRESS_FDS; i++)
        fds[i] = dup(0);
    (void) pthread_create(&thread, NULL, answer, &answers);
    r = gateway_set(gateway, sandbox, "acme", &rules, NULL, fds, &err);
    (void) pthread_join(thread, NULL);
    return r;
}

static int set_nets(int fd)
{
    static struct egress_member ours[] = {
        { .sandbox = MINE, .alias = "a" },
        { .sandbox = FRIEND, .alias = "b", .port_count = 1, .ports = { 80 } },
    };
    static struct egress_member theirs[] = {
        { .sandbox = ALIEN, .alias = "c", .port_count = 1, .ports = { 80 } },
    };
    struct egress_net one = { .name = "n", .count = 2, .members = ours };
    struct egress_net two = { .name = "n", .count = 1, .members = theirs };
    struct answers answers = { fd, 2, ERR_NONE };
    pthread_t thread;
    int r;

    (void) pthread_create(&thread, NULL, answer, &answers);
    r = gateway_nets_set(gateway, "acme", &one, 1, &err) < 0 ||
                gateway_nets_set(gateway, "other", &two, 1, &err) < 0
            ? -1
            : 0;
    (void) pthread_join(thread, NULL);
    return r;
}

static void say_event(int fd, const char *sandbox, unsigned times)
{
    struct egress_event event = { .what = EGRESS_REFUSED, .port = 80, .rule = "off" };
    struct message_out out = { .data = NULL };

    (void) strcpy(event.sandbox, sandbox);
    for (unsigned i = 0; i < times; i++)
        CHECK(message_put_event(&out, &event, &err) == 0);
    CHECK(io_write_all(fd, out.data, out.len) == 0);
    message_out_done(&out);
}

static void say_dial(int fd, const char *from, const char *to, uint16_t port)
{
    struct egress_dial dial = { .ticket = 1, .tenant = "other", .port = port };
    struct message_out out = { .data = NULL };

    (void) strcpy(dial.from, from);
    (void) strcpy(dial.to, to);
    CHECK(message_put_dial(&out, &dial, &err) == 0);
    CHECK(io_write_all(fd, out.data, out.len) == 0);
    message_out_done(&out);
}

/* What coved answered to a dial that it refused. */
static bool was_refused(int fd)
{
    static uint8_t body[1 << 16];
    struct message_head head;
    struct egress_dial dial;
    struct err why;

    return read_message(fd, &head, body, sizeof body) && head.kind == MESSAGE_DIALED &&
           head.fds == 0 && message_get_dialed(body, head.size, &dial, &why, &err) == 0 &&
           why.kind == ERR_DENIED;
}

static bool is_cut_off(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char byte;

    return poll(&p, 1, 10000) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

static bool becomes(const unsigned *what, unsigned wanted)
{
    for (unsigned i = 0; i < 10000 && now(what) != wanted; i++)
        (void) poll(NULL, 0, 1);
    return now(what) == wanted;
}

/* ---- tests ---- */

static void start(void)
{
    struct gateway_config config = {
        .directory = directory,
        .egress = { .event = on_event, .ask = on_ask, .dial = on_dial },
        .up = on_up,
    };

    (void) strcpy(directory, "/tmp/cove-gateway-test.XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
    CHECK(gateway_listen(directory, geteuid(), &listen_fd, &err) == 0);
    CHECK(gateway_start(&config, &gateway, &err) == 0);
}

static void the_socket_is_for_its_owner_alone(void)
{
    char path[96];
    struct stat st;

    start();
    (void) snprintf(path, sizeof path, "%s/" GATEWAY_SOCKET, directory);
    CHECK(lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600);
}

static void an_event_counts_only_for_a_sandbox_with_a_gateway(void)
{
    int fd = accept_coved();

    CHECK(set(fd, MINE) == 0);
    CHECK(gateway_has(gateway, MINE) && !gateway_has(gateway, ALIEN));
    say_event(fd, ALIEN, 3);
    say_event(fd, MINE, 1);
    CHECK(becomes(&events, 1));
    (void) close(fd);
}

static void what_is_lost_with_a_gateway_is_known_to_be_lost(void)
{
    int fd = accept_coved(); /* the one before was closed */

    CHECK(!gateway_has(gateway, MINE));
    (void) close(fd);
}

static void a_dial_to_another_tenant_is_refused(void)
{
    int fd = accept_coved();

    CHECK(set_nets(fd) == 0);
    CHECK(set(fd, MINE) == 0);
    say_dial(fd, MINE, ALIEN, 80);
    CHECK(was_refused(fd));
    say_dial(fd, ALIEN, MINE, 80); /* has no gateway */
    CHECK(was_refused(fd));
    say_dial(fd, MINE, FRIEND, 81); /* a port that is not open */
    CHECK(was_refused(fd));
    CHECK_INT(now(&dials), 0);
    say_dial(fd, MINE, FRIEND, 80);
    CHECK(becomes(&dials, 1));
    CHECK_STR(last_dial.tenant, "acme"); /* not what the gateway said */
    (void) close(fd);
}

/* Networks that were told before are told again. */
static void a_new_gateway_is_told_all_networks(void)
{
    static uint8_t body[1 << 16];
    struct message_nets nets;
    struct message_head head;
    int fd = accept(listen_fd, NULL, NULL);

    CHECK(read_message(fd, &head, body, sizeof body) && head.kind == MESSAGE_CONFIG);
    for (int i = 0; i < 2; i++) {
        CHECK(read_message(fd, &head, body, sizeof body) && head.kind == MESSAGE_NETS);
        CHECK(message_get_nets(body, head.size, &nets, &err) == 0 && nets.count == 1);
        message_nets_done(&nets);
    }
    (void) close(fd);
}

static int accept_with_nets(void)
{
    static uint8_t body[1 << 16];
    struct message_head head;
    int fd = accept_coved();

    for (int i = 0; i < 2; i++)
        CHECK(read_message(fd, &head, body, sizeof body) && head.kind == MESSAGE_NETS);
    return fd;
}

static void garbage_is_cut_off(void)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        { "GET / HTTP/1.1\r\n\r\n", 18 },
        { "\xff\xff\xff\xff\x0a\x00\x00\x00\0\0\0\0\0\0\0\0", 16 }, /* an endless event */
        { "\x00\x00\x00\x00\x01\x00\x00\x00\0\0\0\0\0\0\0\0", 16 }, /* a request */
        { "\x00\x00\x00\x00\x0a\x00\x01\x00\0\0\0\0\0\0\0\0", 16 }, /* with a descriptor */
        { "\x04\x00\x00\x00\x0a\x00\x00\x00\0\0\0\0\0\0\0\0\xff\xff\xff\xff", 20 }, /* no record */
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int fd = accept_with_nets();

        CHECK(io_write_all(fd, rows[i].bytes, rows[i].len) == 0);
        CHECK(is_cut_off(fd));
        (void) close(fd);
    }
}

static void answers_that_nobody_waits_for_change_nothing(void)
{
    int fd = accept_with_nets();

    for (uint64_t serial = 0; serial < 1000; serial++)
        say_result(fd, serial * 1000003, ERR_NONE);
    CHECK(set(fd, MINE) == 0);
    (void) close(fd);
}

static void a_flood_of_events_is_bounded(void)
{
    int fd = accept_with_nets();
    struct gateway_state before, after;
    unsigned begun = now(&events);

    gateway_state(gateway, &before);
    CHECK(set(fd, MINE) == 0);
    for (int i = 0; i < 60; i++)
        say_event(fd, MINE, 1000);
    say_dial(fd, MINE, ALIEN, 80);
    CHECK(was_refused(fd)); /* all before it was read */
    gateway_state(gateway, &after);
    CHECK(now(&events) - begun + after.ignored - before.ignored >= 60000);
    CHECK(after.ignored - before.ignored > 1000);
    (void) close(fd);
}

static uint64_t hear_ranges(int fd, char ret[EGRESS_RANGES_MAX])
{
    static uint8_t body[1 << 16];
    struct message_head head;

    CHECK(read_message(fd, &head, body, sizeof body) && head.kind == MESSAGE_RANGES);
    CHECK(message_get_ranges(body, head.size, ret, &err) == 0);
    return head.serial;
}

/* A reload waits for no gateway: the thread that reads signals takes connections, too. */
static void ranges_are_told_when_they_change(void)
{
    int fd = accept_with_nets();
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char ranges[EGRESS_RANGES_MAX];
    uint64_t serial;

    gateway_set_ranges(gateway, "10.20.0.0/16"); /* nobody answers, and it returns */
    serial = hear_ranges(fd, ranges);
    CHECK_STR(ranges, "10.20.0.0/16");
    gateway_set_ranges(gateway, "10.21.0.0/16");
    gateway_set_ranges(gateway, "10.22.0.0/16");
    CHECK_INT(poll(&p, 1, 0), 0); /* one after the other */
    say_result(fd, serial, ERR_NONE);
    serial = hear_ranges(fd, ranges);
    CHECK_STR(ranges, "10.22.0.0/16"); /* the last word */
    say_result(fd, serial, ERR_NONE);
    gateway_set_ranges(gateway, "10.22.0.0/16");
    CHECK_INT(poll(&p, 1, 0), 0);
    (void) close(fd);
}

/* The call that waits gets an answer of our own, and the next ones do not wait for long. */
static void a_gateway_that_does_not_answer_is_cut_off(void)
{
    static const struct reach rules = { .mode = REACH_PUBLIC };
    int fd = accept_with_nets(), fds[EGRESS_FDS];
    uint64_t begin = io_now_ms();

    for (size_t i = 0; i < EGRESS_FDS; i++)
        fds[i] = dup(0);
    CHECK(gateway_set(gateway, MINE, "acme", &rules, NULL, fds, &err) == -1);
    CHECK_INT(err.kind, ERR_UNAVAILABLE);
    CHECK_STR(err.msg, "the network gateway does not answer; it is started again");
    CHECK(io_now_ms() - begin < 20000);
    CHECK(!gateway_has(gateway, MINE));
    (void) close(fd);
}

static void without_a_gateway_calls_say_so(void)
{
    static const struct reach rules = { .mode = REACH_PUBLIC };
    struct gateway_state state;
    struct egress_counts counts;

    (void) close(listen_fd);
    CHECK(gateway_set(gateway, MINE, "acme", &rules, NULL, NULL, &err) == -1);
    CHECK_INT(err.kind, ERR_UNAVAILABLE);
    do /* its thread may not have noticed yet */
        gateway_state(gateway, &state);
    while (state.up && poll(NULL, 0, 1) == 0);
    gateway_counts(gateway, &counts);
    CHECK_INT(counts.connections, 0);
    CHECK_INT(gateway_open(gateway, MINE), 0);
    gateway_drop(gateway, MINE);
    (void) snprintf(last_dial.from, sizeof last_dial.from, "%s/" GATEWAY_SOCKET, directory);
    (void) unlink(last_dial.from);
    (void) rmdir(directory);
}

static void *come_late(void *arg)
{
    struct answers answers = { -1, 1, ERR_NONE };

    CHECK(gateway_listen(directory, geteuid(), &listen_fd, &err) == 0);
    answers.fd = accept_coved();
    (void) answer(&answers);
    (void) close(answers.fd);
    return arg;
}

/* coved is started first, and nobody needs the gateway for a while. */
static void a_first_gateway_that_comes_late_is_waited_for(void)
{
    struct gateway_config config = {
        .directory = directory,
        .egress = { .event = on_event, .ask = on_ask, .dial = on_dial },
        .up = on_up,
    };
    static const struct reach rules = { .mode = REACH_PUBLIC };
    uint64_t begun = io_now_ms();
    int fds[EGRESS_FDS];
    pthread_t late;
    struct err why;

    (void) strcpy(directory, "/tmp/cove-gateway-test.XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
    CHECK(gateway_start(&config, &gateway, &err) == 0);
    while (io_now_ms() < begun + 5100) /* as long as a call waits */
        (void) poll(NULL, 0, 100);
    for (size_t i = 0; i < EGRESS_FDS; i++)
        fds[i] = dup(0);
    CHECK(pthread_create(&late, NULL, come_late, NULL) == 0);
    CHECK(gateway_set(gateway, MINE, "acme", &rules, NULL, fds, &why) == 0);
    (void) pthread_join(late, NULL);
    (void) close(listen_fd);
    (void) snprintf(last_dial.from, sizeof last_dial.from, "%s/" GATEWAY_SOCKET, directory);
    (void) unlink(last_dial.from);
    (void) rmdir(directory);
}

CHECK_MAIN(T(the_socket_is_for_its_owner_alone),
           T(an_event_counts_only_for_a_sandbox_with_a_gateway),
           T(what_is_lost_with_a_gateway_is_known_to_be_lost),
           T(a_dial_to_another_tenant_is_refused), T(a_new_gateway_is_told_all_networks),
           T(garbage_is_cut_off), T(answers_that_nobody_waits_for_change_nothing),
           T(a_flood_of_events_is_bounded), T(ranges_are_told_when_they_change),
           T(a_gateway_that_does_not_answer_is_cut_off), T(without_a_gateway_calls_say_so),
           T(a_first_gateway_that_comes_late_is_waited_for))
