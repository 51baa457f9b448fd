#include "server/net/network_events.h"

#include "base/own.h"
#include "server/form/form.h"
#include "server/guard/audit.h"
#include "server/net/network.h"
#include "store/store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MOST 10
#define EQUAL_MS  10000 /* at most so far apart are refusals that count as one */
#define OWNERS    251

/* Whose a sandbox is, from its first event on: it never changes, and ids are not used twice. */
struct owner {
    char sandbox[EGRESS_ID_MAX];
    char tenant[STORE_TENANT_MAX];
};

struct network_log {
    pthread_mutex_t lock;
    struct owner owners[OWNERS]; /* each at the place of its hash */
    uint64_t seq;
    struct network_event ring[NETWORK_EVENTS];
};

int network_log_start(struct app *app, struct err *err)
{
    struct network_log *log = calloc(1, sizeof *log);

    if (!log)
        return err_set(err, ERR_NO_MEMORY, "no memory for the gateway");
    (void) pthread_mutex_init(&log->lock, NULL);
    app->network_log = log;
    return 0;
}

static void keep(struct network_log *n, const struct egress_event *event)
{
    struct network_event *slot;

    (void) pthread_mutex_lock(&n->lock);
    slot = &n->ring[n->seq++ % NETWORK_EVENTS];
    *slot = (struct network_event){
        .seq = n->seq, .time_ms = store_now_ms(), .count = 1, .event = *event
    };
    (void) pthread_mutex_unlock(&n->lock);
}

static unsigned place_of(const char *sandbox)
{
    unsigned hash = 0;

    for (const char *at = sandbox; *at; at++)
        hash = hash * 31 + (unsigned char) *at;
    return hash % OWNERS;
}

/* Every connection makes an event: to read the store for each would cost as much as the connection. */
int network_tenant(struct app *app, const char *sandbox, char ret[STORE_TENANT_MAX],
                   struct err *err)
{
    struct network_log *n = app->network_log;
    struct owner *owner = &n->owners[place_of(sandbox)];
    struct store_sandbox record;
    bool known;

    (void) pthread_mutex_lock(&n->lock);
    known = strcmp(owner->sandbox, sandbox) == 0;
    if (known)
        (void) strcpy(ret, owner->tenant);
    (void) pthread_mutex_unlock(&n->lock);
    if (known)
        return 0;
    if (store_sandbox_get(app->store, NULL, sandbox, &record, err) < 0)
        return -1;
    (void) strcpy(ret, record.tenant);
    (void) pthread_mutex_lock(&n->lock);
    (void) snprintf(owner->sandbox, sizeof owner->sandbox, "%s", sandbox);
    (void) strcpy(owner->tenant, record.tenant);
    (void) pthread_mutex_unlock(&n->lock);
    return 0;
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
        (void) snprintf(out, size, "name %s: %s%s%s%s%s", event->host, event->rule,
                        event->reason[0] ? ": " : "", event->reason, by, missed);
    else if (event->from[0])
        (void) snprintf(out, size, "from %s to %s (%s) port %u: %s%s%s%s", event->from, event->to,
                        event->host, event->port, event->rule, event->reason[0] ? ": " : "",
                        event->reason, missed);
    else
        (void) snprintf(out, size, "%s%s%s port %u: %s%s%s%s%s", event->host,
                        event->host[0] ? " " : "", ip, event->port, event->rule,
                        event->reason[0] ? ": " : "", event->reason, by, missed);
}

void network_log_event(void *context, const struct egress_event *event)
{
    static const char *const actions[] = { [EGRESS_CONNECT] = "network.connect",
                                           [EGRESS_REFUSED] = "network.connect",
                                           [EGRESS_NAME] = "network.resolve",
                                           [EGRESS_FAILED] = "network.connect" };
    struct app *app = context;
    struct audit_facts facts = AUDIT_FACTS;
    struct err why = { .kind = ERR_DENIED }, err;
    char tenant[STORE_TENANT_MAX];

    keep(app->network_log, event);
    if (network_tenant(app, event->sandbox, tenant, &err) < 0)
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
    audit_system(app, tenant, actions[event->what], event->sandbox, &facts);
}

/* Refusals that differ in nothing but their time. */
static bool is_again(const struct network_event *older, const struct network_event *newer)
{
    const struct egress_event *a = &older->event, *b = &newer->event;

    return (b->what == EGRESS_REFUSED || b->what == EGRESS_NAME) && a->what == b->what &&
           newer->time_ms - older->time_ms <= EQUAL_MS && a->port == b->port && b->missed == 0 &&
           a->process.pid == b->process.pid && ip_same(&a->ip, &b->ip) &&
           strcmp(a->host, b->host) == 0 && strcmp(a->rule, b->rule) == 0 &&
           strcmp(a->reason, b->reason) == 0 && strcmp(a->from, b->from) == 0 &&
           strcmp(a->to, b->to) == 0;
}

/* The newer one takes the place of the older one before it, if it is the same again; else the next place. */
static size_t add(struct network_event *out, size_t count, const struct network_event *event)
{
    unsigned before = count > 0 && is_again(&out[count - 1], event) ? out[count - 1].count : 0;

    count -= before > 0;
    out[count] = *event;
    out[count].count += before;
    return count + 1;
}

size_t network_events(struct app *app, const char *sandbox, uint64_t after,
                      struct network_event *out, size_t most)
{
    struct network_log *n = app->network_log;
    size_t count = 0;
    uint64_t from;

    if (!n)
        return 0;
    network_catch_up(app, sandbox);
    (void) pthread_mutex_lock(&n->lock);
    from = n->seq > NETWORK_EVENTS ? n->seq - NETWORK_EVENTS : 0;
    for (uint64_t seq = from < after ? after : from; seq < n->seq && count < most; seq++)
        if (strcmp(n->ring[seq % NETWORK_EVENTS].event.sandbox, sandbox) == 0)
            count = add(out, count, &n->ring[seq % NETWORK_EVENTS]);
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
    struct network_log *n = app->network_log;
    struct network_event news[TOLD_MOST]; /* the newest; all of them are in the events */
    json_t *list = NULL;
    size_t count = 0;

    if (!n)
        return NULL;
    network_catch_up(app, sandbox);
    (void) pthread_mutex_lock(&n->lock);
    for (uint64_t seq = n->seq > NETWORK_EVENTS ? n->seq - NETWORK_EVENTS : 0; seq < n->seq;
         seq++) {
        struct network_event *e = &n->ring[seq % NETWORK_EVENTS];

        if (!is_news(e, sandbox))
            continue;
        e->told = true;
        if (count == TOLD_MOST && !is_again(&news[count - 1], e)) {
            memmove(&news[0], &news[1], (TOLD_MOST - 1) * sizeof news[0]);
            count--;
        }
        count = add(news, count, e);
    }
    (void) pthread_mutex_unlock(&n->lock);
    for (size_t i = 0; i < count; i++) {
        if (!list)
            list = json_array();
        (void) json_array_append_new(list, network_event_json(&news[i]));
    }
    return list;
}

json_t *network_event_json(const struct network_event *e)
{
    json_t *json = json_pack("{s:I, s:o, s:s, s:s, s:s}", "seq", (json_int_t) e->seq, "time",
                             form_time(e->time_ms), "sandbox", e->event.sandbox, "event",
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
    if (e->count > 1)
        (void) json_object_set_new(json, "count", json_integer(e->count));
    if (e->event.missed > 0)
        (void) json_object_set_new(json, "missed", json_integer((json_int_t) e->event.missed));
    (void) json_object_set_new(json, "port", json_integer(e->event.port));
    if (e->event.what == EGRESS_NAME)
        return json;
    (void) json_object_set_new(json, "address", json_string(ip));
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
