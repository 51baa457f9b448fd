/* How a command ended. The agent knows what it saw; the cgroup knows what it did not see: kills for want of memory, and
 * the processor time of children that no process waited for. */
#include "server/ops/ops_own.h"

#include "base/io.h"

#include <signal.h>

#define LOOK_LEAST_MS 50
#define LOOK_MOST_MS  1000
#define SLACK_MS      20 /* what starting a command takes, which is not the command's */
#define GONE_MS                                                                                    \
    30000 /* that a sandbox whose process 1 is dead may take to be gone, beside others */
#define MARGIN_MS 200 /* for the agent, which ends all that the command started, to come first */
#define KERNEL_PART                                                                                \
    20 /* of the time that passes, a guest's kernel uses less than this part for itself */

int ops_verdict_begin(struct link *link, const char *sandbox, uint64_t cpu_limit_ms,
                      struct ops_verdict *ret, struct err *err)
{
    struct keeper_connected connected;
    int fd = -1;

    if (link_connect_counted(link, sandbox, &fd, &connected, err) < 0)
        return -1;
    *ret = (struct ops_verdict){ .oom_before = connected.stats.oom_kills,
                                 .cpu_before_us = connected.stats.cpu_us,
                                 .cpu_limit_ms = cpu_limit_ms,
                                 .look_ms = io_now_ms() + LOOK_LEAST_MS,
                                 .begun_ms = io_now_ms(),
                                 .guest = connected.sandbox.isolation != ISOLATION_JAIL };
    return fd;
}

int ops_run_wait(const struct ops_run *run, int most)
{
    const struct ops_verdict *verdict = &run->verdict;
    uint64_t now = io_now_ms();

    if (!verdict->cpu_limit_ms || verdict->cpu_exceeded)
        return most;
    if (verdict->look_ms <= now)
        return 0;
    return verdict->look_ms - now < (uint64_t) most ? (int) (verdict->look_ms - now) : most;
}

static uint64_t since_ms(const struct ops_verdict *verdict, const struct keeper_stats *stats)
{
    /* One that slept on disk meanwhile counts from 0 again. */
    return stats->cpu_us > verdict->cpu_before_us ? (stats->cpu_us - verdict->cpu_before_us) / 1000
                                                  : 0;
}

/* A command that was alone used all that the sandbox did, but for the agent's own share. 0: it was not alone.
 *
 * In a guest the agent counts by a clock that does not stop while the host runs something else instead: the host's count is the most that
 * can be true. And of the host's count, some is the guest's kernel's own. */
static uint64_t used_ms(const struct ops_verdict *verdict, const struct keeper_stats *stats,
                        const struct exec_result *seen)
{
    uint64_t all = since_ms(verdict, stats), own = seen->agent_cpu_ms, used;

    if (verdict->guest)
        own += (io_now_ms() - verdict->begun_ms) / KERNEL_PART;
    used = seen->beside || all < own ? 0 : all - own;
    if (!verdict->guest || seen->cpu_ms < used)
        return used;
    return seen->cpu_ms < all ? seen->cpu_ms : all;
}

static int note_process(void *context, const struct agent_reply *item, struct err *err)
{
    struct exec_result *result = context;

    (void) err;
    result->beside = item->flags & AGENT_BESIDE;
    result->agent_cpu_ms = item->agent_cpu_ms;
    result->cpu_ms = item->cpu_ms;
    return 0;
}

static void look(struct link *link, struct ops_run *run)
{
    struct ops_verdict *verdict = &run->verdict;
    struct agent_request which = { .proc = run->exec.proc };
    struct exec_result seen = { .beside = true };
    struct keeper_stats stats;
    uint64_t most = verdict->cpu_limit_ms + MARGIN_MS;
    struct err err;

    if (sandbox_stats_brief(link, run->sandbox, &stats, &err) < 0 ||
        since_ms(verdict, &stats) <= most ||
        exec_find(link, run->sandbox, &which, note_process, &seen, &err) < 0 ||
        used_ms(verdict, &stats, &seen) <= most)
        return;
    verdict->cpu_exceeded = true;
    (void) exec_kill(link, run->sandbox, run->exec.proc, SIGKILL, AGENT_ALL, NULL, &err);
}

/* The next one no sooner than an eighth of the limit: the agent sees most, and sooner. */
static uint64_t next_look(const struct ops_verdict *verdict)
{
    uint64_t in_ms = verdict->cpu_limit_ms / 8;

    return io_now_ms() + (in_ms < LOOK_LEAST_MS  ? LOOK_LEAST_MS
                          : in_ms > LOOK_MOST_MS ? LOOK_MOST_MS
                                                 : in_ms);
}

void ops_verdict_look(struct ops *ops, struct ops_run *run)
{
    struct ops_verdict *verdict = &run->verdict;
    struct link link;
    struct err err;

    if (!verdict->cpu_limit_ms || verdict->cpu_exceeded || io_now_ms() < verdict->look_ms)
        return;
    if (app_link_take(ops->app, &link, &err) == 0) {
        look(&link, run);
        app_link_give(ops->app, &link, link.fd >= 0);
    }
    verdict->look_ms = next_look(verdict);
}

/* Killed, by whomever: a process that dies of a full sandbox is ended by SIGKILL, makes its shell say 137, or leaves the
 * others waiting for their timeout. */
static bool was_killed(const struct exec_result *result)
{
    switch (result->ended) {
    case EXIT_SIGNAL:
        return result->signal == SIGKILL;
    case EXIT_CODE:
        return result->exit_code == 128 + SIGKILL;
    case EXIT_TIMEOUT:
    case EXIT_CPU:
    case EXIT_LOST:
        return true;
    case EXIT_NONE:
    case EXIT_OOM:
    case EXIT_COUNT:
        break;
    }
    return false;
}

static void judge_cpu(const struct ops_verdict *verdict, struct exec_result *result, uint64_t used)
{
    if (verdict->guest || used > result->cpu_ms + SLACK_MS)
        result->cpu_ms = used;
    if (used > verdict->cpu_limit_ms + SLACK_MS && result->ended != EXIT_OOM)
        result->ended = EXIT_CPU;
}

/* ---- the end of the whole sandbox ---- */

/* The agent is process 1: a connection of it that breaks is the end of the sandbox, unless the sandbox was saved, which ends all
 * connections as well. */
static bool lives(struct link *link, const char *id)
{
    struct keeper_sandbox sandbox;
    struct exec_info ignored;
    struct err err;

    if (sandbox_get(link, id, &sandbox, &err) < 0 || sandbox.life == LIFE_STOPPING)
        return false;
    return sandbox.life != LIFE_RUNNING || exec_info(link, id, &ignored, &err) == 0;
}

/* What the keeper knows of a sandbox that is gone or about to be; kind 0: nothing. */
static struct err ask_why(struct link *link, const char *id)
{
    struct err why = { 0 }, said;

    link->patience_ms = GONE_MS;
    if (sandbox_wait(link, id, &said) == 0 || said.kind == ERR_NO_SANDBOX)
        (void) err_set(&why, ERR_NO_SANDBOX, "the sandbox ended before its command did");
    else if (said.kind == ERR_OOM)
        why = said;
    return why;
}

bool ops_verdict_lost(struct ops *ops, struct ops_run *run, const struct err *err,
                      struct exec_result *ret)
{
    struct link link;
    struct err ignored;

    if (err->kind != ERR_UNAVAILABLE || app_link_take(ops->app, &link, &ignored) < 0)
        return false;
    link.patience_ms = GONE_MS;
    if (!lives(&link, run->sandbox))
        run->lost = ask_why(&link, run->sandbox);
    app_link_give(ops->app, &link, link.fd >= 0);
    if (run->lost.kind != ERR_OOM)
        return false;
    *ret = (struct exec_result){ .ended = EXIT_OOM,
                                 .signal = SIGKILL,
                                 .wall_ms = io_now_ms() - run->begun_ms,
                                 .stdout_bytes = run->exec.next_offset[0],
                                 .stderr_bytes = run->exec.next_offset[1],
                                 .with_sandbox = true };
    return true;
}

/* The sandbox is gone by the time that its figures are asked for. */
static void judge_gone(struct link *link, const struct ops_run *run, struct exec_result *result)
{
    if (!was_killed(result) || ask_why(link, run->sandbox).kind != ERR_OOM)
        return;
    result->ended = EXIT_OOM;
    result->with_sandbox = true;
}

void ops_verdict_end(struct ops *ops, struct ops_run *run, struct exec_result *result)
{
    const struct ops_verdict *verdict = &run->verdict;
    struct keeper_stats stats;
    struct link link;
    struct err err;
    int r;

    if (verdict->cpu_exceeded && result->ended != EXIT_OOM)
        result->ended = EXIT_CPU;
    if ((!was_killed(result) && !verdict->cpu_limit_ms && !verdict->measure) ||
        app_link_take(ops->app, &link, &err) < 0)
        return;
    r = sandbox_stats_brief(&link, run->sandbox, &stats, &err);
    if (r < 0 && err.kind == ERR_NO_SANDBOX)
        judge_gone(&link, run, result);
    app_link_give(ops->app, &link, r == 0 || err.kind == ERR_NO_SANDBOX);
    if (r < 0)
        return;
    result->sandbox_peak_bytes = stats.memory_peak_bytes;
    if (was_killed(result) && stats.oom_kills > verdict->oom_before)
        result->ended = EXIT_OOM;
    if (verdict->cpu_limit_ms)
        judge_cpu(verdict, result, used_ms(verdict, &stats, result));
}

const char *ops_exit_reason(const struct exec_result *result)
{
    return result->ended == EXIT_NONE ? "lost" : agent_exit_name(result->ended);
}

uint32_t ops_exit_code(const struct exec_result *result)
{
    switch (result->ended) {
    case EXIT_CODE:
        return result->exit_code;
    case EXIT_SIGNAL:
        return 128 + result->signal;
    case EXIT_TIMEOUT:
    case EXIT_CPU:
        return 124;
    case EXIT_OOM:
        return 137;
    case EXIT_NONE:
    case EXIT_LOST:
    case EXIT_COUNT:
        break;
    }
    return 255;
}
