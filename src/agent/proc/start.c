/* start.c - from a request to a forked shepherd: the first half of proc.h's proc_start. */
#include "agent/core/box.h"
#include "agent/proc/ahead.h"
#include "agent/proc/memory.h"
#include "agent/proc/procs.h"
#include "agent/proc/shepherd.h"
#include "agent/proc/spare.h"
#include "agent/proc/stream.h"
#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define TEXT_ARGS_MOST 1024u

static struct proc_text *make_text(const struct agent_request *request, const struct spawn *spawn)
{
    const char *cwd = spawn->cwd ? spawn->cwd : spawn->user.home;
    const char *tag = request->tag ? request->tag : "";
    size_t args = 0, most;
    struct proc_text *text;
    char *at;

    for (char **arg = spawn->argv; *arg && args < TEXT_ARGS_MOST; arg++)
        args += strlen(*arg) + 1;
    most = args < TEXT_ARGS_MOST ? args : TEXT_ARGS_MOST;
    text = malloc(sizeof *text + most + strlen(cwd) + strlen(tag) + strlen(spawn->user.name) + 3);
    if (!text)
        return NULL;
    at = text->text;
    for (char **arg = spawn->argv; *arg && at < text->text + most; arg++) {
        size_t room = (size_t) (text->text + most - at), len = strlen(*arg) + 1;

        len = len < room ? len : room;
        memcpy(at, *arg, len);
        at[len - 1] = '\0';
        at += len;
    }
    text->args_len = (uint32_t) most;
    text->cwd = (uint16_t) (at - text->text);
    at = stpcpy(at, cwd) + 1;
    text->tag = (uint16_t) (at - text->text);
    at = stpcpy(at, tag) + 1;
    text->user = (uint16_t) (at - text->text);
    (void) stpcpy(at, spawn->user.name);
    return text;
}

static struct proc *proc_new(struct agent *agent, const struct proc_request *start,
                             const struct spawn *spawn)
{
    struct proc *proc = calloc(1, sizeof *proc);
    struct proc_live *live = calloc(1, sizeof *live);
    struct timespec now;
    uint64_t most = start->request->ring_bytes;

    if (proc)
        proc->text = make_text(start->request, spawn);
    if (!proc || !live || !proc->text) {
        free(live);
        procs_free(proc);
        return NULL;
    }
    /* Rings are the sandbox's memory too. */
    if (agent->memory_limit && (most ? most : RING_DEFAULT) > agent->memory_limit / 16)
        most = agent->memory_limit / 16;
    proc->agent = agent;
    proc->live = live;
    proc->is_pty = start->request->flags & AGENT_PTY;
    proc->started_us = io_now_us();
    (void) clock_gettime(CLOCK_REALTIME, &now);
    proc->started_ms = (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
    proc->refused_at = agent->refusals.total;
    proc->killed_at = agent->machine ? memory_kills() : 0;
    live->proc = proc;
    live->tied_to = start->tied_to;
    live->sudo = start->fds != NULL;
    live->control = (struct watch){ .fd = -1, .ready = proc_on_control };
    live->in.fd = live->theirs = -1;
    for (int i = 0; i < PROC_STREAMS; i++) {
        live->streams[i].proc = proc;
        live->streams[i].watch.fd = -1;
        ring_init(&live->streams[i].ring, most);
    }
    return proc;
}

/* The shepherd's side stays open in the agent only where the shepherd may become a spare. */
static int fork_shepherd(struct proc *proc, struct spawn *spawn, struct err *err)
{
    struct agent *agent = proc->agent;
    struct proc_live *live = proc->live;
    bool stay = spare_wanted(agent);
    auto_close int theirs = -1;
    int pair[2];
    pid_t pid;

    if (spare_socket(pair) < 0)
        return err_sys(err, errno, "control socket");
    live->control.fd = pair[0];
    theirs = pair[1];
    if (loop_watch(&agent->loop, &live->control, EPOLLIN) < 0)
        return err_sys(err, errno, "watch a shepherd");
    pid = spare_fork(agent);
    if (pid == 0) {
        box_enter();
        shepherd_main(spawn, theirs, stay, procs_unburden, agent);
    }
    if (pid < 0)
        return err_sys(err, errno, "start a process");
    proc_set_shepherd(proc, pid);
    if (stay)
        live->theirs = take_fd(&theirs);
    return 0;
}

static int start_shepherd(struct proc *proc, struct spawn *spawn, struct err *err)
{
    if (stream_start(proc, err) < 0)
        return -1;
    if (spare_take(proc, spawn))
        return 0;
    spare_make_way(proc->agent); /* none beside a command */
    return fork_shepherd(proc, spawn, err);
}

static void close_child_ends(const int stdio[3])
{
    for (int i = 0; i < 3; i++)
        if (stdio[i] > 0 && (i == 0 || stdio[i] != stdio[i - 1]))
            (void) close(stdio[i]);
}

bool proc_start_again(struct proc *proc, struct err *err)
{
    struct spawn spawn;
    int r;

    err_set(err, ERR_INTERNAL, "the process could not be started");
    if (!spare_take_back(proc, &spawn))
        return false;
    spare_give_up(proc);
    proc_close(proc, &proc->live->control);
    own_close(&proc->live->theirs);
    proc->live->past_us = 0;
    spare_make_way(proc->agent);
    r = fork_shepherd(proc, &spawn, err);
    close_child_ends(spawn.stdio);
    spawn_done(&spawn);
    spare_forget_order();
    return r == 0;
}

struct proc *proc_start(struct agent *agent, const struct proc_request *start, struct err *err)
{
    struct spawn spawn;
    struct proc *proc;
    int r;

    ahead_end();
    spawn_learn_cores(&agent->base);
    if (spawn_prepare(&spawn, &agent->base, start->request, start->user, err) < 0)
        return NULL;
    proc = proc_new(agent, start, &spawn);
    if (!proc || procs_add(agent, proc) < 0) {
        spawn_done(&spawn);
        procs_free(proc);
        err_set(err, ERR_NO_MEMORY, "no memory for another process");
        return NULL;
    }
    if (start->fds) {
        memcpy(spawn.stdio, start->fds, sizeof spawn.stdio);
        r = 0;
    } else {
        r = stream_open(proc, start->request, start->user, spawn.stdio, err);
    }
    if (r == 0)
        r = start_shepherd(proc, &spawn, err);
    if (!start->fds) /* else the conn's own */
        close_child_ends(spawn.stdio);
    spawn_done(&spawn);
    if (r < 0) {
        agent->last_handle--;
        procs_drop(proc);
        return NULL;
    }
    proc->live->starter = start->starter;
    proc_set_timers(proc, start->request);
    return proc;
}
