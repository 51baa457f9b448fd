/* A create writes its record first, with the id that it will have, and then asks the keeper. So there is never a
 * sandbox without a record, and a create that is repeated with its idempotency key after a crash finds the record and
 * makes what is missing under the same id: one key, one sandbox. A record without a sandbox is cleaned by
 * deadline.c. A removal goes the other way round. */
#include "server/guard/audit.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/life/deadline.h"
#include "server/life/pool.h"
#include "server/life/warm.h"
#include "server/net/network.h"
#include "server/net/network_proxy.h"
#include "server/net/network_rules.h"
#include "server/net/preview_rules.h"
#include "server/net/secrets.h"
#include "server/ops/ops_own.h"
#include "server/ops/ops_template.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "base/sha256.h"

#include <inttypes.h>
#include <poll.h>

#define SETTLE_MS      30000 /* longer than a create takes */
#define SETTLE_LOOK_MS 10

#define SOON_MS 30000 /* deadlines that may come before the next look at all of them */

/* Creates with one idempotency key happen one after the other. */
#define KEY_LOCKS 32
static pthread_mutex_t key_locks[KEY_LOCKS] = { [0 ... KEY_LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER };

/* A lifecycle change is written down before it is answered. */
static int audit_created(struct ops *ops, const struct ops_sandbox *sandbox, uint64_t begun_ms,
                         struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    char detail[64];

    (void) snprintf(detail, sizeof detail, "isolation: %s", sandbox->isolation);
    facts.detail = detail;
    facts.duration_ms = (int64_t) (io_now_ms() - begun_ms);
    return audit_written(ops->caller, "sandbox.create", sandbox->id, &facts, err);
}

_Static_assert(OPS_NEVER_MS == STORE_NEVER_MS, "the store knows what never is");

static bool is_operator(const struct caller *caller)
{
    return caller->scope >= SCOPE_OPERATOR;
}

static int check_create(struct ops *ops, const struct ops_create *create, uint64_t timeout_ms,
                        struct err *err)
{
    const struct config *config = app_config(ops->app);
    struct limits limits;
    uint32_t isolation;

    if (create->name && !name_ok(create->name)) {
        err_set(err, ERR_INVALID, "name: 1 to 63 of a-z, 0-9, '-', '_', '.'");
        return caller_blame(ops->caller, "name", NULL, NULL);
    }
    if (create->name && id_ok(create->name)) {
        err_set(err, ERR_INVALID, "name: '%s' looks like an id", create->name);
        return caller_blame(ops->caller, "name", NULL, NULL);
    }
    if (create->template && !ops_template_ref_ok(create->template)) {
        err_set(err, ERR_NO_TEMPLATE, "there is no template '%.40s'", create->template);
        return caller_blame(ops->caller, "template", NULL, NULL);
    }
    if (create->isolation && isolation_parse(create->isolation, &isolation, err) < 0)
        return caller_blame(ops->caller, "isolation", NULL, NULL);
    if (create->idempotency_key &&
        (!create->idempotency_key[0] || strlen(create->idempotency_key) >= OPS_KEY_MAX)) {
        err_set(err, ERR_INVALID, "idempotency_key: 1 to %d bytes", OPS_KEY_MAX - 1);
        return caller_blame(ops->caller, "idempotency_key", NULL, NULL);
    }
    if (timeout_ms != OPS_NEVER_MS &&
        (timeout_ms < 1000 || timeout_ms > config->sandbox_timeout_most_ms)) {
        const char *field = create->timeout_field ? create->timeout_field : "timeout";

        err_set(err, ERR_INVALID, "%s: 1 to %" PRIu64 " seconds", field,
                config->sandbox_timeout_most_ms / 1000);
        return caller_blame(ops->caller, field, NULL, NULL);
    }
    if (timeout_ms == OPS_NEVER_MS && !is_operator(ops->caller)) {
        err_set(err, ERR_INVALID,
                "timeout: 1 to %" PRIu64 " seconds; 0, no deadline, is for the operator",
                config->sandbox_timeout_most_ms / 1000);
        return caller_blame(ops->caller, "timeout", NULL, NULL);
    }
    /* One at a time, so that the one that is wrong can be named. */
    for (size_t i = 0; i < limit_count; i++) {
        char field[64];

        if (create->snapshot && limit_value(&create->limits, &limit_table[i]) == 0)
            continue; /* its own */
        limits_default(&limits);
        limit_set(&limits, &limit_table[i], limit_value(&create->limits, &limit_table[i]));
        if (limits_check(&limits, UINT64_MAX, UINT64_MAX, err) == 0)
            continue;
        (void) snprintf(field, sizeof field, "limits.%s", limit_table[i].name);
        return caller_blame(ops->caller, field, NULL, NULL);
    }
    return 0;
}

/* The metadata with the notes in it, as one text. */
static int stored_metadata(const struct ops_create *create, char *out, size_t size, struct err *err)
{
    const char *given = create->metadata ? create->metadata : "{}";
    bool plain = !create->notes && !create->e2b && !create->root && !ops_metadata_marked(given);
    auto_free char *text = plain ? strdup(given) : NULL;
    json_t *metadata = plain ? NULL : json_loads(given, 0, NULL);

    if (!plain && !json_is_object(metadata)) {
        json_decref(metadata);
        return err_set(err, ERR_INVALID, "metadata: not a JSON object");
    }
    if (create->notes)
        (void) json_object_set_new(metadata, OPS_NOTES_KEY, json_string(create->notes));
    if (create->e2b)
        (void) json_object_set_new(metadata, GATE_E2B, json_true());
    if (create->root)
        (void) json_object_set_new(metadata, GATE_ROOT, json_true());
    else
        (void) json_object_del(metadata, GATE_ROOT);
    if (!plain)
        text = json_dumps(metadata, JSON_COMPACT);
    json_decref(metadata);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for the metadata");
    if (create->notes && strlen(create->notes) >= OPS_NOTES_MAX)
        return err_set(err, ERR_TOO_BIG, "the options to be kept with it are longer than %d bytes",
                       OPS_NOTES_MAX - 1);
    if (strlen(text) >= size || (create->metadata && strlen(create->metadata) >= OPS_METADATA_MAX))
        return err_set(err, ERR_TOO_BIG, "metadata: more than %d bytes", OPS_METADATA_MAX - 1);
    (void) strcpy(out, text);
    return 0;
}

/* What was asked for, as it was understood: a request that repeats a key must ask for the same. */
static int hash_request(struct ops *ops, const struct ops_create *create, char out[STORE_HASH_MAX],
                        struct err *err)
{
    json_t *metadata, *env, *limits, *request, *proxy = NULL;
    unsigned char sum[SHA256_LEN];
    auto_free char *text = NULL;

    if (create->network &&
        network_proxy_mark(ops->app->store, &create->network->upstream, &proxy, err) < 0)
        return -1;
    metadata = create->metadata ? json_loads(create->metadata, 0, NULL) : NULL;
    env = json_array();
    limits = json_array();
    for (size_t i = 0; i < create->env_count; i++)
        (void) json_array_append_new(env, json_string(create->env[i]));
    for (size_t i = 0; i < limit_count; i++) {
        uint64_t value = limit_value(&create->limits, &limit_table[i]);

        if (value ||
            limit_table[i]
                .fallback) /* limits that are not set leave the hash as it was without them */
            (void) json_array_append_new(limits, json_integer((json_int_t) value));
    }
    request = json_pack("{s:s*, s:s?, s:s?, s:s?, s:I, s:i, s:b, s:o, s:o, s:o*, s:o*, s:o*, s:o*}",
                        "snapshot", create->snapshot, "template", create->template, "name",
                        create->name, "notes", create->notes, "timeout",
                        (json_int_t) create->timeout_ms, "on_timeout", (int) create->on_timeout,
                        "root", create->root, "limits", limits, "env", env, "metadata", metadata,
                        "network", create->network ? network_json(create->network) : NULL,
                        "preview", create->preview ? preview_rules_json(create->preview) : NULL,
                        "join", ops_private_joins_json(create));
    if (proxy)
        (void) json_object_set_new(request, "proxy", proxy);
    if (create->volume_count > 0)
        (void) json_object_set_new(request, "volumes",
                                   ops_volumes_json(create->volumes, create->volume_count));
    if (create->files_only)
        (void) json_object_set_new(request, "memory", json_false());
    if (create->isolation)
        (void) json_object_set_new(request, "isolation", json_string(create->isolation));
    if (secrets_wanted(&create->secrets))
        (void) json_object_set_new(request, "secrets",
                                   json_pack("{s:O*, s:O*}", "names", create->secrets.names,
                                             "rules", create->secrets.rules));
    text = request ? json_dumps(request, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(request);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for the request");
    sha256_of(text, strlen(text), sum);
    sha256_hex(sum, sizeof sum, out);
    return 0;
}

static bool is_assigned(const struct ops_create *create, const char *assignment)
{
    size_t len = strcspn(assignment, "=") + 1;

    for (size_t i = 0; i < create->env_count; i++)
        if (strncmp(create->env[i], assignment, len) == 0)
            return true;
    return false;
}

/* NULL without any. */
static int stored_env(const struct ops_create *create, char **ret, struct err *err)
{
    auto_free char *text = NULL;
    json_t *env;

    *ret = NULL;
    if (create->env_count == 0 && !create->plan && !create->defaults)
        return 0;
    env = json_array();
    if (create->defaults) /* no assignment: what reads assignments passes it over */
        (void) json_array_append(env, create->defaults);
    for (size_t i = 0; create->plan && i < create->plan->env_count; i++)
        if (!is_assigned(create, create->plan->env[i])) /* what was asked for by name wins */
            (void) json_array_append_new(env, json_string(create->plan->env[i]));
    for (size_t i = 0; i < create->env_count; i++)
        (void) json_array_append_new(env, json_string(create->env[i]));
    text = json_dumps(env, JSON_COMPACT);
    json_decref(env);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    if (strlen(text) >= OPS_ENV_MAX)
        return err_set(err, ERR_TOO_BIG, "env: more than %d bytes", OPS_ENV_MAX - 1);
    *ret = take_ptr(&text);
    return 0;
}

static int fill_record(struct ops *ops, const struct ops_create *create, uint64_t timeout_ms,
                       struct store_sandbox *record, struct err *err)
{
    *record = (struct store_sandbox){
        .created_ms = store_now_ms(),
        .on_timeout =
            create->on_timeout == ON_TIMEOUT_PAUSE ? STORE_TIMEOUT_PAUSE : STORE_TIMEOUT_KILL,
        .cpu_milli = create->limits.cpu_milli,
        .memory_bytes = create->limits.memory_bytes,
        .disk_bytes = create->limits.disk_bytes,
    };
    record->deadline_ms = store_deadline(record->created_ms, timeout_ms);
    record->timeout_ms = timeout_ms;
    record->idle_pause_ms =
        create->idle_pause_ms ? *create->idle_pause_ms : app_config(ops->app)->idle_pause_ms;
    record->idle_disk_ms =
        create->idle_disk_ms ? *create->idle_disk_ms : app_config(ops->app)->idle_disk_ms;
    record->auto_resume = create->auto_resume;
    record->forgets = create->forgets;
    (void) snprintf(record->tenant, sizeof record->tenant, "%s", ops->caller->tenant);
    (void) snprintf(record->name, sizeof record->name, "%s", create->name ? create->name : "");
    (void) snprintf(record->template, sizeof record->template, "%s",
                    create->template ? create->template : "");
    (void) snprintf(record->idempotency_key, sizeof record->idempotency_key, "%s",
                    create->idempotency_key ? create->idempotency_key : "");
    if (create->id)
        (void) snprintf(record->id, sizeof record->id, "%s", create->id);
    else if (sandbox_new_id(record->id, err) < 0)
        return -1;
    if (create->idempotency_key && hash_request(ops, create, record->request_hash, err) < 0)
        return -1;
    if (stored_metadata(create, record->metadata, sizeof record->metadata, err) < 0)
        return caller_blame(ops->caller, "metadata", NULL, NULL);
    return 0;
}

/* Which field a refusal of the store or the keeper is about. */
static void blame_create(struct ops *ops, const struct err *err)
{
    static const struct {
        enum err_kind kind;
        const char *field, *rule, *layer;
    } rows[] = {
        { ERR_NAME_TAKEN, "name", NULL, NULL },   { ERR_NO_TEMPLATE, "template", NULL, NULL },
        { ERR_LIMIT, "limits", NULL, NULL },      { ERR_LIMIT_HOST, "limits", NULL, NULL },
        { ERR_TOO_MANY, NULL, NULL, "quota" },    { ERR_NO_VOLUME, "volumes", NULL, NULL },
        { ERR_NO_IMAGE, "snapshot", NULL, NULL }, { ERR_VOLUME_BUSY, "volumes", NULL, NULL },
    };

    if (caller_blamed_rule(ops->caller, "quota"))
        return; /* it was said already which */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].kind == err->kind)
            (void) caller_blame(ops->caller, rows[i].field, rows[i].rule, rows[i].layer);
}

/* The keeper makes it of an image: a snapshot's, or a fork's. */
static int load(struct link *link, const struct ops_create *create,
                const struct store_sandbox *record, struct keeper_sandbox *ret, struct err *err)
{
    const struct image_load_spec spec = { .image = create->image,
                                          .owner = create->image_owner ? create->image_owner
                                                                       : record->tenant,
                                          .id = record->id,
                                          .hostname = record->name[0] ? record->name : NULL,
                                          .files_only = create->files_only,
                                          .isolation = create->fixed ? NULL : &create->chosen,
                                          .limits = create->limits };

    return image_load(link, &spec, ret, err);
}

/* Whether a disk in memory is possible. What comes out of an image has the files of the image on a disk, and needs room for them. */
static bool may_be_in_memory(const struct ops_create *create)
{
    return create->once && create->chosen == ISOLATION_JAIL && !create->image;
}

/* No disk is made, or removed, if the caller did not ask for a larger one. */
static void choose_disk(struct ops_create *create)
{
    if (create->any_disk && may_be_in_memory(create) && !limits_disk_in_memory(&create->limits))
        create->limits.disk_bytes = create->limits.memory_bytes / 2;
}

/* Only where it makes a difference: what has a disk like any other can come out of the same pool. */
static uint32_t once_flag(const struct ops_create *create)
{
    return may_be_in_memory(create) && limits_disk_in_memory(&create->limits) ? KEEPER_FLAG_ONCE
                                                                              : 0;
}

/* The keeper makes what the record says. */
static int make(struct ops *ops, const struct ops_create *create,
                const struct store_sandbox *record, const struct reach *network,
                struct ops_sandbox *ret, struct err *err)
{
    bool named = record->template[0];
    struct sandbox_spec spec = {
        .id = record->id,
        .template = named ? record->template : create->default_template,
        .hostname = record->name[0] ? record->name : NULL,
        .flags = KEEPER_FLAG_TAKE | (create->root ? KEEPER_FLAG_ROOT : 0) | once_flag(create) |
                 (!named && create->default_template ? KEEPER_FLAG_DEFAULT : 0),
        .isolation = create->chosen,
        .limits = create->limits,
    };
    struct store_volume_use records[VOLUMES_MAX];
    struct keeper_sandbox kept;
    bool another = false, loaded = create->image;
    struct link link;
    int r;

    if (ops_volumes_resolve(ops, create, spec.volumes, records, err) < 0 ||
        app_link_take(ops->app, &link, err) < 0)
        return -1;
    if (!create->image)
        pool_create_begins();
    r = create->image ? load(&link, create, record, &kept, err)
                      : warm_make(ops->app, &link, &spec, &kept, &loaded, err);
    if (r < 0 && err->kind == ERR_NO_TEMPLATE && create->or_default) {
        log_line(LOG_INFO, "sandbox=%s template=%s does not exist, using the default", record->id,
                 record->template);
        spec.template = NULL;
        another = true;
        r = warm_make(ops->app, &link, &spec, &kept, &loaded, err);
    }
    if (!create->image) /* what comes out of a snapshot has no pool */
        pool_create_ends(r == 0 ? &kept : NULL, loaded);
    if (r == 0 &&
        ((another ? ops_network_settle_again(ops, create, record->id, kept.template, err) < 0
                  : network && network_open(ops->app, record->id, network, err) < 0) ||
         (create->plan && (!create->plan->as_before || ops->app->sandbox_ca) &&
          secrets_install(ops->app, &link, record->id, create->root, err) < 0))) {
        r = -1; /* without the network that was asked for it is of no use to anybody */
        (void) sandbox_destroy(&link, record->id, &(struct err){ 0 });
        network_ended(ops->app, record->id);
    }
    if (r == 0 && create->join_count > 0 && ops_private_made(ops, create, record->id, err) < 0) {
        r = -1;
        (void) sandbox_destroy(&link, record->id, &(struct err){ 0 });
    }
    ops_box_close(ops, &link, r, err);
    if (r == 0)
        ops_view(record, &kept, false, ret);
    return r < 0 || create->volume_count + create->kept_volume_count == 0
               ? r
               : ops_volumes_show(ops, ret, err);
}

static int create_new(struct ops *ops, const struct ops_create *create, uint64_t timeout_ms,
                      struct ops_sandbox *ret, struct err *err)
{
    struct quota_want want = { .cpu_milli = create->limits.cpu_milli,
                               .memory_bytes = create->limits.memory_bytes,
                               .disk_bytes = create->limits.disk_bytes };
    auto_free struct reach *reach = NULL;
    auto_free char *network = NULL;
    auto_free char *preview = create->preview ? preview_rules_text(create->preview) : NULL;
    uint64_t begun = io_now_us();
    struct store_volume_use volumes[VOLUMES_MAX];
    struct volume_use uses[VOLUMES_MAX];
    struct store_sandbox record;
    auto_free char *env = NULL;
    struct err ignored;

    if (ops_volumes_resolve(ops, create, uses, volumes, err) < 0 ||
        quota_create(ops->caller, &want, err) < 0 ||
        fill_record(ops, create, timeout_ms, &record, err) < 0 ||
        ops_network_settle(ops, create, &reach, err) < 0)
        return -1;
    if (reach && network_text(ops->app->store, reach, &network, err) < 0)
        return -1;
    if (stored_env(create, &env, err) < 0)
        return caller_blame(ops->caller, "env", NULL, NULL);
    record.env = env;
    record.network = network;
    record.preview = preview;
    record.joins = create->joins;
    record.join_count = create->join_count;
    record.volumes = create->image ? create->kept_volumes : volumes;
    record.volume_count = create->image ? create->kept_volume_count : create->volume_count;
    record.hidden = create->plan ? create->plan->hidden : NULL;
    if (store_sandbox_add(ops->app->store, &record, err) < 0)
        return -1;
    if (make(ops, create, &record, reach, ret, err) < 0) {
        atomic_fetch_add(&ops->app->metrics.create_failures, 1);
        (void) store_sandbox_remove(ops->app->store, record.id, &ignored);
        return -1;
    }
    if (timeout_ms < SOON_MS)
        deadline_changed(ops->app);
    if (audit_created(ops, ret, begun / 1000, err) < 0)
        return -1;
    metrics_startup(&ops->app->metrics, io_now_us() - begun);
    return 0;
}

/* A server that was killed may have left the keeper in the middle of making it, or of clearing it away. */
static int look_settled(struct ops *ops, const struct store_sandbox *record,
                        struct ops_sandbox *ret, struct err *err)
{
    uint64_t until = io_now_ms() + SETTLE_MS;

    for (;;) {
        if (ops_look(ops, record, ret, err) < 0)
            return -1;
        if (ret->life != LIFE_NEW && ret->life != LIFE_STARTING && ret->life != LIFE_STOPPING)
            return 0;
        if (io_now_ms() >= until)
            return err_set(err, ERR_UNAVAILABLE, "the sandbox of this key is not ready");
        (void) poll(NULL, 0, SETTLE_LOOK_MS);
    }
}

/* A key that was used before: its sandbox, which is made now if a crash came between. The record is renewed before, so
 * that no round takes the sandbox for lost while it is being made. 1: the record went meanwhile. */
static int replay(struct ops *ops, const struct ops_create *create, uint64_t timeout_ms,
                  struct store_sandbox *record, struct ops_sandbox *ret, struct err *err)
{
    auto_free struct reach *network = malloc(sizeof *network);
    char hash[STORE_HASH_MAX];

    if (!network)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (hash_request(ops, create, hash, err) < 0)
        return -1;
    /* A record of an older version has none. */
    if (record->request_hash[0] && strcmp(hash, record->request_hash) != 0) {
        err_set(err, ERR_EXISTS, "this idempotency key was used before, for another request");
        return caller_blame(ops->caller, "idempotency_key", NULL, NULL);
    }
    if (look_settled(ops, record, ret, err) < 0)
        return -1;
    ret->replayed = true;
    if (ret->life != LIFE_GONE)
        return 0;
    record->created_ms = store_now_ms();
    record->deadline_ms = store_deadline(record->created_ms, timeout_ms);
    if (store_sandbox_renew(ops->app->store, record->id, record->created_ms, record->deadline_ms,
                            err) < 0)
        return err->kind == ERR_NO_SANDBOX ? 1 : -1;
    if (network_get(ops->app, record->id, network, err) < 0 ||
        make(ops, create, record, network->mode == REACH_OFF ? NULL : network, ret, err) < 0)
        return -1;
    ret->replayed = true;
    return 0;
}

static int create_once(struct ops *ops, const struct ops_create *create, uint64_t timeout_ms,
                       struct ops_sandbox *ret, struct err *err)
{
    uint64_t hash = hash_text(hash_text(HASH_START, ops->caller->tenant), create->idempotency_key);
    pthread_mutex_t *lock = &key_locks[hash % KEY_LOCKS];
    struct store_sandbox record;
    int r;

    (void) pthread_mutex_lock(lock);
    if (store_sandbox_find_idempotency(ops->app->store, ops->caller->tenant,
                                       create->idempotency_key, &record, err) == 0)
        r = replay(ops, create, timeout_ms, &record, ret, err);
    else
        r = err->kind == ERR_NO_SANDBOX ? 1 : -1;
    if (r == 1)
        r = create_new(ops, create, timeout_ms, ret, err);
    (void) pthread_mutex_unlock(lock);
    return r;
}

static int create_as_asked(struct ops *ops, const struct ops_create *create, uint64_t timeout_ms,
                           struct ops_sandbox *ret, struct err *err)
{
    return create->idempotency_key ? create_once(ops, create, timeout_ms, ret, err)
                                   : create_new(ops, create, timeout_ms, ret, err);
}

/* Which template a create gets that names none is the keeper's to say: what it said last holds until it refuses that. */
static int create_with_default(struct ops *ops, struct ops_create *create, uint64_t timeout_ms,
                               struct ops_sandbox *ret, struct err *err)
{
    char name[KEEPER_NAME_MAX], now[KEEPER_NAME_MAX];
    int r;

    if (create->template || create->image)
        return create_as_asked(ops, create, timeout_ms, ret, err);
    if (app_default_template(ops->app, false, name, err) < 0)
        return -1;
    create->default_template = name[0] ? name : NULL;
    r = create_as_asked(ops, create, timeout_ms, ret, err);
    if (r < 0 && err->kind == ERR_NO_TEMPLATE &&
        app_default_template(ops->app, true, now, &(struct err){ 0 }) == 0 &&
        strcmp(now, name) != 0) {
        create->default_template = now;
        r = create_as_asked(ops, create, timeout_ms, ret, err);
    }
    create->default_template = NULL;
    return r;
}

int ops_sandbox_create(struct ops *ops, const struct ops_create *asked, struct ops_sandbox *ret,
                       struct err *err)
{
    uint64_t timeout_ms =
        asked->timeout_ms ? asked->timeout_ms : app_config(ops->app)->sandbox_timeout_ms;
    int r = check_create(ops, asked, timeout_ms, err);
    struct secrets_plan plan = { .hidden = NULL };
    struct ops_source source = { .kept = NULL };
    struct ops_create create = *asked;

    if (r == 0)
        r = asked->snapshot ? ops_source_apply(ops, &create, &source, err)
                            : ops_template_apply(ops, &create, &source, err);
    if (r == 0)
        r = ops_choose_isolation(ops, &create, err);
    if (r == 0)
        choose_disk(&create);
    if (r == 0 && (secrets_wanted(&asked->secrets) || source.hidden)) {
        r = secrets_plan(ops->caller, &asked->secrets, create.root, source.hidden, &plan, err);
        create.plan = &plan;
    } else if (r == 0 && ops->app->sandbox_ca) {
        r = secrets_plan_trust(create.root, &plan, err);
        create.plan = &plan;
    }
    if (r == 0) {
        r = create_with_default(ops, &create, timeout_ms, ret, err);
        if (r < 0 && create.isolation && err->kind == ERR_UNSUPPORTED)
            (void) caller_blame(ops->caller, "isolation", NULL, NULL);
        else if (r < 0)
            blame_create(ops, err);
    }
    if (r == 0 && source.cold && !ret->replayed)
        r = ops_template_started(ops, &source, ret->id, err);
    secrets_plan_done(&plan);
    ops_source_done(&source);
    if (r < 0)
        ops_audit(ops, "sandbox.create", NULL, err);
    return r;
}
