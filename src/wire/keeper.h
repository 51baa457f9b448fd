/* keeper.h - messages between the keeper and its callers.
 *
 * One SOCK_SEQPACKET packet each way: struct keeper_request, struct keeper_reply, always whole and
 * of one size. Replies come in the order of the requests of a connection. Texts are
 * NUL-terminated within their array and NUL-filled behind; keeper_request_check refuses
 * everything else. Same host, same build: numbers are in host order, and `version` refuses a
 * peer of another build.
 *
 * Never: paths. A template is a name, a sandbox an id or a name. */
#ifndef COVE_WIRE_KEEPER_H
#define COVE_WIRE_KEEPER_H

#include "base/err.h"
#include "base/parse.h"
#include "wire/isolation.h"
#include "wire/limits.h"
#include "wire/volume.h"

#include <stdint.h>

#define KEEPER_VERSION  1u
#define KEEPER_MAGIC    0x45564f43u /* "COVE" */
#define KEEPER_NAME_MAX 64
#define KEEPER_LIST_MAX 16

enum keeper_op {
    KEEPER_HELLO,   /* who are you, how many sandboxes, what can this host do */
    KEEPER_CREATE,  /* a sandbox from a template; the reply comes when its agent listens */
    KEEPER_GET,     /* one sandbox, by id or name */
    KEEPER_LIST,    /* KEEPER_LIST_MAX sandboxes, from `cursor` on; with POOLED: of the pool */
    KEEPER_CONNECT, /* a descriptor to the agent: one operation (wire/agent.h) */
    KEEPER_STATS,   /* what one sandbox uses now */
    KEEPER_FREEZE,
    KEEPER_THAW,
    KEEPER_DESTROY, /* the reply comes when nothing of it is left */
    KEEPER_TIE,     /* from now on the sandbox ends when this connection does */
    KEEPER_WAIT, /* the reply comes when the sandbox is gone; ERR_OOM: for want of memory, also of one that is gone already */
    KEEPER_GATEWAY,      /* descriptors of enum keeper_gateway: their holder is its network */
    KEEPER_SAVE,         /* a sandbox into an image; it ends, or continues */
    KEEPER_LOAD,         /* a sandbox from an image: the same one again, or a new one */
    KEEPER_IMAGE,        /* one image */
    KEEPER_IMAGES,       /* KEEPER_LIST_MAX images, from `cursor` on */
    KEEPER_DROP,         /* an image is no longer wanted */
    KEEPER_RECLAIM,      /* of a frozen sandbox: memory to swap, as much as the kernel can */
    KEEPER_VOLUME_MAKE,  /* volumes[0].volume, of limits.disk_bytes and .disk_inodes */
    KEEPER_VOLUME_LIST,  /* KEEPER_LIST_MAX volumes from `cursor` on; or the one in volumes[0] */
    KEEPER_VOLUME_USERS, /* the sandboxes that have it, KEEPER_LIST_MAX from `cursor` on */
    KEEPER_VOLUME_DROP,  /* refused while a sandbox has it */
    KEEPER_COMPRESS, /* the memory of an image; the reply comes when it is done, or at once (flags) */
    KEEPER_TEMPLATES, /* names of the templates that are installed, KEEPER_LIST_MAX from `cursor` on */
    KEEPER_TEMPLATE, /* one of them: which version of it is installed */
    KEEPER_OP_COUNT
};

/* The descriptors of a reply to KEEPER_GATEWAY, in this order. The sandbox has egress as long as GATEWAY_HOLD is
 * open; what arrives on the first two is what its programs sent to addresses that are not its own. */
enum keeper_gateway {
    GATEWAY_TCP,   /* listens; getsockname() of what it accepts is the address that was meant */
    GATEWAY_DNS,   /* UDP to port 53 of any address */
    GATEWAY_HOLD,  /* only to be held */
    GATEWAY_TABLE, /* memory to be mapped, a struct special_table of base/special.h */
    GATEWAY_FDS
};
#define KEEPER_FDS_MAX 4

/* For KEEPER_CREATE */
#define KEEPER_FLAG_ROOT 1u /* profile `root`: the sandbox's own root may be used */
#define KEEPER_FLAG_TIED 2u /* destroyed when the connection that made it closes */
/* Made ahead, without an owner yet: it is in no list but that of the pool, no caller can connect to its agent, and it ends
 * when no server asks for that list any more. For KEEPER_LIST: the list of the pool. */
#define KEEPER_FLAG_POOLED 4u
/* One that was made ahead may be taken, if template, profile and limits fit. In an answer: it was. */
#define KEEPER_FLAG_TAKE 8u
/* For one command, and never saved: a disk that fits in its memory (limits_disk_in_memory) is there. */
#define KEEPER_FLAG_ONCE 16u
/* The caller named no template, and has this one for the default: refused with ERR_NO_TEMPLATE if another is, by now. */
#define KEEPER_FLAG_DEFAULT 32u
#define KEEPER_FLAG_ALL     63u
#define KEEPER_FLAG_ROUTED  0x10000u /* in answers: it has had a gateway */
#define KEEPER_FLAG_LOADED  0x20000u /* in answers: it is in the pool, and came out of an image */

/* For KEEPER_STATS: only what says how a command ended, cpu_us, memory_peak_bytes and oom_kills; the other figures are 0. For
 * KEEPER_CONNECT: with these figures, as they were before the connection. */
#define KEEPER_STATS_BRIEF 1u

/* For KEEPER_SAVE */
#define KEEPER_SAVE_STOP                                                                           \
    1u /* the sandbox ends when its image is whole; the image has the sandbox's id */
#define KEEPER_SAVE_MEMORY 2u /* with its processes, not only its files */
/* Files alone: the sandbox ends when its image is whole, which has an id of its own and the sandbox's disk, not a copy. */
#define KEEPER_SAVE_SEAL 4u
#define KEEPER_SAVE_ALL  7u

/* For KEEPER_COMPRESS */
#define KEEPER_COMPRESS_BEGIN 1u /* only begin: what becomes of it is in the list of images */

/* For KEEPER_LOAD. `limits`: each that is not 0 takes the place of the image's own. */
#define KEEPER_LOAD_FILES 1u /* without the processes that it has */
/* Of an image that is no paused sandbox's, with its processes: KEEPER_FLAG_POOLED, or KEEPER_FLAG_TAKE for one that came
 * out of the same image. */
#define KEEPER_LOAD_POOL (KEEPER_FLAG_POOLED | KEEPER_FLAG_TAKE)
#define KEEPER_LOAD_AS                                                                             \
    32u /* files alone, with the isolation that the request says, not the image's */
#define KEEPER_LOAD_ALL (KEEPER_LOAD_FILES | KEEPER_LOAD_POOL | KEEPER_LOAD_AS)

/* The words of the design. */
enum keeper_life {
    LIFE_NEW,
    LIFE_STARTING,
    LIFE_RUNNING,
    LIFE_PAUSING, /* being saved */
    LIFE_PAUSED,  /* frozen */
    LIFE_STOPPING,
    LIFE_GONE,
    LIFE_COUNT
};
const char *keeper_life_name(uint32_t life);

struct keeper_request {
    uint32_t magic;
    uint32_t version;
    uint32_t op; /* enum keeper_op */
    uint32_t flags;
    uint32_t cursor;    /* of lists: the `next` of the reply before, 0 first */
    uint32_t isolation; /* enum isolation: of a create, and of a load with KEEPER_LOAD_AS */
    char sandbox[KEEPER_NAME_MAX];          /* id, or for all but create also name */
    char name[KEEPER_NAME_MAX];             /* create: optional */
    char template[KEEPER_NAME_MAX];         /* create, template */
    char hostname[KEEPER_NAME_MAX];         /* create, load: "" is the name, or else the id */
    char image[KEEPER_NAME_MAX];            /* save, load, image, drop */
    char owner[KEEPER_NAME_MAX];            /* save: kept in the image; load: must be the same */
    struct limits limits;                   /* create, load */
    struct volume_use volumes[VOLUMES_MAX]; /* create; of KEEPER_VOLUME_* only the first's id */
};

struct keeper_sandbox {
    char id[KEEPER_NAME_MAX];
    char name[KEEPER_NAME_MAX];
    char template[KEEPER_NAME_MAX];
    uint32_t life;
    uint32_t flags;
    uint32_t slot;      /* index of its id range */
    uint32_t uid_base;  /* first host id of its 65536 */
    int32_t pid;        /* its PID 1, as the keeper sees it */
    uint16_t disk_kind; /* enum keeper_disk */
    /* enum isolation. The upper half of disk_kind in versions before: 0, a jail */
    uint16_t isolation;
    uint64_t created_ms; /* real time, milliseconds since 1970 */
    struct limits limits;
};
/* Journals and images of versions before have this struct in them. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "disk_kind is the lower half of what it was");

enum keeper_disk { DISK_MEMORY, DISK_IMAGE, DISK_KIND_COUNT };
const char *keeper_disk_name(uint32_t kind);

#define KEEPER_IMAGE_MEMORY 1u /* it has the processes */
#define KEEPER_IMAGE_PAUSED                                                                        \
    2u /* it is the sandbox that it was made of, asleep: loaded once, and gone then */
#define KEEPER_IMAGE_COMPRESSED 4u /* its memory takes longer to load, and less room */
#define KEEPER_IMAGE_SHRINKING  8u /* only in answers: it is being compressed now */

struct keeper_image {
    char id[KEEPER_NAME_MAX];
    char owner[KEEPER_NAME_MAX];
    uint32_t flags; /* KEEPER_IMAGE_* */
    /* when it was last loaded, or else saved: real time, in seconds. Only in answers to IMAGE, IMAGES */
    uint32_t used_s;
    uint32_t threads; /* of its processes */
    uint32_t reserved;
    uint64_t memory_bytes; /* that they hold */
    uint64_t saved_ms;     /* real time */
    /* on the host's disk; a layer that several images have counts for one of them */
    uint64_t bytes;
    uint64_t frozen_us;            /* how long the sandbox stood still for it */
    struct keeper_sandbox sandbox; /* as it was */
};

struct keeper_stats {
    uint64_t cpu_us;
    uint64_t memory_bytes, memory_peak_bytes;
    uint64_t oom_kills;
    uint64_t processes;
    uint64_t disk_bytes, disk_inodes; /* in use */
    uint64_t memory_cache_bytes;      /* of memory_bytes: pages of files that are on a disk */
    /* of disks below its own that are there for it alone: no image has them, nor another sandbox before it */
    uint64_t layer_bytes;
};

/* The answer to KEEPER_CONNECT. */
struct keeper_connected {
    struct keeper_sandbox sandbox;
    struct keeper_stats stats; /* only with KEEPER_STATS_BRIEF */
};

struct keeper_hello {
    uint32_t pid;
    uint32_t sandboxes;
    uint32_t sandboxes_max;
    uint32_t ids_free;
    uint64_t host_memory;
    uint64_t host_cpu_milli;
    uint64_t disk_free;    /* of the host's disk, in bytes */
    uint64_t disk_reserve; /* of them to be kept free */
    uint32_t disk_full;    /* 1: there is less, and writes in sandboxes get ENOSPC */
    uint32_t reserved;
    char default_template[KEEPER_NAME_MAX];
    char isolation[128]; /* one line: which layers a sandbox gets here */
};

#define KEEPER_DIGEST_MAX 80

/* What tells one version of a template from another. */
struct keeper_template {
    char name[KEEPER_NAME_MAX];
    uint64_t build; /* another number when the template was rebuilt */
    /* of an image, else "": the key of its content; the digest of its manifest; the one that its name had */
    char layer[KEEPER_DIGEST_MAX], digest[KEEPER_DIGEST_MAX], named[KEEPER_DIGEST_MAX];
};

struct keeper_reply {
    uint32_t magic;
    uint32_t version;
    uint32_t op;
    uint32_t count; /* of lists: entries; others 0 or 1 */
    uint32_t next;  /* of lists: cursor of the rest, 0 at the end */
    uint32_t reserved;
    struct err err; /* kind ERR_NONE: done */
    union {
        struct keeper_hello hello;
        struct keeper_stats stats;
        struct keeper_connected connected;
        struct keeper_sandbox sandbox[KEEPER_LIST_MAX];
        struct volume_info volume[KEEPER_LIST_MAX];
        struct volume_user user[KEEPER_LIST_MAX];
        struct keeper_image image[KEEPER_LIST_MAX];
        char template[KEEPER_LIST_MAX][KEEPER_NAME_MAX];
        struct keeper_template about;
        uint64_t reclaimed; /* bytes */
    };
};

struct keeper_op_info {
    const char *name;
    uint8_t needs_sandbox; /* `sandbox` must name one */
    uint8_t is_create;
    uint8_t needs_image; /* `image` must be an id */
    uint8_t is_list;     /* takes a cursor */
    uint8_t volume;      /* enum keeper_volume_field: whether volumes[0].volume names one */
    uint8_t of_pool;     /* may be asked of one that is in the pool */
};
enum keeper_volume_field { VOLUME_FIELD_NONE, VOLUME_FIELD_MAY, VOLUME_FIELD_MUST };
extern const struct keeper_op_info keeper_ops[KEEPER_OP_COUNT];

void keeper_request_init(struct keeper_request *request, enum keeper_op op);

/* Every field of a request as it arrived, also those its op does not use (which must be empty).
 * Bounds of limits are the keeper's to check: it knows the host. */
int keeper_request_check(const struct keeper_request *request, size_t len, struct err *err);

/* For callers: the reply is to this op, whole, and its texts end. */
int keeper_reply_check(const struct keeper_reply *reply, size_t len, enum keeper_op op,
                       struct err *err);

#endif
