#include "server/gateway/gateway_own.h"

#include "base/log.h"
#include "base/own.h"

#include <stdio.h>
#include <string.h>

int gateway_set(struct gateway *g, const char *sandbox, const char *tenant,
                const struct reach *rules, struct message_secrets *secrets,
                const int fds[EGRESS_FDS], struct err *err)
{
    struct call call = call_for(MESSAGE_SET, sandbox);
    struct message_out out = { .data = NULL };
    int r = message_put_set(&out, 0, sandbox, tenant, rules, secrets, fds != NULL, err);

    call.with_sockets = fds != NULL;
    message_secrets_free(secrets);
    if (r == 0)
        r = call_gateway(g, &call, &out, fds, fds ? EGRESS_FDS : 0, true, err);
    message_out_done(&out);
    for (size_t i = 0; fds && i < EGRESS_FDS; i++)
        (void) close(fds[i]);
    return r;
}

/* Those of now; false: it was told. */
static bool ranges_due(struct gateway *g, char ret[EGRESS_RANGES_MAX])
{
    bool due;

    (void) pthread_mutex_lock(&g->lock);
    due = g->ranges_due;
    g->ranges_due = false;
    g->ranges_told = due;
    memcpy(ret, g->config.egress.ranges, EGRESS_RANGES_MAX);
    (void) pthread_mutex_unlock(&g->lock);
    return due;
}

/* One at a time, so that the last word is the last one sent. */
static void *tell_ranges(void *arg)
{
    struct gateway *g = arg;
    char ranges[EGRESS_RANGES_MAX];

    while (ranges_due(g, ranges)) {
        struct call call = call_for(MESSAGE_RANGES, "");
        struct message_out out = { .data = NULL };
        struct err why;

        if (message_put_ranges(&out, 0, ranges, &why) < 0 ||
            call_gateway(g, &call, &out, NULL, 0, true, &why) < 0)
            log_line(LOG_WARNING, "the ranges could not be sent to the gateway: %s", why.msg);
        message_out_done(&out);
    }
    return NULL;
}

void gateway_set_ranges(struct gateway *g, const char *ranges)
{
    pthread_t thread;

    (void) pthread_mutex_lock(&g->lock);
    if (strcmp(g->config.egress.ranges, ranges) !=
        0) { /* else it has them, or gets them when it connects */
        (void) snprintf(g->config.egress.ranges, sizeof g->config.egress.ranges, "%s", ranges);
        g->ranges_due = true;
        if (!g->ranges_told) {
            g->ranges_told = pthread_create(&thread, NULL, tell_ranges, g) == 0;
            if (g->ranges_told)
                (void) pthread_detach(thread);
            else
                log_line(LOG_ERROR, "the ranges are not sent to the gateway: no thread");
        }
    }
    (void) pthread_mutex_unlock(&g->lock);
}

/* One that ends with the gateway is dropped with it. */
void gateway_drop(struct gateway *g, const char *sandbox)
{
    struct call call = call_for(MESSAGE_DROP, sandbox);
    struct message_out out = { .data = NULL };
    struct err ignored;

    if (gateway_has(g, sandbox) &&
        message_put_ask_for(&out, MESSAGE_DROP, 0, sandbox, &ignored) == 0)
        (void) call_gateway(g, &call, &out, NULL, 0, false, &ignored);
    message_out_done(&out);
}

bool gateway_has(struct gateway *g, const char *sandbox)
{
    bool found;

    (void) pthread_mutex_lock(&g->lock);
    found = known_has(g->known, sandbox);
    (void) pthread_mutex_unlock(&g->lock);
    return found;
}

size_t gateway_open(struct gateway *g, const char *sandbox)
{
    struct call call = call_for(MESSAGE_OPEN, sandbox);
    struct message_out out = { .data = NULL };
    struct err ignored;
    size_t open = 0;

    if (gateway_has(g, sandbox) &&
        message_put_ask_for(&out, MESSAGE_OPEN, 0, sandbox, &ignored) == 0 &&
        call_gateway(g, &call, &out, NULL, 0, false, &ignored) == 0)
        open = (size_t) call.result.open;
    message_out_done(&out);
    return open;
}

void gateway_answer(struct gateway *g, uint64_t ticket, const struct egress_process *process)
{
    struct message_out out = { .data = NULL };
    struct err ignored;

    if (message_put_answer(&out, ticket, process, &ignored) == 0)
        tell_gateway(g, &out, NULL, 0);
}

/* ---- private networks ---- */

/* Also known while the gateway is down: it is told when it is back. */
int gateway_nets_set(struct gateway *g, const char *tenant, const struct egress_net *nets,
                     size_t count, struct err *err)
{
    struct call call = call_for(MESSAGE_NETS, "");
    struct message_out out = { .data = NULL };
    int r;

    (void) pthread_mutex_lock(&g->lock);
    r = known_nets_set(g->known, tenant, nets, count, err);
    (void) pthread_mutex_unlock(&g->lock);
    if (r == 0 && message_put_nets(&out, 0, tenant, nets, count, err) < 0)
        r = -1;
    if (r == 0)
        r = call_gateway(g, &call, &out, NULL, 0, true, err);
    message_out_done(&out);
    return r;
}

int gateway_nets_without(struct gateway *g, const char *tenant, char (**ret)[EGRESS_ID_MAX],
                         size_t *ret_count, struct err *err)
{
    int r;

    (void) pthread_mutex_lock(&g->lock);
    r = known_nets_without(g->known, tenant, ret, ret_count, err);
    (void) pthread_mutex_unlock(&g->lock);
    return r;
}

bool gateway_nets_member(struct gateway *g, const char *sandbox)
{
    bool member;

    (void) pthread_mutex_lock(&g->lock);
    member = known_nets_member(g->known, sandbox);
    (void) pthread_mutex_unlock(&g->lock);
    return member;
}

void gateway_dialed(struct gateway *g, const struct egress_dial *dial, int fd,
                    const struct err *why)
{
    struct message_out out = { .data = NULL };
    auto_close int stream = fd;
    struct err ignored;

    if (message_put_dialed(&out, dial, stream >= 0, why, &ignored) == 0)
        tell_gateway(g, &out, &stream, stream >= 0 ? 1 : 0);
}

/* ---- how it is ---- */

void gateway_counts(struct gateway *g, struct egress_counts *ret)
{
    struct call call = call_for(MESSAGE_COUNTS, "");
    struct message_out out = { .data = NULL };
    struct err ignored;

    *ret = (struct egress_counts){ .sandboxes = 0 };
    if (message_put_ask_for(&out, MESSAGE_COUNTS, 0, NULL, &ignored) == 0 &&
        call_gateway(g, &call, &out, NULL, 0, false, &ignored) == 0)
        *ret = call.result.counts; /* zero without any */
    message_out_done(&out);
}

void gateway_state(struct gateway *g, struct gateway_state *ret)
{
    (void) pthread_mutex_lock(&g->lock);
    *ret = g->state;
    ret->up = g->up;
    (void) pthread_mutex_unlock(&g->lock);
}
