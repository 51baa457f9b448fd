/* quota_own.h - what the modules of quotas share: the counts of each tenant, under one lock. */
#ifndef COVE_SERVER_GUARD_QUOTA_OWN_H
#define COVE_SERVER_GUARD_QUOTA_OWN_H

#include "server/guard/quota.h"
#include "store/store.h"

#include <pthread.h>

#define QUOTA_RETRY_S 5 /* something must end first */

/* What keeps a thread for as long as a sandbox likes. */
enum hold { HOLD_STREAM, HOLD_COMMAND, HOLD_VISITOR, HOLD_COUNT };

struct bucket {
    double tokens;
    uint64_t at_us;
    bool begun;
};

struct quota_tenant {
    struct quota_tenant *next;
    char name[STORE_TENANT_MAX];
    struct store_quotas limits;
    uint64_t read_ms, changes; /* changes: of the limits, as quota_changed() was told */
    struct bucket requests, visits, creates; /* visits: those requests whose sender is unknown */
    uint64_t held[HOLD_COUNT], stored, sent; /* sent: of uploads that have not ended */
    double policy_us;                        /* of CPU time: what is left of the share, or owed */
    uint64_t policy_at_us;
    struct user_rate *users; /* NULL: no request of a user was counted yet */
};

struct quota {
    double processors;    /* of this machine, at the start */
    pthread_mutex_t lock; /* all below */
    struct quota_tenant *tenants;
    size_t tenant_count;
    struct quota_host host;
    uint64_t host_ms, memory_ms; /* when they were read, and the memory's; 0: never */
    uint64_t promised;           /* memory of what was admitted since that was read */
    struct quota_counts refused;
};

/* The tenant, with the lock held and limits that are fresh; NULL with err: without the lock. */
struct quota_tenant *quota_enter(struct app *app, const char *name, struct err *err);
/* The tenant, with the lock held, whatever its limits are; NULL: no memory for one more, without the lock. */
struct quota_tenant *quota_enter_counts(struct app *app, const char *name);
void quota_leave(struct app *app);

/* Counts a refusal (`counter`: of struct quota_counts), says when to come back, and writes it into the audit. Returns -1. */
int quota_refuse(struct caller *caller, uint64_t *counter, const char *rule, const char *action,
                 unsigned seconds, struct err *err);

#endif
