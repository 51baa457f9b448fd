/* keeper.h - the keeper's own state: what it opened at start, its sandboxes, its connections.
 *
 * Everything is allocated at start; no message makes the keeper grow. */
#ifndef COVE_KEEPER_KEEPER_H
#define COVE_KEEPER_KEEPER_H

#include "driver/driver.h"
#include "keeper/journal.h"
#include "wire/keeper.h"
#include "wire/layers.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct keeper;

/* Something epoll reports on; embedded in what it belongs to. */
struct watch {
    int fd;
    void (*ready)(struct keeper *keeper, struct watch *watch);
};

/* Steps of a create, for the log: where its microseconds went. */
enum create_step { STEP_DISK, STEP_PREPARE, STEP_CLONE, STEP_ROOT, STEP_CHILD, STEP_COUNT };

struct worker_result;
struct sysview;
struct host;

struct sandbox {
    struct keeper_sandbox info;
    const struct driver *driver; /* of info.isolation; NULL: the slot is free */
    uint64_t pid_started;
    uint64_t build; /* of its template */
    /* name of its cgroups, which stays: the id that it was made under, or that of the child that waited (driver/jail/spare.h) */
    char cgroup[KEEPER_NAME_MAX];
    char hostname[KEEPER_NAME_MAX];
    struct watch pid;                       /* pidfd: readable when PID 1 is dead */
    struct volume_use volumes[VOLUMES_MAX]; /* what it has, from its create to its end */
    /* while starting: what it is loaded from; while pausing: what it becomes */
    char image[KEEPER_NAME_MAX];
    bool image_memory; /* … with its processes */
    /* in the pool: the image that it came out of; "": the template's files */
    char origin[KEEPER_NAME_MAX];
    bool unsettled;              /* a worker that we do not hear of may still be at it */
    uint64_t settle_ms;          /* since when it is clear that none is */
    uint64_t unsettled_since_ms; /* 0: not yet looked at (tick.c) */
    bool was_frozen;             /* before it was saved */
    /* destroyed while a worker was at it: gone when what that left is known, and cleared away */
    bool doomed;
    /* kill.c: since when it is to be dead, when it is killed again; 0: it is not */
    uint64_t kill_since_ms, kill_next_ms;
    bool kill_told, remove_told; /* that it takes long, that it fails */
    struct keeper_image saved;   /* what became of it, for the request that waits */
    struct err failure;          /* why it could not start */
    int tied_to;                 /* connection, -1: none */
    uint64_t tie_until_ms; /* adopted and tied: destroyed then, unless tied again; 0: not waiting */
    uint64_t stop_since_ms;
    uint64_t begun_us;
    uint32_t step_us[STEP_COUNT];

    /* ---- the driver's; the keeper resets it, and keeps in the journal what has to outlive it ---- */
    /* while starting: the child's failure, or its end at exec; or a worker's word */
    struct watch control;
    struct watch ready;    /* while starting: the agent's byte */
    uint64_t oom_outlived; /* kills for want of memory that its first process outlived */
    struct watch fill;     /* pidfd of one of those that bring its memory; fd -1: all is there */
    unsigned low_fds;      /* while starting: the row of its child's descriptors; 0: none */
    pid_t worker;          /* saves or loads it; 0: none */
    void (*worker_end)(struct keeper *keeper, struct sandbox *sandbox,
                       struct worker_result *result);
    uint64_t worker_since_ms; /* of the worker: it has an end (tick.c) */
    /* how often in a row its agent was to be put back after a save (save_settle.c) */
    unsigned put_backs;
    int listener; /* of refused calls, a duplicate of the agent's; -1: none. Open from the exec to the end, so that the
                   * kernel allows no other listener inside */
    enum filter_form filter_form;
    unsigned char filter[SHA256_LEN]; /* name of its filter; all zero: not known */
    int disk_fd;                      /* while starting */
    /* number of its loop device + 1, if there is a limit or was one; 0: none (io_rule.h) */
    uint32_t io_device;
    uint32_t disk_order;                /* the tag of its disk, should one have to be made */
    int volume_fd[VOLUMES_MAX];         /* while starting */
    uint32_t volume_order[VOLUMES_MAX]; /* the tags of those that are to come */
    struct sysview *view;               /* NULL: none, or an earlier keeper's */
    char view_name[16];
    struct layers layers;
    uint64_t template_inode; /* of the template's tree: it may be built again */
    bool template_disks;     /* of a virtual machine: driver/vm/load.c */
    int base_fd[LAYERS_MAX]; /* while starting, from 1 on; borrowed from the host's bases */
    bool merging;            /* waits for the image's layers to become fewer (merge.c) */
};

#define CONNECTIONS_MAX (HOST_SLOTS + 256) /* one per sandbox, and some more */
#define STARVED_MAX     128

struct connection {
    struct watch watch; /* fd -1: free */
    bool pending;       /* its last request is not answered; no other is read until it is */
    uint32_t op;        /* of the pending request */
    uint32_t slot;
    char id[KEEPER_NAME_MAX]; /* of the sandbox it waits for: a slot can be reused */
    uint64_t deadline_ms;     /* freeze, thaw */
    uint64_t again_ms;        /* freeze: when it is tried again */
    uint32_t order;           /* of the disk maker, that it waits for */
};

struct keeper {
    int state_fd;
    int epoll_fd;
    int spare_fd; /* given up to take, and refuse, a connection when there is no other */
    struct watch listener, signals;
    struct journal journal;
    struct host *host; /* what the drivers opened: driver/host.h */
    /* rows of the table that are used: as many as the blocks of ids have, and as the journal had */
    uint32_t slot_count;
    uint32_t slot_limit, slot_next; /* new ones go below the limit */
    /* a bit for each slot: its life is not GONE */
    uint64_t alive[HOST_SLOTS / 64];
    /* … and: it waits for time to pass (tick.c), and maybe others */
    uint64_t attended[HOST_SLOTS / 64];
    uint32_t sandboxes_max, sandbox_count;
    uint32_t starting;      /* of them NEW or STARTING */
    uint32_t pooled;        /* of them made ahead, without an owner yet */
    uint64_t pool_heard_ms; /* when a server asked for the list of those */
    uint64_t host_memory, host_cpu_milli;
    bool sweep;       /* files without a record may be there: removed when no worker works on any */
    bool calm;        /* no sandbox waits for time to pass: sandbox_tick has nothing to do */
    bool freezing;    /* a caller may wait for a freeze or thaw: ops_tick has something to do */
    uint64_t busy_ms; /* of the last event */
    bool quit;
    uint64_t quit_ms;          /* since when */
    struct sandbox *sandboxes; /* slot_count of them; life GONE: free */
    /* ids of the last sandboxes that ended for want of memory, for callers that ask when those are gone */
    char starved[STARVED_MAX][KEEPER_NAME_MAX];
    uint32_t starved_count; /* that ever were */
    int connection_count;   /* rows that were ever used */
    struct connection connections[CONNECTIONS_MAX];
};

/* Time may have something to do with it: every change of a life, a worker, a kill that waits. */
static inline void keeper_attend(struct keeper *keeper, const struct sandbox *sandbox)
{
    size_t slot = (size_t) (sandbox - keeper->sandboxes);

    keeper->calm = false;
    keeper->attended[slot / 64] |= 1ull << slot % 64;
}

/* The next slot of a set, from *at on, which is then behind it; NULL: no more. A look at all slots takes longer than to serve a
 * request: most are free, and their rows not in the cache. */
static inline struct sandbox *keeper_next(const struct keeper *keeper, const uint64_t *set,
                                          uint32_t *at)
{
    while (*at < keeper->slot_count) {
        uint64_t left = set[*at / 64] >> *at % 64;

        if (left) {
            *at += (uint32_t) __builtin_ctzll(left);
            return &keeper->sandboxes[(*at)++];
        }
        *at = (*at / 64 + 1) * 64;
    }
    return NULL;
}

static inline struct sandbox *keeper_next_attended(const struct keeper *keeper, uint32_t *at)
{
    return keeper_next(keeper, keeper->attended, at);
}

static inline struct sandbox *keeper_next_alive(const struct keeper *keeper, uint32_t *at)
{
    return keeper_next(keeper, keeper->alive, at);
}

int keeper_watch(struct keeper *keeper, struct watch *watch, int fd,
                 void (*ready)(struct keeper *, struct watch *), struct err *err);
/* Quiet: only the peer's end is reported. */
void keeper_watch_quiet(struct keeper *keeper, struct watch *watch, bool quiet);
/* Forgets and closes; harmless on one that is closed. */
void keeper_unwatch(struct keeper *keeper, struct watch *watch);

#define container_of(ptr, type, member) ((type *) (void *) ((char *) (ptr) -offsetof(type, member)))

#endif
