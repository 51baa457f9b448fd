#include "server/net/private.h"

#include "base/log.h"
#include "base/own.h"
#include "egress/peer.h"
#include "server/gateway/gateway.h"
#include "server/net/network.h"
#include "store/private.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS      500
#define MISSING_LOOK 10 /* every so many looks, gateways that could not be opened are tried again */

/* What was read last is what is told last: one at a time. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* ---- from the store to the gateway ---- */

struct gather {
    struct egress_net nets[PRIVATE_NETWORKS];
    size_t count;
};

static int add_member(void *arg, const struct private_member *row, struct err *err)
{
    struct gather *g = arg;
    struct egress_net *net = g->count > 0 ? &g->nets[g->count - 1] : NULL;
    struct egress_member *member;

    if (!net || strcmp(net->name, row->network) != 0) {
        if (g->count == ARRAY_LEN(g->nets))
            return err_set(err, ERR_INTERNAL, "more networks than there can be");
        net = &g->nets[g->count++];
        (void) strcpy(net->name, row->network);
        net->members = calloc(PRIVATE_MEMBERS, sizeof *net->members);
    }
    if (!net->members)
        return err_set(err, ERR_NO_MEMORY, "no memory for networks");
    if (net->count == PRIVATE_MEMBERS)
        return err_set(err, ERR_INTERNAL, "more members than there can be");
    member = &net->members[net->count++];
    (void) strcpy(member->sandbox, row->sandbox);
    (void) strcpy(member->alias, row->alias);
    member->ip = peer_ip(row->network_number, row->number);
    member->seq = row->seq;
    member->port_count = row->port_count;
    memcpy(member->ports, row->ports, sizeof member->ports);
    return 0;
}
_Static_assert(EGRESS_PORTS == PRIVATE_PORTS && EGRESS_LABEL_MAX == PRIVATE_LABEL_MAX,
               "the gateway has room for what is stored");

static int tell_gateway(struct app *app, const char *tenant, struct err *err)
{
    struct gather gathered = { .count = 0 };
    int r;

    (void) pthread_mutex_lock(&turn);
    r = store_private_members(app->store, tenant, NULL, add_member, &gathered, err);
    if (r == 0)
        r = gateway_nets_set(network_gateway(app), tenant, gathered.nets, gathered.count, err);
    (void) pthread_mutex_unlock(&turn);
    for (size_t i = 0; i < gathered.count; i++)
        free(gathered.nets[i].members);
    return r;
}

/* One that is on disk gets its gateway when it comes back (sleep.c): it is not worth a question to the keeper. */
static bool is_on_disk(struct app *app, const char *sandbox)
{
    struct store_sandbox record;
    struct err ignored;

    return store_sandbox_get(app->store, NULL, sandbox, &record, &ignored) == 0 &&
           record.sleep.tier == STORE_DISK;
}

/* A member has a gateway, also if its rules let nothing out. One that is being made, sleeps or is
 * gone gets it later or never: all are tried, however many of those there are. */
static void open_missing(struct app *app, const char *tenant)
{
    char(*ids)[EGRESS_ID_MAX] = NULL;
    size_t count = 0;
    struct err err;

    if (gateway_nets_without(network_gateway(app), tenant, &ids, &count, &err) < 0)
        log_line(LOG_WARNING, "private networks could not be read: %s", err.msg);
    for (size_t i = 0; i < count; i++)
        if (!is_on_disk(app, ids[i]) && network_hold(app, ids[i], &err) < 0 &&
            err.kind != ERR_NO_SANDBOX && err.kind != ERR_STATE)
            log_line(LOG_WARNING, "sandbox=%s is not in its networks: %s", ids[i], err.msg);
    free(ids);
}

void private_restore(struct app *app)
{
    open_missing(app, NULL);
}

int private_sync(struct app *app, const char *tenant, struct err *err)
{
    if (tell_gateway(app, tenant, err) < 0)
        return err_wrap(err, "networks of '%s'", tenant);
    open_missing(app, tenant);
    return 0;
}

/* ---- changes that others made ---- */

struct tenants {
    char (*names)[STORE_TENANT_MAX];
    size_t count, room;
};

static int add_tenant(void *arg, const char *tenant, struct err *err)
{
    struct tenants *t = arg;

    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 16;
        void *more = realloc(t->names, room * sizeof t->names[0]);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for networks");
        t->names = more;
        t->room = room;
    }
    (void) snprintf(t->names[t->count++], STORE_TENANT_MAX, "%s", tenant);
    return 0;
}

/* What fails is tried again with the next look. */
static void look(struct app *app, uint64_t *seen)
{
    struct tenants changed = { .count = 0 };
    uint64_t seq = *seen;
    struct err err;
    int r = store_private_changed(app->store, &seq, add_tenant, &changed, &err);

    for (size_t i = 0; r == 0 && i < changed.count; i++)
        r = private_sync(app, changed.names[i], &err);
    if (r == 0)
        *seen = seq;
    else
        log_line(LOG_WARNING, "private networks not read: %s", err.msg);
    free(changed.names);
}

static void *watch(void *arg)
{
    struct app *app = arg;
    uint64_t seen = 0;

    for (unsigned i = 1;; i++) {
        look(app, &seen);
        if (i % MISSING_LOOK == 0)
            open_missing(app, NULL);
        (void) poll(NULL, 0, LOOK_MS);
    }
    return NULL;
}

int private_start(struct app *app, struct err *err)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, watch, app) != 0)
        return err_set(err, ERR_NO_MEMORY, "no thread for private networks");
    (void) pthread_detach(thread);
    return 0;
}
