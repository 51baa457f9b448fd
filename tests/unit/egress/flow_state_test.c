#include "check.h"

#include "egress/egress_own.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void every_state_has_a_name_of_its_own(void)
{
    for (int a = 0; a < FLOW_STATE_COUNT; a++) {
        CHECK(flow_state_name((enum flow_state) a) && flow_state_name((enum flow_state) a)[0]);
        for (int b = 0; b < a; b++)
            CHECK(strcmp(flow_state_name((enum flow_state) a),
                         flow_state_name((enum flow_state) b)) != 0);
    }
}

static void every_state_but_the_last_can_end(void)
{
    for (int s = 0; s < FLOW_ENDED; s++)
        CHECK(flow_may((enum flow_state) s, FLOW_ENDED));
    for (int s = 0; s < FLOW_STATE_COUNT; s++) {
        CHECK(!flow_may(FLOW_ENDED, (enum flow_state) s));
        CHECK(!flow_may((enum flow_state) s, FLOW_NEW));
    }
}

static void every_state_is_reached_from_the_first(void)
{
    unsigned reached = 1u << FLOW_NEW, before;

    do {
        before = reached;
        for (int from = 0; from < FLOW_STATE_COUNT; from++)
            for (int to = 0; reached & 1u << from && to < FLOW_STATE_COUNT; to++)
                if (flow_may((enum flow_state) from, (enum flow_state) to))
                    reached |= 1u << to;
    } while (reached != before);
    CHECK_INT(reached, (1u << FLOW_STATE_COUNT) - 1);
}

/* Nothing that was refused, or that could not be sent, continues to carry bytes. */
static void a_refused_connection_never_carries_bytes(void)
{
    static const enum flow_state refused[] = { FLOW_OWNER, FLOW_WHY, FLOW_LINGER, FLOW_NAMES };

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        CHECK(!flow_may(refused[i], FLOW_RELAY));
        CHECK(!flow_may(refused[i], FLOW_CONNECT));
        CHECK(!flow_may(refused[i], FLOW_DIAL));
        CHECK(!flow_may(refused[i], FLOW_SNIFF));
    }
    CHECK(!flow_may(FLOW_NEW, FLOW_RELAY));
    CHECK(!flow_may(FLOW_SNIFF, FLOW_RELAY));
    CHECK(!flow_may(FLOW_LOOKUP, FLOW_RELAY));
}

static int end_of_move(enum flow_state from, enum flow_state to)
{
    struct flow flow = { .state = from };
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        (void) setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        (void) close(STDERR_FILENO);
        flow_enter(&flow, to, 7);
        _exit(flow.state == to && flow.deadline_ms == 7 ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static void only_moves_of_the_table_are_made(void)
{
    for (int from = 0; from < FLOW_STATE_COUNT; from++)
        for (int to = 0; to < FLOW_STATE_COUNT; to++) {
            int status = end_of_move((enum flow_state) from, (enum flow_state) to);

            if (flow_may((enum flow_state) from, (enum flow_state) to))
                CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            else
                CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        }
}

CHECK_MAIN(T(every_state_has_a_name_of_its_own), T(every_state_but_the_last_can_end),
           T(every_state_is_reached_from_the_first), T(a_refused_connection_never_carries_bytes),
           T(only_moves_of_the_table_are_made))
