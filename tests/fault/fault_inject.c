/* fault_inject - one operation, over and over: each time another system call fails, or is the last thing
 * a process does. After each time nothing may be left, nobody else may have noticed, and what was
 * called a success must be one.
 *
 *   fault_inject BUILD STATE OPERATION WHO error|kill-WHOM STRIDE [first n]
 *
 * STATE has a template 'host' and no running keeper. STRIDE 1 is every call; otherwise the first and last
 * ten and every STRIDE-th. One `ok`/`not ok` line per sweep; with VERBOSE=1 also what each n did. */
#include "base/io.h"
#include "base/own.h"
#include "client/exec.h"
#include "client/image.h"
#include "tracer.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#define SETTLED_MS       60000 /* mkfs under a tracer, on a busy machine */
#define SPARE_SEEN_MS    200   /* of the operation: it may be what fails */
#define SPARE_MS         3000
#define ALWAYS           10 /* first and last calls that no stride leaves out */
#define VIOLATIONS_SHOWN 12
#define COUNT_ONLY       1000000u

struct outcome {
    int rc;
    struct err err;
    struct keeper_sandbox sandbox;
};

struct operation {
    const char *name, *sentence;
    bool makes, removes; /* a sandbox */
    bool ready;          /* its disk is of the size that is kept ready */
    bool tied;  /* it ends with the client's connection: only such a one has its disk in memory */
    bool spare; /* it takes a child that waits, and lasts until another one does */
    int (*run)(struct link *link, const char *id, unsigned n, struct outcome *out);
};

struct sweep {
    struct world world;
    const struct operation *op;
    struct injection what;
    unsigned stride, total;
    unsigned successes, failures, violations;
    char *posture; /* of a healthy sandbox */
    bool verbose;
};

/* ---- operations, as a client does them ---- */

static int create(struct link *link, const char *id, uint64_t disk_bytes, uint32_t flags,
                  struct outcome *out)
{
    struct sandbox_spec spec = { .id = id, .template = "host", .flags = flags };

    limits_default(&spec.limits);
    if (disk_bytes)
        spec.limits.disk_bytes = disk_bytes;
    return sandbox_create(link, &spec, &out->sandbox, &out->err);
}

static int run_create_memory(struct link *link, const char *id, unsigned n, struct outcome *out)
{
    (void) n;
    return create(link, id, 16u << 20, KEEPER_FLAG_TIED, out);
}

static int run_create_image(struct link *link, const char *id, unsigned n, struct outcome *out)
{
    (void) n;
    return create(link, id, 0, 0, out);
}

/* No ready image has this size: the maker must make one. */
static int run_create_order(struct link *link, const char *id, unsigned n, struct outcome *out)
{
    (void) n;
    return create(link, id, 777u << 20, 0, out);
}

/* A size of its own each time: mkfs has to run, too. */
static int run_create_blank(struct link *link, const char *id, unsigned n, struct outcome *out)
{
    return create(link, id, (uint64_t) (300 + n % 1000) << 20, 0, out);
}

static int run_destroy(struct link *link, const char *id, unsigned n, struct outcome *out)
{
    (void) n;
    return sandbox_destroy(link, id, &out->err);
}

static int run_freeze(struct link *link, const char *id, unsigned n, struct outcome *out)
{
    (void) n;
    return sandbox_freeze(link, id, &out->err) < 0 ? -1 : sandbox_thaw(link, id, &out->err);
}

static char image[ID_LEN + 1]; /* what the sandbox is sealed as: another each time */

static int run_seal(struct link *link, const char *id, unsigned n, struct outcome *out)
{
    struct keeper_image made;

    (void) n;
    return image_save(link, id, image, "me", KEEPER_SAVE_SEAL, &made, &out->err);
}

static int run_connect(struct link *link, const char *id, unsigned n, struct outcome *out)
{
    struct exec_info info;

    (void) n;
    return exec_info(link, id, &info, &out->err);
}

/* clang-format off */
static const struct operation operations[] = {
    /* name            sentence                               makes  removes ready  tied   spare */
    { "create-memory", "create with a memory disk",           true,  false, false, true,  false, run_create_memory },
    { "create-image",  "create with a ready image disk",      true,  false, true,  false, false, run_create_image },
    { "create-order",  "create with an image disk to order",  true,  false, true,  false, false, run_create_order },
    { "create-blank",  "create with a disk that mkfs makes",  true,  false, true,  false, false, run_create_blank },
    { "create-spare",  "create with a child that waits",      true,  false, false, true,  true,  run_create_memory },
    { "destroy",       "destroy",                             false, true,  false, false, false, run_destroy },
    { "destroy-image", "destroy with a ready image disk",     false, true,  true,  false, false, run_destroy },
    { "freeze",        "freeze and thaw",                     false, false, false, false, false, run_freeze },
    { "connect",       "connect",                             false, false, false, false, false, run_connect },
    { "seal",          "seal",                                false, true,  true,  false, false, run_seal },
};
/* clang-format on */

/* What is tied to the link goes on until the verdict, though the client ends. */
static void hold(int until)
{
    char byte;

    if (fork() == 0) {
        IGNORE(read(until, &byte, 1) < 0);
        _exit(0);
    }
}

/* ret_hold: to be closed after the verdict. */
static pid_t start_client(const struct sweep *s, const char *id, int *ret_pipe, int *ret_hold)
{
    int pair[2], held[2];
    pid_t pid;

    if (pipe2(held, O_CLOEXEC) < 0)
        return -1;
    *ret_hold = held[1];
    if (pipe2(pair, O_CLOEXEC) < 0) {
        (void) close(held[0]);
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        struct outcome out = { .rc = -1 };
        struct link link;

        (void) close(pair[0]);
        (void) close(held[1]);
        if (link_open(&link, s->world.state, &out.err) == 0) {
            link.patience_ms = 10000;
            out.rc = s->op->run(&link, id, s->what.n, &out);
        }
        if (s->op->tied && out.rc == 0)
            hold(held[0]);
        if (s->op->spare)
            (void) world_await_spare(&s->world, SPARE_SEEN_MS);
        IGNORE(write(pair[1], &out, sizeof out) < 0);
        _exit(0);
    }
    (void) close(pair[1]);
    (void) close(held[0]);
    *ret_pipe = pair[0]; /* also when there is no client: then its end says so */
    return pid;
}

/* ---- verdicts ---- */

__attribute__((format(printf, 3, 4))) static void violation(struct sweep *s, const struct tracer *t,
                                                            const char *fmt, ...)
{
    char why[400];
    va_list args;

    va_start(args, fmt);
    (void) vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    if (s->violations++ < VIOLATIONS_SHOWN)
        printf("not ok - %s, %s's call %u (%s%s%s): %s\n", s->op->sentence, role_name(s->what.who),
               s->what.n, t->call, t->errnum ? " " : "",
               t->errnum ? strerrorname_np(t->errnum) : "", why);
    (void) fflush(stdout);
}

/* A failure must say what failed, and not put it on the caller, who asked for nothing wrong. */
static bool names_a_step(const struct err *err)
{
    static const enum err_kind blames_caller[] = { ERR_USAGE,      ERR_INVALID,     ERR_LIMIT,
                                                   ERR_LIMIT_HOST, ERR_NO_TEMPLATE, ERR_NAME_TAKEN,
                                                   ERR_UNSUPPORTED };

    for (size_t i = 0; i < ARRAY_LEN(blames_caller); i++)
        if (err->kind == blames_caller[i])
            return false;
    return err->kind != ERR_NONE && strlen(err->msg) >= 4 && err->kind < ERR_KIND_COUNT;
}

static void check_posture(struct sweep *s, const struct tracer *t,
                          const struct keeper_sandbox *made)
{
    const char *differs = "";

    /* Connections to it come and go. */
    for (int tries = 0; differs && tries < 200; tries++) {
        auto_free char *now = posture_read(made);

        differs = posture_differs(s->posture, now);
        if (differs)
            (void) usleep(2000);
    }
    if (differs)
        violation(s, t, "it succeeded, but is not like others: %s", differs);
}

/* The process of the sandbox was killed after the process had said that the sandbox is ready; the keeper does not know yet. */
static bool has_ended(struct link *link, const char *id)
{
    uint64_t until = io_now_ms() + SETTLED_MS;
    struct keeper_sandbox now;
    struct err err = { .kind = ERR_NONE };

    while (sandbox_get(link, id, &now, &err) == 0 && io_now_ms() < until)
        (void) usleep(500);
    return err.kind == ERR_NO_SANDBOX;
}

/* The sandbox of the operation, afterwards: fully there or fully gone. */
static void check_sandbox(struct sweep *s, const struct tracer *t, const char *id,
                          const struct outcome *out)
{
    uint64_t until = io_now_ms() + SETTLED_MS;
    struct keeper_sandbox now = { .life = LIFE_GONE };
    struct link link;
    struct err err;
    bool there, said_done = out->rc == 0;

    if (link_open(&link, s->world.state, &err) < 0) {
        violation(s, t, "no connection to the keeper: %s", err.msg);
        return;
    }
    link.patience_ms = 5000;
    do { /* what is on its way out is let out */
        there = sandbox_get(&link, id, &now, &err) == 0;
        if (there && (now.life == LIFE_STOPPING || now.life == LIFE_STARTING ||
                      now.life == LIFE_NEW || now.life == LIFE_PAUSING))
            (void) usleep(500);
        else
            break;
    } while (io_now_ms() < until);

    if (there && now.life == LIFE_PAUSED && sandbox_thaw(&link, id, &err) < 0)
        violation(s, t, "it cannot be thawed: %s", err.msg);
    else if (there && now.life != LIFE_RUNNING && now.life != LIFE_PAUSED)
        violation(s, t, "it stays %s", keeper_life_name(now.life));
    else if (there && world_ask(&s->world, id, &err) < 0) {
        if (s->op->makes && has_ended(&link, id)) {
            link_close(&link);
            return;
        }
        violation(s, t, "it is there and does not answer: %s", err.msg);
    } else if (there && s->op->makes)
        check_posture(s, t, &now);
    if (said_done && s->op->removes == there)
        violation(s, t, "a success that is none: the sandbox is %s", there ? "there" : "gone");
    /* A keeper that is alive never loses what ran before; a failed destroy may still take it away. */
    if (!said_done && !there && !s->op->makes && !s->op->removes)
        violation(s, t, "the sandbox is lost");
    link_close(&link);
}

/* A sandbox that was to be sealed runs, or is an image: one of the two. The image goes, and with it its disk. */
static void check_sealed(struct sweep *s, const struct tracer *t, const char *id,
                         const struct outcome *out)
{
    struct keeper_sandbox now;
    struct keeper_image made;
    struct link link;
    struct err err;
    bool there, whole;

    if (link_open(&link, s->world.state, &err) < 0) {
        violation(s, t, "no connection to the keeper: %s", err.msg);
        return;
    }
    link.patience_ms = 5000;
    there = sandbox_get(&link, id, &now, &err) == 0;
    whole = image_get(&link, image, &made, &err) == 0;
    if (there == whole)
        violation(s, t, "both the sandbox and its image are %s", there ? "there" : "gone");
    if (out->rc == 0 && !whole)
        violation(s, t, "a success that is none: there is no image");
    if (whole && image_drop(&link, image, &err) < 0)
        violation(s, t, "the image cannot be dropped: %s", err.msg);
    link_close(&link);
}

static void check_disks(struct sweep *s, const struct tracer *t)
{
    uint64_t until = io_now_ms() + 5000;

    while (world_disks(&s->world) > 0 && io_now_ms() < until)
        (void) usleep(2000);
    if (world_disks(&s->world) > 0)
        violation(s, t, "%d disks are left", world_disks(&s->world));
}

static void check_neighbour(struct sweep *s, const struct tracer *t)
{
    struct keeper_sandbox now;
    struct link link;
    struct err err;

    if (link_open(&link, s->world.state, &err) < 0 ||
        sandbox_get(&link, s->world.neighbour.id, &now, &err) < 0)
        violation(s, t, "the neighbour is lost: %s", err.msg);
    else if (now.pid != s->world.neighbour.pid)
        violation(s, t, "the neighbour has another pid");
    else if (world_ask(&s->world, now.id, &err) < 0)
        violation(s, t, "the neighbour does not answer: %s", err.msg);
    link_close(&link);
}

/* ---- one time ---- */

static void keeper_again(struct sweep *s, const struct tracer *t)
{
    struct err err;

    world_stop(&s->world, SIGKILL);
    if (world_start(&s->world, &err) < 0)
        violation(s, t, "no new keeper: %s", err.msg);
}

/* After a violation the rest of the sweep starts from a clean sheet. */
static void recover(struct sweep *s, const struct tracer *t)
{
    struct err err;

    keeper_again(s, t);
    (void) world_clear(&s->world, &err);
    (void) world_rest(&s->world, &err);
}

/* held: what keeps a tied sandbox alive so far. */
static void judge(struct sweep *s, struct tracer *t, const char *id, struct outcome *out, int *held)
{
    unsigned before = s->violations;
    struct err err;

    if (t->timed_out)
        violation(s, t, "the operation hangs");
    if (t->keeper == 0) {
        if (s->what.victim != ROLE_KEEPER && !s->what.keeper_too)
            violation(s, t, "the keeper died");
        s->world.keeper = 0;
        keeper_again(s, t);
    }
    if (out->rc == 0)
        s->successes++;
    else
        s->failures++;
    if (out->rc != 0 && !t->timed_out && !names_a_step(&out->err))
        violation(s, t, "an error that does not say what failed: %s: %s",
                  err_kind_info(out->err.kind)->name, out->err.msg);
    if (s->verbose)
        printf("# %u %s %s: %s\n", s->what.n, t->call, t->errnum ? strerrorname_np(t->errnum) : "",
               out->rc ? out->err.msg : "done");
    check_sandbox(s, t, id, out);
    if (s->op->run == run_seal)
        check_sealed(s, t, id, out);
    own_close(held);
    if (world_clear(&s->world, &err) < 0)
        violation(s, t, "clean up: %s", err.msg);
    else if (world_check(&s->world, &err) < 0)
        violation(s, t, "left behind: %s", err.msg);
    if (s->op->run == run_seal)
        check_disks(s, t);
    check_neighbour(s, t);
    if (s->violations != before)
        recover(s, t);
}

/* A new keeper has none before its first create. */
static pid_t find_spare(struct sweep *s)
{
    pid_t pid = world_spare(&s->world);
    struct keeper_sandbox made;
    char id[ID_LEN + 1];
    struct err err;

    if (!pid && sandbox_new_id(id, &err) == 0 &&
        world_create(&s->world, id, false, &made, &err) == 0 && world_clear(&s->world, &err) == 0)
        pid = world_await_spare(&s->world, SPARE_MS);
    return pid;
}

/* A maker that died in the round before may not be replaced yet. */
static int begin(struct sweep *s, struct tracer *t, struct err *err)
{
    if (s->world.keeper <= 1)
        return err_set(err, ERR_STATE, "there is no keeper");
    for (int tries = 0;; tries++) {
        pid_t maker = world_maker(&s->world), spare = s->op->spare ? find_spare(s) : 0;

        if (maker > 1 && tracer_begin(t, &s->what, s->world.keeper, maker, spare, err) == 0)
            return 0;
        if (tries == 400)
            return err_wrap(err, "maker %d", (int) maker);
        (void) usleep(5000);
    }
}

/* Returns whether the n-th call came, or -1 when nothing works any more. */
static int once(struct sweep *s, unsigned n)
{
    struct outcome out = { .rc = -1 };
    struct keeper_sandbox target;
    char id[ID_LEN + 1];
    struct tracer t = { 0 };
    struct err err;
    auto_close int results = -1, held = -1;
    pid_t client;

    s->what.n = n;
    if (sandbox_new_id(id, &err) < 0 || sandbox_new_id(image, &err) < 0)
        return -1;
    if (!s->op->makes && world_create(&s->world, id, s->op->ready, &target, &err) < 0) {
        violation(s, &t, "prepare: %s", err.msg);
        return -1;
    }
    if (begin(s, &t, &err) < 0) {
        violation(s, &t, "trace: %s", err.msg);
        return -1;
    }
    client = start_client(s, id, &results, &held);
    if (client < 0) {
        violation(s, &t, "no client: %s", strerror(errno));
        tracer_end(&t);
        return -1;
    }
    (void) tracer_serve(&t, client);
    tracer_end(&t);
    if (read(results, &out, sizeof out) != (ssize_t) sizeof out)
        err_set(&out.err, ERR_TIMEOUT, "no outcome");
    s->total = t.counted;
    judge(s, &t, id, &out, &held);
    return t.done ? 1 : 0;
}

static bool due(const struct sweep *s, unsigned n, unsigned total)
{
    return s->stride <= 1 || n <= ALWAYS || n + ALWAYS > total || n % s->stride == 0;
}

static int run(struct sweep *s, unsigned first)
{
    unsigned total, n, tried = 0;
    bool over = false;
    uint64_t begin = io_now_ms();
    char how[64];

    if (once(s, COUNT_ONLY) < 0)
        return -1;
    total = s->total;
    for (n = first; !over && n <= total + 100; n++) {
        if (!due(s, n, total))
            continue;
        if (s->violations > 4 * VIOLATIONS_SHOWN)
            break;
        switch (once(s, n)) {
        case -1:
            return -1;
        case 0:
            over = n > total; /* how many calls there are varies a little */
            break;
        default:
            tried++;
        }
    }
    if (s->what.victim == ROLE_NONE)
        (void) snprintf(how, sizeof how, "fails");
    else
        (void) snprintf(how, sizeof how, "is when the %s is killed%s", role_name(s->what.victim),
                        s->what.keeper_too ? ", and the keeper" : "");
    printf("%s - %s: one of %u calls of the %s %s, %u times: %u succeeded, %u failed cleanly (%u "
           "ms)\n",
           s->violations || !tried ? "not ok" : "ok", s->op->sentence, total,
           role_name(s->what.who), how, tried, s->successes, s->failures,
           (unsigned) (io_now_ms() - begin));
    return 0;
}

/* One that nothing was done to, to compare with. */
static int read_healthy(struct sweep *s, struct err *err)
{
    struct outcome out = { .rc = -1 };
    char id[ID_LEN + 1];
    struct link link;

    if (sandbox_new_id(id, err) < 0 || link_open(&link, s->world.state, err) < 0)
        return -1;
    if (s->op->tied)
        out.rc = s->op->run(&link, id, 0, &out);
    else
        out.rc = world_create(&s->world, id, s->op->ready, &out.sandbox, &out.err);
    if (out.rc < 0)
        *err = out.err;
    else
        out.rc = world_ask(&s->world, id, err);
    if (out.rc == 0) {
        (void) usleep(20000); /* until the connection is closed in there, too */
        s->posture = posture_read(&out.sandbox);
        out.rc = world_clear(&s->world, err);
    }
    link_close(&link);
    return out.rc;
}

static int prepare(struct sweep *s, const char *build, const char *state, struct err *err)
{
    char id[ID_LEN + 1];

    if (world_open(&s->world, build, state, err) < 0)
        return -1;
    s->world.spare = s->op->spare;
    if (world_start(&s->world, err) < 0 || sandbox_new_id(id, err) < 0 ||
        world_create(&s->world, id, false, &s->world.neighbour, err) < 0 ||
        read_healthy(s, err) < 0)
        return -1;
    return world_rest(&s->world, err);
}

static enum role role_of(const char *word)
{
    return strcmp(word, "keeper") == 0  ? ROLE_KEEPER
           : strcmp(word, "child") == 0 ? ROLE_CHILD
           : strcmp(word, "maker") == 0 ? ROLE_MAKER
           : strcmp(word, "saver") == 0 ? ROLE_SAVER
           : strcmp(word, "both") == 0  ? ROLE_SAVER
                                        : ROLE_NONE;
}

int main(int argc, char **argv)
{
    struct sweep s = { .verbose = getenv("VERBOSE") != NULL };
    struct err err;

    if (argc < 7) {
        (void) fprintf(stderr, "usage: fault_inject BUILD STATE OPERATION keeper|child|maker|saver "
                               "error|error2|kill-keeper|kill-child|kill-maker|kill-saver|"
                               "kill-both STRIDE [first]\n");
        return 2;
    }
    for (size_t i = 0; i < ARRAY_LEN(operations); i++)
        if (strcmp(operations[i].name, argv[3]) == 0)
            s.op = &operations[i];
    s.what.who = role_of(argv[4]);
    s.what.victim = strncmp(argv[5], "kill-", 5) == 0 ? role_of(argv[5] + 5) : ROLE_NONE;
    s.what.keeper_too = strcmp(argv[5], "kill-both") == 0;
    s.what.variant = strcmp(argv[5], "error2") == 0;
    s.stride = (unsigned) strtoul(argv[6], NULL, 10);
    if (!s.op || s.what.who == ROLE_NONE)
        return 2;
    (void) signal(SIGPIPE, SIG_IGN);
    if (prepare(&s, argv[1], argv[2], &err) < 0) {
        printf("not ok - %s: prepare: %s\n", s.op->sentence, err.msg);
        world_stop(&s.world, SIGTERM);
        return 1;
    }
    if (run(&s, argc > 7 ? (unsigned) strtoul(argv[7], NULL, 10) : 1) < 0)
        printf("not ok - %s: the sweep ended early\n", s.op->sentence);
    s.world.neighbour.id[0] = '\0';
    (void) world_clear(&s.world, &err);
    world_stop(&s.world, SIGTERM);
    free(s.posture);
    return s.violations ? 1 : 0;
}
