/* parts_test.c - small pure parts: /proc/<pid>/stat, sudo's options, refusals, timers, spawning. */
#include "agent/core/loop.h"
#include "agent/core/refusals.h"
#include "agent/core/spawn.h"
#include "agent/proc/tree.h"
#include "agent/sudo.h"
#include "base/own.h"
#include "check.h"

#include <sys/syscall.h>

static void a_process_name_with_parentheses_is_read_right(void)
{
    struct tree_node node;

    CHECK(tree_parse_stat("42 (a) S 1 (b) R 7 8 9 10", &node));
    CHECK_INT(node.pid, 42);
    CHECK_INT(node.ppid, 7);
    CHECK_INT(node.pgrp, 8);
    CHECK(!node.dead);
    CHECK(tree_parse_stat("1 () Z 0 1 1", &node));
    CHECK(node.dead);
    CHECK(!tree_parse_stat("", &node));
    CHECK(!tree_parse_stat("x (a) S 1 2", &node));
    CHECK(!tree_parse_stat("1 (a", &node));
    CHECK(!tree_parse_stat("1 (a) S", &node));
    CHECK(!tree_parse_stat("1 (a) S 99999999999 1", &node));
}

/* Its first thread has ended, and says Z for all: signals and kills must reach the others. */
static void a_process_whose_other_threads_live_is_not_dead(void)
{
    struct tree_node node;

    CHECK(tree_parse_stat("5 (a) Z 1 5 5 0 -1 12 13 14 15 16 1 2 3 4 20 -5 2 0 99", &node));
    CHECK(!node.dead);
    CHECK_INT(node.own_ticks + node.child_ticks, 10);
    CHECK(tree_parse_stat("5 (a) Z 1 5 5 0 -1 12 13 14 15 16 1 2 3 4 20 0 1 0 99", &node));
    CHECK(node.dead);
}

static void processor_time_of_a_tree_has_those_that_were_reaped(void)
{
    /* The root's own time is not the tree's; what it reaped is. */
    struct tree_node nodes[] = { { .pid = 5, .own_ticks = 1000, .child_ticks = 7 },
                                 { .pid = 6, .below = true, .own_ticks = 20, .child_ticks = 3 },
                                 { .pid = 7, .own_ticks = 500, .child_ticks = 500 } };
    struct tree tree = { .nodes = nodes, .count = ARRAY_LEN(nodes) };
    struct tree_node node;

    CHECK(tree_parse_stat("42 (a b) R 7 8 9 10 11 12 13 14 15 16 100 20 3000 4 20 0 1", &node));
    CHECK_INT(node.own_ticks, 120);
    CHECK_INT(node.child_ticks, 3004);
    CHECK(tree_parse_stat("42 (a) R 7 8 9 10 -1 12", &node));
    CHECK_INT(node.own_ticks + node.child_ticks, 0);
    CHECK_INT(tree_cpu_ms(&tree, 5), 300);
}

static struct sudo_options parsed;

/* The words are kept: what was parsed points to them, and a literal ends with its block. */
static int sudo(char **argv, struct err *err)
{
    static char *kept[16];
    int argc = 0;

    for (; argv[argc]; argc++)
        kept[argc] = argv[argc];
    kept[argc] = NULL;
    return sudo_parse(argc, kept, &parsed, err);
}
#define SUDO(...) sudo((char *[]){ (char *) "sudo", __VA_ARGS__ __VA_OPT__(, ) NULL }, &err)
#define W(text)   ((char *) (uintptr_t) (text))

static void sudo_understands_what_people_type(void)
{
    struct err err;

    CHECK(SUDO(W("-nEu"), W("bob"), W("--"), W("A=1"), W("ls"), W("-l")) == 0);
    CHECK_STR(parsed.user, "bob");
    CHECK(parsed.preserve_env);
    CHECK_INT(parsed.assignment_count, 1);
    CHECK_INT(parsed.command_count, 2);
    CHECK_STR(parsed.command[0], "ls");
    CHECK(SUDO(W("-ubob"), W("id")) == 0);
    CHECK_STR(parsed.user, "bob");
    CHECK(SUDO(W("--user=eve"), W("--preserve-env"), W("id")) == 0);
    CHECK_STR(parsed.user, "eve");
    CHECK(SUDO(W("-i")) == 0 && parsed.login && parsed.command_count == 0);
    CHECK(SUDO(W("-s"), W("echo"), W("A=1")) == 0 && parsed.shell && parsed.command_count == 2);
    CHECK(SUDO(W("1A=2")) == 0 && parsed.assignment_count == 0);
}

static void sudo_refuses_what_it_does_not_know(void)
{
    struct err err;

    CHECK(SUDO(W("-u")) < 0);
    CHECK_STR(err.msg, "option -u needs a value");
    CHECK(SUDO(W("-Z"), W("id")) < 0);
    CHECK_STR(err.msg, "unknown option -Z");
    CHECK(SUDO(W("--frobnicate"), W("id")) < 0);
    CHECK_STR(err.msg, "unknown option --frobnicate");
    CHECK(SUDO(W("A=1")) < 0);
    CHECK_STR(err.msg, "no command");
}

static void refusals_are_counted_by_call_and_program_in_a_bounded_table(void)
{
    struct refusals refusals = { .total = 0 };
    char name[16];

    for (int i = 0; i < 3; i++)
        refusals_count(&refusals, SYS_mount, "sh", 7);
    refusals_count(&refusals, SYS_mount, "python3", 7);
    CHECK_INT(refusals.row_count, 2);
    CHECK_INT(refusals.rows[0].count, 3);
    for (int i = 0; i < 1000; i++) {
        (void) snprintf(name, sizeof name, "p%d", i);
        refusals_count(&refusals, SYS_bpf, name, 7);
    }
    CHECK_INT(refusals.total, 1004);
    CHECK_INT(refusals.row_count, REFUSALS_MAX + 1);
    CHECK_INT(refusals.rows[REFUSALS_MAX].call, -1);
    CHECK_INT(refusals.rows[REFUSALS_MAX].count, 1004 - 4 - (REFUSALS_MAX - 2));
    free(refusals.rows);
}

static void refused_calls_have_names(void)
{
    char room[32];

    CHECK_STR(refusals_call_name(SYS_mount, room, sizeof room), "mount");
    CHECK_STR(refusals_call_name(SYS_clone, room, sizeof room), "clone");
    CHECK_STR(refusals_call_name(-1, room, sizeof room), "other");
    CHECK_STR(refusals_call_name(9999, room, sizeof room), "system call 9999");
}

static char fired[16];
static struct timer timers[4];

static void on_fire(struct timer *timer)
{
    size_t n = strlen(fired);

    fired[n] = (char) ('0' + (timer - timers));
    fired[n + 1] = '\0';
}

static void timers_fire_in_their_order_and_once(void)
{
    struct loop loop;
    struct err err;

    CHECK(loop_init(&loop, &err) == 0);
    loop_arm(&loop, &timers[0], 30, on_fire);
    loop_arm(&loop, &timers[1], 5, on_fire);
    loop_arm(&loop, &timers[2], 10, on_fire);
    loop_arm(&loop, &timers[3], 1, on_fire);
    loop_arm(&loop, &timers[3], 50, on_fire);
    loop_disarm(&loop, &timers[2]);
    loop_disarm(&loop, &timers[2]);
    while (loop.first)
        loop_turn(&loop);
    CHECK_STR(fired, "103");
    (void) close(loop.epoll);
}

static void an_environment_is_made_of_three_layers(void)
{
    static char *const template_env[] = { W("PATH=/t"), W("HOME=/wrong"), W("A=t"), NULL };
    struct spawn_base base = { .env = (char **) (uintptr_t) template_env,
                               .user = "u",
                               .workdir = "/w" };
    struct user user = { .name = "u", .home = "/h", .shell = "/bin/false" };
    struct agent_request request = { .command = "x", .env = { "A=r\0B=r", 8, 2 } };
    struct spawn spawn;
    struct err err;
    char all[512] = "";

    CHECK(spawn_prepare(&spawn, &base, &request, &user, &err) == 0);
    for (char **e = spawn.envp; *e; e++)
        (void) strcat(strcat(all, *e), " ");
    CHECK_STR(all, "PATH=/h/.local/bin:/t HOME=/h A=r USER=u LOGNAME=u SHELL=/bin/sh B=r ");
    CHECK_STR(spawn.argv[0], "/bin/sh");
    CHECK_STR(spawn.argv[1], "-lc");
    CHECK_STR(spawn.argv[2], "x");
    CHECK_STR(spawn.cwd, "/w");
    spawn_done(&spawn);
    spawn_done(&spawn);
}

CHECK_MAIN(T(a_process_name_with_parentheses_is_read_right),
           T(a_process_whose_other_threads_live_is_not_dead),
           T(processor_time_of_a_tree_has_those_that_were_reaped),
           T(sudo_understands_what_people_type), T(sudo_refuses_what_it_does_not_know),
           T(refusals_are_counted_by_call_and_program_in_a_bounded_table),
           T(refused_calls_have_names), T(timers_fire_in_their_order_and_once),
           T(an_environment_is_made_of_three_layers))
