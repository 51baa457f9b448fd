/* proc.h - processes started by EXEC: their state, their output, their end.
 *
 * Owns:    the table of all of them; for each the shepherd's control socket, the pipes or the
 * terminal, and the rings. What is known of an ended process stays as long as the sandbox; its
 * rings stay under one budget, oldest first out. Callers: ops.c starts and lists, attach.c reads
 * and feeds, main.c reports dead children. */
#ifndef COVE_AGENT_PROC_PROC_H
#define COVE_AGENT_PROC_PROC_H

#include "agent/core/agent.h"
#include "agent/proc/cpu.h"
#include "agent/proc/ring.h"

struct reader;

enum proc_phase {
    PROC_STARTING, /* the shepherd has not yet said that the command runs */
    PROC_RUNNING,
    PROC_ENDED, /* the command ended, its last output may still be in a pipe */
    PROC_FINAL, /* status and output are whole */
    PROC_PHASE_COUNT
};

enum { PROC_STDOUT, PROC_STDERR, PROC_STREAMS };

struct proc_stream {
    struct watch watch; /* fd -1: at its end, or never there */
    struct proc *proc;
    struct ring ring;
    uint64_t until; /* with `settling`: bytes that were written when the grace ended */
    uint64_t final; /* with PROC_FINAL: where the command's own output ends */
};

/* What is only needed while something of the process lives, is read or is kept. */
struct proc_live {
    struct proc *proc;
    pid_t shepherd; /* 0: gone; written by proc_set_shepherd */
    struct watch control;
    int theirs;       /* the shepherd's side of `control`; -1: it will not be kept as a spare */
    bool ordered;     /* it was a spare, and has not said yet whether the command started */
    uint64_t past_us; /* processor time of the shepherd's commands before this one */
    struct proc_stream streams[PROC_STREAMS];
    struct watch in;        /* stdin or the terminal; fd -1: closed */
    bool has_in, pty;       /* it had one when it started */
    bool settling;          /* the grace after the command's end is over */
    bool timed_out, killed; /* ORDER_KILL was given, by the clock or by a caller */
    bool kept;              /* in the list of rings under the budget */
    bool sudo;              /* leaves no record behind */
    bool failed;            /* never started */
    bool unsettled;         /* in the list of procs_sweep */
    uint32_t tied_to;       /* handle of the process whose descendant started it by sudo; 0: none */
    struct timer deadline, grace, insist;
    struct cpu_limit cpu;
    struct reader *readers;
    struct reader *starter; /* told whether it started */
    struct proc *kept_next, *unsettled_next;
};

struct proc_text {
    uint32_t args_len;
    uint16_t cwd, tag, user; /* offsets in text; args are at 0 */
    char text[];
};

struct proc {
    uint32_t handle;
    pid_t pid;
    uint8_t phase;
    uint8_t ended;
    uint8_t exit_code, signal;
    bool is_pty;
    uint64_t started_us; /* monotonic */
    int64_t started_ms;  /* real */
    uint64_t refused_at; /* system calls that were refused in the sandbox when it began */
    uint64_t killed_at;  /* in a machine: processes that were killed for want of memory by then */
    uint64_t wall_ms, cpu_ms, peak_bytes;
    bool beside;                  /* with a CPU limit: another command ran while it did */
    uint64_t agent_cpu_ms;        /* with a CPU limit: what the agent used meanwhile */
    uint64_t bytes[PROC_STREAMS]; /* final */
    struct agent *agent;
    struct proc_text *text; /* owned; NULL for old ones */
    struct proc_live *live; /* owned; NULL when nothing is left but the record */
};

struct proc_request {
    const struct agent_request *request;
    const struct user *user;
    struct reader *starter;
    const int *fds; /* sudo: three descriptors, borrowed; NULL: pipes or a terminal */
    uint32_t tied_to;
};

/* Forks the shepherd; attach_started or attach_failed of the starter follows later. */
struct proc *proc_start(struct agent *agent, const struct proc_request *request, struct err *err);

struct proc *proc_find(struct agent *agent, uint32_t handle);
/* The one whose shepherd this pid is, or NULL. */
struct proc *proc_of_shepherd(struct agent *agent, pid_t pid);
bool proc_running(const struct proc *proc);

/* NEWS_SIGNALLED comes back to the conn with the cookie as id (ops_signalled). */
int proc_signal(struct proc *proc, uint32_t number, bool all, uint64_t cookie, struct err *err);
/* Every descendant, and whatever they started by sudo. */
void proc_kill(struct proc *proc);

/* How many bytes were taken: 0 when it would have to wait. Bytes for a closed stdin count as taken.
 */
uint32_t proc_stdin(struct proc *proc, const uint8_t *data, uint32_t len);
/* False: it would have to wait. */
bool proc_stdin_end(struct proc *proc);
void proc_resize(struct proc *proc, uint16_t rows, uint16_t columns);

void proc_attach(struct proc *proc, struct reader *reader);
void proc_detach(struct proc *proc, struct reader *reader);
/* A reader moved on: streams that waited for it continue. */
void proc_drained(struct proc *proc);

/* For start.c, spare.c and stream.c: the shepherd's news; the clocks; output came or ended. */
void proc_on_control(struct watch *watch, uint32_t events);
void proc_set_timers(struct proc *proc, const struct agent_request *request);
void proc_output(struct proc *proc);
void proc_set_shepherd(struct proc *proc, pid_t pid);
/* A command whose order was taken back gets a shepherd of its own. False: it has not, and why. */
bool proc_start_again(struct proc *proc, struct err *err);
/* Closes one of its descriptors, once. */
void proc_close(struct proc *proc, struct watch *watch);

/* A child of the agent is gone. True: it was a shepherd. */
bool proc_reaped(struct agent *agent, pid_t pid, int status);

/* Fills in what PROCS and EXIT say. */
void proc_describe(const struct proc *proc, struct agent_reply *ret);

#endif
