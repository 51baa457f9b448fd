#include "agent/proc/cpu.h"

#include "agent/proc/proc.h"
#include "agent/proc/tree.h"
#include "base/io.h"

#include <sys/resource.h>
#include <unistd.h>

#define LOOK_LEAST_MS 10
#define LOOK_COST     20 /* a look may take this part of the time until the next */
#define PATIENCE      10 /* times the limit, by the clock of a guest */

static uint64_t usage_us(int who)
{
    struct rusage usage;

    if (getrusage(who, &usage) < 0)
        return 0;
    return (uint64_t) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
           (uint64_t) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Its own time, and that of workers and shepherds that have ended; of a shepherd's commands, the last. */
static uint64_t agent_us(const struct agent *agent)
{
    uint64_t all = usage_us(RUSAGE_SELF) + usage_us(RUSAGE_CHILDREN);

    return all > agent->past_us ? all - agent->past_us : 0;
}

static uint64_t shepherd_ms(pid_t shepherd)
{
    struct tree tree;
    uint64_t ms = 0;

    if (shepherd > 0 && tree_read(&tree, shepherd) == 0) {
        ms = tree_cpu_ms(&tree, shepherd);
        tree_done(&tree);
    }
    return ms;
}

/* The clock of a guest does not stop while the host runs something else instead. Where a caller follows a command that is alone, and so
 * can ask the host, the verdict is the caller's, and ours is for callers that do not look. */
static uint64_t most_ms(const struct proc *proc)
{
    const struct cpu_limit *cpu = &proc->live->cpu;
    bool guest = proc->agent->gvisor || proc->agent->machine;

    return guest && cpu->follower && !proc->beside ? cpu->limit_ms * PATIENCE : cpu->limit_ms;
}

/* Of the command, and of what sudo started for it. */
static uint64_t used_ms(const struct proc *proc)
{
    const struct agent *agent = proc->agent;
    uint64_t ms = shepherd_ms(proc->live->shepherd), past_ms = proc->live->past_us / 1000;

    ms = (ms > past_ms ? ms - past_ms : 0) + proc->live->cpu.sudo_us / 1000;
    for (size_t i = 0; i < agent->proc_count; i++) {
        const struct proc *tied = agent->procs[i];

        if (tied->live && tied->live->tied_to == proc->handle)
            ms += used_ms(tied);
    }
    return ms;
}

static void on_look(struct timer *timer);

/* No sooner than the rest can be used up by all processors at once. */
static void look_again(struct proc *proc, uint64_t used, uint64_t cost_us)
{
    struct cpu_limit *cpu = &proc->live->cpu;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t most = most_ms(proc), left = most > used ? most - used : 0;
    uint64_t in_ms = left / (uint64_t) (processors > 0 ? processors : 1);
    uint64_t least = LOOK_LEAST_MS + cost_us * LOOK_COST / 1000;

    loop_arm(&proc->agent->loop, &cpu->timer, in_ms > least ? in_ms : least, on_look);
}

static void on_look(struct timer *timer)
{
    struct proc *proc = CONTAINER(timer, struct proc_live, cpu.timer)->proc;
    struct cpu_limit *cpu = &proc->live->cpu;
    uint64_t begun = io_now_us(), used = used_ms(proc);

    /* A process that ends while we look may be counted twice, as itself and by its parent: not two times in a row. */
    if (used >= most_ms(proc) && used_ms(proc) >= most_ms(proc)) {
        cpu->exceeded = cpu->exceeded || proc->phase <= PROC_RUNNING;
        proc_kill(proc);
        return;
    }
    look_again(proc, used, io_now_us() - begun);
}

/* The guest's clock counts from now on. */
static void look_soon(struct proc *proc)
{
    struct cpu_limit *cpu = &proc->live->cpu;

    if (cpu->limit_ms)
        loop_arm(&proc->agent->loop, &cpu->timer, LOOK_LEAST_MS, on_look);
}

/* It runs, or what it left behind does. A shepherd whose command has ended may be about to end itself. */
static bool is_active(const struct proc *proc)
{
    struct tree tree;
    bool active = false;

    if (!proc->live || !proc->live->shepherd || proc->live->failed)
        return false;
    if (proc->phase <= PROC_RUNNING || tree_read(&tree, proc->live->shepherd) < 0)
        return true;
    for (size_t i = 0; i < tree.count && !active; i++)
        active = tree.nodes[i].below && !tree.nodes[i].dead;
    tree_done(&tree);
    return active;
}

/* Of two commands, each ran beside the other. */
static void note_neighbours(struct proc *proc)
{
    struct agent *agent = proc->agent;
    bool limited = proc->live->cpu.limit_ms;

    if (!limited && agent->cpu_limited == 0)
        return;
    for (size_t i = 0; i < agent->proc_count; i++) {
        struct proc *other = agent->procs[i];

        if (other == proc || proc->live->tied_to == other->handle || !is_active(other) ||
            other->live->tied_to == proc->handle)
            continue;
        proc->beside = proc->beside || limited;
        if (other->beside || !other->live->cpu.limit_ms)
            continue;
        other->beside = true;
        look_soon(other);
    }
}

void cpu_started(struct proc *proc, uint64_t limit_ms, const struct reader *follower)
{
    struct cpu_limit *cpu = &proc->live->cpu;

    cpu->limit_ms = limit_ms;
    cpu->follower = follower;
    note_neighbours(proc);
    if (limit_ms == 0)
        return;
    cpu->agent_us = agent_us(proc->agent);
    proc->agent->cpu_limited++;
    look_again(proc, 0, 0);
}

void cpu_left(struct proc *proc, const struct reader *reader)
{
    struct cpu_limit *cpu = &proc->live->cpu;

    if (cpu->follower != reader)
        return;
    cpu->follower = NULL;
    look_soon(proc);
}

void cpu_ended(struct proc *proc, uint64_t cpu_us)
{
    struct cpu_limit *cpu = &proc->live->cpu;
    struct proc *owner = proc->live->tied_to ? proc_find(proc->agent, proc->live->tied_to) : NULL;

    cpu_us += cpu->sudo_us;
    if (owner && owner->live)
        owner->live->cpu.sudo_us += cpu_us;
    proc->agent_cpu_ms = cpu_of_agent(proc);
    if (cpu->limit_ms && cpu_us > most_ms(proc) * 1000)
        cpu->exceeded = true;
}

void cpu_disarm(struct proc *proc)
{
    struct cpu_limit *cpu = &proc->live->cpu;

    loop_disarm(&proc->agent->loop, &cpu->timer);
    if (cpu->limit_ms)
        proc->agent->cpu_limited--;
    cpu->limit_ms = 0;
}

bool cpu_exceeded(const struct proc *proc)
{
    return proc->live->cpu.exceeded;
}

uint64_t cpu_used(const struct proc *proc)
{
    return proc->live->cpu.limit_ms ? used_ms(proc) : 0;
}

uint64_t cpu_of_agent(const struct proc *proc)
{
    const struct cpu_limit *cpu = &proc->live->cpu;
    uint64_t now = cpu->limit_ms ? agent_us(proc->agent) : 0;

    return now > cpu->agent_us ? (now - cpu->agent_us) / 1000 : 0;
}
