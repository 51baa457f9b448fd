#include "agent/proc/procs.h"

#include "agent/proc/spare.h"
#include "agent/proc/stream.h"
#include "base/own.h"

#include <assert.h>
#include <string.h>

#define KEPT_BYTES (1024u * 1024u)
#define TEXTS_KEPT 1024u

static size_t place_of(const struct agent *agent, uint32_t handle)
{
    size_t low = 0, high = agent->proc_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (agent->procs[middle]->handle < handle)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct proc *proc_find(struct agent *agent, uint32_t handle)
{
    size_t at = place_of(agent, handle);
    struct proc *proc = at < agent->proc_count ? agent->procs[at] : NULL;

    return proc && proc->handle == handle && proc->phase != PROC_STARTING ? proc : NULL;
}

struct proc *proc_of_shepherd(struct agent *agent, pid_t pid)
{
    /* From the end: the young die first. */
    for (size_t i = agent->proc_count; i-- > 0;)
        if (agent->procs[i]->live && agent->procs[i]->live->shepherd == pid)
            return agent->procs[i];
    return NULL;
}

int procs_add(struct agent *agent, struct proc *proc)
{
    if (agent->proc_count == agent->proc_room) {
        size_t room = agent->proc_room ? agent->proc_room * 2 : 16;
        struct proc **procs = realloc(agent->procs, room * sizeof(struct proc *));

        if (!procs)
            return -1;
        agent->procs = procs;
        agent->proc_room = room;
    }
    agent->procs[agent->proc_count++] = proc;
    proc->handle = ++agent->last_handle;
    return 0;
}

static void release_live(struct proc *proc)
{
    struct proc_live *live = proc->live;
    struct loop *loop = &proc->agent->loop;

    if (!live)
        return;
    assert(!live->readers && !live->kept && !live->unsettled);
    stream_close_all(proc);
    loop_disarm(loop, &live->deadline);
    loop_disarm(loop, &live->grace);
    loop_disarm(loop, &live->insist);
    cpu_disarm(proc);
    proc_close(proc, &live->control);
    own_close(&live->theirs);
    for (int i = 0; i < PROC_STREAMS; i++)
        ring_done(&live->streams[i].ring);
    proc->live = NULL;
    free(live);
}

void procs_free(struct proc *proc)
{
    if (!proc)
        return;
    release_live(proc);
    free(proc->text);
    free(proc);
}

void procs_drop(struct proc *proc)
{
    struct agent *agent = proc->agent;
    size_t at = place_of(agent, proc->handle);

    assert(at < agent->proc_count && agent->procs[at] == proc);
    memmove(&agent->procs[at], &agent->procs[at + 1],
            (agent->proc_count - at - 1) * sizeof(struct proc *));
    agent->proc_count--;
    if (agent->proc_text_from > at)
        agent->proc_text_from--;
    procs_free(proc);
}

static uint64_t ring_bytes(const struct proc *proc)
{
    return (uint64_t) proc->live->streams[PROC_STDOUT].ring.size +
           proc->live->streams[PROC_STDERR].ring.size;
}

static void kept_remove(struct proc *proc)
{
    struct agent *agent = proc->agent;
    struct proc *before = NULL;

    for (struct proc *p = agent->kept_first; p != proc; p = p->live->kept_next)
        before = p;
    *(before ? &before->live->kept_next : &agent->kept_first) = proc->live->kept_next;
    if (agent->kept_last == proc)
        agent->kept_last = before;
    proc->live->kept = false;
}

static void kept_add(struct proc *proc)
{
    struct agent *agent = proc->agent;

    *(agent->kept_last ? &agent->kept_last->live->kept_next : &agent->kept_first) = proc;
    agent->kept_last = proc;
    proc->live->kept_next = NULL;
    proc->live->kept = true;
}

static void forget_text(struct proc *proc)
{
    free(proc->text);
    proc->text = NULL;
}

/* Records are for ever, the words in them for the latest thousand, and for those that run: settle() sees to them. */
static void forget_texts(struct agent *agent)
{
    for (; agent->proc_text_from + TEXTS_KEPT < agent->proc_count; agent->proc_text_from++)
        if (agent->procs[agent->proc_text_from]->phase == PROC_FINAL)
            forget_text(agent->procs[agent->proc_text_from]);
}

void procs_trim(struct agent *agent)
{
    uint64_t bytes = 0;

    forget_texts(agent);
    for (struct proc *proc = agent->kept_first; proc; proc = proc->live->kept_next)
        bytes += sizeof *proc->live + ring_bytes(proc);
    for (struct proc *proc = agent->kept_first, *next; proc && bytes > KEPT_BYTES; proc = next) {
        next = proc->live->kept_next;
        /* The latest keeps its output, however large: its maker may be about to attach. */
        if (proc->live->readers || proc == agent->kept_last)
            continue;
        bytes -= sizeof *proc->live + ring_bytes(proc);
        for (int i = 0; i < PROC_STREAMS; i++)
            ring_forget(&proc->live->streams[i].ring);
        kept_remove(proc);
        procs_unsettle(proc);
    }
}

void procs_unsettle(struct proc *proc)
{
    struct agent *agent = proc->agent;

    if (!proc->live || proc->live->unsettled)
        return;
    proc->live->unsettled = true;
    proc->live->unsettled_next = agent->unsettled;
    agent->unsettled = proc;
}

/* What an ended process still holds goes when no reader needs it. */
static void settle(struct proc *proc)
{
    struct proc_live *live = proc->live;

    if (live->failed) {
        if (!live->shepherd) /* else proc_reaped counts what the shepherd used */
            procs_drop(proc);
        return;
    }
    if (proc->phase != PROC_FINAL || live->readers)
        return;
    if (place_of(proc->agent, proc->handle) < proc->agent->proc_text_from)
        forget_text(proc);
    if (!live->shepherd) { /* no process writes any more */
        stream_close_all(proc);
        for (int i = 0; i < PROC_STREAMS; i++)
            ring_trim(&live->streams[i].ring);
    }
    if (!live->kept && !live->sudo && ring_bytes(proc) > 0)
        kept_add(proc);
    if (live->shepherd || live->kept)
        return;
    if (live->sudo)
        procs_drop(proc);
    else
        release_live(proc);
}

void procs_sweep(struct agent *agent)
{
    for (struct proc *proc; (proc = agent->unsettled);) {
        agent->unsettled = proc->live->unsettled_next;
        proc->live->unsettled = false;
        settle(proc);
        if (!agent->unsettled)
            procs_trim(agent);
    }
}

void procs_unburden(void *data)
{
    struct agent *agent = data;

    for (size_t i = 0; i < agent->proc_count; i++)
        for (int s = 0; agent->procs[i]->live && s < PROC_STREAMS; s++)
            ring_done(&agent->procs[i]->live->streams[s].ring);
    spare_forget_order();
}
