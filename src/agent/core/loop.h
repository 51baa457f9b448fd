/* loop.h - one epoll, level-triggered, and timers of CLOCK_MONOTONIC.
 *
 * Owns:    the epoll descriptor and the list of armed timers; never the objects in them.
 * Rule:    a watch may be removed, and its object freed, from inside any callback: events of the
 *          same turn that are still to come for it are struck out.
 * Callers: everything in the agent that waits. */
#ifndef COVE_AGENT_CORE_LOOP_H
#define COVE_AGENT_CORE_LOOP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define CONTAINER(ptr, type, member) ((type *) (void *) ((char *) (ptr) -offsetof(type, member)))

#define LOOP_BATCH 16

struct watch {
    int fd;          /* borrowed: -1 when not in use; the object around it closes it */
    bool added;      /* known to epoll */
    uint32_t events; /* asked of epoll */
    void (*ready)(struct watch *watch, uint32_t events);
    struct watch *prev, *next; /* of those that epoll knows */
};

struct timer {
    uint64_t at_ms; /* 0: not armed */
    struct timer *prev, *next;
    void (*fire)(struct timer *timer);
};

struct loop {
    int epoll;
    struct watch *watches;
    struct timer *first, *last; /* by time */
    struct epoll_event batch[LOOP_BATCH];
    int batch_count;
};

int loop_init(struct loop *loop, struct err *err);

/* Starts or changes what is waited for. With no events, only hang-ups and errors are reported. */
int loop_watch(struct loop *loop, struct watch *watch, uint32_t events);
/* Waits for nothing at all, hang-ups included, until loop_watch. */
void loop_pause(struct loop *loop, struct watch *watch);

/* A new epoll for all watches, with the number of the old one. gVisor's kernel needs that behind each load of its state: of an epoll
 * that was loaded, what is removed comes back with the next load, and its events are of objects that are freed. */
void loop_renew(struct loop *loop);

/* Arms it again, whether or not it was armed. */
void loop_arm(struct loop *loop, struct timer *timer, uint64_t in_ms, void (*fire)(struct timer *));
void loop_disarm(struct loop *loop, struct timer *timer);

/* One turn: waits, calls what is ready and due. */
void loop_turn(struct loop *loop);

#endif
