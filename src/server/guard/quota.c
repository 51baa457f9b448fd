#include "server/guard/quota_own.h"

#include "base/io.h"
#include "base/own.h"
#include "server/app/app.h"
#include "server/guard/audit.h"
#include "server/guard/user_rate.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Rates are token buckets that hold one second's worth: a tenant may use it all at once, and the rest
 * comes back evenly. Tenants are few, and known to the store: a list with one lock is enough. */

#define REFRESH_MS   1000 /* how old a tenant's limits may be */
#define HOST_MS      250  /* how old the host's figures may be */
#define TENANTS_MOST 4096
#define USER_MAX     128
#define RATE_RETRY_S 1 /* a token comes within a second: no rate is less than one */
#define SHARE        4 /* of all threads, a tenant's waiting commands may have one part in so many */

struct quota *quota_new(void)
{
    struct quota *quota = calloc(1, sizeof *quota);
    long processors = sysconf(_SC_NPROCESSORS_ONLN); /* reads a file: not for every command */

    if (!quota)
        return NULL;
    quota->processors = processors > 0 ? (double) processors : 1;
    (void) pthread_mutex_init(&quota->lock, NULL);
    return quota;
}

void quota_counts(struct app *app, struct quota_counts *ret)
{
    (void) pthread_mutex_lock(&app->quota->lock);
    *ret = app->quota->refused;
    (void) pthread_mutex_unlock(&app->quota->lock);
}

/* ---- tenants ---- */

/* Under the lock. NULL with err. */
static struct quota_tenant *find_tenant(struct quota *quota, const char *name, struct err *err)
{
    struct quota_tenant *t = quota->tenants;

    while (t && strcmp(t->name, name) != 0)
        t = t->next;
    if (t)
        return t;
    t = quota->tenant_count < TENANTS_MOST ? calloc(1, sizeof *t) : NULL;
    if (!t) {
        err_set(err, ERR_NO_MEMORY, "no memory for a tenant's counts");
        return NULL;
    }
    (void) snprintf(t->name, sizeof t->name, "%s", name);
    t->next = quota->tenants;
    quota->tenants = t;
    quota->tenant_count++;
    return t;
}

/* The store is read without the lock, by one who finds the limits old. */
struct quota_tenant *quota_enter(struct app *app, const char *name, struct err *err)
{
    struct quota *quota = app->quota;
    struct store_tenant stored;
    struct quota_tenant *t;
    uint64_t now = io_now_ms();
    uint64_t changes;
    bool old;

    (void) pthread_mutex_lock(&quota->lock);
    t = find_tenant(quota, name, err);
    if (!t) {
        (void) pthread_mutex_unlock(&quota->lock);
        return NULL;
    }
    old = t->read_ms == 0 || now - t->read_ms >= REFRESH_MS;
    if (!old)
        return t;
    if (t->read_ms != 0)
        t->read_ms = now; /* the others use what was known */
    changes = t->changes;
    (void) pthread_mutex_unlock(&quota->lock);
    if (store_tenant_get(app->store, name, &stored, err) < 0)
        return NULL;
    (void) pthread_mutex_lock(&quota->lock);
    t->limits = stored.quotas;
    t->read_ms = changes == t->changes ? now : 0;
    return t;
}

void quota_changed(struct app *app, const char *tenant)
{
    (void) pthread_mutex_lock(&app->quota->lock);
    for (struct quota_tenant *t = app->quota->tenants; t; t = t->next)
        if (strcmp(t->name, tenant) == 0) {
            t->changes++;
            t->read_ms = 0;
        }
    (void) pthread_mutex_unlock(&app->quota->lock);
}

struct quota_tenant *quota_enter_counts(struct app *app, const char *name)
{
    struct err ignored;
    struct quota_tenant *t;

    (void) pthread_mutex_lock(&app->quota->lock);
    t = find_tenant(app->quota, name, &ignored);
    if (!t)
        (void) pthread_mutex_unlock(&app->quota->lock);
    return t;
}

void quota_leave(struct app *app)
{
    (void) pthread_mutex_unlock(&app->quota->lock);
}

static bool bucket_take(struct bucket *bucket, uint64_t per_s)
{
    uint64_t now = io_now_us();

    if (per_s == 0)
        return true;
    if (!bucket->begun)
        *bucket = (struct bucket){ (double) per_s, now, true };
    bucket->tokens += (double) (now - bucket->at_us) * (double) per_s / 1e6;
    bucket->at_us = now;
    if (bucket->tokens > (double) per_s)
        bucket->tokens = (double) per_s;
    if (bucket->tokens < 1)
        return false;
    bucket->tokens -= 1;
    return true;
}

int quota_refuse(struct caller *caller, uint64_t *counter, const char *rule, const char *action,
                 unsigned seconds, struct err *err)
{
    (void) pthread_mutex_lock(&caller->app->quota->lock);
    ++*counter;
    (void) pthread_mutex_unlock(&caller->app->quota->lock);
    caller->blame.retry_s = seconds;
    (void) caller_blame(caller, NULL, rule, "quota");
    audit_refusal(caller, action, err);
    return -1;
}

/* A tenant's users have a table of their own: however many names a tenant makes up, those of others are remembered. */
static int take_user(struct caller *caller, const char *name, uint64_t *ret_wait_ms,
                     struct err *err)
{
    const struct config *config = app_config(caller->app);
    struct quota_tenant *t = quota_enter(caller->app, caller->tenant, err);

    if (!t)
        return -1;
    if (!t->users)
        t->users = user_rate_new();
    if (t->users)
        *ret_wait_ms = user_rate_take(t->users, name, config->user_requests, config->user_window_ms,
                                      io_now_ms());
    quota_leave(caller->app);
    return t->users ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a tenant's users");
}

/* One user of a tenant: who shows the key, or for whom it is shown. The local tenant without a key names a user or has none. */
static int check_user(struct caller *caller, struct err *err)
{
    const struct config *config = app_config(caller->app);
    char name[sizeof caller->key_id + USER_MAX + 2];
    uint64_t wait_ms = 0;

    if (config->user_requests == 0 || caller->visitor || (!caller->key_id[0] && !caller->user))
        return 0;
    if (caller->user && (!caller->user[0] || strlen(caller->user) > USER_MAX))
        return err_set(err, ERR_INVALID, "X-Cove-User: not a name of 1 to %d bytes", USER_MAX);
    (void) snprintf(name, sizeof name, "%s/%s", caller->key_id, caller->user ? caller->user : "");
    if (take_user(caller, name, &wait_ms, err) < 0)
        return -1;
    if (wait_ms == 0)
        return 0;
    err_set(err, ERR_TOO_MANY,
            "quota of user requests: %" PRIu64 " of one user in %" PRIu64 " s are allowed",
            config->user_requests, config->user_window_ms / 1000);
    return quota_refuse(caller, &caller->app->quota->refused.requests, "user-requests",
                        "quota.requests", (unsigned) ((wait_ms + 999) / 1000), err);
}

int quota_request(struct caller *caller, struct err *err)
{
    struct quota_tenant *t = quota_enter(caller->app, caller->tenant, err);
    uint64_t most;
    bool taken;

    if (!t)
        return -1;
    most = t->limits.requests_per_s;
    taken = (!caller->visitor || bucket_take(&t->visits, (most + 1) / 2)) &&
            bucket_take(&t->requests, most);
    quota_leave(caller->app);
    if (taken)
        return check_user(caller, err);
    err_set(err, ERR_TOO_MANY, "quota of requests: %" PRIu64 " per second are allowed", most);
    return quota_refuse(caller, &caller->app->quota->refused.requests, "requests-per-s",
                        "quota.requests", RATE_RETRY_S, err);
}

/* 0: no limit. Who has none on streams has none on commands either: `local`, unless it was given one. */
static uint64_t hold_most(const struct quota_tenant *t, enum hold hold, struct app *app)
{
    if (hold == HOLD_COMMAND && t->limits.streams > 0)
        return app_config(app)->threads / SHARE;
    return hold == HOLD_VISITOR ? (t->limits.streams + 1) / 2 : t->limits.streams;
}

static int hold_begin(struct caller *caller, enum hold hold, struct err *err)
{
    static const struct {
        const char *rule, *action;
    } names[] = { [HOLD_STREAM] = { "streams", "quota.streams" },
                  [HOLD_COMMAND] = { "commands", "quota.commands" },
                  [HOLD_VISITOR] = { "visitors", "quota.visitors" } };
    struct quota_tenant *t = quota_enter(caller->app, caller->tenant, err);
    uint64_t most;
    bool full;

    if (!t)
        return -1;
    most = hold_most(t, hold, caller->app);
    full = most > 0 && t->held[hold] >= most;
    t->held[hold] += !full;
    quota_leave(caller->app);
    if (!full)
        return 0;
    err_set(err, ERR_TOO_MANY, "quota of %s: %" PRIu64 " at once are allowed", names[hold].rule,
            most);
    return quota_refuse(caller, &caller->app->quota->refused.streams, names[hold].rule,
                        names[hold].action, QUOTA_RETRY_S, err);
}

static void hold_end(struct caller *caller, enum hold hold)
{
    struct quota_tenant *t = quota_enter_counts(caller->app, caller->tenant);

    if (!t)
        return;
    if (t->held[hold] > 0)
        t->held[hold]--;
    quota_leave(caller->app);
}

int quota_stream_begin(struct caller *caller, struct err *err)
{
    if (caller->visitor && hold_begin(caller, HOLD_VISITOR, err) < 0)
        return -1;
    if (hold_begin(caller, HOLD_STREAM, err) == 0)
        return 0;
    if (caller->visitor)
        hold_end(caller, HOLD_VISITOR);
    return -1;
}

void quota_stream_end(struct caller *caller)
{
    hold_end(caller, HOLD_STREAM);
    if (caller->visitor)
        hold_end(caller, HOLD_VISITOR);
}

int quota_command_begin(struct caller *caller, struct err *err)
{
    return hold_begin(caller, HOLD_COMMAND, err);
}

void quota_command_end(struct caller *caller)
{
    hold_end(caller, HOLD_COMMAND);
}

/* ---- analyses ---- */

/* The share comes back with time, up to a second's worth; the analysis that empties it may overdraw it. */
static void policy_refill(struct app *app, struct quota_tenant *t)
{
    double most = 1e4 * (double) app_config(app)->policy_share * app->quota->processors;
    uint64_t now = io_now_us();

    t->policy_us += t->policy_at_us ? (double) (now - t->policy_at_us) / 1e6 * most : most;
    t->policy_at_us = now;
    if (t->policy_us > most)
        t->policy_us = most;
}

int quota_policy(struct caller *caller, struct err *err)
{
    struct quota_tenant *t = quota_enter(caller->app, caller->tenant, err);
    bool owes;

    if (!t)
        return -1;
    if (t->policy_us < 0)
        policy_refill(caller->app, t);
    owes = t->policy_us < 0 &&
           t->limits.streams > 0; /* as hold_most: who has no limits has none here */
    quota_leave(caller->app);
    if (!owes)
        return 0;
    err_set(err, ERR_TOO_MANY,
            "quota of policy: analyses of commands may use %" PRIu64
            " %% of the server's processors",
            app_config(caller->app)->policy_share);
    return quota_refuse(caller, &caller->app->quota->refused.policy, "policy", "quota.policy",
                        RATE_RETRY_S, err);
}

void quota_policy_used(struct caller *caller, uint64_t cpu_us)
{
    struct quota_tenant *t = quota_enter_counts(caller->app, caller->tenant);

    if (!t)
        return;
    policy_refill(caller->app, t);
    t->policy_us -= (double) cpu_us;
    quota_leave(caller->app);
}

/* ---- the host ---- */

static bool is_fresh(uint64_t read_ms, uint64_t now, uint64_t most)
{
    return read_ms != 0 && now - read_ms < most;
}

/* `want`: the memory of a create; NULL: for the pools. */
static void host_now(struct app *app, const uint64_t *want, struct quota_host *ret)
{
    struct quota *quota = app->quota;
    uint64_t now = io_now_ms(), counted;
    struct quota_host before;
    bool fresh, memory_fresh;

    (void) pthread_mutex_lock(&quota->lock);
    counted = quota->promised;
    quota->promised += want ? *want : 0;
    memory_fresh = is_fresh(quota->memory_ms, now, HOST_MS) ||
                   (want && quota->memory_ms != 0 &&
                    quota_memory_holds(&quota->host, now - quota->memory_ms, quota->promised));
    fresh = memory_fresh && is_fresh(quota->host_ms, now, HOST_MS);
    before = *ret = quota->host;
    if (!fresh && quota->host_ms != 0) { /* one reads, the others take what was */
        quota->host_ms = now;
        quota->memory_ms = memory_fresh ? quota->memory_ms : now;
    }
    (void) pthread_mutex_unlock(&quota->lock);
    if (fresh)
        return;
    quota_host_read(app_config(app)->state, memory_fresh ? &before : NULL, ret);
    (void) pthread_mutex_lock(&quota->lock);
    before = quota->host;
    quota->host = *ret;
    quota->host_ms = now;
    if (memory_fresh) { /* another may have read it meanwhile */
        quota->host.memory_total = before.memory_total;
        quota->host.memory_available = before.memory_available;
    } else {
        quota->memory_ms = now;
        quota->promised -= counted < quota->promised ? counted : quota->promised;
    }
    (void) pthread_mutex_unlock(&quota->lock);
}

void quota_host_now(struct app *app, struct quota_host *ret)
{
    host_now(app, NULL, ret);
}

/* ---- creates ---- */

/* What the tenant has and may have. */
static int check_sums(struct caller *caller, const struct quota_want *want, struct err *err)
{
    const struct store_usage more = { 1, want->cpu_milli, want->memory_bytes, want->disk_bytes };
    struct store_quotas limits;
    struct store_usage used;
    struct quota_tenant *t;

    if (store_usage(caller->app->store, caller->tenant, &used, err) < 0 ||
        !(t = quota_enter(caller->app, caller->tenant, err)))
        return -1;
    limits = t->limits;
    quota_leave(caller->app);
    if (store_quotas_allow(&limits, &used, &more, err) == 0)
        return 0;
    return quota_refuse(caller, &caller->app->quota->refused.creates, NULL, "quota.sandboxes",
                        QUOTA_RETRY_S, err);
}

int quota_isolation(struct caller *caller, uint32_t *ret, struct err *err)
{
    struct quota_tenant *t = quota_enter(caller->app, caller->tenant, err);

    if (!t)
        return -1;
    *ret = (uint32_t) t->limits.isolation;
    quota_leave(caller->app);
    return 0;
}

/* Last, so that a create that fails otherwise uses no token. */
static int check_rate(struct caller *caller, struct err *err)
{
    struct quota_tenant *t = quota_enter(caller->app, caller->tenant, err);
    uint64_t most;
    bool taken;

    if (!t)
        return -1;
    most = t->limits.creates_per_s;
    taken = bucket_take(&t->creates, most);
    quota_leave(caller->app);
    if (taken)
        return 0;
    err_set(err, ERR_TOO_MANY, "quota of creates: %" PRIu64 " per second are allowed", most);
    return quota_refuse(caller, &caller->app->quota->refused.creates, "creates-per-s",
                        "quota.creates", RATE_RETRY_S, err);
}

int quota_create(struct caller *caller, const struct quota_want *want, struct err *err)
{
    struct quota_host host;

    host_now(caller->app, &want->memory_bytes, &host);
    if (quota_host_check(&host, err) < 0)
        return quota_refuse(caller, &caller->app->quota->refused.host, "host", "quota.host",
                            QUOTA_RETRY_S, err);
    return quota_store(caller, err) < 0 || check_sums(caller, want, err) < 0 ||
                   check_rate(caller, err) < 0
               ? -1
               : 0;
}

int quota_used(struct app *app, const char *tenant, struct quota_used *ret, struct err *err)
{
    struct store_usage used;

    if (store_usage(app->store, tenant, &used, err) < 0)
        return -1;
    *ret =
        (struct quota_used){ used.sandboxes, used.cpu_milli, used.memory_bytes, used.disk_bytes };
    return 0;
}
