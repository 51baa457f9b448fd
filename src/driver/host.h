/* host.h - what the drivers opened at start and share: struct host, for src/driver alone. The keeper has a pointer to it.
 *
 * Everything is allocated at start; no message makes it grow. */
#ifndef COVE_DRIVER_HOST_H
#define COVE_DRIVER_HOST_H

#include "disk/disk.h"
#include "driver/driver.h"
#include "image/criu.h"
#include "image/image.h"
#include "jail/agents.h"
#include "jail/cgroup.h"
#include "jail/gateway.h"
#include "jail/ids.h"
#include "jail/io_limit.h"
#include "jail/low_fds.h"
#include "jail/mount_parent.h"
#include "jail/net.h"
#include "jail/seccomp.h"
#include "jail/sysview.h"
#include "jail/template.h"
#include "keeper/keeper.h"

/* A mounted disk that only forms the lower layers of others. */
#define BASES_MAX 32

struct base {
    uint64_t number; /* 0: free */
    int mount_fd;    /* -1: on order */
};

/* An image's file system, mounted at /layers/<place>: layers.c. */
#define LAYERS_PLACES 64

struct layer_mount {
    uint64_t device, inode; /* of the file; 0: free */
    int file_fd;
    uint64_t used; /* larger is later */
};

/* The one merge that the disk maker is at. */
struct merging {
    uint32_t order;  /* 0: none */
    uint64_t number; /* of the disk to be */
    char image[KEEPER_NAME_MAX];
};

/* Memory of a machine that has just started, for others: vm/memory.c. */
#define MEMORIES_MAX 8
/* A machine with less of a processor makes none, and is not heard about one that it could not use: it may only have been too slow. */
#define MEMORY_MAKER_MILLI 250

struct memory_kind {
    uint32_t isolation, cpus;
    uint64_t disks; /* of the template */
    uint64_t bytes;
    uint64_t parts_device, parts_inode, parts_s, parts_ns;
    char agent[AGENT_NAME + 7];
};

struct memory {
    struct memory_kind kind;
    int memory_fd, state_fd;
    char maker[KEEPER_NAME_MAX]; /* the sandbox that makes it, or did */
    uint64_t begun_ms;
    unsigned tries;
    bool whole;    /* sealed */
    uint64_t used; /* larger is later; 0: free */
};

/* The process that compresses an image. */
struct shrink {
    struct watch watch; /* its word */
    pid_t pid;          /* 0: none */
    char image[KEEPER_NAME_MAX];
};

/* A child that waits for the next create: driver/jail/spare.h. */
struct spare {
    bool off; /* there is never one */
    enum { SPARE_NONE, SPARE_READY, SPARE_ENDING } state;
    bool wanted;     /* the last create could use one … */
    bool wanted_usr; /* … with the host's /usr, or without */
    bool with_usr;   /* what the child that waits has */
    uint32_t slot;
    char name[KEEPER_NAME_MAX]; /* of its cgroups */
    pid_t pid;
    int pidfd, control, ready;
    unsigned low_fds;
    uint64_t ending_ms; /* since when */
    bool failed;        /* and told so */
    uint64_t again_ms;
};

struct host {
    int templates_fd;
    struct agents agents;
    struct watch disks_watch;
    struct cgroups cgroups;
    struct io_limits io;
    struct disks disks;
    struct nets nets;
    struct mount_parent mount_parent;
    struct low_fds low_fds;
    struct spare spare;
    struct gateways gateways;
    struct sysviews views;
    struct images images;
    struct criu criu;
    struct shrink shrink;
    struct base bases[BASES_MAX];
    struct merging merging;
    struct layer_mount layers[LAYERS_PLACES];
    uint64_t layers_used;
    struct memory memories[MEMORIES_MAX];
    uint64_t memories_used;
    bool memory_refused; /* a machine could not start with its own */
    bool layers_by_loop; /* as kernels before 6.12 need it */
    int dev_fd;          /* the host's /dev */
    struct seccomp_filter filter_notify, filter_quiet;
    struct seccomp_filter filter_machine; /* of jails around guests */
    struct seccomp_filter filter_kvm;     /* of jails around virtual machines with KVM */
    int bridge_fd;                        /* cove-bridge */
    int kvm_fd;                           /* for virtual machines; -1: not tried yet, or kvm_why */
    const char *kvm_why;
    bool vm_emulated;                      /* the operator allows machines without KVM */
    unsigned char filter_name[SHA256_LEN]; /* of both: what new sandboxes get */
    struct ids ids;
    struct watch room; /* full.c: words of the process that watches the disk's room */
    pid_t room_pid;
    uint64_t room_ms; /* no other before then */
    /* bytes of the host's disk that the operator wants free; 0: the default */
    uint64_t reserve_set;
    bool disk_full; /* writes in sandboxes get ENOSPC */
    int uts_fd;     /* our own, to come back to */
    uint32_t disk_orders;
    uint64_t clear_ms; /* when spent images are to be removed; 0: there are none */
};

/* The tag of an order to the disk maker. Those below DISK_POOL are the pool's own. */
static inline uint32_t host_next_order(struct host *host)
{
    if (++host->disk_orders < DISK_POOL)
        host->disk_orders = DISK_POOL;
    return host->disk_orders;
}

/* ---- images: images.c ---- */

/* An image, or what is unfinished of one, is there no more at once; its files go by images_tick. Whatever the keeper itself
 * removes goes this way: a sandbox of 30,000 processes has more than 100,000 files in its image. */
void host_discard_image(struct keeper *keeper, const char *image, const char *suffix);
/* The same for what a worker discarded, some time later. */
void host_clear_later(struct keeper *keeper);
/* Has spent images removed, in a process of its own, when nothing starts, or some seconds later. Returns when to call again,
 * -1: on an event. */
int images_tick(struct keeper *keeper);

/* ---- volumes: volume.c ---- */

/* Orders a mount of each of sandbox->volumes. */
int volumes_order(struct keeper *keeper, struct sandbox *sandbox, struct err *err);
/* Whether that order is one of them. It takes the descriptor. */
bool volumes_take(struct sandbox *sandbox, uint32_t order, int mount_fd);
bool volumes_here(const struct sandbox *sandbox);
/* Gives each mount the sandbox's ids and, where asked for, makes it read-only. */
int volumes_map(const struct sandbox *sandbox, int userns_fd, struct err *err);
/* The starting sandbox has them now, or never will. */
void volumes_let_go(struct sandbox *sandbox);

#endif
