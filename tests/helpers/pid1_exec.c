/* pid1_exec.c - the agent runs commands: arguments, environment, users, terminals, their ends. */
#include "box.h"
#include "check.h"

static struct box box, root_box;

#define SH(text) ((struct agent_request){ .args = TEXTS("/bin/sh\0-c\0" text) })

static void a_program_that_is_not_there_is_an_error_by_its_name(void)
{
    struct ran *r = box_run(&box, (struct agent_request){ .args = TEXTS("no-such-program") });

    CHECK_INT(r->err.kind, ERR_NO_PATH);
    CHECK_STR(r->err.msg, "exec no-such-program: No such file or directory");
}

static void a_file_that_may_not_be_run_is_refused(void)
{
    struct ran *r = box_run(&box, (struct agent_request){ .args = TEXTS("/etc/passwd") });

    CHECK_INT(r->err.kind, ERR_DENIED);
    CHECK_STR(r->err.msg, "exec /etc/passwd: Permission denied");
}

static void a_missing_directory_is_refused_and_nothing_runs(void)
{
    struct ran *r =
        box_run(&box, (struct agent_request){ .args = TEXTS("true"), .cwd = "/nowhere" });

    CHECK_INT(r->err.kind, ERR_NO_PATH);
    CHECK_STR(r->err.msg, "cwd /nowhere: No such file or directory");
}

static void an_unknown_user_is_nobody_else(void)
{
    struct ran *r = box_run(&box, (struct agent_request){ .args = TEXTS("true"), .user = "0" });

    CHECK_INT(r->err.kind, ERR_NO_USER);
    CHECK_STR(r->err.msg, "no user '0' in the sandbox");
}

static void root_is_refused_in_a_strict_sandbox(void)
{
    struct ran *r = box_run(&box, (struct agent_request){ .args = TEXTS("true"), .user = "root" });

    CHECK_INT(r->err.kind, ERR_NO_ROOT);
    CHECK_STR(r->err.msg, "this sandbox was made without root");
}

static void an_environment_entry_without_a_value_is_refused(void)
{
    struct ran *r =
        box_run(&box, (struct agent_request){ .args = TEXTS("true"), .env = TEXTS("A=1\0BAD") });

    CHECK_INT(r->err.kind, ERR_INVALID);
    CHECK_STR(r->err.msg, "env: 'BAD' is not K=V");
}

static void arguments_arrive_as_they_were_sent(void)
{
    struct ran *r = box_run(
        &box, (struct agent_request){ .args = TEXTS("printf\0%s|\0a b\0\0$HOME\0'quoted'") });

    CHECK_STR(r->out[0], "a b||$HOME|'quoted'|");
    CHECK_INT(r->end.ended, EXIT_CODE);
    CHECK_INT(r->end.exit_code, 0);
}

static void a_command_is_run_by_the_users_shell(void)
{
    struct ran *r = box_run(&box, (struct agent_request){ .command = "echo $0 $((6*7)); exit 3" });

    CHECK(strstr(r->out[0], " 42\n") != NULL);
    CHECK_INT(r->end.exit_code, 3);
}

static void a_shell_that_is_no_shell_gives_way_to_bin_sh(void)
{
    struct ran *r =
        box_run(&box, (struct agent_request){ .command = "id -un; pwd", .user = "other" });

    CHECK_STR(r->out[0], "other\n/\n");
}

static void the_environment_is_the_templates_the_users_and_the_requests(void)
{
    struct agent_request q = SH("echo $FROM $HOME $USER $LOGNAME $SHELL $X; env | grep -c ^X=");
    struct ran *r;

    q.env = TEXTS("X=1\0X=2");
    r = box_run(&box, q);
    CHECK_STR(r->out[0], "template /home/user user user /bin/sh 2\n1\n");
}

static void the_user_has_its_groups_and_no_capability(void)
{
    struct ran *r =
        box_run(&box, SH("id; grep -E '^(Cap|NoNewPrivs|Sig(Blk|Ign))' /proc/self/status"));

    CHECK(strstr(r->out[0], "uid=1000(user) gid=1000(user) groups=1000(user),29(audio),50(staff)"));
    CHECK(strstr(r->out[0], "CapInh:\t0000000000000000"));
    CHECK(strstr(r->out[0], "CapPrm:\t0000000000000000"));
    CHECK(strstr(r->out[0], "CapEff:\t0000000000000000"));
    CHECK(strstr(r->out[0], "CapBnd:\t0000000000000000"));
    CHECK(strstr(r->out[0], "CapAmb:\t0000000000000000"));
    CHECK(strstr(r->out[0], "NoNewPrivs:\t1"));
    CHECK(strstr(r->out[0], "SigBlk:\t0000000000000000"));
    CHECK(strstr(r->out[0], "SigIgn:\t0000000000000000"));
}

static void the_agent_has_a_bounding_set_only_where_root_is_allowed(void)
{
    char want[64];

    CHECK_STR(box_run(&box, SH("grep CapBnd /proc/1/status"))->out[0],
              "CapBnd:\t0000000000000000\n");
    (void) snprintf(want, sizeof want, "CapBnd:\t%016llx\n", (unsigned long long) BOOT_AGENT_CAPS);
    CHECK_STR(box_run(&root_box, SH("grep CapBnd /proc/1/status"))->out[0], want);
}

static void root_has_the_sandboxs_capabilities_where_root_is_allowed(void)
{
    struct agent_request q = SH("id -u; grep Cap /proc/self/status");
    struct ran *r;
    char want[64];

    q.user = "root";
    r = box_run(&root_box, q);
    CHECK(strncmp(r->out[0], "0\n", 2) == 0);
    (void) snprintf(want, sizeof want, "CapEff:\t%016llx", (unsigned long long) BOOT_ROOT_CAPS);
    CHECK(strstr(r->out[0], want));
    (void) snprintf(want, sizeof want, "CapBnd:\t%016llx", (unsigned long long) BOOT_ROOT_CAPS);
    CHECK(strstr(r->out[0], want));
    r = box_run(&root_box, SH("id -u; grep CapEff /proc/self/status"));
    CHECK_STR(r->out[0], "1000\nCapEff:\t0000000000000000\n");
}

static void a_command_has_its_stdio_and_no_other_descriptor(void)
{
    struct ran *r = box_run(&box, (struct agent_request){ .args = TEXTS("ls\0/proc/self/fd") });

    CHECK_STR(r->out[0], "0\n1\n2\n3\n"); /* 3 is ls reading the directory */
}

static void the_agent_and_the_shepherd_are_beyond_the_users_reach(void)
{
    struct ran *r =
        box_run(&box, SH("kill -9 1 $PPID 2>&1; cat /proc/1/environ /proc/$PPID/maps 2>&1 | wc -c; "
                         "ls /proc/1/fd /proc/$PPID/fd 2>&1 | grep -c denied"));

    CHECK(strstr(r->out[0], "not permitted"));
    CHECK(strstr(r->out[0], "\n2\n"));
    CHECK_INT(r->end.ended, EXIT_CODE);
}

static void stdout_and_stderr_come_apart_with_their_sizes(void)
{
    struct ran *r = box_run(&box, SH("echo out; echo error >&2; exit 7"));

    CHECK_STR(r->out[0], "out\n");
    CHECK_STR(r->out[1], "error\n");
    CHECK_INT(r->end.exit_code, 7);
    CHECK_INT(r->end.stdout_bytes, 4);
    CHECK_INT(r->end.stderr_bytes, 6);
    CHECK(r->end.peak_bytes > 100 * 1024);
}

static void cpu_time_counts_every_descendant(void)
{
    struct ran *r = box_run(&box, SH("busy() { python3 -c 'import time\n"
                                     "while time.process_time() < 0.2: pass'; }; "
                                     "(busy) & (busy & wait) & wait"));

    CHECK(r->end.cpu_ms >= 350);
    CHECK(r->end.wall_ms >= 100);
}

static void a_signal_ends_with_its_number(void)
{
    struct ran *r = box_run(&box, SH("kill -SEGV $$"));

    CHECK_INT(r->end.ended, EXIT_SIGNAL);
    CHECK_INT(r->end.signal, SIGSEGV);
}

static void without_stdin_there_is_its_end(void)
{
    struct ran *r = box_run(&box, (struct agent_request){ .args = TEXTS("cat") });

    CHECK_INT(r->end.ended, EXIT_CODE);
    CHECK_INT(r->total[0], 0);
}

static void stdin_streams_and_closes(void)
{
    static char block[65536];
    static struct ran ran;
    struct stream s;
    struct err err = { .kind = 0 };

    memset(&ran, 0, sizeof ran);
    memset(block, 'x', sizeof block);
    CHECK(box_begin(&box, &s,
                    (struct agent_request){ .args = TEXTS("sh\0-c\0sleep 0.2; wc -c"),
                                            .flags = AGENT_STDIN }) > 0);
    for (int i = 0; i < 48; i++) /* far more than pipes hold: the agent has to wait for wc */
        CHECK(stream_send(&s, FRAME_STDIN, block, sizeof block, &err) == 0);
    CHECK(stream_send(&s, FRAME_STDIN_END, NULL, 0, &err) == 0);
    box_collect(&s, &ran);
    stream_close(&s);
    CHECK_STR(ran.out[0], "3145728\n");
}

static void stdin_for_a_process_that_closed_it_is_swallowed(void)
{
    static char block[65536];
    static struct ran ran;
    struct stream s;
    struct err err = { .kind = 0 };

    memset(&ran, 0, sizeof ran);
    CHECK(box_begin(&box, &s,
                    (struct agent_request){
                        .args = TEXTS("sh\0-c\0exec 0</dev/null; sleep 0.3; echo done"),
                        .flags = AGENT_STDIN }) > 0);
    for (int i = 0; i < 8; i++)
        CHECK(stream_send(&s, FRAME_STDIN, block, sizeof block, &err) == 0);
    box_collect(&s, &ran);
    stream_close(&s);
    CHECK_STR(ran.out[0], "done\n");
}

static void stdin_frames_are_refused_when_there_is_none(void)
{
    static struct ran ran;
    struct stream s;
    struct err err = { .kind = 0 };

    memset(&ran, 0, sizeof ran);
    CHECK(box_begin(&box, &s,
                    (struct agent_request){ .args = TEXTS("sleep\0"
                                                          "1") }) > 0);
    CHECK(stream_send(&s, FRAME_STDIN, "x", 1, &err) == 0);
    box_collect(&s, &ran);
    stream_close(&s);
    CHECK_INT(ran.err.kind, ERR_STATE);
    CHECK_STR(ran.err.msg, "stdin: this process was started without one");
}

static void a_terminal_is_one_and_resizes(void)
{
    static struct ran ran;
    struct stream s;
    struct err err = { .kind = 0 };
    uint8_t size[4];

    memset(&ran, 0, sizeof ran);
    CHECK(box_begin(&box, &s,
                    (struct agent_request){
                        .args = TEXTS("sh\0-c\0stty size; tty >/dev/null && echo tty $TERM; "
                                      "ls -l $(tty) | cut -d' ' -f3; "
                                      "read x; stty size; cat >/dev/null; echo end"),
                        .flags = AGENT_PTY | AGENT_STDIN,
                        .rows = 33,
                        .columns = 101 }) > 0);
    frame_put_u16(size, 50);
    frame_put_u16(size + 2, 132);
    CHECK(stream_send(&s, FRAME_RESIZE, size, 4, &err) == 0);
    CHECK(stream_send(&s, FRAME_STDIN, "go\n", 3, &err) == 0);
    CHECK(stream_send(&s, FRAME_STDIN_END, NULL, 0, &err) == 0);
    box_collect(&s, &ran);
    stream_close(&s);
    CHECK(strstr(ran.out[0], "33 101\r\n") || strstr(ran.out[0], "50 132\r\n"));
    CHECK(strstr(ran.out[0], "tty xterm-256color\r\n"));
    CHECK(strstr(ran.out[0], "user\r\n"));
    CHECK(strstr(ran.out[0], "50 132\r\n"));
    CHECK(strstr(ran.out[0], "end\r\n"));
    CHECK_INT(ran.end.exit_code, 0);
    CHECK_INT(ran.total[1], 0);
}

static void a_control_character_reaches_the_foreground_of_a_terminal(void)
{
    static struct ran ran;
    struct stream s;
    struct err err = { .kind = 0 };
    struct frame frame;

    memset(&ran, 0, sizeof ran);
    CHECK(box_begin(&box, &s,
                    (struct agent_request){ .args = TEXTS("sh\0-c\0echo up; exec sleep 60"),
                                            .flags = AGENT_PTY | AGENT_STDIN }) > 0);
    CHECK(stream_next(&s, &frame, &err) == 1);
    CHECK(stream_send(&s, FRAME_STDIN, "\003", 1, &err) == 0);
    box_collect(&s, &ran);
    stream_close(&s);
    CHECK_INT(ran.end.ended, EXIT_SIGNAL);
    CHECK_INT(ran.end.signal, SIGINT);
}

static void a_background_process_does_not_hold_up_the_end(void)
{
    struct ran *r = box_run(&box, SH("(until [ -e /tmp/gate ]; do sleep 0.02; done; "
                                     "touch /tmp/after) & echo started"));

    CHECK_STR(r->out[0], "started\n");
    CHECK_INT(r->end.ended, EXIT_CODE);
    r = box_run(&box, SH("touch /tmp/gate; for i in $(seq 300); do [ -e /tmp/after ] && break; "
                         "sleep 0.1; done; ls /tmp/after"));
    CHECK_STR(r->out[0], "/tmp/after\n");
}

static void a_background_flood_does_not_hold_up_the_end(void)
{
    struct ran *r = box_run(&box, SH("timeout 2 yes & echo started"));

    CHECK_INT(r->end.ended, EXIT_CODE);
    CHECK_INT(r->end.exit_code, 0);
    CHECK(strstr(r->out[0], "started\n"));
    CHECK_INT(r->end.stdout_bytes, r->total[0]);
}

static void sudo_is_refused_where_there_is_no_root(void)
{
    struct ran *r = box_run(&box, (struct agent_request){ .args = TEXTS("sudo\0id") });

    CHECK_STR(r->out[1], "sudo: this sandbox was made without root\n");
    CHECK_INT(r->end.exit_code, 1);
}

static void sudo_runs_as_root_here_with_our_stdio(void)
{
    struct ran *r = box_run(&root_box, SH("cd /tmp; echo in | X=1 sudo Y=2 sh -c 'id -un; pwd; "
                                          "cat; echo \"$X-$Y-$SUDO_USER-$HOME\"; "
                                          "echo e >&2; exit 9'; echo $?; sudo -u other id -un; "
                                          "sudo -v && sudo -n true && echo fine; "
                                          "sudo nonesuch; sudo -i echo 'a  b'"));

    CHECK_STR(r->out[0], "root\n/tmp\nin\n-2-user-/root\n9\nother\nfine\na  b\n");
    CHECK_STR(r->out[1], "e\nsudo: exec nonesuch: No such file or directory\n");
}

static void sudo_commands_end_with_the_one_that_asked(void)
{
    struct agent_request q = SH("sudo sh -c 'echo $$ >/tmp/sudo.pid; exec sleep 61' & sleep 60");
    struct ran *r;

    q.timeout_ms = 500;
    r = box_run(&root_box, q);
    CHECK_INT(r->end.ended, EXIT_TIMEOUT);
    r = box_run(
        &root_box,
        SH("for i in $(seq 300); do kill -0 $(cat /tmp/sudo.pid) 2>&1 | grep -q 'such' && break; "
           "sleep 0.1; done; pgrep -cf '^sleep 61'"));
    CHECK_STR(r->out[0], "0\n");
}

static void sudo_passes_signals_on(void)
{
    struct ran *r =
        box_run(&root_box,
                SH("sudo sh -c 'trap \"echo got; exit 5\" TERM; touch /tmp/trap; "
                   "while :; do sleep 0.1; done' & "
                   "until [ -e /tmp/trap ]; do sleep 0.02; done; kill -TERM $!; wait $!; echo $?"));

    CHECK_STR(r->out[0], "got\n5\n");
}

static void a_killed_shepherd_is_a_lost_command_and_leaves_nobody(void)
{
    struct agent_request q = SH("setsid sleep 62 & setsid sh -c 'sleep 62 & sleep 62' & sleep 0.2; "
                                "kill -9 $PPID; sleep 62");
    struct ran *r;

    q.user = "root";
    r = box_run(&root_box, q);
    CHECK_INT(r->end.ended, EXIT_LOST);
    r = box_run(&root_box, SH("for i in $(seq 300); do [ $(pgrep -xc sleep) = 0 ] && break; sleep "
                              "0.1; done; pgrep -xc sleep"));
    CHECK_STR(r->out[0], "0\n");
}

int main(int argc, char **argv)
{
    static const struct check_test tests[] = {
        T(a_program_that_is_not_there_is_an_error_by_its_name),
        T(a_file_that_may_not_be_run_is_refused),
        T(a_missing_directory_is_refused_and_nothing_runs),
        T(an_unknown_user_is_nobody_else),
        T(root_is_refused_in_a_strict_sandbox),
        T(an_environment_entry_without_a_value_is_refused),
        T(arguments_arrive_as_they_were_sent),
        T(a_command_is_run_by_the_users_shell),
        T(a_shell_that_is_no_shell_gives_way_to_bin_sh),
        T(the_environment_is_the_templates_the_users_and_the_requests),
        T(the_user_has_its_groups_and_no_capability),
        T(the_agent_has_a_bounding_set_only_where_root_is_allowed),
        T(root_has_the_sandboxs_capabilities_where_root_is_allowed),
        T(a_command_has_its_stdio_and_no_other_descriptor),
        T(the_agent_and_the_shepherd_are_beyond_the_users_reach),
        T(stdout_and_stderr_come_apart_with_their_sizes),
        T(cpu_time_counts_every_descendant),
        T(a_signal_ends_with_its_number),
        T(without_stdin_there_is_its_end),
        T(stdin_streams_and_closes),
        T(stdin_for_a_process_that_closed_it_is_swallowed),
        T(stdin_frames_are_refused_when_there_is_none),
        T(a_terminal_is_one_and_resizes),
        T(a_control_character_reaches_the_foreground_of_a_terminal),
        T(a_background_process_does_not_hold_up_the_end),
        T(a_background_flood_does_not_hold_up_the_end),
        T(sudo_is_refused_where_there_is_no_root),
        T(sudo_runs_as_root_here_with_our_stdio),
        T(sudo_commands_end_with_the_one_that_asked),
        T(sudo_passes_signals_on),
        T(a_killed_shepherd_is_a_lost_command_and_leaves_nobody),
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
