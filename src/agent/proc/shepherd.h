/* shepherd.h - the process above one command: it starts it, and nothing below it ever leaves it.
 *
 * A shepherd is a fork of the agent. It is a subreaper, so that whatever double-forks below it
 * becomes its child; it stays the sandbox's root and undumpable, so that an ordinary user can
 * neither signal nor trace it. It reports over a SOCK_SEQPACKET pair and takes orders from there.
 * When no process is left below it, it ends; or, if it is to stay, it waits for its next command
 * (spare.h), and ends when the agent closes its side.
 *
 * Callers: start.c, spare.c. Never: talks to a caller, or touches an output stream. */
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

/* Bytes of an ORDER_START. A command with more has a shepherd forked for it. */
#define SHEPHERD_ORDER_MAX (128u * 1024u)

enum shepherd_what {
    /* orders */
    ORDER_SIGNAL = 1, /* to the command's process group */
    ORDER_SIGNAL_ALL, /* to every process below */
    ORDER_KILL,       /* SIGKILL until no process is left */
    ORDER_START, /* of one without a command: behind it, what spawn_pack made, with its descriptors */
    /* news */
    NEWS_STARTED,
    NEWS_FAILED, /* the command could not be started */
    NEWS_SIGNALLED,
    NEWS_ENDED, /* the command itself; others may continue, unless `alone` is set */
    NEWS_ALONE, /* after NEWS_ENDED, of one that stays: now no process is left below */
};

struct shepherd_order {
    uint32_t what;
    uint32_t signal;
    uint64_t cookie;  /* SIGNAL: comes back with NEWS_SIGNALLED; START: the process's handle */
    uint8_t stdio[3]; /* START: which of the descriptors, from 1 on; 0: /dev/null */
};

/* ORDER_START whole. */
struct shepherd_start {
    struct shepherd_order order;
    char spawn[SHEPHERD_ORDER_MAX - sizeof(struct shepherd_order)]; /* as much as there is */
};
_Static_assert(sizeof(struct shepherd_start) == SHEPHERD_ORDER_MAX, "no bytes between the two");

struct shepherd_news {
    uint32_t what;
    pid_t pid;       /* STARTED */
    int32_t status;  /* ENDED: as of wait */
    uint32_t count;  /* SIGNALLED: processes reached */
    uint64_t cookie; /* SIGNALLED */
    bool alone;      /* ENDED, of one that stays */
    uint64_t cpu_us; /* ENDED: of every process of this command reaped so far */
    uint64_t all_us; /* FAILED, ALONE, or `alone`: the same of all its commands */
    uint64_t peak_bytes;
    struct err err; /* FAILED */
};

/* In the forked child. A command that cannot be started is NEWS_FAILED. Once the command runs, spawn is freed and unburden is called: what the agent had in
 * memory would otherwise be held for as long as the command lives. */
noreturn void shepherd_main(struct spawn *spawn, int control, bool stay, void (*unburden)(void *),
                            void *data);

#endif
