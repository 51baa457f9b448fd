/* Dials for the gateway, which must not wait: each has a thread of its own, in straight-line code. What comes out of a
 * sandbox may be late or never come, so that there are limits for each sandbox that is dialed, each tenant, and all;
 * who is above them waits in the lane of its sandbox, as long as the gateway does. */
#include "server/life/private_dial.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/exec.h"
#include "client/sandbox.h"
#include "server/app/app.h"
#include "server/gateway/gateway.h"
#include "server/guard/audit.h"
#include "server/life/sleep_own.h"
#include "server/life/use.h"
#include "server/net/network.h"
#include "server/net/preview_rules.h"
#include "server/net/private.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define PER_SANDBOX    8
#define PER_TENANT     64
#define THREADS        512
#define WAIT_MS        30000 /* in a lane */
#define PATIENCE_MS    10000 /* with a sandbox */
#define WAKE_LEAST_MS  300000
#define SAVING_LOOK_MS 20
#define STACK_SIZE     (512 * 1024)
#define JOBS           4096 /* of all; a tenant has at most as many as are free */

struct job {
    struct egress_dial dial;
    uint64_t until_ms;
    struct job *next;
};

struct lane { /* of a sandbox that is dialed; there while it has something to do */
    char tenant[EGRESS_ID_MAX], sandbox[EGRESS_ID_MAX];
    struct job *first, **last;
    unsigned running, jobs; /* jobs: those that run and those that wait */
    struct lane *next;
};

static struct {
    pthread_mutex_t lock;
    struct lane *lanes;
    unsigned threads, jobs;
} dials = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- one dial ---- */

/* As a request to one of its ports would, or not at all. Other callers that want it awake wait for the same resume. */
static int wake(struct app *app, const struct store_sandbox *record, struct err *err)
{
    struct preview_rules rules = { .auto_resume = false };
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t begun = io_now_ms();
    bool woken;

    if (preview_rules_load(app, record->id, &rules, err) < 0)
        return -1;
    if (!rules.auto_resume && !record->auto_resume && record->sleep.by != STORE_BY_IDLENESS)
        return err_set(err, ERR_STATE, "the other sandbox is paused");
    if (sleep_wake(app, record->id, 0, WAKE_LEAST_MS, &woken, err) < 0)
        return -1;
    if (!woken)
        return 0;
    facts.detail = "by a connection of its private network";
    facts.duration_ms = (int64_t) (io_now_ms() - begun);
    audit_system(app, record->tenant, "sandbox.resume", record->id, &facts);
    return 0;
}

/* What the keeper has of it; 1: nothing. One that is being saved is neither awake nor asleep: what it will be is waited
 * for. */
static int look(struct app *app, const char *sandbox, struct keeper_sandbox *ret, struct err *err)
{
    uint64_t until = io_now_ms() + PATIENCE_MS;
    struct link link;
    int r;

    if (app_link_take(app, &link, err) < 0)
        return -1;
    for (;;) {
        r = sandbox_get(&link, sandbox, ret, err);
        if (r < 0 || ret->life != LIFE_PAUSING || io_now_ms() >= until)
            break;
        (void) poll(NULL, 0, SAVING_LOOK_MS);
    }
    if (r == 0 && ret->life == LIFE_PAUSING)
        r = err_set(err, ERR_STATE, "the other sandbox is paused");
    sleep_close(app, &link, r, err);
    return r < 0 && err->kind == ERR_NO_SANDBOX ? 1 : r;
}

/* The record after the keeper: a sandbox that is on disk by now has a record that says so. */
static int awake(struct app *app, const struct egress_dial *ask, struct err *err)
{
    struct keeper_sandbox kept;
    struct store_sandbox record;
    struct err absent;
    int r = look(app, ask->to, &kept, &absent);

    if (r < 0) {
        *err = absent;
        return -1;
    }
    if (store_sandbox_get(app->store, ask->tenant, ask->to, &record, err) < 0)
        return -1;
    if (r == 0 && kept.life == LIFE_RUNNING)
        return 0;
    if (record.sleep.tier != STORE_AWAKE || (r == 0 && kept.life == LIFE_PAUSED))
        return wake(app, &record, err);
    if (r == 0)
        return 0; /* being created or killed: its agent says so */
    *err = absent;
    return -1;
}

static int dial(struct app *app, const struct egress_dial *ask, int *ret_fd, struct err *err)
{
    struct link link;
    int patience, r;

    if (awake(app, ask, err) < 0 || app_link_take(app, &link, err) < 0)
        return -1;
    patience = link.patience_ms;
    link.patience_ms = PATIENCE_MS;
    r = exec_dial(&link, ask->to, ask->port, ret_fd, err);
    link.patience_ms = patience;
    sleep_close(app, &link, r, err);
    return r;
}

/* In use meanwhile: it does not fall asleep between being found awake and being dialed. */
static int reach(struct app *app, const struct egress_dial *ask, int *ret_fd, struct err *err)
{
    int r;

    use_begin(ask->to);
    r = dial(app, ask, ret_fd, err);
    use_end(ask->to);
    return r;
}

/* What a program inside is told is what it can know: details stay in the log. */
static void explain(const struct egress_dial *ask, struct err *err)
{
    static const struct {
        enum err_kind kind;
        const char *text;
    } rows[] = {
        { ERR_NO_PORT, "nothing listens there" },
        { ERR_TIMEOUT, "the other sandbox does not answer" },
        { ERR_NO_SANDBOX, "the other sandbox is not there" },
        { ERR_STATE, "the other sandbox is paused" },
        { ERR_TOO_MANY, "the other sandbox is paused, and a quota keeps it from being resumed" },
        { ERR_VOLUME_BUSY, "the other sandbox is paused, and its volume in use" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (err->kind == rows[i].kind) {
            (void) snprintf(err->msg, sizeof err->msg, "%s", rows[i].text);
            return;
        }
    log_line(LOG_DEBUG, "sandbox=%s port=%u not reached from=%s: %s", ask->to, ask->port, ask->from,
             err->msg);
    (void) snprintf(err->msg, sizeof err->msg, "the other sandbox cannot be reached");
}

static void run(struct app *app, const struct job *job)
{
    struct err err = { .kind = ERR_NONE };
    int fd = -1;

    if (io_now_ms() >= job->until_ms)
        return; /* no caller waits any more */
    if (reach(app, &job->dial, &fd, &err) < 0)
        explain(&job->dial, &err);
    gateway_dialed(network_gateway(app), &job->dial, fd, &err);
}

/* ---- lanes ---- */

static unsigned tenant_running(const char *tenant)
{
    unsigned sum = 0;

    for (const struct lane *lane = dials.lanes; lane; lane = lane->next)
        if (strcmp(lane->tenant, tenant) == 0)
            sum += lane->running;
    return sum;
}

/* So that one tenant, or a gateway that was taken over, leaves room for the others. */
static bool has_room(const char *tenant)
{
    unsigned sum = 0;

    for (const struct lane *lane = dials.lanes; lane; lane = lane->next)
        if (strcmp(lane->tenant, tenant) == 0)
            sum += lane->jobs;
    return sum < JOBS - dials.jobs;
}

static bool may_run(const struct lane *lane)
{
    return lane->first && lane->running < PER_SANDBOX && tenant_running(lane->tenant) < PER_TENANT;
}

static struct job *take(struct lane *lane)
{
    struct job *job = lane->first;

    lane->first = job->next;
    if (!lane->first)
        lane->last = &lane->first;
    lane->running++;
    return job;
}

static void leave(struct lane *lane)
{
    struct lane **at = &dials.lanes;

    if (--lane->running > 0 || lane->first)
        return;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    free(lane);
}

static struct lane *next_lane(void)
{
    for (struct lane *lane = dials.lanes; lane; lane = lane->next)
        if (may_run(lane))
            return lane;
    return NULL;
}

static void *work(void *arg)
{
    struct app *app = arg;
    struct lane *lane;

    (void) pthread_mutex_lock(&dials.lock);
    while ((lane = next_lane())) {
        struct job *job = take(lane);

        (void) pthread_mutex_unlock(&dials.lock);
        run(app, job);
        free(job);
        (void) pthread_mutex_lock(&dials.lock);
        dials.jobs--;
        lane->jobs--;
        leave(lane);
    }
    dials.threads--;
    (void) pthread_mutex_unlock(&dials.lock);
    return NULL;
}

static struct lane *lane_of(const struct egress_dial *dial)
{
    struct lane *lane = dials.lanes;

    while (lane && strcmp(lane->sandbox, dial->to) != 0)
        lane = lane->next;
    if (lane || !(lane = calloc(1, sizeof *lane)))
        return lane;
    (void) strcpy(lane->tenant, dial->tenant);
    (void) strcpy(lane->sandbox, dial->to);
    lane->last = &lane->first;
    lane->next = dials.lanes;
    dials.lanes = lane;
    return lane;
}

/* One more at work, if a caller waits. Without a thread the job waits for one of those that are at work; the
 * gateway gives up on those for whom there is none. */
static void start_thread(struct app *app)
{
    pthread_attr_t attr;
    pthread_t thread;

    (void) pthread_attr_init(&attr);
    (void) pthread_attr_setstacksize(&attr, STACK_SIZE);
    (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, work, app) == 0)
        dials.threads++;
    (void) pthread_attr_destroy(&attr);
}

void private_dial(void *context, const struct egress_dial *dial)
{
    static const struct err full = { ERR_UNAVAILABLE,
                                     "too many connections to other sandboxes wait" };
    struct job *job = calloc(1, sizeof *job);
    struct lane *lane;

    if (!job)
        return;
    *job = (struct job){ .dial = *dial, .until_ms = io_now_ms() + WAIT_MS };
    (void) pthread_mutex_lock(&dials.lock);
    lane = has_room(dial->tenant) ? lane_of(dial) : NULL;
    if (lane) {
        dials.jobs++;
        lane->jobs++;
        *lane->last = take_ptr(&job);
        lane->last = &(*lane->last)->next;
        if (dials.threads < THREADS && may_run(lane))
            start_thread(context);
    }
    (void) pthread_mutex_unlock(&dials.lock);
    if (job) /* at once: who is refused need not wait */
        gateway_dialed(network_gateway(context), dial, -1, &full);
    free(job);
}
