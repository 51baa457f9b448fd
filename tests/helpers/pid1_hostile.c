/* pid1_hostile.c - a caller without manners, and a sandbox that changes under the agent's hands: requests that are half right, frames that
 * do not belong, connections that end anywhere, paths whose parts are swapped for links meanwhile.
 *
 *   pid1_hostile AGENT [CONNECTIONS [SEED]]
 *
 * What is promised: the agent lives, answers others, and lets go of all that it held. With a sanitized agent (agent_asan_test) also
 * that none of it touched memory that it should not. The seed is printed: the same one sends the same bytes. */
#include "box.h"
#include "check.h"

#include <poll.h>

static struct box box;
static uint64_t state;
static unsigned connections = 1500;

static uint32_t rnd(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t) (state >> 32) % below;
}

/* clang-format off */
static const char *const paths[] = {
    "/tmp/swap/x", "/tmp/swap/x/y", "/tmp/swap", "swap/../x", "/tmp/new", "new", "/tmp/dir", "/tmp/dir/a/b/c", "/tmp/fifo", "/tmp/loop",
    "/home/user", "", ".", "..", "../../..", "/", "//", "/tmp/swap/../../etc/passwd", "/proc/self", "/proc/1", "/proc/self/fd/0",
    "/proc/self/mem", "/proc/self/exe", "/dev/zero", "/dev/full", "/dev/pts/ptmx", "~", "~root/x", "/tmp/\n\t\x01", "/tmp/\xff\xfe",
};
static const char *const users[] = { NULL, "user", "user", "root", "other", "nobody", "", "1000", "0", "no-such-user" };
static const char *const texts_[] = { "true", "x", "*", "**/*", "[a-", "(a|b)*c", "user.x", "trusted.overlay.opaque", "security.capability", "", "0", "\xff", "a=b" };
static const struct texts argv_[] = { TEXTS("/bin/true"), TEXTS("/bin/cat"), TEXTS("/bin/sh\0-c\0echo a; sleep 0.01; echo b >&2"), TEXTS("nowhere"), TEXTS("/tmp/dir"), { 0 } };
/* clang-format on */

#define SWAPPED   10 /* the first of the paths: where the sandbox is at work */
#define FLAGS_END (AGENT_FLAG_ALL + 1)
#define ANY(list) ((list)[rnd(ARRAY_LEN(list))])

static uint64_t any_number(void)
{
    static const uint64_t odd[] = { 0,          0,          0,     1,          2,
                                    7,          4096,       65536, 0x7fffffff, 0x80000000,
                                    0xffffffff, 1ull << 40, ~0ull };

    return ANY(odd);
}

static struct agent_request any_request(void)
{
    struct agent_request r = { .version = AGENT_VERSION, .op = 1 + rnd(AGENT_OP_COUNT - 1) };

    if (r.op == AGENT_QUIESCE ||
        r.op == AGENT_RESUMED) /* the keeper's; damaged requests become these, too */
        r.op = AGENT_PACK;
    r.flags = rnd(FLAGS_END) & agent_ops[r.op].flags & ~(AGENT_DETACH | AGENT_INHERIT_FDS);
    r.user = rnd(4) ? "user" : ANY(users);
    r.path = paths[rnd(rnd(3) ? SWAPPED : ARRAY_LEN(paths))];
    r.to = paths[rnd(SWAPPED)];
    r.pattern = ANY(texts_);
    r.name = ANY(texts_);
    r.signal = rnd(3) ? 0 : rnd(80);
    r.proc = 1 + rnd(4);
    r.port = 1 + rnd(70000);
    if (r.op == AGENT_EXEC) {
        r.args = ANY(argv_);
        r.timeout_ms = 200;
        r.flags |= AGENT_KILL_ON_CLOSE;
        r.flags &= ~AGENT_DETACH;
    }
    if (rnd(4)) /* mostly what belongs to the operation: fields that do not are refused */
        return r;
    r.flags |= 1u << rnd(22);
    r.proc = (uint32_t) any_number();
    r.limit = rnd(4) ? 1 + rnd(50) : any_number();
    r.depth = rnd(4);
    r.offset = any_number();
    r.length = rnd(2) ? 4096 : any_number();
    r.mode = rnd(2) ? 0 : AGENT_MODE_SET | rnd(010000);
    r.owner = rnd(4) ? NULL : ANY(users);
    r.group = rnd(4) ? NULL : ANY(users);
    r.value = (struct bytes){ "value", rnd(6) };
    r.rows = (uint32_t) any_number();
    r.context_before = rnd(2000);
    return r;
}

static void damage(uint8_t *bytes, size_t *len, size_t most)
{
    for (unsigned n = 1 + rnd(6); n > 0 && *len > 0; n--)
        switch (rnd(5)) {
        case 0:
            bytes[rnd((uint32_t) *len)] ^= (uint8_t) (1u << rnd(8));
            break;
        case 1:
            bytes[rnd((uint32_t) *len)] = (uint8_t) rnd(256);
            break;
        case 2:
            *len = rnd((uint32_t) *len);
            break;
        case 3: /* a length that lies */
            if (*len >= 4)
                frame_put_u32(bytes + rnd((uint32_t) *len - 3), (uint32_t) any_number());
            break;
        default:
            if (*len * 2 < most && *len < 4096) {
                memcpy(bytes + *len, bytes, *len);
                *len *= 2;
            }
        }
}

static bool send_some(int fd, const void *data, size_t len)
{
    const uint8_t *bytes = data;

    while (len > 0) {
        size_t piece = rnd(8) ? len : 1 + rnd((uint32_t) len);
        ssize_t n = send(fd, bytes, piece, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t) n;
    }
    return true;
}

static void send_request(int fd)
{
    static uint8_t bytes[FRAME_REQUEST_MAX];
    struct agent_request r = any_request();
    uint8_t head[FRAME_HEAD];
    struct err err;
    ssize_t n = agent_request_encode(&r, bytes, sizeof bytes, &err);
    size_t len = n < 0 ? 0 : (size_t) n;

    if (!rnd(3))
        damage(bytes, &len, sizeof bytes);
    frame_head_put(head, FRAME_REQUEST,
                   rnd(20) ? (uint32_t) len : (uint32_t) any_number() % (FRAME_REQUEST_MAX + 9));
    if (!rnd(20))
        head[4 + rnd(4)] = (uint8_t) rnd(256);
    if (send_some(fd, head, sizeof head))
        (void) send_some(fd, bytes, len);
}

static void send_frame(int fd)
{
    static uint8_t bytes[70000];
    uint32_t len = rnd(4) ? rnd(64) : rnd(FRAME_DATA_MAX);
    uint8_t head[FRAME_HEAD];

    for (uint32_t i = 0; i < len && i < 64; i++)
        bytes[i] = (uint8_t) rnd(256);
    frame_head_put(head, (enum frame_type)(rnd(10) ? 1 + rnd(7) : rnd(256)), len);
    if (send_some(fd, head, sizeof head))
        (void) send_some(fd, bytes, len);
}

static unsigned served, refused_; /* answers that begin with one of each kind */

/* Until the agent says no more, or we have heard enough. */
static void listen_a_little(int fd)
{
    static uint8_t buffer[65536];
    unsigned most = 1 + rnd(12);

    for (unsigned i = 0; i < most; i++) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        if (poll(&p, 1, 50) < 1 ||
            recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) < (ssize_t) FRAME_HEAD)
            return;
        served += i == 0 && buffer[4] != FRAME_ERROR;
        refused_ += i == 0 && buffer[4] == FRAME_ERROR;
    }
}

static void be_rude(void)
{
    int fd = box_connect(&box);

    if (rnd(30))
        send_request(fd);
    for (unsigned n = rnd(3) ? 0 : rnd(4); n > 0; n--)
        send_frame(fd);
    if (!rnd(3))
        (void) shutdown(fd, SHUT_WR);
    if (rnd(5))
        listen_a_little(fd);
    (void) close(fd);
}

static bool answers(void)
{
    struct agent_reply reply;
    struct err err;

    return box_simple(&box, (struct agent_request){ .op = AGENT_INFO }, &reply, &err) == 0 &&
           reply.version == AGENT_VERSION;
}

static void many_rude_callers_hurt_nobody(void)
{
    static const char swap[] = "/bin/sh\0-c\0"
                               "cd /tmp; mkfifo fifo; ln -s loop loop; while :; do mkdir -p swap "
                               "dir/a/b; echo 1 >swap/x; mv swap s2; ln -s / swap; rm -rf s2;"
                               " ln -sfn ../../../etc swap; rm -f swap; mkdir swap; ln -s "
                               "/proc/self/fd swap/x; rm -rf swap dir; done 2>/dev/null";
    struct stream racer;
    uint32_t proc = box_begin(
        &box, &racer, (struct agent_request){ .args = TEXTS(swap), .flags = AGENT_KILL_ON_CLOSE });

    CHECK(proc > 0);
    for (unsigned i = 0; i < connections && !check_why[0]; i++) {
        be_rude();
        if (i % 100 == 0)
            CHECK(answers() && waitpid(box.pid, NULL, WNOHANG) == 0);
    }
    stream_close(&racer);
    CHECK(answers());
    CHECK(served > connections / 20 &&
          refused_ > connections / 20); /* not all nonsense, and not all sense */
    printf("# %u were served, %u refused\n", served, refused_);
}

static void commands_and_files_work_as_before(void)
{
    struct ran *r = box_run(
        &box, (struct agent_request){ .args = TEXTS("/bin/sh\0-c\0echo still here; exit 5") });
    struct agent_reply reply;
    struct err err;

    CHECK_STR(r->out[0], "still here\n");
    CHECK_INT(r->end.exit_code, 5);
    CHECK_INT(box_simple(&box, (struct agent_request){ .op = AGENT_STAT, .path = "/home/user" },
                         &reply, &err),
              0);
}

static int count_fds(void)
{
    char path[64];
    int count = 0;
    auto_dir DIR *dir = NULL;

    (void) snprintf(path, sizeof path, "/proc/%d/fd", (int) box.pid);
    dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    return count;
}

static void nothing_of_them_is_held(void)
{
    uint64_t until = io_now_ms() + BOX_PATIENCE_MS;
    int fds;

    while ((fds = count_fds()) > 14 && io_now_ms() < until)
        (void) usleep(10000);
    CHECK(fds > 0 && fds <= 14);
}

int main(int argc, char **argv)
{
    static const struct check_test tests[] = {
        T(many_rude_callers_hurt_nobody),
        T(commands_and_files_work_as_before),
        T(nothing_of_them_is_held),
    };
    int failed;

    if (argc < 2)
        return 2;
    connections = argc > 2 ? (unsigned) atoi(argv[2]) : connections;
    state = argc > 3 ? strtoull(argv[3], NULL, 0) : io_now_us() | 1;
    printf("# %u connections, seed %llu\n", connections, (unsigned long long) state);
    box_start(&box, argv[1], BOOT_NOTIFY);
    failed = check_run(tests, ARRAY_LEN(tests));
    box_stop(&box);
    return failed;
}
