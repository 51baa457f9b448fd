/* keeper.h - the keeper's own state: what it opened at start, its sandboxes, its connections.
 *
 * Everything is allocated at start; no message makes the keeper grow. */
#ifndef COVE_KEEPER_KEEPER_H
#define COVE_KEEPER_KEEPER_H

#include "jail/agents.h"
#include "jail/cgroup.h"
#include "image/criu.h"
#include "disk/disk.h"
#include "jail/gateway.h"
#include "jail/ids.h"
#include "image/image.h"
#include "keeper/journal.h"
#include "jail/net.h"
#include "jail/seccomp.h"
#include "jail/sysview.h"
#include "wire/keeper.h"

#include <stdbool.h>
#include <stdint.h>

struct keeper;

/* Something epoll reports on; embedded in what it belongs to. */
struct watch {
    int fd;
    void (*ready)(struct keeper *keeper, struct watch *watch);
};

/* Steps of a create, for the log: where its microseconds went. */
enum create_step { STEP_DISK, STEP_PREPARE, STEP_CLONE, STEP_ROOT, STEP_CHILD, STEP_COUNT };

struct worker_result;
struct sandbox;

struct sandbox {
    struct keeper_sandbox info;
    uint64_t pid_started;
    uint64_t build; /* of its template */
    char made_as[KEEPER_NAME_MAX]; /* the id it was made under: the name of its cgroups, which stays */
    struct watch pid;     /* pidfd: readable when PID 1 is dead */
    struct watch control; /* while starting: the child's failure, or its end at exec; or a worker's word */
    struct watch ready;   /* while starting: the agent's byte */
    struct watch fill;    /* pidfd of one of those that bring its memory; fd -1: all is there */
    unsigned put_backs; /* how often in a row its agent was to be put back after a save (save_settle.c) */
    int listener; /* of refused calls, a duplicate of the agent's; -1: none. Open from the exec to the end, so that the
                   * kernel allows no other listener inside */
    enum filter_form filter_form;
    unsigned char filter[SHA256_LEN]; /* name of its filter; all zero: not known */
    int disk_fd;          /* while starting */
    uint32_t disk_order;  /* the tag of its disk, should one have to be made */
    struct volume_use volumes[VOLUMES_MAX]; /* what it has, from its create to its end */
    int volume_fd[VOLUMES_MAX];             /* while starting */
    uint32_t volume_order[VOLUMES_MAX];     /* the tags of those that are to come */
    struct sysview *view;                   /* NULL: none, or an earlier keeper's */
    char hostname[KEEPER_NAME_MAX];
    struct layers layers;
    uint64_t template_inode; /* of the template's tree: it may be built anew */
    int base_fd[LAYERS_MAX]; /* while starting, from 1 on; borrowed from the keeper's bases */
    char image[KEEPER_NAME_MAX]; /* while starting: what it is loaded from; while pausing: what it becomes */
    bool image_memory;           /* … with its processes */
    bool merging;                /* waits for the image's layers to become fewer (merge.c) */
    char origin[KEEPER_NAME_MAX]; /* in the pool: the image that it came out of; "": the template's files */
    char view_name[SYSVIEW_NAME];
    pid_t worker; /* saves or loads it; 0: none */
    void (*worker_end)(struct keeper *keeper, struct sandbox *sandbox, struct worker_result *result);
    bool unsettled;            /* a worker that we do not hear of may still be at it */
    uint64_t settle_ms;        /* since when it is clear that none is */
    bool was_frozen;           /* before it was saved */
    uint64_t worker_since_ms;  /* of the worker: it has an end (tick.c) */
    bool doomed;               /* destroyed while a worker was at it: gone when what that left is known, and cleared away */
    uint64_t kill_since_ms, kill_next_ms; /* kill.c: since when it is to be dead, when it is killed again; 0: it is not */
    bool kill_told;                       /* that it takes long */
    struct keeper_image saved; /* what became of it, for whoever waits */
    struct err failure;    /* why it could not start */
    int tied_to;           /* connection, -1: none */
    uint64_t tie_until_ms; /* adopted and tied: destroyed then, unless tied again; 0: not waiting */
    uint64_t stop_since_ms;
    uint64_t begun_us;
    uint32_t step_us[STEP_COUNT];
};

/* A mounted disk that only forms the lower layers of others. */
#define BASES_MAX 32

struct base {
    uint64_t number; /* 0: free */
    int mount_fd;    /* -1: on order */
};

/* The one merge that the disk maker is at. */
struct merging {
    uint32_t order;  /* 0: none */
    uint64_t number; /* of the disk to be */
    char image[KEEPER_NAME_MAX];
};

/* The process that compresses an image. */
struct shrink {
    struct watch watch; /* its word */
    pid_t pid;          /* 0: none */
    char image[KEEPER_NAME_MAX];
};

#define CONNECTIONS_MAX 2304 /* one per sandbox, as `cove run` holds it, and some more */

struct connection {
    struct watch watch; /* fd -1: free */
    bool pending;       /* its last request is not answered; no other is read until it is */
    uint32_t op;        /* of the pending request */
    uint32_t slot;
    char id[KEEPER_NAME_MAX]; /* of the sandbox it waits for: a slot can be reused */
    uint64_t deadline_ms;     /* freeze, thaw */
    uint64_t again_ms;        /* freeze: when it is tried anew */
    uint32_t order;           /* of the disk maker, that it waits for */
};

struct keeper {
    int state_fd, templates_fd;
    struct agents agents;
    int epoll_fd;
    int spare_fd; /* given up to take, and refuse, a connection when there is no other */
    struct watch listener, signals, disks_watch;
    struct journal journal;
    struct cgroups cgroups;
    struct disks disks;
    struct nets nets;
    struct gateways gateways;
    struct sysviews views;
    struct images images;
    struct criu criu;
    struct shrink shrink;
    struct base bases[BASES_MAX];
    struct merging merging;
    struct seccomp_filter filter_notify, filter_quiet;
    unsigned char filter_name[SHA256_LEN]; /* of both: what new sandboxes get */
    uint32_t id_block;
    int id_lock_fd;
    uint32_t slot_count;            /* always IDS_SLOTS: earlier sandboxes may be in any */
    uint32_t slot_limit, slot_next; /* new ones go below the limit */
    uint32_t sandboxes_max, sandbox_count;
    uint32_t starting; /* of them NEW or STARTING */
    uint32_t pooled;   /* of them made ahead, for nobody yet */
    uint64_t pool_heard_ms; /* when somebody asked for the list of those */
    int uts_fd;             /* our own, to come back to */
    uint32_t disk_orders;
    uint64_t host_memory, host_cpu_milli;
    bool sweep; /* files that nobody speaks of may be there: removed when nobody works on any */
    bool calm;     /* no sandbox waits for time to pass: sandbox_tick has nothing to do */
    bool freezing; /* somebody may wait for a freeze or thaw: ops_tick has something to do */
    uint64_t clear_ms; /* when spent images are to be removed; 0: there are none */
    bool quit;
    uint64_t quit_ms; /* since when */
    struct sandbox *sandboxes; /* slot_count of them; life GONE: free */
    struct connection connections[CONNECTIONS_MAX];
};

/* The tag of an order to the disk maker. Those below DISK_POOL are the pool's own. */
static inline uint32_t keeper_next_order(struct keeper *keeper)
{
    if (++keeper->disk_orders < DISK_POOL)
        keeper->disk_orders = DISK_POOL;
    return keeper->disk_orders;
}

int keeper_watch(struct keeper *keeper, struct watch *watch, int fd,
                 void (*ready)(struct keeper *, struct watch *), struct err *err);
/* Quiet: only the peer's end is reported. */
void keeper_watch_quiet(struct keeper *keeper, struct watch *watch, bool quiet);
/* Forgets and closes; harmless on one that is closed. */
void keeper_unwatch(struct keeper *keeper, struct watch *watch);

#define container_of(ptr, type, member) ((type *) (void *) ((char *) (ptr) -offsetof(type, member)))

#endif
