/* worker_race_fuzz.c - the agent's file workers on a tree that changes under them: while one works, a thread swaps directories and files of
 * the tree for links that lead out of it. Whatever is asked, nothing outside the tree is changed, made, removed, read or listed.
 *
 * The first bytes say which operation and with which flags, the rest is the archive of an unpack. Each is done by worker_main in
 * a process of its own, as in a sandbox, but as whoever runs the fuzzer: as root, no permission hides a mistake.
 *
 * Only operations that walk below their path are here, and the path itself stays. A link in the path that a caller names is followed
 * with the caller's own rights: that is no way out of anything. */
#include "agent/worker/worker.h"
#include "base/own.h"
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTENT "CANARY-CONTENT"
#define NAME    "canary-name"
#define ROUNDS  3 /* of each input: who wins is chance */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char base[64];
static int place = -1; /* base, open: the working directory is the fuzzer's */
static bool racing;
static pthread_mutex_t swap_lock = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what)
{
    (void) fprintf(stderr, "worker_race_fuzz: %s: %s\n", what, strerror(errno));
    abort();
}

static void put_file(const char *path, const char *text)
{
    int fd = openat(place, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

    if (fd >= 0) {
        IGNORE(write(fd, text, strlen(text)) < 0);
        (void) close(fd);
    }
}

/* ---- outside ---- */

static const char *const outside[] = { "outside",
                                       "outside/door",
                                       "outside/" NAME,
                                       "outside/inner",
                                       "outside/inner/" NAME "-2",
                                       "outside/e",
                                       "outside/e/" NAME "-3" };
static struct stat before[ARRAY_LEN(outside)];

static void make_outside(void)
{
    (void) mkdirat(place, "outside", 0750);
    (void) mkdirat(place, "outside/inner", 0750);
    (void) mkdirat(place, "outside/e", 0750);
    for (size_t i = 0; i < ARRAY_LEN(outside); i++)
        if (strstr(outside[i], NAME) || strstr(outside[i], "door"))
            put_file(outside[i], CONTENT);
    for (size_t i = 0; i < ARRAY_LEN(outside); i++)
        if (fstatat(place, outside[i], &before[i], AT_SYMLINK_NOFOLLOW) < 0)
            fail(outside[i]);
}

/* The time of the last change tells of every other: content, mode, owner, links, names of a directory. */
static void check_outside(void)
{
    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        struct stat now;

        if (fstatat(place, outside[i], &now, AT_SYMLINK_NOFOLLOW) < 0 ||
            now.st_ino != before[i].st_ino || now.st_ctim.tv_sec != before[i].st_ctim.tv_sec ||
            now.st_ctim.tv_nsec != before[i].st_ctim.tv_nsec)
            fail(outside[i]);
    }
}

/* ---- the tree, and who swaps its parts ---- */

static const struct {
    const char *real, *link, *target;
} swapped[] = {
    { "tree/d0", "tree/l0", "../outside" },
    { "tree/d1", "tree/l1", "../outside/inner" },
    { "tree/d0/e", "tree/d0/m", "../../outside/e" },
    { "tree/f0", "tree/k0", "../outside/door" },
    { "tree/d1/f", "tree/d1/k", "../../outside/door" },
};

static void make_tree(void)
{
    (void) mkdirat(place, "tree", 0755);
    (void) mkdirat(place, "tree/d0", 0755);
    (void) mkdirat(place, "tree/d0/e", 0755);
    (void) mkdirat(place, "tree/d0/e/deep", 0755);
    (void) mkdirat(place, "tree/d1", 0755);
    put_file("tree/f0", "plain");
    put_file("tree/d1/f", "plain");
    put_file("tree/d0/e/deep/g", "plain");
    for (size_t i = 0; i < ARRAY_LEN(swapped); i++)
        (void) symlinkat(swapped[i].target, place, swapped[i].link);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void) st, (void) type, (void) at;
    return remove(path);
}

static void clear(const char *name)
{
    char path[96];

    (void) snprintf(path, sizeof path, "%s/%s", base, name);
    (void) nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void clear_tree(void)
{
    clear("tree");
    clear("moved");
}

/* Afterwards nothing is swapped any more, also not what was about to be. */
static void set_racing(bool on)
{
    (void) pthread_mutex_lock(&swap_lock);
    racing = on;
    (void) pthread_mutex_unlock(&swap_lock);
}

static void *race(void *arg)
{
    unsigned n = 0;
    bool go;

    (void) arg;
    for (;;) {
        size_t i = (n = n * 1103515245 + 12345) / 65536 % ARRAY_LEN(swapped);

        (void) pthread_mutex_lock(&swap_lock);
        go = racing;
        if (go)
            (void) syscall(__NR_renameat2, place, swapped[i].real, place, swapped[i].link,
                           RENAME_EXCHANGE);
        (void) pthread_mutex_unlock(&swap_lock);
        if (!go)
            (void) usleep(50);
    }
    return NULL;
}

static void tidy(void)
{
    set_racing(false);
    clear_tree();
    clear("outside");
    (void) rmdir(base);
}

static void set_up(void)
{
    pthread_t thread;

    (void) snprintf(base, sizeof base, "%s/cove-race-XXXXXX",
                    access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(base) || (place = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        fail("make a place");
    (void) atexit(tidy);
    (void) signal(SIGPIPE, SIG_IGN);
    make_outside();
    if (pthread_create(&thread, NULL, race, NULL) != 0)
        fail("thread");
}

/* ---- one operation ---- */

struct input {
    const uint8_t *at, *end;
};

static unsigned next(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static const struct {
    enum agent_op op;
    uint32_t flags; /* always; the input may add others that the operation knows */
    bool reads;     /* its answer says what it saw */
} kinds[] = {
    { AGENT_REMOVE, AGENT_RECURSIVE, false },
    { AGENT_CHMOD, AGENT_RECURSIVE, false },
    { AGENT_CHOWN, AGENT_RECURSIVE, false },
    { AGENT_PACK, 0, true },
    { AGENT_UNPACK, 0, false },
    { AGENT_LIST, 0, true },
    { AGENT_GLOB, 0, true },
    { AGENT_GREP, 0, true },
    { AGENT_MOVE, 0, false },
};

static size_t put_frame(uint8_t *out, enum frame_type type, const void *data, size_t len)
{
    frame_head_put(out, type, (uint32_t) len);
    if (len)
        memcpy(out + FRAME_HEAD, data, len);
    return FRAME_HEAD + len;
}

static size_t put_reply(uint8_t *out, size_t room, enum frame_type type,
                        const struct agent_reply *reply)
{
    struct err err;
    ssize_t n = agent_reply_encode(reply, out + FRAME_HEAD, room - FRAME_HEAD, &err);

    frame_head_put(out, type, n < 0 ? 0 : (uint32_t) n);
    return FRAME_HEAD + (n < 0 ? 0 : (size_t) n);
}

/* What an unpack is sent: entries whose names lead through what is swapped, or out by themselves. */
static size_t make_archive(struct input *in, uint8_t *out, size_t room)
{
    /* clang-format off */
    static const char *const names[] = {
        "d0/x", "d0/e/x", "d0/e", "d0", "d1/f", "d1/new/er", "f0", "l0/x", "k0", "l0", "d0/m/x", "a/b/c", "../outside/door", "../outside/x",
        "/tmp/cove-race-absolute", "d0/../../outside/x", ".", "", "d1/k",
    };
    static const char *const targets[] = { "../outside", "../outside/door", "d0", "/", "x", "../../../../etc" };
    /* clang-format on */
    size_t len = 0;

    for (unsigned n = 1 + next(in) % 6; n > 0 && len + 4096 < room; n--) {
        struct agent_reply item = { .path = names[next(in) % ARRAY_LEN(names)],
                                    .type = 1 + next(in) % ENTRY_BLOCK,
                                    .mode = next(in) * 16u };

        if (item.type == ENTRY_LINK)
            item.target = targets[next(in) % ARRAY_LEN(targets)];
        if (item.type == ENTRY_FILE)
            item.size = 5;
        len += put_reply(out + len, room - len, FRAME_ITEM, &item);
        if (item.type == ENTRY_FILE) {
            len += put_frame(out + len, FRAME_DATA, "wrote", 5);
            len += put_frame(out + len, FRAME_DATA_END, NULL, 0);
        }
    }
    return len + put_reply(out + len, room - len, FRAME_END, &(struct agent_reply){ .count = 0 });
}

static _Noreturn void work(int sock, struct agent_request *request, const uint8_t *early,
                           size_t len)
{
    struct user user = { .name = "tester", .uid = getuid(), .gid = getgid() };
    static uint8_t bytes[65536];
    struct agent_request decoded;
    struct worker w = {
        .sock = sock, .request = &decoded, .user = &user, .early = early, .early_len = len
    };
    struct err err;
    ssize_t n = agent_request_encode(request, bytes, sizeof bytes, &err);

    (void) snprintf(user.home, sizeof user.home, "%s", base);
    (void) alarm(20);
    if (n < 0 || agent_request_decode(&decoded, bytes, (size_t) n, &err) < 0)
        _exit(0); /* a request that no agent takes */
    _exit(worker_main(&w) ? 1 : 0);
}

/* All that it says; whether the canary is in it. */
static bool hears_canary(int sock)
{
    static char heard[1 << 20];
    size_t len = 0;
    ssize_t n;

    while (len < sizeof heard - 1 && (n = read(sock, heard + len, sizeof heard - 1 - len)) > 0)
        len += (size_t) n;
    return memmem(heard, len, CONTENT, strlen(CONTENT)) || memmem(heard, len, NAME, strlen(NAME));
}

static void run_one(struct input in)
{
    static uint8_t archive[65536];
    size_t kind = next(&in) % ARRAY_LEN(kinds), len = 0;
    char path[96], to[96];
    struct agent_request request = { .version = AGENT_VERSION, .op = kinds[kind].op, .path = path };
    int pair[2], status = 0;
    bool told;
    pid_t pid;

    request.flags =
        kinds[kind].flags | ((next(&in) << 12 | next(&in)) & agent_ops[request.op].flags &
                             ~(AGENT_AS_ROOT | AGENT_RESOLVE));
    (void) snprintf(path, sizeof path, "%s/tree", base);
    (void) snprintf(to, sizeof to, "%s/moved", base);
    request.to = request.op == AGENT_MOVE ? to : NULL;
    request.depth = request.op == AGENT_LIST ? 1 + next(&in) % 6 : 0;
    request.mode = request.op == AGENT_CHMOD ? AGENT_MODE_SET | 0700u | next(&in) : 0;
    request.owner = request.op == AGENT_CHOWN ? "1000" : NULL;
    request.pattern = request.op == AGENT_GLOB ? "**/*" : request.op == AGENT_GREP ? "A" : NULL;
    if (request.op == AGENT_UNPACK)
        len = make_archive(&in, archive, sizeof archive);
    make_tree();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        fail("socketpair");
    set_racing(true);
    pid = fork();
    if (pid == 0)
        work(pair[1], &request, archive, len);
    (void) close(pair[1]);
    (void) shutdown(pair[0], SHUT_WR);
    told = hears_canary(pair[0]);
    (void) close(pair[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        fail("fork");
    set_racing(false);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
        fail("the worker died");
    check_outside();
    if (told && kinds[kind].reads)
        fail("the worker told what is outside");
    clear_tree();
    check_outside();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, data + size };

    if (!base[0])
        set_up();
    for (int i = 0; i < ROUNDS; i++)
        run_one(in);
    return 0;
}
