#include "agent/proc/strays.h"

#include "agent/core/agent.h"
#include "agent/proc/proc.h"
#include "agent/proc/tree.h"

#include <signal.h>
#include <unistd.h>

#define ROUND_MS 20

static bool is_worker(const struct agent *agent, pid_t pid)
{
    for (size_t i = 0; i < agent->worker_count; i++)
        if (agent->workers[i] == pid)
            return true;
    return false;
}

/* Each round kills those who are our children now; theirs become ours for the next. */
static void on_round(struct timer *timer)
{
    struct agent *agent = CONTAINER(timer, struct agent, stray_timer);
    bool found = false;
    struct tree tree;

    if (tree_read(&tree, getpid()) < 0) {
        loop_arm(&agent->loop, timer, ROUND_MS, on_round);
        return;
    }
    for (size_t i = 0; i < tree.count; i++) {
        const struct tree_node *node = &tree.nodes[i];

        if (node->ppid != getpid() || node->dead || is_worker(agent, node->pid) ||
            proc_of_shepherd(agent, node->pid) || node->pid == agent->spare.pid)
            continue;
        (void) kill(node->pid, SIGKILL);
        found = true;
    }
    tree_done(&tree);
    if (found)
        loop_arm(&agent->loop, timer, ROUND_MS, on_round);
}

void strays_end(struct agent *agent)
{
    loop_arm(&agent->loop, &agent->stray_timer, 0, on_round);
}
