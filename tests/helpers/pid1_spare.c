/* pid1_spare.c - the shepherd that waits for the next command (agent/proc/spare.h), seen from inside and from
 * the host: what is different (less forking), what is not (everything else), and whatever happens to
 * it. */
#include "box.h"
#include "check.h"

#define TRIES  200
#define TRY_US 50000
#define FDS_ROWS                                                                                   \
    "for f in 0 1 2; do readlink /proc/self/fd/$f | tr -d 0-9; done; ls /proc/self/fd | wc -l; "

static struct box box, root_box;

#define SH(text) ((struct agent_request){ .args = TEXTS("/bin/sh\0-c\0" text) })

static struct ran other_ran; /* by tests that compare two results */

static struct ran *copy_of(const struct ran *ran)
{
    memcpy(&other_ran, ran, sizeof other_ran);
    return &other_ran;
}

/* How many children a process has, as the host sees it, and the first of them. */
static int list_children(pid_t pid, pid_t *ret, int most)
{
    char path[64], text[8192];
    int count = 0;

    (void) snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int) pid, (int) pid);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) < 0)
        return -1;
    for (char *at = text, *end; (end = at, strtol(at, &end, 10) > 0); at = end)
        if (count++ < most)
            ret[count - 1] = (pid_t) strtol(at, NULL, 10);
    return count;
}

/* The same of the agent. */
static int children_of(const struct box *of, pid_t *ret_first)
{
    *ret_first = 0;
    return list_children(of->pid, ret_first, 1);
}

static bool gets_children(const struct box *of, int wanted)
{
    pid_t first;

    for (int i = 0; i < TRIES; i++) {
        if (children_of(of, &first) == wanted)
            return true;
        (void) usleep(TRY_US);
    }
    return false;
}

/* A spare that waits in the box; 0: none came to be. Other children would be shepherds that end. */
static pid_t get_spare(struct box *of)
{
    pid_t first;

    for (int i = 0; i < TRIES; i++) {
        (void) box_run(of, SH("true"));
        (void) box_run(of, SH("true"));
        if (children_of(of, &first) == 1)
            return first;
    }
    return 0;
}

/* The same command twice, one behind the other, until both had one shepherd: prints "PPID\n" first. The second's result. */
static struct ran *run_by_spare(struct box *of, struct agent_request q)
{
    struct ran *r = box_run(of, q);

    for (int i = 0; i < TRIES; i++) {
        char before[32];

        (void) snprintf(before, sizeof before, "%.*s", (int) strcspn(r->out[0], "\n"), r->out[0]);
        r = box_run(of, q);
        if (before[0] && strncmp(before, r->out[0], strlen(before)) == 0)
            return r;
    }
    CHECK(!"a command has the shepherd of the one before");
    return r;
}

static void the_next_command_has_the_shepherd_of_the_one_before(void)
{
    CHECK_INT(run_by_spare(&box, SH("echo $PPID"))->end.exit_code, 0);
}

static void a_first_command_leaves_no_process(void)
{
    struct box fresh;
    char agent[64];
    struct ran *r;
    pid_t first;

    (void) snprintf(agent, sizeof agent, "/proc/%d/exe", (int) box.pid);
    box_start(&fresh, agent, 0);
    CHECK_INT(children_of(&fresh, &first), 0);
    r = box_run(&fresh, SH("echo $PPID"));
    CHECK_INT(r->end.exit_code, 0);
    CHECK(gets_children(&fresh, 0));
    box_stop(&fresh);
}

static void an_idle_sandbox_has_no_process_but_the_agent(void)
{
    CHECK(get_spare(&box) > 0);
    CHECK(gets_children(&box, 0));
}

static void beside_a_command_no_shepherd_waits(void)
{
    struct stream held;

    CHECK(box_begin(&box, &held,
                    (struct agent_request){ .args = TEXTS("sleep\0"
                                                          "1000") }) > 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(box_run(&box, SH("true"))->end.exit_code, 0);
    CHECK(gets_children(&box, 1));
    stream_close(&held);
    (void) box_run(&box, SH("pkill -x sleep"));
    CHECK(gets_children(&box, 0));
}

static void a_shepherd_stays_until_the_last_process_below_has_ended(void)
{
    (void) box_run(&box, SH("true"));
    (void) box_run(&box, SH("sleep 1000 >/dev/null 2>&1 & "
                            "until [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done"));
    CHECK(gets_children(&box, 1));
    CHECK_STR(box_run(&box, SH("pgrep -xc sleep"))->out[0], "1\n");
    (void) box_run(&box, SH("pkill -x sleep"));
    CHECK(gets_children(&box, 0));
    CHECK_STR(box_run(&box, SH("echo fine"))->out[0], "fine\n");
}

/* Everything that a command sees of itself, but for pids. */
#define SELF                                                                                       \
    "id; env | sort; umask; pwd; ulimit -a; cat /proc/self/cgroup; " FDS_ROWS                      \
    "grep -E '^(Sig|Cap|Shd|NoNew|Seccomp|Umask|Groups|Threads)' /proc/self/status; "              \
    "cat /proc/self/oom_score_adj /proc/self/timerslack_ns 2>&1; nice; "                           \
    "[ $(cut -d' ' -f5,6 /proc/$$/stat | tr ' ' =) = $$=$$ ] && echo leads; "                      \
    "cat /proc/$PPID/comm; pgrep -xc cove-shepherd"

static void a_command_of_a_spare_sees_what_one_of_a_forked_shepherd_sees(void)
{
    struct agent_request q = SH("echo $PPID; " SELF);
    struct box fresh;
    char agent[64];
    struct ran *r, *forked;

    q.env = TEXTS("MORE=from the request");
    (void) snprintf(agent, sizeof agent, "/proc/%d/exe", (int) box.pid);
    box_start(&fresh, agent, 0);
    forked = copy_of(box_run(&fresh, q)); /* the first command of a sandbox is of no spare */
    box_stop(&fresh);
    r = run_by_spare(&box, q);
    CHECK(strstr(r->out[0], "leads\ncove-shepherd\n1\n"));
    CHECK_STR(strchr(r->out[0], '\n'), strchr(forked->out[0], '\n'));
    CHECK_STR(r->out[1], forked->out[1]);
}

static void nothing_of_one_command_reaches_the_next_of_another_user(void)
{
    struct agent_request first = SH("echo $PPID; cat; echo secret >&2"), second;
    struct stream s;
    struct ran *r = NULL;
    bool same = false;

    second = SH("echo $PPID; env | grep -c TOKEN; cat /proc/$PPID/environ 2>&1 | grep -c denied; "
                "readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; id -u");
    first.env = TEXTS("TOKEN=abc");
    first.flags = AGENT_STDIN;
    second.user = "other";
    for (int i = 0; i < TRIES && !same; i++) {
        struct ran *owned = &other_ran;
        char ppid[32];

        (void) box_run(&box, SH("true"));
        memset(owned, 0, sizeof *owned);
        (void) box_begin(&box, &s, first);
        (void) stream_send(&s, FRAME_STDIN_END, NULL, 0, &owned->err);
        box_collect(&s, owned);
        stream_close(&s);
        (void) snprintf(ppid, sizeof ppid, "%.*s", (int) strcspn(owned->out[0], "\n"),
                        owned->out[0]);
        r = box_run(&box, second);
        same = ppid[0] && strncmp(ppid, r->out[0], strlen(ppid)) == 0;
    }
    CHECK(same);
    CHECK_STR(strchr(r->out[0], '\n'), "\n0\n1\n/dev/null\n4\n1001\n"); /* the fourth is ls's */
}

static void a_terminal_and_pipes_take_turns(void)
{
    struct agent_request pty =
        SH("echo $PPID; tty | tr -d 0-9; [ -t 0 ] && [ -t 2 ] && echo terminal");
    struct ran *r;

    pty.flags = AGENT_PTY;
    r = run_by_spare(&box, pty);
    CHECK(strstr(r->out[0], "/dev/pts/\r\nterminal\r\n"));
    r = run_by_spare(&box, SH("echo $PPID; [ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo pipes"));
    CHECK(strstr(r->out[0], "\npipes\n"));
}

static void a_program_that_is_not_there_is_an_error_and_the_spare_stays(void)
{
    struct agent_request missing = { .args = TEXTS("no-such-program") };
    struct ran *r;

    CHECK(get_spare(&box) > 0);
    r = box_run(&box, missing);
    CHECK_STR(r->err.msg, "exec no-such-program: No such file or directory");
    CHECK_STR(box_run(&box, SH("echo fine"))->out[0], "fine\n");
}

static void what_a_command_used_is_not_counted_for_the_next(void)
{
    struct agent_request limited = SH("echo $PPID; sleep 0.4");
    struct ran *r;
    bool same = false;

    limited.cpu_timeout_ms = 300;
    for (int i = 0; i < TRIES && !same; i++) {
        char ppid[32];

        (void) box_run(&box, SH("true"));
        r = box_run(&box, SH("echo $PPID; exec python3 -c 'import time; x = bytearray(150 << 20)\n"
                             "while time.process_time() < 0.4: pass'"));
        CHECK(r->end.cpu_ms >= 400);
        CHECK(r->end.peak_bytes > 150u << 20);
        (void) snprintf(ppid, sizeof ppid, "%.*s", (int) strcspn(r->out[0], "\n"), r->out[0]);
        r = box_run(&box, limited);
        CHECK_INT(r->end.ended, EXIT_CODE);
        CHECK(r->end.cpu_ms < 300);
        CHECK(r->end.agent_cpu_ms < 300);
        CHECK(r->end.peak_bytes < 50u << 20);
        same = strncmp(ppid, r->out[0], strlen(ppid)) == 0;
    }
    CHECK(same);
}

static void a_limit_of_processor_time_is_that_of_one_command(void)
{
    struct agent_request limited = SH("echo $PPID; exec python3 -c 'while True: pass'");
    struct ran *r;

    limited.cpu_timeout_ms = 300;
    CHECK(get_spare(&box) > 0);
    r = box_run(&box, limited);
    CHECK_INT(r->end.ended, EXIT_CPU);
    CHECK_STR(box_run(&box, SH("echo fine"))->out[0], "fine\n");
}

static void a_killed_spare_is_done_without(void)
{
    for (int i = 0; i < 20; i++) {
        pid_t spare = get_spare(&box);
        struct ran *r;

        CHECK(spare > 0);
        if (i % 2)
            (void) kill(spare, SIGSTOP); /* so that it dies with the order, and not before */
        (void) kill(spare, SIGKILL);
        r = box_run(&box, SH("echo fine"));
        CHECK_STR(r->err.kind ? r->err.msg : r->out[0], "fine\n");
    }
}

/* While a process of root lives inside, the shepherd above it is no spare: the killer and its flock become strays. */
static void root_inside_that_kills_shepherds_harms_no_later_command(void)
{
    struct agent_request killer =
        SH("(sleep 0.05; pkill -9 -x cove-shepherd) >/dev/null 2>&1 & echo");
    struct ran *r;

    killer.user = "root";
    (void) box_run(&root_box, SH("true"));
    r = box_run(&root_box, killer);
    CHECK_INT(r->end.exit_code, 0);
    CHECK(gets_children(&root_box, 0));
    CHECK_STR(box_run(&root_box, SH("echo fine"))->out[0], "fine\n");
}

/* Such a stray, which /proc calls a zombie, could set the limits of every later shepherd. */
static void a_stray_whose_first_thread_has_ended_is_killed(void)
{
    struct agent_request killer = SH(
        "exec python3 -c 'import ctypes, os, threading, time\n"
        "def stay():\n"
        "    while \") Z \" not in open(\"/proc/%d/stat\" % os.getpid()).read(): time.sleep(.01)\n"
        "    os.kill(os.getppid(), 9)\n"
        "    time.sleep(75)\n"
        "threading.Thread(target=stay).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)'");

    killer.user = "root";
    CHECK_INT(box_run(&root_box, killer)->end.ended, EXIT_LOST);
    CHECK(gets_children(&root_box, 0));
}

/* What a command has from the shepherd above it without being given it. */
#define INHERITED                                                                                  \
    "cat /proc/self/limits; grep -E '^Cpus_allowed:' /proc/self/status; chrt -p $$ | cut -d: "     \
    "-f2; "                                                                                        \
    "nice; ionice -p $$"

/* In the shepherd above, as code inside would; the first ones root may, because root has the shepherd's uid. */
static const struct {
    const char *what;
    bool root_may;
} changes[] = {
    { "prlimit --pid $PPID --nofile=64:64", true },
    { "prlimit --pid $PPID --nofile=64:", true },
    { "prlimit --pid $PPID --nproc=100", true },
    { "prlimit --pid $PPID --fsize=1000000", true },
    { "prlimit --pid $PPID --as=1000000000", true },
    { "prlimit --pid $PPID --cpu=100", true },
    { "prlimit --pid $PPID --data=1000000000 --locks=100 --memlock=65536 --msgqueue=1", true },
    { "prlimit --pid $PPID --rss=1000000000 --sigpending=100 --stack=1000000", true },
    { "renice -n 7 -p $PPID", false },
    { "chrt -b -p 0 $PPID", false },
    { "taskset -cp 0 $PPID", false },
    { "ionice -c 3 -p $PPID", false },
};

static struct ran *change(size_t i, const char *user)
{
    char args[256];
    int len =
        snprintf(args, sizeof args, "/bin/sh%c-c%cexec >/dev/null; %s", 0, 0, changes[i].what);

    return box_run(
        &root_box,
        (struct agent_request){ .user = user, .args = { .data = args, .len = (size_t) len + 1 } });
}

/* A shepherd whose limits were set is no spare: the next command has another one. */
static void what_root_changes_in_a_shepherd_reaches_no_later_command(void)
{
    struct agent_request look = SH("exec 2>&1; " INHERITED);
    char before[4096];

    (void) snprintf(before, sizeof before, "%s", box_run(&root_box, look)->out[0]);
    CHECK(strstr(before, "Max open files") && strstr(before, "SCHED_OTHER"));
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        CHECK(get_spare(&root_box) > 0);
        CHECK_INT(change(i, "root")->end.exit_code == 0, changes[i].root_may);
        CHECK_STR(box_run(&root_box, look)->out[0], before);
    }
}

static void an_ordinary_user_changes_nothing_in_a_shepherd(void)
{
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        struct ran *r = change(i, NULL);

        CHECK_INT(r->end.exit_code, 1);
        CHECK(strstr(r->out[1], "not permitted"));
    }
}

static void a_shepherd_of_root_that_was_not_changed_serves_the_next_command(void)
{
    struct agent_request q = SH("echo $PPID");

    q.user = "root";
    CHECK_INT(run_by_spare(&root_box, q)->end.exit_code, 0);
}

/* It takes no order, so the agent takes the order back. */
static void the_command_of_a_stopped_spare_runs_once(void)
{
    for (int i = 0; i < 3; i++) {
        pid_t spare = get_spare(&box);
        struct ran *r;

        CHECK(spare > 0 && kill(spare, SIGSTOP) == 0);
        r = box_run(&box, SH("echo x >>/tmp/once; cat /tmp/once; rm /tmp/once; exit 3"));
        CHECK_STR(r->err.kind ? r->err.msg : r->out[0], "x\n");
        CHECK_INT(r->end.exit_code, 3);
        CHECK(gets_children(&box, 0));
        CHECK(kill(spare, 0) < 0 && errno == ESRCH);
    }
}

static void a_spare_that_stands_still_for_a_moment_runs_its_command_once(void)
{
    for (int i = 0; i < 10; i++) {
        pid_t spare = get_spare(&box);
        struct ran *r = &other_ran;
        struct stream s;
        struct agent_request q = SH("echo x >>/tmp/once; cat /tmp/once; rm /tmp/once");

        memset(r, 0, sizeof *r);
        q.op = AGENT_EXEC;
        CHECK(spare > 0 && kill(spare, SIGSTOP) == 0);
        CHECK(box_ask(&box, &s, q, &r->err) == 0);
        (void) usleep((useconds_t) i * 10000);
        (void) kill(spare, i % 3 ? SIGCONT : SIGKILL);
        box_collect(&s, r);
        stream_close(&s);
        CHECK_STR(r->out[0], "x\n");
    }
}

static char state_of(pid_t pid)
{
    char path[64], text[1024], *end;

    (void) snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) < 0)
        return 0;
    end = strrchr(text, ')');
    return end ? end[2] : 0;
}

static bool gets_state(pid_t pid, char wanted)
{
    for (int i = 0; i < TRIES; i++) {
        if (state_of(pid) == wanted)
            return true;
        (void) usleep(TRY_US);
    }
    return false;
}

/* More than one round of reaping takes, for which there is one SIGCHLD. */
static void a_shepherd_reaps_a_crowd_that_ended_at_once(void)
{
    enum { CROWD = 300 };
    static pid_t crowd[CROWD + 1];
    struct stream held;
    pid_t shepherd;
    int count = 0;

    CHECK(gets_children(&box, 0));
    CHECK(box_begin(&box, &held,
                    SH("i=0; while [ $i -lt 300 ]; do (sleep 1000 &); i=$((i + 1)); done; "
                       "exec sleep 1000")) > 0);
    CHECK_INT(children_of(&box, &shepherd), 1);
    for (int i = 0; i < TRIES && count != CROWD + 1; i++) {
        (void) usleep(TRY_US);
        count = list_children(shepherd, crowd, CROWD + 1);
    }
    CHECK_INT(count, CROWD + 1);
    CHECK(kill(shepherd, SIGSTOP) == 0 && gets_state(shepherd, 'T'));
    for (int i = 0; i < count; i++)
        (void) kill(crowd[i], SIGKILL);
    for (int i = 0; i < count; i++)
        CHECK(gets_state(crowd[i], 'Z'));
    (void) kill(shepherd, SIGCONT);
    memset(&other_ran, 0, sizeof other_ran);
    box_collect(&held, &other_ran);
    stream_close(&held);
    CHECK_INT(other_ran.end.signal, SIGKILL);
    CHECK(gets_children(&box, 0));
}

/* Its order fails while another command runs, so it ends: what its earlier commands used is not the agent's. */
static void what_a_spare_used_that_ends_behind_a_failure_is_no_time_of_the_agent(void)
{
    struct agent_request missing = { .op = AGENT_EXEC, .args = TEXTS("no-such-program") };
    struct agent_request limited = SH("cat");
    struct stream failing, held;
    struct err err;
    pid_t spare = 0, first;

    limited.cpu_timeout_ms = 100000;
    limited.flags = AGENT_STDIN;
    for (int i = 0; i < TRIES && !spare; i++) {
        CHECK(get_spare(&box) > 0);
        CHECK(box_run(&box, SH("exec python3 -c 'import time\n"
                               "while time.process_time() < 0.6: pass'"))
                  ->end.cpu_ms >= 600);
        if (children_of(&box, &first) == 1 && kill(first, SIGSTOP) == 0)
            spare = first;
    }
    CHECK(spare > 0);
    CHECK(box_ask(&box, &failing, missing, &err) == 0);
    CHECK(box_begin(&box, &held, limited) > 0);
    (void) kill(spare, SIGCONT);
    memset(&other_ran, 0, sizeof other_ran);
    box_collect(&failing, &other_ran);
    stream_close(&failing);
    CHECK_STR(other_ran.err.msg, "exec no-such-program: No such file or directory");
    CHECK(gets_children(&box, 1));
    memset(&other_ran, 0, sizeof other_ran);
    (void) stream_send(&held, FRAME_STDIN_END, NULL, 0, &err);
    box_collect(&held, &other_ran);
    stream_close(&held);
    CHECK_INT(other_ran.end.exit_code, 0);
    CHECK(other_ran.end.agent_cpu_ms < 400);
}

static void a_command_that_is_larger_than_an_order_runs(void)
{
    static char args[] = "/bin/sh\0-c\0echo ${#0} ${#1}";
    static char all[sizeof args + 160000];
    struct agent_request q = { .args = { .data = all } };

    memcpy(all, args, sizeof args);
    memset(all + sizeof args, 'a', sizeof all - sizeof args);
    all[sizeof args + 79999] = all[sizeof all - 1] = '\0';
    q.args.len = sizeof all;
    for (int i = 0; i < 5; i++) {
        CHECK(get_spare(&box) > 0);
        CHECK_STR(box_run(&box, q)->out[0], "79999 79999\n");
    }
}

/* Until the agent has come to rest. */
static void quiesce(struct box *of)
{
    struct agent_reply reply;
    struct stream s;
    struct frame frame;
    struct err err;

    CHECK(box_ask(of, &s, (struct agent_request){ .op = AGENT_QUIESCE }, &err) == 0);
    CHECK(stream_reply(&s, FRAME_REPLY, &reply, &err) == 0);
    CHECK(stream_next(&s, &frame, &err) < 0 && err.kind == ERR_UNAVAILABLE);
    stream_close(&s);
}

static void resumed(struct box *of)
{
    struct agent_reply reply;
    struct stream s;
    struct err err;

    CHECK(box_ask(of, &s, (struct agent_request){ .op = AGENT_RESUMED, .name = "continue" },
                  &err) == 0);
    CHECK(stream_reply(&s, FRAME_REPLY, &reply, &err) == 0);
    stream_close(&s);
}

static void quiesce_ends_the_spare_before_it_answers(void)
{
    pid_t first;

    CHECK(get_spare(&box) > 0);
    quiesce(&box);
    CHECK_INT(children_of(&box, &first), 0);
    resumed(&box);
    CHECK_STR(box_run(&box, SH("echo fine"))->out[0], "fine\n");
}

static void between_quiesce_and_resumed_no_shepherd_stays(void)
{
    pid_t shepherd, command;
    struct stream held;
    struct ran *r;
    char ppid[32];

    CHECK(gets_children(&box, 0));
    CHECK(box_begin(&box, &held, SH("exec sleep 1000")) > 0);
    CHECK_INT(children_of(&box, &shepherd), 1);
    r = box_run(&box, SH("cut -d' ' -f4 /proc/$(pgrep -x sleep)/stat"));
    (void) snprintf(ppid, sizeof ppid, "%s", r->out[0]);
    CHECK(gets_children(&box, 1));
    quiesce(&box);
    stream_close(&held);
    CHECK_INT(list_children(shepherd, &command, 1), 1);
    (void) kill(command, SIGKILL);
    for (int i = 0; i < TRIES && list_children(shepherd, &command, 1) > 0; i++)
        (void) usleep(1000);
    CHECK(strcmp(box_run(&box, SH("echo $PPID"))->out[0], ppid) != 0);
    resumed(&box);
    CHECK(get_spare(&box) > 0);
}

static void many_commands_at_once_leave_at_most_one_spare(void)
{
    struct stream streams[16];
    pid_t first;

    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < ARRAY_LEN(streams); i++)
            CHECK(box_begin(&box, &streams[i], SH("sleep 0.1; echo $PPID")) > 0);
        for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
            struct ran *r = &other_ran;

            memset(r, 0, sizeof *r);
            box_collect(&streams[i], r);
            stream_close(&streams[i]);
            CHECK_INT(r->end.ended, EXIT_CODE);
        }
        for (int i = 0; i < TRIES && children_of(&box, &first) > 1; i++)
            (void) usleep(TRY_US);
        CHECK(children_of(&box, &first) <= 1);
    }
    CHECK(gets_children(&box, 0));
}

int main(int argc, char **argv)
{
    static const struct check_test tests[] = {
        T(the_next_command_has_the_shepherd_of_the_one_before),
        T(a_first_command_leaves_no_process),
        T(an_idle_sandbox_has_no_process_but_the_agent),
        T(beside_a_command_no_shepherd_waits),
        T(a_shepherd_stays_until_the_last_process_below_has_ended),
        T(a_command_of_a_spare_sees_what_one_of_a_forked_shepherd_sees),
        T(nothing_of_one_command_reaches_the_next_of_another_user),
        T(a_terminal_and_pipes_take_turns),
        T(a_program_that_is_not_there_is_an_error_and_the_spare_stays),
        T(what_a_command_used_is_not_counted_for_the_next),
        T(a_limit_of_processor_time_is_that_of_one_command),
        T(a_killed_spare_is_done_without),
        T(root_inside_that_kills_shepherds_harms_no_later_command),
        T(a_stray_whose_first_thread_has_ended_is_killed),
        T(what_root_changes_in_a_shepherd_reaches_no_later_command),
        T(an_ordinary_user_changes_nothing_in_a_shepherd),
        T(a_shepherd_of_root_that_was_not_changed_serves_the_next_command),
        T(the_command_of_a_stopped_spare_runs_once),
        T(a_spare_that_stands_still_for_a_moment_runs_its_command_once),
        T(a_shepherd_reaps_a_crowd_that_ended_at_once),
        T(what_a_spare_used_that_ends_behind_a_failure_is_no_time_of_the_agent),
        T(a_command_that_is_larger_than_an_order_runs),
        T(quiesce_ends_the_spare_before_it_answers),
        T(between_quiesce_and_resumed_no_shepherd_stays),
        T(many_commands_at_once_leave_at_most_one_spare),
    };
    int failed;

    if (argc != 2)
        return 2;
    box_start(&box, argv[1], 0);
    box_start(&root_box, argv[1], BOOT_ROOT);
    failed = check_run(tests, ARRAY_LEN(tests));
    box_stop(&box);
    box_stop(&root_box);
    return failed;
}
