#include "api/network.h"

#include "api/audit.h"
#include "api/network_owner.h"
#include "api/network_proxy.h"
#include "api/private.h"
#include "api/secrets.h"
#include "api/v1.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "store/store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define QUESTIONS_PER_S 50
#define TOLD_MOST       10
#define CHANGES         64

struct network {
    struct egress *egress;
    struct owners *owners;
    /* What is written down is what the gateway has: one change of a sandbox at a time. By a hash of its id. */
    pthread_mutex_t changes[CHANGES];
    pthread_mutex_t lock; /* the ring */
    uint64_t seq;
    struct network_event ring[NETWORK_EVENTS];
};

/* ---- events ---- */

static void keep(struct network *n, const struct egress_event *event)
{
    struct network_event *slot;

    (void) pthread_mutex_lock(&n->lock);
    slot = &n->ring[n->seq++ % NETWORK_EVENTS];
    *slot = (struct network_event){ .seq = n->seq, .time_ms = store_now_ms(), .event = *event };
    (void) pthread_mutex_unlock(&n->lock);
}

static void describe(const struct egress_event *event, char *out, size_t size)
{
    char ip[IP_TEXT_MAX], missed[48] = "", by[EGRESS_PROCESS_MAX + 24] = "";

    ip_print(&event->ip, ip);
    if (event->missed > 0)
        (void) snprintf(missed, sizeof missed, " (%" PRIu64 " more before it)", event->missed);
    if (event->process.pid != 0)
        (void) snprintf(by, sizeof by, ", by %s (%u)", event->process.name, event->process.pid);
    if (event->what == EGRESS_NAME)
        (void) snprintf(out, size, "name %s: %s%s", event->host, event->rule, missed);
    else if (event->from[0])
        (void) snprintf(out, size, "from %s to %s (%s) port %u: %s%s%s%s", event->from, event->to,
                        event->host, event->port, event->rule, event->reason[0] ? ": " : "",
                        event->reason, missed);
    else
        (void) snprintf(out, size, "%s%s%s port %u: %s%s%s%s%s", event->host,
                        event->host[0] ? " " : "", ip, event->port, event->rule,
                        event->reason[0] ? ": " : "", event->reason, by, missed);
}

/* Under the gateway's lock. */
static bool on_ask(void *context, const struct egress_ask *ask)
{
    struct app *app = context;

    return owners_ask(app->network->owners, ask);
}

static void on_owner(struct app *app, uint64_t ticket, const struct egress_process *process)
{
    egress_answer(app->network->egress, ticket, process);
}

/* On the gateway's thread. */
static void on_event(void *context, const struct egress_event *event)
{
    static const char *const actions[] = { [EGRESS_CONNECT] = "network.connect",
                                           [EGRESS_REFUSED] = "network.connect",
                                           [EGRESS_NAME] = "network.resolve",
                                           [EGRESS_FAILED] = "network.connect" };
    struct app *app = context;
    struct audit_facts facts = AUDIT_FACTS;
    struct store_sandbox record;
    struct err why = { .kind = ERR_DENIED }, err;

    keep(app->network, event);
    if (store_sandbox_get(app->store, NULL, event->sandbox, &record, &err) < 0)
        return; /* it ended meanwhile */
    describe(event, why.msg, sizeof why.msg);
    facts.duration_ms = (int64_t) event->ms;
    facts.detail = why.msg;
    if (event->what == EGRESS_FAILED)
        why.kind = ERR_UNAVAILABLE;
    if (event->what != EGRESS_CONNECT)
        facts.refusal = &why;
    if (event->what == EGRESS_REFUSED || event->what == EGRESS_NAME) {
        facts.rule = event->rule;
        facts.risk = "medium";
    }
    audit_system(app, record.tenant, actions[event->what], event->sandbox, &facts);
}

size_t network_events(struct app *app, const char *sandbox, uint64_t after,
                      struct network_event *out, size_t most)
{
    struct network *n = app->network;
    size_t count = 0;
    uint64_t from;

    if (!n)
        return 0;
    (void) pthread_mutex_lock(&n->lock);
    from = n->seq > NETWORK_EVENTS ? n->seq - NETWORK_EVENTS : 0;
    for (uint64_t seq = from < after ? after : from; seq < n->seq && count < most; seq++)
        if (strcmp(n->ring[seq % NETWORK_EVENTS].event.sandbox, sandbox) == 0)
            out[count++] = n->ring[seq % NETWORK_EVENTS];
    (void) pthread_mutex_unlock(&n->lock);
    return count;
}

static bool is_news(const struct network_event *e, const char *sandbox)
{
    return !e->told &&
           (e->event.what == EGRESS_REFUSED || e->event.what == EGRESS_NAME ||
            e->event.reason[0]) &&
           strcmp(e->event.sandbox, sandbox) == 0;
}

json_t *network_refusals(struct app *app, const char *sandbox)
{
    struct network *n = app->network;
    json_t *list = NULL;

    if (!n)
        return NULL;
    (void) pthread_mutex_lock(&n->lock);
    for (uint64_t back = 0; back < n->seq && back < NETWORK_EVENTS; back++) {
        struct network_event *e = &n->ring[(n->seq - 1 - back) % NETWORK_EVENTS];

        if (!is_news(e, sandbox))
            continue;
        e->told = true;
        if (!list)
            list = json_array();
        if (json_array_size(list) < TOLD_MOST) /* the newest; all of them are in the events */
            (void) json_array_insert_new(list, 0, network_event_json(e));
    }
    (void) pthread_mutex_unlock(&n->lock);
    return list;
}

void network_counts(struct app *app, struct egress_counts *ret)
{
    *ret = (struct egress_counts){ .sandboxes = 0 };
    if (app->network)
        egress_counts(app->network->egress, ret);
}

json_t *network_event_json(const struct network_event *e)
{
    json_t *json = json_pack("{s:I, s:o, s:s, s:s, s:s}", "seq", (json_int_t) e->seq, "time",
                             v1_time(e->time_ms), "sandbox", e->event.sandbox, "event",
                             egress_what_name(e->event.what), "rule", e->event.rule);
    char ip[IP_TEXT_MAX];

    ip_print(&e->event.ip, ip);
    if (e->event.host[0])
        (void) json_object_set_new(json, "host", json_string(e->event.host));
    if (e->event.what == EGRESS_REFUSED || e->event.what == EGRESS_NAME)
        (void) json_object_set_new(json, "process",
                                   e->event.process.pid == 0
                                       ? json_null()
                                       : json_pack("{s:I, s:s}", "pid",
                                                   (json_int_t) e->event.process.pid, "name",
                                                   e->event.process.name));
    if (e->event.reason[0])
        (void) json_object_set_new(json, "reason", json_string(e->event.reason));
    if (e->event.missed > 0)
        (void) json_object_set_new(json, "missed", json_integer((json_int_t) e->event.missed));
    if (e->event.what == EGRESS_NAME)
        return json;
    (void) json_object_set_new(json, "address", json_string(ip));
    (void) json_object_set_new(json, "port", json_integer(e->event.port));
    if (e->event.from[0]) { /* between two sandboxes */
        (void) json_object_set_new(json, "from", json_string(e->event.from));
        (void) json_object_set_new(json, "to", json_string(e->event.to));
    }
    if (e->event.what != EGRESS_REFUSED) {
        (void) json_object_set_new(json, "sent", json_integer((json_int_t) e->event.sent));
        (void) json_object_set_new(json, "received", json_integer((json_int_t) e->event.received));
        (void) json_object_set_new(json, "duration_ms", json_integer((json_int_t) e->event.ms));
    }
    return json;
}

/* ---- rules as JSON ---- */

struct body {
    const char *mode;
    json_t *allow, *deny, *proxy;
};

static int add_rules(struct exchange *x, const char *field, json_t *list, bool deny,
                     struct reach *rules, struct err *err)
{
    char name[64];
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        (void) snprintf(name, sizeof name, "%s.%s[%zu]", field, deny ? "deny" : "allow", i);
        if (!json_is_string(item))
            return v1_bad(x, err, name, "is not a text");
        if (reach_add(rules, deny, json_string_value(item), err) < 0) {
            (void) err_wrap(err, "%s", name);
            return exchange_blame(x, name, NULL, NULL);
        }
    }
    return 0;
}

int network_read(struct exchange *x, const char *field, json_t *object, struct reach *ret,
                 struct err *err)
{
    static const struct v1_field fields[] = {
        { "mode", V1_TEXT, offsetof(struct body, mode), 0, 0 },
        { "allow", V1_ARRAY, offsetof(struct body, allow), 0, 0 },
        { "deny", V1_ARRAY, offsetof(struct body, deny), 0, 0 },
        { "proxy", V1_OBJECT, offsetof(struct body, proxy), 0, 0 },
    };
    struct body body = { .mode = NULL };
    char name[64];

    if (v1_read(x, object, fields, ARRAY_LEN(fields), &body, err) < 0)
        return -1;
    *ret = (struct reach){ .mode = json_array_size(body.allow) > 0 ? REACH_LIST : REACH_PUBLIC };
    if (body.mode && reach_mode_parse(body.mode, &ret->mode, err) < 0) {
        (void) snprintf(name, sizeof name, "%s.mode", field);
        (void) err_wrap(err, "%s", name);
        return exchange_blame(x, name, NULL, NULL);
    }
    (void) snprintf(name, sizeof name, "%s.proxy", field);
    return add_rules(x, field, body.allow, false, ret, err) < 0 ||
                   add_rules(x, field, body.deny, true, ret, err) < 0 ||
                   network_proxy_read(x, name, body.proxy, UPSTREAM_NONE, &ret->upstream, err) < 0
               ? -1
               : 0;
}

static json_t *list_json(const struct reach_rule *rules, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        char text[REACH_TEXT_MAX];

        reach_rule_print(&rules[i], text);
        (void) json_array_append_new(list, json_string(text));
    }
    return list;
}

json_t *network_json(const struct reach *rules)
{
    return json_pack("{s:s, s:o, s:o, s:o*}", "mode", reach_mode_name(rules->mode), "allow",
                     list_json(rules->allow, rules->allow_count), "deny",
                     list_json(rules->deny, rules->deny_count), "proxy",
                     network_proxy_json(&rules->upstream));
}

/* ---- rules as they are kept ---- */

#define KEPT_ALLOW_WINS "allow_wins"

char *network_text(const struct reach *rules)
{
    json_t *json = network_json(rules);
    char *text;

    if (rules->allow_wins)
        (void) json_object_set_new(json, KEPT_ALLOW_WINS, json_true());
    if (rules->upstream.kind != UPSTREAM_NONE)
        (void) json_object_set_new(json, "proxy", network_proxy_keep(&rules->upstream));
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

/* What we wrote ourselves; what cannot be read lets nothing out. */
int network_from_text(const char *text, struct reach *ret, struct err *err)
{
    json_t *json = json_loads(text, 0, NULL), *list[2], *item;
    const char *mode = json_string_value(json_object_get(json, "mode"));
    int r = -1;
    size_t i;

    *ret = (struct reach){ .mode = REACH_OFF };
    list[0] = json_object_get(json, "allow");
    list[1] = json_object_get(json, "deny");
    if (!mode || reach_mode_parse(mode, &ret->mode, err) < 0 ||
        network_proxy_kept(json_object_get(json, "proxy"), &ret->upstream, err) < 0)
        goto bad;
    ret->allow_wins = json_is_true(json_object_get(json, KEPT_ALLOW_WINS));
    for (int deny = 0; deny < 2; deny++)
        json_array_foreach(list[deny], i, item)
        {
            const char *rule = json_string_value(item);

            if (!rule || reach_add(ret, deny, rule, err) < 0)
                goto bad;
        }
    r = 0;
bad:
    json_decref(json);
    if (r == 0)
        return 0;
    ret->mode = REACH_OFF;
    return err_set(err, ERR_INTERNAL, "the network rules that were kept cannot be read");
}

int network_get(struct app *app, const char *sandbox, struct reach *ret, struct err *err)
{
    auto_free char *text = NULL;

    if (store_network_get(app->store, sandbox, &text, err) < 0)
        return -1;
    *ret = (struct reach){ .mode = REACH_OFF };
    return text[0] ? network_from_text(text, ret, err) : 0;
}

/* ---- the gateway ---- */

struct egress *network_egress(struct app *app)
{
    return app->network ? app->network->egress : NULL;
}

int network_unsupported(struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED,
                   "sandboxes of this server have no network: it was started with network off");
}

static pthread_mutex_t *changes_of(struct app *app, const char *sandbox)
{
    unsigned hash = 0;

    for (const char *at = sandbox; *at; at++)
        hash = hash * 31 + (unsigned char) *at;
    return &app->network->changes[hash % CHANGES];
}

/* A sandbox without one gets it; one that has it gets the rules. */
static int open_always(struct app *app, const char *sandbox, const struct reach *rules,
                       struct err *err)
{
    struct egress_secrets *secrets = NULL;
    int fds[GATEWAY_FDS];
    struct link link;
    int r;

    if (egress_has(app->network->egress, sandbox))
        return egress_set(app->network->egress, sandbox, rules, NULL, NULL, err);
    if (secrets_load(app, sandbox, &secrets, err) < 0)
        return -1;
    r = app_link_take(app, &link, err);
    if (r == 0) {
        r = link_gateway(&link, sandbox, fds, err);
        app_link_give(app, &link, link.fd >= 0);
    }
    if (r == 0)
        return egress_set(app->network->egress, sandbox, rules, secrets, fds, err);
    egress_secrets_free(secrets);
    return -1;
}

/* Secrets have changed: the gateways that have them are told. */
static int tell_secrets(void *arg, const char *id, const char *tenant, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    struct egress_secrets *secrets = NULL;
    struct app *app = arg;

    (void) tenant;
    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    (void) pthread_mutex_lock(changes_of(app, id));
    if (egress_has(app->network->egress, id) &&
        (network_get(app, id, rules, err) < 0 || secrets_load(app, id, &secrets, err) < 0 ||
         egress_set(app->network->egress, id, rules, secrets, NULL, err) < 0))
        log_line(LOG_WARNING, "sandbox=%s keeps its old secrets: %s", id, err->msg);
    (void) pthread_mutex_unlock(changes_of(app, id));
    return 0;
}

int network_secrets_changed(struct app *app, const char *tenant, struct err *err)
{
    return app->network ? store_hidden_list(app->store, tenant, tell_secrets, app, err) : 0;
}

int network_secrets_of(struct app *app, const char *sandbox, struct err *err)
{
    return app->network ? tell_secrets(app, sandbox, NULL, err) : 0;
}

/* The command line writes into the same store. */
void network_secrets_poll(struct app *app)
{
    static uint64_t seen; /* upkeep's thread alone */
    uint64_t stamp;
    struct err err;

    if (!app->network || store_vault_stamp(app->store, &stamp, &err) < 0 || stamp == seen)
        return;
    if (network_secrets_changed(app, NULL, &err) == 0)
        seen = stamp;
}

static int open_changed(struct app *app, const char *sandbox, const struct reach *rules,
                        struct err *err)
{
    return rules->mode == REACH_OFF && !egress_has(app->network->egress, sandbox)
               ? 0
               : open_always(app, sandbox, rules, err);
}

int network_open(struct app *app, const char *sandbox, const struct reach *rules, struct err *err)
{
    int r;

    if (!app->network)
        return network_unsupported(err);
    (void) pthread_mutex_lock(changes_of(app, sandbox));
    r = open_changed(app, sandbox, rules, err);
    (void) pthread_mutex_unlock(changes_of(app, sandbox));
    return r;
}

static int apply_changed(struct app *app, const char *sandbox, const struct reach *rules,
                         struct err *err)
{
    auto_free char *text = network_text(rules);

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    return store_network_set(app->store, sandbox, text, err) < 0 ||
                   open_changed(app, sandbox, rules, err) < 0
               ? -1
               : 0;
}

int network_apply(struct app *app, const char *sandbox, const struct reach *rules, struct err *err)
{
    int r;

    if (!app->network)
        return network_unsupported(err);
    (void) pthread_mutex_lock(changes_of(app, sandbox));
    r = apply_changed(app, sandbox, rules, err);
    (void) pthread_mutex_unlock(changes_of(app, sandbox));
    return r;
}

static int allow_changed(struct app *app, const char *sandbox, const char *rule, struct reach *ret,
                         struct err *err)
{
    if (network_get(app, sandbox, ret, err) < 0 || reach_add(ret, false, rule, err) < 0)
        return -1;
    if (ret->mode == REACH_OFF)
        ret->mode = REACH_LIST;
    return apply_changed(app, sandbox, ret, err);
}

int network_allow(struct app *app, const char *sandbox, const char *rule, struct reach *ret,
                  struct err *err)
{
    int r;

    if (!app->network)
        return network_unsupported(err);
    (void) pthread_mutex_lock(changes_of(app, sandbox));
    r = allow_changed(app, sandbox, rule, ret, err);
    (void) pthread_mutex_unlock(changes_of(app, sandbox));
    return r;
}

int network_hold(struct app *app, const char *sandbox, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    int r;

    if (!app->network)
        return network_unsupported(err);
    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    (void) pthread_mutex_lock(changes_of(app, sandbox));
    r = network_get(app, sandbox, rules, err);
    if (r == 0 && !egress_has(app->network->egress, sandbox))
        r = open_always(app, sandbox, rules, err);
    (void) pthread_mutex_unlock(changes_of(app, sandbox));
    return r;
}

/* Behind a change that is under way, or it would leave a gateway for a sandbox that is no more. */
void network_ended(struct app *app, const char *sandbox)
{
    if (!app->network)
        return;
    (void) pthread_mutex_lock(changes_of(app, sandbox));
    egress_drop(app->network->egress, sandbox);
    (void) pthread_mutex_unlock(changes_of(app, sandbox));
}

bool network_busy(struct app *app, const char *sandbox)
{
    return app->network && egress_open(app->network->egress, sandbox) > 0;
}

/* The rules are read again: somebody may have changed them since the list was. */
static int restore(void *arg, const char *id, const char *text, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    struct app *app = arg;

    (void) text;
    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    (void) pthread_mutex_lock(changes_of(app, id));
    if ((network_get(app, id, rules, err) < 0 || open_changed(app, id, rules, err) < 0) &&
        err->kind != ERR_NO_SANDBOX) /* on disk, or lost */
        log_line(LOG_WARNING, "sandbox=%s has no way out: %s", id, err->msg);
    (void) pthread_mutex_unlock(changes_of(app, id));
    return 0;
}

static void *restore_all(void *arg)
{
    struct app *app = arg;
    struct err err;

    if (store_network_list(app->store, restore, app, &err) < 0)
        log_line(LOG_WARNING, "network rules not read: %s", err.msg);
    return NULL;
}

int network_start(struct app *app, struct err *err)
{
    const struct config *config = app_config(app);
    struct egress_config wanted = {
        .limits = { .connections = config->network_connections,
                    .connects_per_s = config->network_connects,
                    .bytes_per_s = config->network_bytes,
                    .idle_ms = config->network_idle_ms,
                    .questions_per_s = QUESTIONS_PER_S },
        .event = on_event,
        .ask = on_ask,
        .dial = private_dial,
        .context = app,
    };
    char servers[sizeof config->network_dns], *rest = servers, *item;
    size_t count = 0;
    pthread_t thread;

    if (!config->network)
        return 0;
    (void) snprintf(wanted.proxy_ranges, sizeof wanted.proxy_ranges, "%s",
                    config->network_proxy_ranges);
    if (store_vault_ready(app->store, err) < 0)
        return -1;
    (void) snprintf(wanted.authorities, sizeof wanted.authorities, "%s", config->network_ca);
    (void) strcpy(servers, config->network_dns);
    while ((item = strsep(&rest, ", ")) && count < EGRESS_SERVERS)
        if (*item)
            (void) snprintf(wanted.servers[count++], IP_TEXT_MAX, "%s", item);
    app->network = calloc(1, sizeof *app->network);
    if (!app->network)
        return err_set(err, ERR_NO_MEMORY, "no memory for the gateway");
    (void) pthread_mutex_init(&app->network->lock, NULL);
    for (size_t i = 0; i < CHANGES; i++)
        (void) pthread_mutex_init(&app->network->changes[i], NULL);
    if (owners_start(app, on_owner, &app->network->owners, err) < 0 ||
        egress_start(&wanted, &app->network->egress, err) < 0)
        return -1;
    /* Requests need not wait for it. */
    if (pthread_create(&thread, NULL, restore_all, app) != 0)
        return err_set(err, ERR_NO_MEMORY, "no thread for the gateway");
    (void) pthread_detach(thread);
    return private_start(app, err);
}
