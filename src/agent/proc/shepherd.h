/* shepherd.h - the process above one command: it starts it, and nothing below it ever leaves it.
 *
 * A shepherd is a fork of the agent. It is a subreaper, so that whatever double-forks below it
 * becomes its child; it stays the sandbox's root and undumpable, so that an ordinary user can
 * neither signal nor trace it. It reports over a SOCK_SEQPACKET pair, takes orders from there, and
 * ends when no process is left below it.
 *
 * Callers: proc.c. Never: talks to a caller, or touches an output stream. */
#ifndef COVE_AGENT_PROC_SHEPHERD_H
#define COVE_AGENT_PROC_SHEPHERD_H

#include "agent/core/spawn.h"

#include <stdnoreturn.h>
#include <sys/types.h>

/* Descriptors of the agent that a shepherd relies on: its stdio and this one are /dev/null. Nothing
 * that is handed to a command has a number below SHEPHERD_FDS_FROM, except 0 for "nothing". */
#define SHEPHERD_CONTROL  3
#define SHEPHERD_NULL     4
#define SHEPHERD_FDS_FROM 5

enum shepherd_what {
    /* orders */
    ORDER_SIGNAL = 1, /* to the command's process group */
    ORDER_SIGNAL_ALL, /* to everybody below */
    ORDER_KILL,       /* SIGKILL until no process is left */
    /* news */
    NEWS_STARTED,
    NEWS_FAILED, /* the command could not be started; the shepherd ends */
    NEWS_SIGNALLED,
    NEWS_ENDED, /* the command itself; others may continue */
};

struct shepherd_order {
    uint32_t what;
    uint32_t signal;
    uint64_t cookie; /* comes back with NEWS_SIGNALLED */
};

struct shepherd_news {
    uint32_t what;
    pid_t pid;       /* STARTED */
    int32_t status;  /* ENDED: as of wait */
    uint32_t count;  /* SIGNALLED: processes reached */
    uint64_t cookie; /* SIGNALLED */
    uint64_t cpu_us; /* ENDED: of everybody reaped so far */
    uint64_t peak_bytes;
    struct err err; /* FAILED */
};

/* In the forked child. Once the command runs, spawn is freed and unburden is called: what the agent had in
 * memory would otherwise be held for as long as the command lives. */
noreturn void shepherd_main(struct spawn *spawn, int control, void (*unburden)(void *), void *data);

#endif
