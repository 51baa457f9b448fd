#include "server/net/network.h"

#include "base/log.h"
#include "base/own.h"
#include "client/gateway_start.h"
#include "server/gateway/gateway.h"
#include "server/net/network_events.h"
#include "server/net/network_owner.h"
#include "server/net/network_rules.h"
#include "server/net/private.h"
#include "server/net/secrets.h"
#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define QUESTIONS_PER_S 50
#define CHANGES         64
_Static_assert(EGRESS_FDS == (int) GATEWAY_FDS, "the gateway gets what the keeper opens");

struct network {
    struct gateway *gateway;
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
    gateway_answer(app->network->gateway, ticket, process);
}

void network_counts(struct app *app, struct egress_counts *ret)
{
    *ret = (struct egress_counts){ .sandboxes = 0 };
    if (app->network)
        gateway_counts(app->network->gateway, ret);
}

struct gateway *network_gateway(struct app *app)
{
    return app->network ? app->network->gateway : NULL;
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
    struct message_secrets *secrets = NULL;
    char tenant[STORE_TENANT_MAX];
    int fds[GATEWAY_FDS];
    struct link link;
    int r;

    if (gateway_has(app->network->gateway, sandbox))
        return gateway_set(app->network->gateway, sandbox, NULL, rules, NULL, NULL, err);
    if (network_tenant(app, sandbox, tenant, err) < 0 ||
        secrets_load(app, sandbox, &secrets, err) < 0)
        return -1;
    r = app_link_take(app, &link, err);
    if (r == 0) {
        r = link_gateway(&link, sandbox, fds, err);
        app_link_give(app, &link, link.fd >= 0);
    }
    if (r == 0)
        return gateway_set(app->network->gateway, sandbox, tenant, rules, secrets, fds, err);
    message_secrets_free(secrets);
    return -1;
}

/* Secrets have changed: the gateways that have them are told. */
static int tell_secrets(void *arg, const char *id, const char *tenant, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    struct message_secrets *secrets = NULL;
    struct app *app = arg;

    (void) tenant;
    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    (void) pthread_mutex_lock(changes_of(app, id));
    if (gateway_has(app->network->gateway, id) &&
        (network_get(app, id, rules, err) < 0 || secrets_load(app, id, &secrets, err) < 0 ||
         gateway_set(app->network->gateway, id, NULL, rules, secrets, NULL, err) < 0))
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
    return rules->mode == REACH_OFF && !gateway_has(app->network->gateway, sandbox)
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
    if (r == 0 && !gateway_has(app->network->gateway, sandbox))
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
    gateway_drop(app->network->gateway, sandbox);
    (void) pthread_mutex_unlock(changes_of(app, sandbox));
}

bool network_busy(struct app *app, const char *sandbox)
{
    return app->network && gateway_open(app->network->gateway, sandbox) > 0;
}

/* Any question does: its answer comes behind the events. */
void network_catch_up(struct app *app, const char *sandbox)
{
    (void) network_busy(app, sandbox);
}

/* The rules are read again: a request may have changed them since the list was. */
static int restore(void *arg, const char *id, const char *text, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    struct gateway_state state;
    struct app *app = arg;

    (void) text;
    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    (void) pthread_mutex_lock(changes_of(app, id));
    if ((network_get(app, id, rules, err) < 0 || open_changed(app, id, rules, err) < 0) &&
        err->kind != ERR_NO_SANDBOX) /* on disk, or lost */
        log_line(LOG_WARNING, "sandbox=%s has no network: %s", id, err->msg);
    (void) pthread_mutex_unlock(changes_of(app, id));
    gateway_state(app->network->gateway, &state);
    return state.up ? 0
                    : err_set(err, ERR_UNAVAILABLE, "the gateway is gone; its next one is told");
}

static void *restore_all(void *arg)
{
    struct app *app = arg;
    struct err err;

    if (store_network_list(app->store, restore, app, &err) < 0)
        log_line(LOG_WARNING, "network rules could not be sent: %s", err.msg);
    else
        private_restore(app);
    return NULL;
}

/* As network_prepare found it: before rights are dropped. */
static uid_t gateway_uid = EGRESS_UID;

uint32_t network_uid(struct app *app)
{
    (void) app;
    return gateway_uid;
}

void network_reload(struct app *app)
{
    if (app->network)
        gateway_set_ranges(app->network->gateway, app_config(app)->network_ranges);
}

/* A gateway is there, and knows no sandbox. Neither requests nor its own words wait for the sandboxes to be told. */
static void on_up(void *context)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, restore_all, context) == 0)
        (void) pthread_detach(thread);
    else
        log_line(LOG_ERROR, "sandboxes have no network: no thread for the gateway");
}

/* ---- start ---- */

static void own_directory(const struct config *config, char *out, size_t size)
{
    (void) snprintf(out, size, "%s/server", config->state);
}

int network_prepare(const struct config *config, struct err *err)
{
    const struct passwd *user = getpwnam(GATEWAY_USER);
    char directory[PATH_MAX];

    if (user && user->pw_uid != 0)
        gateway_uid = user->pw_uid;
    if (!config->network || config->gateway[0])
        return 0;
    own_directory(config, directory, sizeof directory);
    if (mkdir(directory, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s", directory);
    return gateway_child(directory, err);
}

static struct egress_config egress_settings(const struct config *config)
{
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
    };
    char servers[sizeof config->network_dns], *rest = servers, *item;
    size_t count = 0;

    (void) snprintf(wanted.ranges, sizeof wanted.ranges, "%s", config->network_ranges);
    (void) snprintf(wanted.proxy_ranges, sizeof wanted.proxy_ranges, "%s",
                    config->network_proxy_ranges);
    (void) strcpy(servers, config->network_dns);
    while ((item = strsep(&rest, ", ")) && count < EGRESS_SERVERS)
        if (*item)
            (void) snprintf(wanted.servers[count++], IP_TEXT_MAX, "%s", item);
    return wanted;
}

int network_start(struct app *app, network_dial *dial, struct err *err)
{
    const struct config *config = app_config(app);
    char directory[PATH_MAX], *authorities = NULL;
    struct gateway_config wanted = { .directory = directory, .up = on_up };

    if (!config->network)
        return 0;
    own_directory(config, directory, sizeof directory);
    if (config->gateway[0])
        (void) snprintf(directory, sizeof directory, "%s", config->gateway);
    if (store_vault_ready(app->store, err) < 0 ||
        secrets_authorities("network_ca", config->network_ca, &authorities, err) < 0)
        return -1;
    wanted.egress = egress_settings(config);
    wanted.egress.authorities = authorities; /* for the life of the process */
    wanted.egress.context = app;
    wanted.egress.dial = dial;
    app->network = calloc(1, sizeof *app->network);
    if (!app->network)
        return err_set(err, ERR_NO_MEMORY, "no memory for the gateway");
    for (size_t i = 0; i < CHANGES; i++)
        (void) pthread_mutex_init(&app->network->changes[i], NULL);
    if (network_log_start(app, err) < 0 ||
        owners_start(app, on_owner, &app->network->owners, err) < 0 ||
        gateway_start(&wanted, &app->network->gateway, err) < 0)
        return -1;
    return private_start(app, err);
}
