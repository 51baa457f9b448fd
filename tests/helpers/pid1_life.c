/* pid1_life.c - readers come and go, output is bounded, kills reach everybody, bad callers hurt
 * nobody. */
#include "box.h"
#include "check.h"

#define PATIENCE_MS 30000 /* until something that must come is missed */

static struct box box;

#define SH(text) ((struct agent_request){ .args = TEXTS("/bin/sh\0-c\0" text) })

static struct ran kept_ran; /* by tests that need a second result */

static struct ran *attach(uint32_t proc, uint64_t from, uint32_t flags)
{
    memcpy(&kept_ran,
           box_run(&box,
                   (struct agent_request){
                       .op = AGENT_ATTACH, .proc = proc, .from_stdout = from, .flags = flags }),
           sizeof kept_ran);
    return &kept_ran;
}

static uint32_t detached(struct agent_request q)
{
    struct stream s;
    uint32_t proc;

    q.flags |= AGENT_DETACH;
    proc = box_begin(&box, &s, q);
    stream_close(&s);
    return proc;
}

/* The PROCS item of one process; its texts do not outlive the call. */
static struct agent_reply procs_row(uint32_t proc)
{
    struct agent_request q = { .op = AGENT_PROCS };
    struct agent_reply item, found = { .proc = 0 };
    struct stream s;
    struct err err;

    if (box_ask(&box, &s, q, &err) == 0)
        while (stream_item(&s, &item, &err) == 1)
            if (item.proc == proc)
                found = item;
    stream_close(&s);
    return found;
}

static void a_detached_process_goes_on_and_its_status_stays(void)
{
    uint32_t proc = detached(SH("sleep 0.2; echo late; exit 4"));
    struct ran *r = attach(proc, 0, 0);

    CHECK(proc > 0);
    CHECK_STR(r->out[0], "late\n");
    CHECK_INT(r->end.exit_code, 4);
    for (int i = 0; i < 20; i++)
        (void) box_run(&box, SH("head -c 200000 /dev/zero"));
    r = attach(proc, 0, 0);
    CHECK_INT(r->err.kind, 0);
    CHECK_INT(r->end.exit_code, 4);
    CHECK_INT(r->end.stdout_bytes, 5);
}

static void attaching_resumes_from_a_byte(void)
{
    uint32_t proc = detached(SH("printf 0123456789"));
    struct ran *r = attach(proc, 0, AGENT_NO_OUTPUT);

    CHECK_INT(r->total[0], 0);
    CHECK_INT(r->end.stdout_bytes, 10);
    r = attach(proc, 7, 0);
    CHECK_STR(r->out[0], "789");
    CHECK_INT(r->jumped[0], 7);
    r = attach(proc, 10, 0);
    CHECK_INT(r->total[0], 0);
    r = attach(proc, 11, 0);
    CHECK_INT(r->err.kind, ERR_INVALID);
    CHECK_STR(r->err.msg, "from_stdout: byte 11, but only 10 were written");
    r = attach(999999, 0, 0);
    CHECK_INT(r->err.kind, ERR_NO_PROCESS);
    CHECK_STR(r->err.msg, "no process 999999");
}

static void without_a_reader_the_oldest_output_goes(void)
{
    struct agent_request q = SH("seq 100000");
    struct ran *r;

    q.ring_bytes = 8192;
    r = attach(detached(q), 0, AGENT_NO_OUTPUT);
    r = attach(r->end.proc, 0, 0);
    CHECK_INT(r->end.stdout_bytes, 588895);
    CHECK_INT(r->total[0], 8192);
    CHECK_INT(r->jumped[0], 588895 - 8192);
    CHECK(r->len[0] > 7 && strcmp(r->out[0] + r->len[0] - 7, "100000\n") == 0);
}

static void a_reader_that_stalls_stops_its_process_and_no_other(void)
{
    struct agent_request q =
        SH("head -c 4000000 /dev/zero | tr '\\0' x; echo written >/tmp/stalled");
    struct agent_reply row;
    struct stream s;
    uint32_t proc;

    q.ring_bytes = 65536;
    proc = box_begin(&box, &s, q);
    (void) usleep(300000);
    row = procs_row(proc);
    CHECK(row.flags & AGENT_RUNNING);
    CHECK(row.stdout_bytes < 1000000);
    CHECK_STR(box_run(&box, SH("ls /tmp/stalled 2>/dev/null; echo healthy"))->out[0], "healthy\n");
    memset(&kept_ran, 0, sizeof kept_ran);
    box_collect(&s, &kept_ran);
    stream_close(&s);
    CHECK_INT(kept_ran.total[0], 4000000);
    CHECK_INT(kept_ran.jumped[0], 0);
    CHECK_INT(kept_ran.end.exit_code, 0);
}

static void a_reader_that_leaves_lets_the_process_go_on(void)
{
    struct agent_request q = SH("head -c 3000000 /dev/zero; echo x >/tmp/left");
    struct stream s;
    uint32_t proc = box_begin(&box, &s, q);

    (void) usleep(100000);
    stream_close(&s);
    CHECK_INT(attach(proc, 0, AGENT_NO_OUTPUT)->end.stdout_bytes, 3000000);
}

static void two_readers_get_the_same(void)
{
    struct agent_request q = SH("for i in 1 2 3 4 5; do echo $i; sleep 0.05; done");
    struct stream s;
    uint32_t proc = box_begin(&box, &s, q);
    struct ran *r = attach(proc, 0, 0);

    CHECK_STR(r->out[0], "1\n2\n3\n4\n5\n");
    memset(&kept_ran, 0, sizeof kept_ran);
    box_collect(&s, &kept_ran);
    CHECK_STR(kept_ran.out[0], "1\n2\n3\n4\n5\n");
    stream_close(&s);
}

static void a_timeout_reaches_those_who_forked_twice_and_called_setsid(void)
{
    struct agent_request q =
        SH("setsid sh -c 'setsid sleep 71 & exit' ; (setsid nohup sleep 71 &) ; "
           "trap '' TERM INT HUP; sleep 71");
    struct ran *r;

    q.timeout_ms = 400;
    r = box_run(&box, q);
    CHECK_INT(r->end.ended, EXIT_TIMEOUT);
    CHECK(r->end.wall_ms >= 390);
    CHECK_STR(box_run(&box, SH("pgrep -cf '^sleep 71'"))->out[0], "0\n");
}

/* The first thread has ended: /proc calls the process a zombie, while other threads of the process run. */
static void a_timeout_reaches_a_process_whose_first_thread_has_ended(void)
{
    struct agent_request q = SH("exec python3 -c 'import ctypes, threading, time\n"
                                "threading.Thread(target=time.sleep, args=(74,)).start()\n"
                                "ctypes.CDLL(None).pthread_exit(None)'");

    q.timeout_ms = 2000;
    CHECK_INT(box_run(&box, q)->end.ended, EXIT_TIMEOUT);
    CHECK_STR(box_run(&box, SH("pgrep -cx python3"))->out[0], "0\n");
}

static void a_timeout_is_over_when_the_command_ends(void)
{
    struct agent_request q =
        SH("(setsid sh -c 'sleep 1.5; echo there >/tmp/72') >/dev/null 2>&1 &");
    struct ran *r;

    q.timeout_ms = 1000;
    r = box_run(&box, q);
    CHECK_INT(r->end.ended, EXIT_CODE);
    CHECK_STR(
        box_run(&box,
                SH("for i in $(seq 300); do [ -s /tmp/72 ] && break; sleep 0.1; done; cat /tmp/72"))
            ->out[0],
        "there\n");
}

static void a_fork_bomb_ends_at_its_timeout(void)
{
    struct agent_request q = SH("ulimit -p 150 && [ $(ulimit -p) = 150 ] || exit 1; f() { setsid "
                                "sh -c 'sleep 73 & sleep 73' & f "
                                "2>/dev/null & f 2>/dev/null & }; (f; wait) & exec sleep 60");
    struct ran *r;

    q.timeout_ms = 700;
    q.flags = AGENT_KILL_ON_CLOSE;
    r = box_run(&box, q);
    CHECK_INT(r->end.ended, EXIT_TIMEOUT);
    CHECK_STR(box_run(&box, SH("for i in $(seq 300); do [ $(pgrep -cf '^sleep 73') = 0 ] && break; "
                               "sleep 0.1; done; pgrep -cf '^sleep 73'"))
                  ->out[0],
              "0\n");
}

static void orphans_are_reaped(void)
{
    struct ran *r = box_run(
        &box, SH("i=0; while [ $i -lt 300 ]; do (true & exit) ; i=$((i+1)); done; "
                 "for i in $(seq 300); do n=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '); "
                 "[ $n = 0 ] && break; sleep 0.1; done; echo $n"));

    CHECK_STR(r->out[0], "0\n");
}

static void kill_on_close_ends_every_descendant(void)
{
    struct stream s;

    CHECK(box_begin(&box, &s,
                    (struct agent_request){ .args = TEXTS("sh\0-c\0setsid sleep 74 & sleep 74"),
                                            .flags = AGENT_KILL_ON_CLOSE }) > 0);
    (void) usleep(100000);
    stream_close(&s);
    CHECK_STR(box_run(&box, SH("for i in $(seq 300); do [ $(pgrep -cf '^sleep 74') = 0 ] && break; "
                               "sleep 0.1; done; pgrep -cf '^sleep 74'"))
                  ->out[0],
              "0\n");
}

static void signals_go_to_the_group_or_to_all(void)
{
    uint32_t proc = detached(SH("setsid sleep 75 & sleep 75"));
    struct agent_reply reply;
    struct err err;

    (void) box_run(&box, SH("until [ $(pgrep -cf '^sleep 75') = 2 ]; do sleep 0.02; done"));
    CHECK(box_simple(&box, (struct agent_request){ .op = AGENT_SIGNAL, .proc = proc }, &reply,
                     &err) < 0);
    CHECK_STR(err.msg, "signal: none given");
    CHECK(box_simple(&box,
                     (struct agent_request){ .op = AGENT_SIGNAL, .proc = proc, .signal = SIGTERM },
                     &reply, &err) == 0);
    CHECK_INT(reply.count, 2);
    CHECK_INT(attach(proc, 0, 0)->end.signal, SIGTERM);
    CHECK_STR(box_run(&box, SH("pgrep -cf '^sleep 75'"))->out[0], "1\n");
    CHECK(box_simple(&box,
                     (struct agent_request){
                         .op = AGENT_SIGNAL, .proc = proc, .signal = SIGKILL, .flags = AGENT_ALL },
                     &reply, &err) == 0);
    CHECK_INT(reply.count, 1);
    for (uint64_t until = io_now_ms() + PATIENCE_MS; io_now_ms() < until; (void) usleep(10000))
        if (box_simple(
                &box, (struct agent_request){ .op = AGENT_SIGNAL, .proc = proc, .signal = SIGTERM },
                &reply, &err) < 0)
            break;
    CHECK_INT(err.kind, ERR_STATE);
}

static void a_signal_frame_reaches_the_process(void)
{
    struct stream s;
    struct err err;
    uint8_t number[4];

    CHECK(box_begin(&box, &s,
                    (struct agent_request){ .args = TEXTS("sleep\0"
                                                          "76") }) > 0);
    frame_put_u32(number, SIGUSR1);
    CHECK(stream_send(&s, FRAME_SIGNAL, number, 4, &err) == 0);
    memset(&kept_ran, 0, sizeof kept_ran);
    box_collect(&s, &kept_ran);
    stream_close(&s);
    CHECK_INT(kept_ran.end.signal, SIGUSR1);
}

static void the_list_shows_running_and_ended_ones(void)
{
    struct agent_request q = SH("until [ -e /tmp/listed ]; do sleep 0.02; done");
    struct agent_reply row;
    uint32_t proc;

    q.tag = "mine";
    proc = detached(q);
    row = procs_row(proc);
    CHECK_INT(row.proc, proc);
    CHECK(row.flags & AGENT_RUNNING);
    CHECK(row.pid > 1);
    CHECK(row.started_ms > 1600000000000);
    (void) box_run(&box, SH("touch /tmp/listed"));
    (void) attach(proc, 0, 0);
    row = procs_row(proc);
    CHECK(!(row.flags & AGENT_RUNNING));
    CHECK_INT(row.ended, EXIT_CODE);
}

static void quiesce_closes_all_connections_and_kills_nobody(void)
{
    struct agent_request q = SH("until [ -e /tmp/quiesced ]; do sleep 0.02; done; echo survived");
    struct stream held, quiesce, idle, watching;
    struct agent_reply reply;
    struct frame frame;
    struct err err;
    uint32_t proc;

    q.flags = AGENT_KILL_ON_CLOSE;
    proc = box_begin(&box, &held, q);
    err.msg[0] = '\0';
    CHECK(box_ask(&box, &watching, (struct agent_request){ .op = AGENT_WATCH, .path = "/tmp" },
                  &err) == 0);
    (void) stream_reply(&watching, FRAME_REPLY, &reply, &err);
    CHECK_STR(err.msg, "");
    idle = STREAM_NONE;
    idle.fd = box_connect(&box);
    CHECK(box_ask(&box, &quiesce, (struct agent_request){ .op = AGENT_QUIESCE }, &err) == 0);
    CHECK(stream_reply(&quiesce, FRAME_REPLY, &reply, &err) == 0);
    CHECK(stream_next(&quiesce, &frame, &err) < 0 && err.kind == ERR_UNAVAILABLE);
    CHECK(stream_next(&held, &frame, &err) < 0 && err.kind == ERR_UNAVAILABLE);
    CHECK(stream_next(&watching, &frame, &err) < 0 && err.kind == ERR_UNAVAILABLE);
    CHECK(read(idle.fd, &reply, 1) == 0);
    (void) close(idle.fd);
    stream_close(&held), stream_close(&quiesce), stream_close(&watching);
    (void) box_run(&box, SH("touch /tmp/quiesced"));
    CHECK_STR(attach(proc, 0, 0)->out[0], "survived\n");
}

/* What comes back to bytes that are no proper frame. */
static const char *answer_to(const void *bytes, size_t len)
{
    static struct err err;
    struct stream s = STREAM_NONE;
    struct frame frame;
    struct agent_request q = { .version = AGENT_VERSION, .op = AGENT_INFO };

    /* stream_start sends a request of its own behind them: what matters is the first answer. */
    int fd = box_connect(&box);

    err.msg[0] = '\0';
    IGNORE(write(fd, bytes, len) < 0);
    if (stream_start(&s, fd, BOX_PATIENCE_MS, &q, &err) == 0 && stream_next(&s, &frame, &err) == 1)
        (void) snprintf(err.msg, sizeof err.msg, "frame %s", frame_name(frame.type));
    stream_close(&s);
    return err.msg;
}

static void bad_frames_are_named_and_end_only_their_connection(void)
{
    static const uint8_t unknown[] = { 0, 0, 0, 0, 99, 0, 0, 0 };
    static const uint8_t spare[] = { 0, 0, 0, 0, 1, 0, 7, 0 };
    static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0x7f, 1, 0, 0, 0 };
    static const uint8_t early[] = { 0, 0, 0, 0, 3, 0, 0, 0 };
    static const uint8_t empty[] = { 0, 0, 0, 0, 1, 0, 0, 0 };

    CHECK_STR(answer_to(unknown, sizeof unknown), "unknown frame type 99");
    CHECK_STR(answer_to(spare, sizeof spare), "frame 'request': spare bytes set");
    CHECK_STR(answer_to(huge, sizeof huge), "frame 'request': 2147483647 bytes, at most 1048576");
    CHECK_STR(answer_to(early, sizeof early), "frame 'stdin-end' before a request");
    CHECK_STR(answer_to(empty, sizeof empty), "version 0, this agent speaks 1");
    CHECK_STR(answer_to("", 0), "frame reply");
}

static void a_request_in_single_bytes_is_a_request(void)
{
    struct agent_request q = { .version = AGENT_VERSION, .op = AGENT_INFO };
    uint8_t frame[FRAME_HEAD + 256];
    struct stream s = STREAM_NONE;
    struct err err;
    ssize_t len = agent_request_encode(&q, frame + FRAME_HEAD, 256, &err);
    int fd = box_connect(&box);
    uint8_t head[FRAME_HEAD];

    (void) s;
    frame_head_put(frame, FRAME_REQUEST, (uint32_t) len);
    for (ssize_t i = 0; i < (ssize_t) FRAME_HEAD + len; i++) {
        CHECK(write(fd, frame + i, 1) == 1);
        (void) usleep(1000);
    }
    CHECK(io_read_all(fd, head, sizeof head) == 0);
    CHECK_INT(head[4], FRAME_REPLY);
    (void) close(fd);
}

static size_t count_refused(const int *fds, size_t count)
{
    size_t refused = 0;

    for (size_t i = 0; i < count; i++) {
        uint8_t head[FRAME_HEAD];

        if (recv(fds[i], head, sizeof head, MSG_DONTWAIT | MSG_PEEK) == sizeof head &&
            head[4] == FRAME_ERROR)
            refused++;
    }
    return refused;
}

static void too_many_connections_are_told_so(void)
{
    int fds[300];
    uint64_t until = io_now_ms() + PATIENCE_MS;
    struct agent_reply reply;
    struct err err;
    int rc;

    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = box_connect(&box);
    while (count_refused(fds, ARRAY_LEN(fds)) < ARRAY_LEN(fds) - 256 && io_now_ms() < until)
        (void) usleep(10000);
    (void) usleep(50000); /* for one too many */
    CHECK_INT(count_refused(fds, ARRAY_LEN(fds)), ARRAY_LEN(fds) - 256);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        (void) close(fds[i]);
    while ((rc = box_simple(&box, (struct agent_request){ .op = AGENT_INFO }, &reply, &err)) < 0 &&
           io_now_ms() < until)
        (void) usleep(10000);
    CHECK(rc == 0);
    CHECK_INT(reply.version, AGENT_VERSION);
    CHECK(reply.uptime_ms > 0);
}

static void file_operations_run_as_the_user(void)
{
    struct agent_reply reply;
    struct err err;

    CHECK(box_simple(
              &box,
              (struct agent_request){ .op = AGENT_MKDIR, .path = "made", .flags = AGENT_PARENTS },
              &reply, &err) == 0);
    CHECK_STR(box_run(&box, SH("stat -c '%U %F' made"))->out[0], "user directory\n");
    CHECK(box_simple(&box, (struct agent_request){ .op = AGENT_MKDIR, .path = "/etc/made" }, &reply,
                     &err) < 0);
    CHECK_INT(err.kind, ERR_DENIED);
    CHECK(box_simple(&box, (struct agent_request){ .op = AGENT_STAT, .path = "/", .user = "root" },
                     &reply, &err) < 0);
    CHECK_INT(err.kind, ERR_NO_ROOT);
}

static void refused_calls_are_counted_by_call_and_program(void)
{
    struct agent_reply item, info;
    struct stream s;
    struct err err;
    uint64_t count = 0;
    struct ran *r = box_run(&box, SH("for i in 1 2 3; do unshare -U true; done 2>&1 | sort -u"));

    CHECK(strstr(r->out[0], "Operation not permitted"));
    CHECK(box_ask(&box, &s, (struct agent_request){ .op = AGENT_REFUSALS }, &err) == 0);
    while (stream_item(&s, &item, &err) == 1) {
        CHECK_STR(item.name, "unshare");
        CHECK_STR(item.program, "unshare");
        count += item.count;
    }
    stream_close(&s);
    CHECK_INT(count, 3);
    CHECK(box_simple(&box, (struct agent_request){ .op = AGENT_INFO }, &info, &err) == 0);
    CHECK_INT(info.total, 3);
}

static void a_flood_of_refused_calls_leaves_time_for_others(void)
{
    uint32_t proc = detached(SH("exec timeout 2 python3 -c 'import ctypes\n"
                                "c = ctypes.CDLL(None)\nwhile 1: c.unshare(0)' || true"));
    uint64_t began = io_now_ms();

    for (int i = 0; i < 20; i++)
        CHECK_STR(box_run(&box, SH("echo fine"))->out[0], "fine\n");
    CHECK(io_now_ms() - began < 20000);
    (void) attach(proc, 0, 0);
}

static int count_fds(void)
{
    char path[64];
    struct dirent *entry;
    DIR *dir;
    int fds = 0;

    (void) snprintf(path, sizeof path, "/proc/%d/fd", (int) box.pid);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        fds += entry->d_name[0] != '.';
    if (dir)
        (void) closedir(dir);
    return fds;
}

static void the_agent_holds_little_memory_and_no_descriptors(void)
{
    uint64_t until = io_now_ms() + PATIENCE_MS;
    char path[64], text[4096];
    int fds;

    while ((fds = count_fds()) > 12 && io_now_ms() < until)
        (void) usleep(10000);
    CHECK(fds > 0 && fds <= 12);
    if (getenv("AGENT_SANITIZED")) /* a sanitizer's memory is not the agent's */
        return;
    (void) snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int) box.pid);
    CHECK(io_read_text(AT_FDCWD, path, text, sizeof text) > 0);
    CHECK(strstr(text, "Private_Dirty:") && atoi(strstr(text, "Private_Dirty:") + 14) < 4096);
}

int main(int argc, char **argv)
{
    static const struct check_test tests[] = {
        T(a_detached_process_goes_on_and_its_status_stays),
        T(attaching_resumes_from_a_byte),
        T(without_a_reader_the_oldest_output_goes),
        T(a_reader_that_stalls_stops_its_process_and_no_other),
        T(a_reader_that_leaves_lets_the_process_go_on),
        T(two_readers_get_the_same),
        T(a_timeout_reaches_those_who_forked_twice_and_called_setsid),
        T(a_timeout_reaches_a_process_whose_first_thread_has_ended),
        T(a_timeout_is_over_when_the_command_ends),
        T(a_fork_bomb_ends_at_its_timeout),
        T(orphans_are_reaped),
        T(kill_on_close_ends_every_descendant),
        T(signals_go_to_the_group_or_to_all),
        T(a_signal_frame_reaches_the_process),
        T(the_list_shows_running_and_ended_ones),
        T(bad_frames_are_named_and_end_only_their_connection),
        T(a_request_in_single_bytes_is_a_request),
        T(too_many_connections_are_told_so),
        T(file_operations_run_as_the_user),
        T(refused_calls_are_counted_by_call_and_program),
        T(a_flood_of_refused_calls_leaves_time_for_others),
        /* Refused calls are nobody's from here on: the agent gives up its listener. */
        T(quiesce_closes_all_connections_and_kills_nobody),
        T(the_agent_holds_little_memory_and_no_descriptors),
    };
    int failed;

    if (argc != 2)
        return 2;
    box_start(&box, argv[1], BOOT_NOTIFY);
    failed = check_run(tests, ARRAY_LEN(tests));
    box_stop(&box);
    return failed;
}
