/* hostile_client - what a caller of the keeper's socket can do wrong, on purpose. After each attempt
 * the keeper must be the same process, serve somebody else, and hold no descriptor more than before.
 *
 *   hostile_client STATE KEEPER_PID      prints ok / not ok lines */
#include "base/io.h"
#include "base/own.h"
#include "client/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

#define PATIENCE_MS 5000
#define GROUP       500 /* connections of one process: the keeper's limit is met, not the caller's own */
#define GROUPS      60 /* more than the keeper has room for, however many descriptors it may have */

static const char *state;
static int keeper;
static int failures;
static unsigned seed = 12345;

static int dial(void)
{
    auto_close int dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct timeval patience = { .tv_sec = 1 };
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    (void) snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/keeper.sock", dir);
    if (fd < 0 || connect(fd, (const struct sockaddr *) &at, sizeof at) < 0)
        return -1;
    (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return take_fd(&fd);
}

/* Somebody else is served. */
static bool serves(struct err *err)
{
    struct keeper_hello hello = { 0 };
    uint64_t until = io_now_ms() + PATIENCE_MS;
    struct link link;
    bool yes = false;

    while (!yes && io_now_ms() < until) { /* a full house may turn us away for a moment */
        link.patience_ms = PATIENCE_MS;
        if (link_open(&link, state, err) == 0) {
            link.patience_ms = PATIENCE_MS;
            yes = keeper_hello(&link, &hello, err) == 0;
            link_close(&link);
        }
        if (!yes)
            (void) usleep(10000);
    }
    return yes && (int) hello.pid == keeper;
}

static int keeper_fds(void)
{
    auto_dir DIR *dir = NULL;
    const struct dirent *entry;
    char path[64];
    int count = 0;

    (void) snprintf(path, sizeof path, "/proc/%d/fd", keeper);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        char target[64];
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);

        count += n > 0 && strncmp(target, "net:", 4) != 0; /* made ahead, more or fewer */
    }
    return count;
}

static void verdict(const char *sentence, int before, bool as_expected, const char *why)
{
    uint64_t until = io_now_ms() + PATIENCE_MS;
    struct err err = { 0 };
    bool served = serves(&err);
    int now;

    while ((now = keeper_fds()) != before && io_now_ms() < until)
        (void) usleep(2000);
    if (as_expected && served && now == before) {
        printf("ok - %s\n", sentence);
    } else {
        failures++;
        printf("not ok - %s: %s%s%s; descriptors %d, before %d\n", sentence, as_expected ? "" : why,
               served ? "" : " nobody else is served: ", served ? "" : err.msg, now, before);
    }
    (void) fflush(stdout);
}

/* Sends these bytes; 1 an error reply, 2 a good reply, 0 the end, -1 nothing came. */
static int say(int fd, const void *data, size_t len)
{
    struct keeper_reply reply;
    ssize_t n;

    if (send(fd, data, len, MSG_NOSIGNAL) < 0)
        return 0;
    n = recv(fd, &reply, sizeof reply, 0);
    if (n == (ssize_t) sizeof reply)
        return reply.err.kind ? 1 : 2;
    return n == 0 ? 0 : -1;
}

static void wrong_sizes(void)
{
    static char packet[3 * sizeof(struct keeper_request)];
    size_t sizes[] = { 1, 4, sizeof(struct keeper_request) - 1, sizeof(struct keeper_request) + 1,
                       sizeof packet };
    int before = keeper_fds();
    bool fine = true;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct keeper_request request;
        auto_close int fd = dial();
        int said;

        keeper_request_init(&request, KEEPER_HELLO);
        memcpy(packet, &request, sizeof request);
        said = say(fd, packet, sizes[i]);
        fine = fine && (said == 0 || said == 1);
        fine = fine && say(fd, &request, sizeof request) <= 0; /* and that is the end of it */
    }
    verdict("packets of a wrong size are refused and end the connection", before, fine,
            "a wrong size passed");
}

static void wrong_fields(void)
{
    int before = keeper_fds();
    bool fine = true;

    for (int what = 0; what < 6; what++) {
        struct keeper_request r;
        auto_close int fd = dial();

        keeper_request_init(&r, what == 4 ? KEEPER_GET : KEEPER_HELLO);
        if (what == 0)
            r.magic ^= 1;
        else if (what == 1)
            r.version++;
        else if (what == 2)
            r.op = KEEPER_OP_COUNT;
        else if (what == 3)
            memset(r.sandbox, 'a', sizeof r.sandbox); /* without an end */
        else if (what == 4)
            (void) strcpy(r.sandbox, "../../etc/passwd");
        else
            r.isolation = 1;
        fine = fine && say(fd, &r, sizeof r) != 2;
    }
    verdict("a wrong magic, version, op, text or reserved field is refused", before, fine,
            "one of them passed");
}

static void random_packets(void)
{
    int before = keeper_fds(), fd = -1;
    bool fine = true;

    for (int i = 0; i < 10000; i++) {
        static unsigned char packet[sizeof(struct keeper_request) + 64];
        size_t len = i % 4 ? sizeof(struct keeper_request) : (size_t) rand_r(&seed) % sizeof packet;

        for (size_t j = 0; j < sizeof packet; j++)
            packet[j] = (unsigned char) rand_r(&seed);
        if (i % 3 == 0) /* past the first check */
            memcpy(packet,
                   &(struct keeper_request){ .magic = KEEPER_MAGIC, .version = KEEPER_VERSION }, 8);
        if (fd < 0)
            fd = dial();
        if (len == 0)
            continue;
        switch (say(fd, packet, len)) {
        case 2:
            fine = false;
            break;
        case 0:
        case -1:
            own_close(&fd);
            break;
        default:
            break;
        }
    }
    own_close(&fd);
    verdict("ten thousand random packets are refused", before, fine,
            "a random packet was accepted");
}

static void never_reads(void)
{
    int before = keeper_fds(), sent = 0;
    auto_close int fd = dial();
    struct keeper_request r;
    struct err err;
    bool fine;

    keeper_request_init(&r, KEEPER_LIST);
    while (sent < 5000 && send(fd, &r, sizeof r, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) sizeof r)
        sent++;
    fine = serves(&err); /* while it still does not read */
    for (int i = 0; i < 200 && send(fd, &r, sizeof r, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0; i++)
        (void) usleep(1000);
    fine = fine && serves(&err);
    own_close(&fd);
    verdict("a caller that never reads its answers stops nobody", before, fine,
            "the keeper waits for it");
}

static void half_open(void)
{
    int before = keeper_fds();
    int fds[50];

    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial();
        if (i % 2)
            (void) shutdown(fds[i], SHUT_WR);
        else
            (void) shutdown(fds[i], SHUT_RD);
    }
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        own_close(&fds[i]);
    verdict("connections that are half closed go", before, true, "");
}

struct told {
    int served;
    bool full; /* the next one got the end of the connection instead of an answer */
};

static bool answered(int fd)
{
    struct keeper_request r;

    keeper_request_init(&r, KEEPER_HELLO);
    return say(fd, &r, sizeof r) == 2;
}

/* One process of a crowd: holds connections until one is turned away, at most GROUP. Asked by a byte, tells how many of
 * them are served still; ends with its caller's end of `line`. */
static void hold_connections(int line)
{
    struct timeval patience = {
        .tv_sec = 60
    }; /* a slow answer of a busy machine is none that was refused */
    struct told told = { 0 };
    int fds[GROUP];
    char byte;

    while (told.served < GROUP && !told.full && (fds[told.served] = dial()) >= 0) {
        (void) setsockopt(fds[told.served], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (answered(fds[told.served]))
            told.served++;
        else
            told.full = true;
    }
    (void) io_write_all(line, &told, sizeof told);
    while (io_read_all(line, &byte, 1) == 0) {
        int held = told.served;

        told.served = 0;
        for (int i = 0; i < held; i++)
            told.served += answered(fds[i]);
        (void) io_write_all(line, &told, sizeof told);
    }
    _exit(0);
}

static int join_crowd(pid_t *pid)
{
    int line[2];

    *pid = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0)
        return -1;
    *pid = fork();
    if (*pid == 0) {
        own_close(&line[0]);
        hold_connections(line[1]);
    }
    own_close(&line[1]);
    return line[0];
}

/* Connections are added until the keeper has no room: however large its table and its limit on descriptors are, the next one
 * is turned away at once, and who is served stays served. */
static void crowd(void)
{
    int before = keeper_fds(), lines[GROUPS], count = 0, served = 0, still = 0;
    struct told told = { 0 };
    pid_t pids[GROUPS];

    while (count < GROUPS && !told.full) {
        lines[count] = join_crowd(&pids[count]);
        if (io_read_all(lines[count], &told, sizeof told) < 0)
            told = (struct told){ 0 };
        served += told.served;
        if (++count && told.served < GROUP && !told.full)
            break; /* a caller that failed: neither served nor turned away */
    }
    for (int i = 0; i < count; i++) {
        struct told now = { 0 };

        if (io_write_all(lines[i], "", 1) == 0 && io_read_all(lines[i], &now, sizeof now) == 0)
            still += now.served;
    }
    for (int i = 0; i < count; i++)
        own_close(&lines[i]);
    for (int i = 0; i < count; i++)
        (void) waitpid(pids[i], NULL, 0);
    if (!told.full || still != served)
        printf("# %d served in %d groups, %d of them still; %s\n", served, count, still,
               told.full ? "full" : "never full");
    verdict("a crowd is served until there is no room, the next is turned away, and the crowd is "
            "served still",
            before, told.full && served >= GROUP && still == served,
            "the keeper was never full, or forgot a caller");
}

static void stowaways(void)
{
    int before = keeper_fds();
    bool fine = true;

    for (int i = 0; i < 200; i++) {
        auto_close int fd = dial();
        struct keeper_request r;
        struct keeper_reply reply;
        int gifts[IO_FDS_MAX];

        for (size_t j = 0; j < ARRAY_LEN(gifts); j++)
            gifts[j] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        keeper_request_init(&r, KEEPER_HELLO);
        fine = fine &&
               io_send_fds(fd, &r, sizeof r, gifts, ARRAY_LEN(gifts)) == (ssize_t) sizeof r &&
               recv(fd, &reply, sizeof reply, 0) == (ssize_t) sizeof reply;
        for (size_t j = 0; j < ARRAY_LEN(gifts); j++)
            own_close(&gifts[j]);
    }
    verdict("descriptors that come with a request are not kept", before, fine,
            "it was not answered");
}

/* Two requests at once: the second waits until the first is answered, and answers keep their order. */
static void pipelined(void)
{
    int before = keeper_fds();
    auto_close int fd = dial();
    struct keeper_request r;
    struct keeper_reply reply;
    bool fine = true;

    for (int i = 0; i < 10; i++) {
        keeper_request_init(&r, i % 2 ? KEEPER_HELLO : KEEPER_LIST);
        fine = fine && send(fd, &r, sizeof r, MSG_NOSIGNAL) == (ssize_t) sizeof r;
    }
    for (uint32_t i = 0; i < 10; i++)
        fine = fine && recv(fd, &reply, sizeof reply, 0) == (ssize_t) sizeof reply &&
               reply.op == (i % 2 ? KEEPER_HELLO : KEEPER_LIST);
    own_close(&fd);
    verdict("requests in a row are answered in their order", before, fine,
            "order or number is wrong");
}

/* Leaves in the middle of a create, again and again. */
static void leaves_early(void)
{
    int before = keeper_fds();
    struct link link;
    struct err err;
    auto_free struct keeper_sandbox *list = NULL;
    size_t there = 0, count = 0;
    bool fine = true;
    uint64_t until;

    if (link_open(&link, state, &err) == 0 && sandbox_list(&link, &list, &there, &err) == 0)
        count = there + 1;
    link_close(&link);

    for (int i = 0; i < 10; i++) {
        auto_close int fd = dial();
        struct keeper_request r;

        keeper_request_init(&r, KEEPER_CREATE);
        r.flags = KEEPER_FLAG_TIED;
        limits_default(&r.limits);
        if (i % 2)
            r.limits.disk_bytes = 16u << 20;
        (void) strcpy(r.template, "host");
        fine = fine && sandbox_new_id(r.sandbox, &err) == 0;
        fine = fine && send(fd, &r, sizeof r, MSG_NOSIGNAL) == (ssize_t) sizeof r;
        (void) usleep((useconds_t) (i * 700));
    }
    until = io_now_ms() + PATIENCE_MS;
    while (count != there && io_now_ms() < until && link_open(&link, state, &err) == 0) {
        free(take_ptr(&list));
        if (sandbox_list(&link, &list, &count, &err) < 0)
            count = there + 1;
        link_close(&link);
        (void) usleep(2000);
    }
    verdict("sandboxes tied to callers that left in the middle of a create are gone", before,
            fine && count == there, "some are still there");
}

static void other_users(void)
{
    int before = keeper_fds(), status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        char path[300];
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd;

        (void) snprintf(path, sizeof path, "%s", state);
        if (chdir(path) < 0 || setgid(4242) < 0 || setuid(4242) < 0) /* already in the directory */
            _exit(2);
        fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        (void) strcpy(at.sun_path, "keeper.sock");
        _exit(connect(fd, (const struct sockaddr *) &at, sizeof at) < 0 && errno == EACCES ? 0 : 1);
    }
    if (pid > 0)
        (void) waitpid(pid, &status, 0);
    verdict("a user who is not root cannot connect", before,
            WIFEXITED(status) && WEXITSTATUS(status) == 0, "connect was not refused");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    state = argv[1];
    keeper = atoi(argv[2]);
    (void) signal(SIGPIPE, SIG_IGN);
    /* Its ready disks arrive in the first moments. */
    for (int last = -1, same = 0; same < 50; (void) usleep(10000)) {
        int now = keeper_fds();

        same = now == last ? same + 1 : 0;
        last = now;
    }
    wrong_sizes();
    wrong_fields();
    random_packets();
    half_open();
    stowaways();
    pipelined();
    never_reads();
    crowd();
    other_users();
    leaves_early();
    return failures ? 1 : 0;
}
