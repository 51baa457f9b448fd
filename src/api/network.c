#include "api/network.h"

#include "api/network_events.h"
#include "api/network_owner.h"
#include "api/network_rules.h"
#include "api/private.h"
#include "api/secrets.h"
#include "base/log.h"
#include "base/own.h"
#include "store/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define QUESTIONS_PER_S 50
#define CHANGES         64
_Static_assert(EGRESS_FDS == (int) GATEWAY_FDS, "the gateway gets what the keeper opens");

struct network {
    struct egress *egress;
    struct owners *owners;
    /* What is written down is what the gateway has: one change of a sandbox at a time. By a hash of its id. */
    pthread_mutex_t changes[CHANGES];
};

int network_get(struct app *app, const char *sandbox, struct reach *ret, struct err *err)
{
    auto_free char *text = NULL;

    if (store_network_get(app->store, sandbox, &text, err) < 0)
        return -1;
    *ret = (struct reach){ .mode = REACH_OFF };
    return text[0] ? network_from_text(app->store, text, ret, err) : 0;
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

void network_counts(struct app *app, struct egress_counts *ret)
{
    *ret = (struct egress_counts){ .sandboxes = 0 };
    if (app->network)
        egress_counts(app->network->egress, ret);
}

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
    char tenant[STORE_TENANT_MAX];
    int fds[GATEWAY_FDS];
    struct link link;
    int r;

    if (egress_has(app->network->egress, sandbox))
        return egress_set(app->network->egress, sandbox, NULL, rules, NULL, NULL, err);
    if (network_tenant(app, sandbox, tenant, err) < 0 ||
        secrets_load(app, sandbox, &secrets, err) < 0)
        return -1;
    r = app_link_take(app, &link, err);
    if (r == 0) {
        r = link_gateway(&link, sandbox, fds, err);
        app_link_give(app, &link, link.fd >= 0);
    }
    if (r == 0)
        return egress_set(app->network->egress, sandbox, tenant, rules, secrets, fds, err);
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
         egress_set(app->network->egress, id, NULL, rules, secrets, NULL, err) < 0))
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
    auto_free char *text = NULL;

    return network_text(app->store, rules, &text, err) < 0 ||
                   store_network_set(app->store, sandbox, text, err) < 0 ||
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

uint32_t network_uid(struct app *app)
{
    (void) app;
    return EGRESS_UID;
}

void network_reload(struct app *app)
{
    if (app->network)
        egress_set_ranges(app->network->egress, app_config(app)->network_ranges);
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
        .shares = { [EGRESS_CONNECTIONS] = config->network_all_connections,
                    [EGRESS_LOOKUPS] = config->network_all_lookups,
                    [EGRESS_HANDSHAKES] = config->network_all_handshakes },
        .event = network_log_event,
        .ask = on_ask,
        .dial = private_dial,
        .context = app,
    };
    char servers[sizeof config->network_dns], *rest = servers, *item;
    size_t count = 0;
    pthread_t thread;

    if (!config->network)
        return 0;
    (void) snprintf(wanted.ranges, sizeof wanted.ranges, "%s", config->network_ranges);
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
    for (size_t i = 0; i < CHANGES; i++)
        (void) pthread_mutex_init(&app->network->changes[i], NULL);
    if (network_log_start(app, err) < 0 ||
        owners_start(app, on_owner, &app->network->owners, err) < 0 ||
        egress_start(&wanted, &app->network->egress, err) < 0)
        return -1;
    /* Requests need not wait for it. */
    if (pthread_create(&thread, NULL, restore_all, app) != 0)
        return err_set(err, ERR_NO_MEMORY, "no thread for the gateway");
    (void) pthread_detach(thread);
    return private_start(app, err);
}
