/* pool_own.h - the inside of the pools, for pool.c and pool_table.c. */
#ifndef COVE_SERVER_LIFE_POOL_OWN_H
#define COVE_SERVER_LIFE_POOL_OWN_H

#include "server/life/pool.h"
#include "server/life/pool_plan.h"

#define POOL_IMAGES_MAX 32
#define POOL_COST_LEAST (1u << 20) /* of one that waits: what its cgroup does not see */

/* What makes a pool another pool. */
struct pool_kind {
    char template[KEEPER_NAME_MAX];
    bool root, warm;
    bool once; /* KEEPER_FLAG_ONCE */
    uint32_t isolation;
    struct limits limits;
};

/* The image of a template, and which sandboxes come out of it. */
struct pool_image {
    struct pool_kind kind;
    char id[ID_LEN + 1];
    uint64_t bytes;
};

struct pool {
    struct pool_kind kind;
    struct demand demand;
    uint64_t used_ms; /* of the last create */
    uint32_t ready, target, least, most;
    uint64_t hits, misses;
    uint64_t made; /* by this server */
    uint64_t cost_bytes;
    uint64_t retry_ms, pause_ms; /* after a failure: not before, and how long the pause was */
};

struct pools {
    pthread_t thread;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    bool running, stop;
    bool changed, told; /* there is something to do; and it is what was told, not what was taken */
    uint32_t creating;  /* creates under way */
    size_t count;
    struct pool list[POOLS_MAX];
    size_t image_count;
    struct pool_image images[POOL_IMAGES_MAX];
    uint64_t budget_bytes, used_bytes, made, failures;
};
extern struct pools pools;

/* With the lock held. */
struct pool *pool_find(const struct pool_kind *kind);
struct pool_kind pool_kind_of(const struct keeper_sandbox *sandbox, bool warm);
/* NULL: what is of that kind comes out of none. */
const struct pool_image *pool_image_of(const struct pool_kind *kind);
/* The keeper's list, as it is. */
void pool_count_ready(const struct keeper_sandbox *list, size_t count, uint64_t now);
/* Targets, by the rules and the bytes that there are for it. */
/* `isolation`: the server's default, which sandboxes have that wait at any time. */
void pool_set_targets(const struct pool_rules *rules, uint32_t isolation, uint64_t budget_bytes,
                      uint64_t now);

/* What `cove pool` shows, and what a server after this one begins with. */
void pool_save(struct app *app);
void pool_remember(struct app *app);

#endif
