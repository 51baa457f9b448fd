/* Forks: one image of the sandbox, and as many sandboxes of it as were asked for.
 *
 * Their records are written first, one after the other, since quotas may end in the middle; then a few threads ask the
 * keeper, which do nothing else. The image belongs to the fork alone and goes at its end; a server that is killed
 * before finds it by its record. */
#include "server/guard/audit.h"
#include "server/guard/quota.h"
#include "server/life/deadline.h"
#include "server/life/sleep_own.h"
#include "server/net/secrets.h"
#include "server/ops/ops_own.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "store/seal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define WORKERS 8

struct forks {
    struct ops *ops;
    struct store_sandbox record; /* of the source; of each fork but for its id */
    const char *image;
    const char *network; /* its rules; "": none */
    const char *hidden;  /* secrets_kept */
    struct ops_uses uses;
    struct ops_fork *list;
    size_t count;
    atomic_size_t next;
};

void ops_env_rename(json_t *env, const char *old_id, const char *new_id)
{
    json_t *item;
    size_t i;

    json_array_foreach(env, i, item)
    {
        const char *text = json_string_value(item), *value = text ? strchr(text, '=') : NULL;

        if (value && strcmp(value + 1, old_id) == 0)
            (void) json_array_set_new(
                env, i, json_sprintf("%.*s%s", (int) (value + 1 - text), text, new_id));
    }
}

/* ---- records ---- */

static int env_for(const char *env, const char *old_id, const char *new_id, char **ret,
                   struct err *err)
{
    json_t *list;

    *ret = NULL;
    if (!env)
        return 0;
    list = json_loads(env, 0, NULL);
    ops_env_rename(list, old_id, new_id);
    *ret = list ? json_dumps(list, JSON_COMPACT) : NULL;
    json_decref(list);
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for the environment");
}

static int add_record(struct forks *f, const char *env, const char *source, struct ops_fork *fork)
{
    auto_free char *own_env = NULL;
    struct store_sandbox record = f->record;

    if (sandbox_new_id(record.id, &fork->err) < 0 ||
        env_for(env, source, record.id, &own_env, &fork->err) < 0)
        return -1;
    record.env = own_env;
    record.network = f->network[0] ? f->network : NULL;
    record.hidden = f->hidden;
    record.volumes = f->uses.list;
    record.volume_count = f->uses.count;
    if (store_sandbox_add(f->ops->app->store, &record, &fork->err) < 0)
        return -1;
    memcpy(fork->sandbox.id, record.id, sizeof record.id);
    return 0;
}

static int add_records(struct forks *f, const char *source, struct err *err)
{
    auto_free char *env = NULL;

    if (store_sandbox_env(f->ops->app->store, source, &env, err) < 0)
        return -1;
    for (size_t i = 0; i < f->count; i++) {
        f->list[i] = (struct ops_fork){ .err = { .kind = ERR_NONE } };
        (void) add_record(f, env, source, &f->list[i]);
    }
    return 0;
}

/* ---- the work, in several threads: nothing of the exchange is touched ---- */

static int load(struct forks *f, const char *id, struct keeper_sandbox *ret, struct err *err)
{
    const struct image_load_spec spec = { .image = f->image, .owner = f->record.tenant, .id = id };
    struct link link;
    int r;

    if (app_link_take(f->ops->app, &link, err) < 0)
        return -1;
    r = image_load(&link, &spec, ret, err);
    if (r == 0 && sleep_network(f->ops->app, id, err) < 0) {
        r = -1;
        (void) sandbox_destroy(&link, id, &(struct err){ 0 });
    }
    sleep_close(f->ops->app, &link, r, err);
    return r;
}

static void *work(void *arg)
{
    struct forks *f = arg;
    struct store_sandbox record = f->record;
    size_t i;

    while ((i = atomic_fetch_add(&f->next, 1)) < f->count) {
        struct ops_fork *fork = &f->list[i];
        struct keeper_sandbox kept;
        struct err ignored;

        if (fork->err.kind != ERR_NONE)
            continue;
        memcpy(record.id, fork->sandbox.id, sizeof record.id);
        if (load(f, record.id, &kept, &fork->err) == 0)
            ops_view(&record, &kept, false, &fork->sandbox);
        else
            (void) store_sandbox_remove(f->ops->app->store, record.id, &ignored);
    }
    return NULL;
}

static void load_all(struct forks *f)
{
    pthread_t threads[WORKERS];
    size_t count = 0, most = f->count < WORKERS ? f->count : WORKERS;

    while (count + 1 < most && pthread_create(&threads[count], NULL, work, f) == 0)
        count++;
    (void) work(f); /* this one, too; and alone where there are no threads to be had */
    while (count > 0)
        (void) pthread_join(threads[--count], NULL);
}

/* ---- all of it ---- */

static void prepare(struct forks *f, uint64_t timeout_ms)
{
    struct store_sandbox *r = &f->record;

    r->name[0] = r->idempotency_key[0] = r->request_hash[0] = '\0';
    r->created_ms = store_now_ms();
    r->timeout_ms = timeout_ms;
    r->deadline_ms = store_deadline(r->created_ms, timeout_ms);
    r->on_timeout &= ~STORE_TIMEOUT_HELD;
    r->sleep = (struct store_sleep){ .tier = STORE_AWAKE };
}

static int audit(struct forks *f, const char *source, uint64_t begun_ms, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    char detail[96];
    size_t made = 0;

    (void) snprintf(detail, sizeof detail, "fork of %s", source);
    facts.detail = detail;
    for (size_t i = 0; i < f->count; i++) {
        if (f->list[i].err.kind != ERR_NONE)
            continue;
        made++;
        audit_note(f->ops->caller, "sandbox.create", f->list[i].sandbox.id, &facts);
    }
    (void) snprintf(detail, sizeof detail, "%zu of %zu forks were made", made, f->count);
    facts.duration_ms = (int64_t) (io_now_ms() - begun_ms);
    return audit_written(f->ops->caller, "sandbox.fork", source, &facts, err);
}

/* Told before anything stands still. */
static int check_volumes(struct forks *f, const char *source, struct err *err)
{
    if (ops_volumes_of(f->ops, source, &f->uses, err) < 0)
        return -1;
    for (size_t i = 0; i < f->uses.count; i++)
        if (!f->uses.list[i].read_only)
            return err_set(err, ERR_VOLUME_BUSY,
                           "sandbox '%s' writes to volume '%s', and only one may: it cannot be "
                           "forked",
                           source, f->uses.list[i].name);
    return 0;
}

static int fork_all(struct forks *f, const char *source, uint64_t timeout_ms, struct err *err)
{
    const struct quota_want want = { .cpu_milli = f->record.cpu_milli,
                                     .memory_bytes = f->record.memory_bytes,
                                     .disk_bytes = f->record.disk_bytes };
    struct store_snapshot snapshot = { .memory = true };
    auto_free char *network = NULL;
    struct keeper_image image;
    char *hidden = NULL;
    struct err ignored;
    int r;

    if (quota_create(f->ops->caller, &want, err) < 0 || check_volumes(f, source, err) < 0 ||
        store_network_get(f->ops->app->store, source, &network, err) < 0 ||
        ops_save_recorded(f->ops, &f->record, &snapshot, STORE_SNAPSHOT_TEMPORARY, false, &image,
                          err) < 0)
        return -1;
    f->image = snapshot.id;
    f->network = network;
    prepare(f, timeout_ms);
    r = ops_check_isolation(f->ops, image.sandbox.isolation, err);
    if (r == 0)
        r = secrets_kept(f->ops->app, snapshot.id, &hidden, err);
    f->hidden = hidden;
    if (r == 0)
        r = add_records(f, source, err);
    seal_wipe(hidden, hidden ? strlen(hidden) : 0);
    if (r == 0)
        load_all(f);
    if (sleep_drop(f->ops->app, snapshot.id, &ignored) < 0)
        log_line(LOG_WARNING, "snapshot=%s of a fork not dropped: %s", snapshot.id, ignored.msg);
    return r;
}

int ops_sandbox_fork(struct ops *ops, const char *sandbox, size_t count, uint64_t timeout_ms,
                     struct ops_fork *ret, struct err *err)
{
    struct forks f = { .ops = ops, .list = ret, .count = count };
    uint64_t begun = io_now_ms();

    if (count < 1 || count > OPS_FORK_MOST) {
        err_set(err, ERR_INVALID, "count: 1 to %d", OPS_FORK_MOST);
        return caller_blame(ops->caller, "count", NULL, NULL);
    }
    if (timeout_ms > 0 && ops_check_timeout(ops, timeout_ms, err) < 0)
        return -1;
    if (ops_wake(ops, sandbox, err) < 0 || ops_find(ops, sandbox, &f.record, err) < 0)
        return -1;
    if (timeout_ms == 0)
        timeout_ms =
            f.record.timeout_ms ? f.record.timeout_ms : app_config(ops->app)->sandbox_timeout_ms;
    if (fork_all(&f, sandbox, timeout_ms, err) < 0) {
        ops_audit(ops, "sandbox.fork", sandbox, err);
        return -1;
    }
    deadline_changed(ops->app);
    return audit(&f, sandbox, begun, err);
}
