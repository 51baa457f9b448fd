/* quota.h - how much a tenant may ask at once and per second, and what the host can still give.
 *
 * Refusals of a tenant's own limits are ERR_TOO_MANY (429), those of the host ERR_UNAVAILABLE (503); both say
 * why, name the quota as `rule`, and when to ask again (blame.retry_s). Limits are the tenant's in the store; a change
 * counts at once if quota_changed() is told, else within a second.
 *
 * Callers: auth.c (every request), ops (creates, streams). */
#ifndef COVE_SERVER_GUARD_QUOTA_H
#define COVE_SERVER_GUARD_QUOTA_H

#include "server/guard/caller.h"

struct app;
struct quota;

struct quota *quota_new(void);

/* The tenant's limits in the store are others now. */
void quota_changed(struct app *app, const char *tenant);

/* One request of the caller's; called by auth_check. */
int quota_request(struct caller *caller, struct err *err);

struct quota_want {
    uint64_t cpu_milli, memory_bytes, disk_bytes; /* limits of the sandbox to be made */
};
/* Before a sandbox is made: the tenant's creates per second, its sandboxes and sums so far, and the host's
 * free memory, disk, processes and descriptors. store_sandbox_add then checks the sums again, exactly. */
/* The least level that the tenant's sandboxes have: a number of enum isolation. */
int quota_isolation(struct caller *caller, uint32_t *ret, struct err *err);
int quota_create(struct caller *caller, const struct quota_want *want, struct err *err);

/* Before something is written into a sandbox: whether the tenant stores more than it may already. */
int quota_store(struct caller *caller, struct err *err);
/* The same for what the server is about to store for it: whether there is room for `more` bytes. Not told to a client here. */
int quota_store_more(struct app *app, const char *tenant, uint64_t more, struct err *err);
/* An upload that grows by `more`: what is being sent counts, and is not among what is stored. Then its end: the bytes that were
 * counted so, and those that are stored now. */
int quota_upload_more(struct app *app, const char *tenant, uint64_t more, struct err *err);
void quota_upload_end(struct app *app, const char *tenant, uint64_t counted, uint64_t kept);
/* Whether there may be one image more. recorded: it has its record already, and counts. Several at once may exceed the quota
 * by as many as are being made. */
int quota_image(struct app *app, const char *tenant, bool recorded, struct err *err);
/* The quota that a sentence of these names, for caller_blame; NULL: none. */
const char *quota_named(const struct err *err);
/* What its sandboxes hold on their disks, and its images, as upkeep.c measured it. */
void quota_set_stored(struct app *app, const char *tenant, uint64_t bytes);
/* An image was made: it counts before the next measure. */
void quota_add_stored(struct app *app, const char *tenant, uint64_t bytes);

/* A long answer or a terminal, from begin to end. Visitors (caller.visitor) have half of their owner's. end only after a begin that returned 0. */
int quota_stream_begin(struct caller *caller, struct err *err);
void quota_stream_end(struct caller *caller);
/* A command whose end is waited for. The quota is a share of the server's threads, so that no tenant has all of them. */
int quota_command_begin(struct caller *caller, struct err *err);
void quota_command_end(struct caller *caller);

/* An analysis of a command by the policy runs in a thread of the server. A tenant may use the share of the
 * setting policy_share for it: refused while it has used more. used: what one took, after it. */
int quota_policy(struct caller *caller, struct err *err);
void quota_policy_used(struct caller *caller, uint64_t cpu_us);

/* What the host has left. */
struct quota_host {
    uint64_t memory_available, memory_total; /* bytes, of the machine */
    uint64_t disk_free, disk_total;          /* of the state directory's file system */
    uint64_t pids, pids_most;
    uint64_t fds, fds_most; /* of this process */
};
/* `memory`: where the figures of memory are taken from; NULL: they are read, too. On a host with thousands of block devices the kernel
 * takes a millisecond to say how much memory is left. */
void quota_host_read(const char *state, const struct quota_host *memory, struct quota_host *ret);
/* Figures that are a quarter of a second old at most. The thread of the pools asks for them after every create, and every two seconds, so
 * that a create need not wait for those of memory. */
void quota_host_now(struct app *app, struct quota_host *ret);
/* Pure: whether figures of memory of that age do for a create that is one of those that were admitted since, with `promised` bytes of memory
 * together. They do for three seconds, as long as the host had enough even if all of that was in use by now. */
bool quota_memory_holds(const struct quota_host *host, uint64_t age_ms, uint64_t promised);
/* Pure: whether that is too little for one more sandbox. */
int quota_host_check(const struct quota_host *host, struct err *err);

/* What the tenant's sandboxes have of its quotas now. */
struct quota_used {
    uint64_t sandboxes, cpu_milli, memory_bytes, disk_bytes;
};
int quota_used(struct app *app, const char *tenant, struct quota_used *ret, struct err *err);

/* For /metrics and GET /stats: refusals since the start. */
struct quota_counts {
    uint64_t requests, creates, streams, stored, policy, host;
};
void quota_counts(struct app *app, struct quota_counts *ret);

#endif
