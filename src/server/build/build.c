/* Builds that are under way or ended not long ago, and the threads that run them.
 *
 * A job is in the list from its submission on, and stays there for its log when it has ended, until JOBS_KEPT others have. What
 * must outlast the server is in its record. `lock` guards the list and what is below "shared" in a job; a record is
 * its own thread's while the job runs, and readers read it from the store. */
#include "server/build/build_own.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "server/guard/audit.h"
#include "server/life/deadline.h"
#include "server/life/sleep.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define JOBS_KEPT    100
#define TENANT_KEPT  25          /* of those, of one tenant */
#define LOGS_KEPT    (16u << 20) /* bytes of their logs */
#define LEFT_OUT     "the log is full: what follows is left out"
#define LINE_MAX_LEN 4096
#define SETTINGS_MAX (4u << 20) /* bytes of what a template says of itself */

struct line {
    uint64_t time_ms;
    const char *level;
    char step[16];
    char *text;
};

struct job {
    struct job *next;
    struct app *app;
    struct caller caller;
    char request[OPS_BUILD_ID_MAX], peer[64];
    struct build_spec *spec;
    struct store_build record;
    int wake[2]; /* the caller's end, and ours: closed, the caller is gone */
    atomic_bool cancelled;
    /* shared */
    bool running, ended;
    struct line *lines;
    size_t count, room, bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job *jobs; /* newest first */
static struct app *own_app;
static pthread_t threads[BUILD_AT_ONCE];
static size_t thread_count;
static atomic_bool stopping;

static const char *const state_names[] = { "new",   "waiting", "building",
                                           "ready", "failed",  "cancelled" };

struct app *job_app(struct job *job)
{
    return job->app;
}
struct caller *job_caller(struct job *job)
{
    return &job->caller;
}
const struct build_spec *job_spec(struct job *job)
{
    return job->spec;
}
struct store_build *job_record(struct job *job)
{
    return &job->record;
}
bool job_cancelled(struct job *job)
{
    return atomic_load(&job->cancelled);
}

/* ---- logs ---- */

static void add_line(struct job *job, const char *level, const char *step, const char *text,
                     size_t len)
{
    if (job->count == job->room) {
        size_t room = job->room ? 2 * job->room : 64;
        struct line *more = realloc(job->lines, room * sizeof *more);

        if (!more)
            return;
        job->lines = more;
        job->room = room;
    }
    job->lines[job->count] = (struct line){ .time_ms = store_now_ms(), .level = level };
    (void) snprintf(job->lines[job->count].step, sizeof job->lines->step, "%s", step);
    job->lines[job->count].text = strndup(text, len);
    if (job->lines[job->count].text)
        job->count++;
}

void job_log(struct job *job, const char *level, const char *step, const char *text, size_t len)
{
    const size_t cost = len + sizeof(struct line);
    bool must = strcmp(level, "info") != 0; /* what failed is said in any case */

    if (len > LINE_MAX_LEN)
        len = LINE_MAX_LEN;
    (void) pthread_mutex_lock(&lock);
    if (job->bytes <= BUILD_LOG_MAX && job->bytes + cost > BUILD_LOG_MAX)
        add_line(job, "warn", step, LEFT_OUT, strlen(LEFT_OUT));
    if (job->bytes + cost <= BUILD_LOG_MAX || (must && job->bytes < 2 * BUILD_LOG_MAX))
        add_line(job, level, step, text, len);
    job->bytes += cost;
    (void) pthread_cond_broadcast(&changed);
    (void) pthread_mutex_unlock(&lock);
}

void job_say(struct job *job, const char *level, const char *step, const char *fmt, ...)
{
    char text[LINE_MAX_LEN];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    job_log(job, level, step, text, n < 0 ? 0 : strlen(text));
}

int job_save(struct job *job, struct err *err)
{
    return store_build_set(job->app->store, &job->record, err);
}

bool build_stopping(void)
{
    return stopping;
}

/* ---- the end of one ---- */

/* What it was built on so far is let go, if nothing else has it. */
static void fail(struct job *job, const struct err *why)
{
    struct store_build *record = &job->record;
    char snapshot[ID_LEN + 1];

    memcpy(snapshot, record->snapshot, sizeof snapshot);
    record->snapshot[0] = '\0';
    record->state = job_cancelled(job) ? STORE_BUILD_CANCELLED : STORE_BUILD_FAILED;
    record->ended_ms = store_now_ms();
    (void) snprintf(record->reason, sizeof record->reason, "%s",
                    job_cancelled(job) ? "the build was cancelled" : why->msg);
    job_say(job, "error", record->step, "%s", record->reason);
    job_save_end(job);
    ops_template_drop(job->app, snapshot);
}

static int succeed(struct job *job, json_t *said, struct err *err)
{
    auto_free char *text = said ? json_dumps(said, JSON_COMPACT) : NULL;

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for the settings of a template");
    if (strlen(text) > SETTINGS_MAX) /* labels and ports are added to those of FROM */
        return err_set(err, ERR_TOO_BIG, "the settings of the template are longer than %u bytes",
                       SETTINGS_MAX);
    job->record.state = STORE_BUILD_READY;
    job->record.ended_ms = store_now_ms();
    job->record.step[0] = '\0';
    return store_build_ready(job->app->store, &job->record, text, err);
}

static void run_one(struct job *job)
{
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t begun = io_now_ms();
    json_t *said = NULL;
    struct err err = { .kind = ERR_NONE };
    int r;

    job->record.state = STORE_BUILD_RUNNING;
    r = job_save(job, &err);
    if (r == 0)
        r = job_run(job, &said, &err);
    if (job->record.sandbox[0] && !stopping)
        job_remove_sandbox(job);
    if (r == 0)
        r = succeed(job, said, &err);
    json_decref(said);
    if (r < 0 && stopping)
        return; /* the next start finds it */
    if (r < 0)
        fail(job, &err);
    else
        job_say(job, "info", "", "the template is ready, after %.1f s",
                (double) (io_now_ms() - begun) / 1000);
    facts.detail = job->record.id;
    facts.duration_ms = (int64_t) (io_now_ms() - begun);
    facts.refusal = r < 0 ? &err : NULL;
    audit_note(&job->caller, "template.build", "", &facts);
    build_forget_old(job->app, job->record.template);
    ops_pull_settle(job->app, job->caller.tenant);
}

/* ---- threads ---- */

static size_t tenant_jobs(const char *tenant, bool running)
{
    size_t n = 0;

    for (const struct job *j = jobs; j; j = j->next)
        n += !j->ended && (!running || j->running) && strcmp(j->caller.tenant, tenant) == 0;
    return n;
}

/* The one that waits longest and may run. */
static struct job *next_job(void)
{
    struct job *found = NULL;

    for (struct job *j = jobs; j; j = j->next)
        if (!j->running && !j->ended && tenant_jobs(j->caller.tenant, true) < BUILD_TENANT_MOST)
            found = j;
    return found;
}

static void job_free(struct job *job)
{
    for (size_t i = 0; i < job->count; i++)
        free(job->lines[i].text);
    free(job->lines);
    spec_free(job->spec);
    if (job->wake[0] >= 0)
        (void) close(job->wake[0]);
    if (job->wake[1] >= 0)
        (void) close(job->wake[1]);
    free(job);
}

static size_t log_bytes(const struct job *job)
{
    return job->bytes < BUILD_LOG_MAX ? job->bytes : BUILD_LOG_MAX;
}

/* Whether those of the same tenant that ended after it leave no room for it. */
static bool is_excess(const struct job *job)
{
    size_t count = 0, bytes = log_bytes(job);

    for (const struct job *j = jobs; j != job; j = j->next)
        if (j->ended && strcmp(j->caller.tenant, job->caller.tenant) == 0) {
            count++;
            bytes += log_bytes(j);
        }
    return count >= TENANT_KEPT || (count > 0 && bytes > LOGS_KEPT);
}

/* With the lock: the oldest that ended, beyond those that are kept. */
static void drop_ended(void)
{
    size_t kept = 0;

    for (struct job **at = &jobs; *at;) {
        struct job *job = *at;

        if (job->ended && (kept++ >= JOBS_KEPT || is_excess(job))) {
            *at = job->next;
            job_free(job);
        } else {
            at = &job->next;
        }
    }
}

static void *work(void *arg)
{
    (void) arg;
    (void) pthread_mutex_lock(&lock);
    while (!stopping) {
        struct job *job = next_job();

        if (!job) {
            (void) pthread_cond_wait(&changed, &lock);
            continue;
        }
        job->running = true;
        (void) pthread_mutex_unlock(&lock);
        run_one(job);
        (void) pthread_mutex_lock(&lock);
        job->running = false;
        job->ended = true;
        spec_free(job->spec);
        job->spec = NULL;
        drop_ended();
        (void) pthread_cond_broadcast(&changed);
    }
    (void) pthread_mutex_unlock(&lock);
    return NULL;
}

/* With the lock: one thread more, if all have something to do. */
static void more_threads(void)
{
    size_t busy = 0;

    for (const struct job *j = jobs; j; j = j->next)
        busy += !j->ended;
    if (thread_count < BUILD_AT_ONCE && busy > thread_count &&
        pthread_create(&threads[thread_count], NULL, work, NULL) == 0)
        thread_count++;
}

/* ---- start and stop ---- */

int build_start(struct app *app, struct err *err)
{
    (void) err;
    own_app = app;
    build_settle(app); /* before the first request: no build of this server is among them */
    return 0;
}

void build_stop(void)
{
    (void) pthread_mutex_lock(&lock);
    stopping = true;
    for (struct job *j = jobs; j; j = j->next)
        if (!j->ended)
            (void) shutdown(j->wake[1], SHUT_RDWR);
    (void) pthread_cond_broadcast(&changed);
    (void) pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < thread_count; i++)
        (void) pthread_join(threads[i], NULL);
}

/* ---- for surfaces ---- */

static int new_uuid(char out[OPS_BUILD_ID_MAX], struct err *err)
{
    unsigned char b[16];

    if (getrandom(b, sizeof b, 0) != sizeof b)
        return err_set(err, ERR_INTERNAL, "no random numbers");
    b[6] = (unsigned char) ((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char) ((b[8] & 0x3f) | 0x80);
    (void) snprintf(out, OPS_BUILD_ID_MAX,
                    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                    b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                    b[13], b[14], b[15]);
    return 0;
}

static int tags_text(struct ops *ops, const struct build_want *want, char *out, size_t size,
                     struct err *err)
{
    json_t *tags = json_pack("[s]", want->ref.tag);
    auto_free char *text = NULL;
    int r = 0;

    for (size_t i = 0; i < want->tag_count; i++) {
        if (!name_ok(want->tags[i]))
            r = -1;
        else if (strcmp(want->tags[i], want->ref.tag) != 0)
            (void) json_array_append_new(tags, json_string(want->tags[i]));
    }
    text = json_dumps(tags, JSON_COMPACT);
    json_decref(tags);
    if (r == 0 && text && strlen(text) < size) {
        (void) strcpy(out, text);
        return 0;
    }
    err_set(err, ERR_INVALID, "tags: each 1 to 63 of a-z, 0-9, '-', '_', '.', and not too many");
    return caller_blame(ops->caller, "tags", NULL, NULL);
}

static void view(const struct store_build *b, struct build_view *ret)
{
    *ret = (struct build_view){ .state = state_names[b->state],
                                .ended = b->ended_ms > 0,
                                .created_ms = b->created_ms,
                                .ended_ms = b->ended_ms };
    memcpy(ret->id, b->id, sizeof ret->id);
    memcpy(ret->template, b->template, sizeof ret->template);
    memcpy(ret->reason, b->reason, sizeof ret->reason);
    memcpy(ret->step, b->step, sizeof ret->step);
    memcpy(ret->tags, b->tags, sizeof ret->tags);
}

int build_prepare(struct ops *ops, const struct build_want *want, struct build_view *ret,
                  struct err *err)
{
    struct store_build record = { .state = STORE_BUILD_NEW, .created_ms = store_now_ms() };
    struct ops_template template;

    if (strcmp(want->ref.name, BUILD_SCRATCH) == 0) {
        err_set(err, ERR_INVALID, "name: '" BUILD_SCRATCH "' is what FROM calls nothing");
        return caller_blame(ops->caller, "name", NULL, NULL);
    }
    record.cpu_milli = want->cpu_milli;
    record.memory_bytes = want->memory_bytes;
    record.disk_bytes = want->disk_bytes;
    (void) snprintf(record.tenant, sizeof record.tenant, "%s", ops->caller->tenant);
    if (tags_text(ops, want, record.tags, sizeof record.tags, err) < 0 ||
        new_uuid(record.id, err) < 0 || ops_template_make(ops, want->ref.name, &template, err) < 0)
        return -1;
    memcpy(record.template, template.id, sizeof record.template);
    if (store_build_add(ops->app->store, &record, err) < 0)
        return -1;
    view(&record, ret);
    memcpy(ret->name, template.name, sizeof ret->name);
    return 0;
}

static struct job *job_new(struct ops *ops, const struct store_build *record,
                           struct build_spec *spec, struct err *err)
{
    struct job *job = calloc(1, sizeof *job);

    if (!job || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, job->wake) < 0) {
        free(job);
        err_set(err, ERR_NO_MEMORY, "no room for a build");
        return NULL;
    }
    job->app = ops->app;
    job->spec = spec;
    job->record = *record;
    job->caller = *ops->caller;
    job->caller.used[0] = '\0';
    job->caller.fd = job->wake[0];
    memcpy(job->request, record->id, sizeof job->request);
    (void) snprintf(job->peer, sizeof job->peer, "%s", ops->caller->peer ? ops->caller->peer : "");
    job->caller.request = job->request;
    job->caller.peer = job->peer;
    return job;
}

/* Into the queue, if the tenant may have one more. */
static int enqueue(struct ops *ops, struct job *job, struct err *err)
{
    int r = 0;

    (void) pthread_mutex_lock(&lock);
    for (const struct job *j = jobs; j && r == 0; j = j->next)
        if (strcmp(j->record.id, job->record.id) == 0)
            r = err_set(err, ERR_STATE, "build is not in waiting state");
    if (r == 0 && tenant_jobs(ops->caller->tenant, false) >= BUILD_TENANT_QUEUE) {
        r = err_set(err, ERR_TOO_MANY, "too many builds at once: a tenant may have %d",
                    BUILD_TENANT_QUEUE);
        (void) caller_blame(ops->caller, NULL, "builds", "quota");
    }
    if (r == 0) {
        job->record.state = STORE_BUILD_WAITING;
        r = job_save(job, err);
    }
    if (r == 0) {
        job->next = jobs;
        jobs = job;
        more_threads();
        (void) pthread_cond_broadcast(&changed);
    }
    (void) pthread_mutex_unlock(&lock);
    return r;
}

int build_submit(struct ops *ops, const char *build, json_t *body, bool e2b, struct err *err)
{
    struct store_build record;
    struct build_spec *spec;
    struct job *job;

    if (store_build_get(ops->app->store, ops->caller->tenant, build, &record, err) < 0)
        return -1;
    if (record.state != STORE_BUILD_NEW)
        return err_set(err, ERR_STATE, "build is not in waiting state");
    if (spec_read(ops->caller, body, e2b, &spec, err) < 0)
        return -1;
    job = job_new(ops, &record, spec, err);
    if (!job) {
        spec_free(spec);
        return -1;
    }
    if (enqueue(ops, job, err) == 0)
        return 0;
    job_free(job);
    return -1;
}

int build_get(struct ops *ops, const char *build, struct build_view *ret, struct err *err)
{
    struct ops_template template;
    struct store_build record;

    if (store_build_get(ops->app->store, ops->caller->tenant, build, &record, err) < 0 ||
        ops_template_get(ops, record.template, &template, err) < 0)
        return -1;
    view(&record, ret);
    memcpy(ret->name, template.name, sizeof ret->name);
    return 0;
}

struct listing {
    build_each *each;
    void *arg;
};

static int list_one(void *arg, const struct store_build *record, struct err *err)
{
    struct build_view item;
    struct listing *l = arg;

    view(record, &item);
    return l->each(l->arg, &item, err);
}

int build_list(struct ops *ops, const char *template, size_t limit, build_each *each, void *arg,
               struct err *err)
{
    struct listing l = { each, arg };

    return store_build_list(ops->app->store, ops->caller->tenant, template, limit, list_one, &l,
                            err);
}

/* With the lock. */
static struct job *find_job(const char *tenant, const char *build)
{
    for (struct job *j = jobs; j; j = j->next)
        if (strcmp(j->record.id, build) == 0 && strcmp(j->caller.tenant, tenant) == 0)
            return j;
    return NULL;
}

int build_cancel(struct ops *ops, const char *build, struct err *err)
{
    struct store_build record;
    struct job *job;

    if (store_build_get(ops->app->store, ops->caller->tenant, build, &record, err) < 0)
        return -1;
    (void) pthread_mutex_lock(&lock);
    job = find_job(ops->caller->tenant, build);
    if (job && !job->ended) {
        atomic_store(&job->cancelled, true);
        (void) shutdown(job->wake[1], SHUT_RDWR);
    }
    (void) pthread_mutex_unlock(&lock);
    if (!job && record.state == STORE_BUILD_NEW) {
        record.state = STORE_BUILD_CANCELLED;
        record.ended_ms = store_now_ms();
        return store_build_set(ops->app->store, &record, err);
    }
    return 0;
}

static void wait_for_line(const char *tenant, const char *build, size_t from, unsigned wait_ms)
{
    struct timespec until;
    struct job *job;

    (void) clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += wait_ms / 1000;
    while ((job = find_job(tenant, build)) && !job->ended && job->count <= from && !stopping)
        if (pthread_cond_timedwait(&changed, &lock, &until) != 0)
            break;
}

int build_log(struct ops *ops, const char *build, size_t from, size_t most, unsigned wait_ms,
              build_line_each *each, void *arg, struct err *err)
{
    struct store_build record;
    struct job *job;
    int count = 0;

    if (store_build_get(ops->app->store, ops->caller->tenant, build, &record, err) < 0)
        return -1;
    (void) pthread_mutex_lock(&lock);
    if (wait_ms > 0)
        wait_for_line(ops->caller->tenant, build, from, wait_ms);
    job = find_job(ops->caller->tenant, build);
    for (size_t i = from; job && i < job->count && (size_t) count < most; i++, count++) {
        struct build_line line = { .time_ms = job->lines[i].time_ms,
                                   .level = job->lines[i].level,
                                   .text = job->lines[i].text };

        memcpy(line.step, job->lines[i].step, sizeof line.step);
        if (each(arg, &line, err) < 0) {
            count = -1;
            break;
        }
    }
    (void) pthread_mutex_unlock(&lock);
    return count;
}
