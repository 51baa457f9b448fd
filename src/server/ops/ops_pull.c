/* A row of the store is there before the template, and goes after it: what a server that was killed leaves is found by its row. `held` are
 * images that a build has found or made, and that nothing may stand on yet. */
#include "server/ops/ops_pull.h"

#include "base/base64.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/local_socket.h"
#include "server/guard/audit.h"
#include "server/guard/quota.h"
#include "server/ops/ops_own.h"
#include "store/pulled.h"
#include "wire/pull.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#define HELD_MAX   128
#define SILENCE_MS 30000
#define REMOVE_MS  60000
#define FORGET_MS  5000    /* while a build waits for it */
#define WORK_MS    7200000 /* for all that is no download: more than root's process takes */
#define LOOK_MS    2000    /* between two looks whether the tenant is there */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char held[HELD_MAX][OPS_PULLED_MAX];

/* With the lock. */
static int hold(const char *name, struct err *err)
{
    size_t i = 0;

    while (i < HELD_MAX && held[i][0])
        i++;
    if (i == HELD_MAX)
        return err_set(err, ERR_TOO_MANY, "too many images are pulled at once");
    (void) snprintf(held[i], sizeof held[i], "%s", name);
    return 0;
}

void ops_pull_release(struct app *app, const char *name)
{
    (void) app;
    (void) pthread_mutex_lock(&lock);
    for (size_t i = 0; i < HELD_MAX; i++)
        if (strcmp(held[i], name) == 0) {
            held[i][0] = '\0';
            break;
        }
    (void) pthread_mutex_unlock(&lock);
}

/* With the lock. */
static bool is_held(const char *name)
{
    for (size_t i = 0; i < HELD_MAX; i++)
        if (strcmp(held[i], name) == 0)
            return true;
    return false;
}

/* ---- the process that makes them ---- */

static int order(struct app *app, const struct pull_order *order, int fd, int *ret, struct err *err)
{
    auto_close int conn = -1;
    struct err why;

    if (local_connect(app_config(app)->state, PULL_SOCKET, SOCK_SEQPACKET, &conn, &why) < 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "this server cannot pull or import images: it was not started by 'cove up'");
    if (io_send_fds(conn, order, sizeof *order, &fd, fd >= 0) != (ssize_t) sizeof *order)
        return err_sys(err, errno, "order an image");
    *ret = take_fd(&conn);
    return 0;
}

/* The next report. ERR_STATE: the caller went away. */
static int report(int conn, int caller_fd, int ms, struct pull_report *ret, struct err *err)
{
    struct pollfd fds[] = { { .fd = conn, .events = POLLIN },
                            { .fd = caller_fd, .events = POLLRDHUP } };
    size_t none = 0;
    ssize_t n;

    while ((n = poll(fds, 2, ms)) < 0 && errno == EINTR)
        ;
    if (n == 0)
        return err_set(err, ERR_TIMEOUT, "the process that pulls images does not answer");
    if (fds[1].revents)
        return err_set(err, ERR_STATE, "the caller is gone");
    n = io_recv_fds(conn, ret, sizeof *ret, NULL, 0, &none);
    if (n <= 0)
        return err_set(err, ERR_UNAVAILABLE, "the process that pulls images ended");
    return pull_report_check(ret, (size_t) n, err);
}

/* Not longer than the tenant is there. */
static int await(struct ops *ops, const struct ops_pull *pull, int conn, struct pull_report *ret,
                 struct err *err)
{
    uint64_t until = io_now_ms() + app_config(ops->app)->registry_timeout_ms + WORK_MS;
    struct store_tenant tenant;

    for (;;) {
        int r = report(conn, ops->caller->fd, LOOK_MS, ret, err);

        if (r < 0 && err->kind == ERR_TIMEOUT && io_now_ms() < until &&
            store_tenant_get(ops->app->store, ops->caller->tenant, &tenant, err) == 0)
            continue;
        if (r < 0)
            return -1;
        switch (ret->word) {
        case PULL_STEP:
        case PULL_NOTE:
            pull->say(pull->arg, ret->text);
            break;
        case PULL_FAILED:
            return err_set(err, (enum err_kind) ret->kind, "%s", ret->text);
        default:
            return 0;
        }
    }
}

static int remove_template(struct app *app, const char *name, int ms, struct err *err)
{
    auto_free struct pull_order *o = calloc(1, sizeof *o);
    auto_close int conn = -1;
    struct pull_report said;

    if (!o)
        return err_set(err, ERR_NO_MEMORY, "no memory for an order");
    o->magic = PULL_MAGIC;
    o->op = PULL_REMOVE;
    (void) snprintf(o->name, sizeof o->name, "%s", name);
    if (order(app, o, -1, &conn, err) < 0)
        return -1;
    do
        if (report(conn, -1, ms, &said, err) < 0)
            return -1;
    while (said.word == PULL_STEP || said.word == PULL_NOTE);
    return said.word == PULL_DONE ? 0 : err_set(err, (enum err_kind) said.kind, "%s", said.text);
}

/* ---- records ---- */

struct found {
    const char *digest;
    char name[OPS_PULLED_MAX];
};

static int keep_known(void *arg, const struct store_pulled *pulled, struct err *err)
{
    struct pull_order *o = arg;
    size_t i = 0;

    (void) err;
    while (i < PULL_KNOWN_MAX && o->known[i][0])
        i++;
    if (pulled->bytes > 0 && pulled->digest[0] && i < PULL_KNOWN_MAX)
        (void) snprintf(o->known[i], sizeof o->known[i], "%s", pulled->digest);
    return 0;
}

static int find_digest(void *arg, const struct store_pulled *pulled, struct err *err)
{
    struct found *found = arg;

    (void) err;
    if (!found->name[0] && pulled->bytes > 0 && strcmp(pulled->digest, found->digest) == 0)
        (void) snprintf(found->name, sizeof found->name, "%s", pulled->name);
    return 0;
}

/* One that the tenant has already: nothing may remove it between here and the sandbox that is made of it. */
static int take_known(struct ops *ops, const char *digest, char ret[OPS_PULLED_MAX],
                      struct err *err)
{
    struct found found = { .digest = digest };
    int r;

    (void) pthread_mutex_lock(&lock);
    r = store_pulled_list(ops->app->store, ops->caller->tenant, find_digest, &found, err);
    if (r == 0 && !found.name[0])
        r = err_set(err, ERR_STATE, "the image was removed meanwhile: try again");
    if (r == 0)
        r = hold(found.name, err);
    (void) pthread_mutex_unlock(&lock);
    if (r == 0)
        memcpy(ret, found.name, sizeof found.name);
    return r;
}

/* ordered: there may be something of it; a row whose template could not be removed stays, for ops_pull_settle. */
static void forget(struct app *app, const char *name, bool ordered)
{
    struct err err;

    if (ordered && remove_template(app, name, FORGET_MS, &err) < 0) {
        log_line(LOG_WARNING, "template=%s not removed: %s", name, err.msg);
        return;
    }
    if (store_pulled_remove(app->store, name, &err) < 0)
        log_line(LOG_WARNING, "template=%s is still recorded: %s", name, err.msg);
}

/* ---- a pull ---- */

static int credentials(const struct ops_pull *pull, char *out, size_t size, struct err *err)
{
    char text[6000];
    int n;

    if (!pull->username)
        return 0;
    n = snprintf(text, sizeof text, "%s:%s", pull->username, pull->password ? pull->password : "");
    if (n >= (int) sizeof text || BASE64_SIZE((size_t) n) > size)
        return err_set(err, ERR_INVALID, "the credentials for the registry are too long");
    base64_put(out, (const uint8_t *) text, (size_t) n);
    explicit_bzero(text, sizeof text);
    return 0;
}

static int fill_order(struct ops *ops, const struct ops_pull *pull, const char *name,
                      struct pull_order *o, struct err *err)
{
    const struct config *config = app_config(ops->app);
    struct store_tenant tenant;

    *o = (struct pull_order){ .magic = PULL_MAGIC,
                              .op = pull->image ? PULL_IMAGE : PULL_ARCHIVE,
                              .silence_ms = SILENCE_MS,
                              .limit_ms = config->registry_timeout_ms };
    if (store_tenant_get(ops->app->store, ops->caller->tenant, &tenant, err) < 0)
        return -1;
    o->bytes_most = tenant.quotas.stored_bytes;
    (void) snprintf(o->name, sizeof o->name, "%s", name);
    if (!pull->image) {
        (void) snprintf(o->tag, sizeof o->tag, "%s", pull->tag ? pull->tag : "");
        return 0;
    }
    if (!config->registry)
        return err_set(err, ERR_DENIED, "this server does not pull images for tenants");
    if (strlen(pull->image) >= sizeof o->reference)
        return err_set(err, ERR_INVALID, "the name of the image is too long");
    (void) snprintf(o->reference, sizeof o->reference, "%s", pull->image);
    (void) snprintf(o->hosts, sizeof o->hosts, "%s", config->registry_hosts);
    (void) snprintf(o->mirrors, sizeof o->mirrors, "%s", config->registry_mirrors);
    (void) snprintf(o->proxy, sizeof o->proxy, "%s", config->registry_proxy);
    if (!pull->fresh &&
        store_pulled_list(ops->app->store, ops->caller->tenant, keep_known, o, err) < 0)
        return -1;
    return credentials(pull, o->basic, sizeof o->basic, err);
}

/* It is the tenant's from now on, and counts. */
static int settle_one(struct ops *ops, struct store_pulled *row, const struct pull_report *said,
                      struct err *err)
{
    row->bytes = said->bytes > 0 ? said->bytes : 1;
    memcpy(row->digest, said->digest, sizeof row->digest);
    if (quota_upload_more(ops->app, row->tenant, row->bytes, err) < 0)
        return -1;
    if (store_pulled_done(ops->app->store, row, err) < 0) {
        quota_upload_end(ops->app, row->tenant, row->bytes, 0);
        return -1;
    }
    quota_upload_end(ops->app, row->tenant, row->bytes, row->bytes);
    return 0;
}

/* 1: the tenant has it already, said.digest is which. ret_ordered: something may be there of it, also after a failure. */
static int make(struct ops *ops, const struct ops_pull *pull, struct store_pulled *row,
                struct pull_report *said, bool *ret_ordered, struct err *err)
{
    auto_free struct pull_order *o = malloc(sizeof *o);
    auto_close int conn = -1;
    uint64_t most;
    int r;

    if (!o)
        return err_set(err, ERR_NO_MEMORY, "no memory for an order");
    r = fill_order(ops, pull, row->name, o, err);
    if (r == 0)
        r = order(ops->app, o, pull->image ? -1 : pull->archive_fd, &conn, err);
    *ret_ordered = r == 0;
    most = o->bytes_most;
    explicit_bzero(o, sizeof *o);
    if (r == 0)
        r = await(ops, pull, conn, said, err);
    if (r < 0 && most > 0 && err->kind == ERR_TOO_BIG)
        return err_set(err, ERR_TOO_MANY, "quota of stored-bytes: %.180s", said->text);
    if (r == 0 && said->word != PULL_KNOWN)
        r = settle_one(ops, row, said, err);
    return r < 0 ? -1 : said->word == PULL_KNOWN;
}

static int run(struct ops *ops, const struct ops_pull *pull, char ret[OPS_PULLED_MAX],
               struct err *err)
{
    struct store_pulled row = { .created_ms = store_now_ms() };
    struct pull_report said;
    bool ordered = false;
    char id[ID_LEN + 1];
    int r;

    if (quota_store_more(ops->app, ops->caller->tenant, 1, err) < 0 || sandbox_new_id(id, err) < 0)
        return -1;
    (void) snprintf(row.name, sizeof row.name, PULL_PREFIX "%s", id);
    (void) snprintf(row.tenant, sizeof row.tenant, "%s", ops->caller->tenant);
    (void) snprintf(row.source, sizeof row.source, "%s", pull->image ? pull->image : "");
    (void) pthread_mutex_lock(&lock);
    r = hold(row.name, err);
    (void) pthread_mutex_unlock(&lock);
    if (r == 0)
        r = store_pulled_add(ops->app->store, &row, err);
    if (r == 0) {
        r = make(ops, pull, &row, &said, &ordered, err);
        if (r != 0) /* nothing is made of it, or it must not stay */
            forget(ops->app, row.name, ordered);
    }
    if (r != 0)
        ops_pull_release(ops->app, row.name);
    if (r == 1)
        return take_known(ops, said.digest, ret, err);
    memcpy(ret, row.name, sizeof row.name);
    return r;
}

int ops_pull(struct ops *ops, const struct ops_pull *pull, char ret[OPS_PULLED_MAX],
             struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t begun = io_now_ms();
    int r = run(ops, pull, ret, err);

    facts.detail = pull->image ? pull->image : "an archive";
    facts.duration_ms = (int64_t) (io_now_ms() - begun);
    facts.refusal = r < 0 ? err : NULL;
    audit_note(ops->caller, pull->image ? "template.pull" : "template.import", "", &facts);
    return r;
}

/* ---- those that nothing stands on ---- */

struct idle {
    struct app *app;
    char (*names)[OPS_PULLED_MAX];
    size_t count;
};

static int keep_idle(void *arg, const struct store_pulled *pulled, struct err *err)
{
    struct idle *idle = arg;
    void *more;

    if (is_held(pulled->name))
        return 0;
    more = realloc(idle->names, (idle->count + 1) * sizeof *idle->names);
    if (!more)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list of images");
    idle->names = more;
    memcpy(idle->names[idle->count++], pulled->name, sizeof *idle->names);
    return 0;
}

void ops_pull_settle(struct app *app, const char *tenant)
{
    struct idle idle = { .app = app };
    struct err err;

    (void) pthread_mutex_lock(&lock);
    if (store_pulled_idle(app->store, tenant, keep_idle, &idle, &err) < 0)
        log_line(LOG_WARNING, "images of tenants could not be read: %s", err.msg);
    /* With the lock: a build that asks for one of them gets it before, and holds it, or does not find it any more. */
    for (size_t i = 0; i < idle.count; i++) {
        int r = remove_template(app, idle.names[i], REMOVE_MS, &err);

        if (r == 0)
            (void) store_pulled_remove(app->store, idle.names[i], &err);
        else if (err.kind == ERR_TIMEOUT) /* nor would it answer for the next: later */
            break;
    }
    (void) pthread_mutex_unlock(&lock);
    free(idle.names);
}
