/* A call has a serial, waits in a list, and is woken by the thread that reads the answer, or when the connection is lost.
 *
 *   lock       all that is shared. Never held while something is sent or waited for.
 *   send_lock  one message at a time. Taken before lock, by the sender; also by the reader, to close the socket.
 *
 * A connection has a number (session): what was begun under one is never finished under another. */
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/gateway_start.h"
#include "server/gateway/gateway_own.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANSWER_MS    5000 /* that a call waits */
#define GRACE_MS     5000 /* that a call waits for a gateway that has just ended */
#define AGAIN_MS     50   /* between two connects */
#define AGAIN_MOST   2000
#define EVENTS_PER_S 10000 /* that are taken: each is a record in the audit log */

static int no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory for the gateway");
}

static int unavailable(struct err *err, const char *why)
{
    return err_set(err, ERR_UNAVAILABLE, "the network gateway %s; it is started again", why);
}

/* ---- sending ---- */

/* The descriptors go with the first byte. */
static int send_bytes(int fd, const struct message_out *out, const int *fds, size_t count)
{
    size_t at = 0;

    while (at < out->len) {
        ssize_t n = io_send_fds(fd, out->data + at, out->len - at, fds, at == 0 ? count : 0);

        if (n <= 0)
            return -1;
        at += (size_t) n;
    }
    return 0;
}

/* Under send_lock: the socket is not closed meanwhile. Half a message is the end of a connection. */
static int send_now(struct gateway *g, uint64_t session, const struct message_out *out,
                    const int *fds, size_t count)
{
    int fd, r;

    (void) pthread_mutex_lock(&g->lock);
    fd = g->session == session ? g->fd : -1;
    (void) pthread_mutex_unlock(&g->lock);
    r = fd < 0 ? -1 : send_bytes(fd, out, fds, count);
    if (r < 0 && fd >= 0)
        (void) shutdown(fd, SHUT_RDWR);
    return r;
}

static int send_to(struct gateway *g, uint64_t session, const struct message_out *out,
                   const int *fds, size_t count)
{
    int r;

    (void) pthread_mutex_lock(&g->send_lock);
    r = send_now(g, session, out, fds, count);
    (void) pthread_mutex_unlock(&g->send_lock);
    return r;
}

void tell_gateway(struct gateway *g, struct message_out *out, const int *fds, size_t count)
{
    uint64_t session;

    (void) pthread_mutex_lock(&g->lock);
    session = g->up ? g->session : UINT64_MAX;
    (void) pthread_mutex_unlock(&g->lock);
    (void) send_to(g, session, out, fds, count);
    message_out_done(out);
}

/* ---- calls ---- */

/* With the lock. */
static void wait_until(struct gateway *g, uint64_t until_ms)
{
    uint64_t now = io_now_ms();
    struct timespec at = io_after_ms(until_ms > now ? until_ms - now : 0);

    (void) pthread_cond_timedwait(&g->changed, &g->lock, &at);
}

/* With the lock. One that has not been there yet has its grace from the first call that needs it: coved may have started long before. */
static bool wait_up(struct gateway *g)
{
    if (!g->up && !g->down_ms)
        g->down_ms = io_now_ms();
    while (!g->up && io_now_ms() < g->down_ms + GRACE_MS)
        wait_until(g, g->down_ms + GRACE_MS);
    return g->up;
}

static void unlist(struct gateway *g, const struct call *call)
{
    struct call **at = &g->calls;

    while (*at && *at != call)
        at = &(*at)->next;
    if (*at)
        *at = call->next;
}

static void list(struct gateway *g, struct call *call)
{
    call->next = g->calls;
    g->calls = call;
}

/* Gets a serial, and the session that it is for; false: the gateway is down. */
static bool begin(struct gateway *g, struct call *call, bool patient, uint64_t *ret_session)
{
    bool up;

    (void) pthread_mutex_lock(&g->lock);
    up = patient ? wait_up(g) : g->up;
    call->serial = ++g->serial;
    *ret_session = g->session;
    if (up)
        list(g, call);
    (void) pthread_mutex_unlock(&g->lock);
    return up;
}

/* One that does not answer is cut off: what it would say later answers no request. */
static int finish(struct gateway *g, struct call *call, uint64_t session, bool sent,
                  struct err *err)
{
    uint64_t until = io_now_ms() + ANSWER_MS;
    bool late;

    (void) pthread_mutex_lock(&g->lock);
    call->lost = call->lost || !sent;
    while (!call->done && !call->lost && io_now_ms() < until)
        wait_until(g, until);
    late = !call->done && !call->lost;
    unlist(g, call);
    if (late && g->session == session && g->fd >= 0)
        (void) shutdown(g->fd, SHUT_RDWR);
    (void) pthread_mutex_unlock(&g->lock);
    if (late)
        return unavailable(err, "does not answer");
    if (call->lost)
        return unavailable(err, "has just ended");
    *err = call->result.err;
    return err->kind == ERR_NONE ? 0 : -1;
}

/* `out` has one message without its serial, which is put in here. */
int call_gateway(struct gateway *g, struct call *call, struct message_out *out, const int *fds,
                 size_t count, bool patient, struct err *err)
{
    struct message_head head;
    uint64_t session;

    if (!begin(g, call, patient, &session))
        return unavailable(err, "is not running");
    memcpy(&head, out->data, sizeof head);
    head.serial = call->serial;
    memcpy(out->data, &head, sizeof head);
    return finish(g, call, session, send_to(g, session, out, fds, count) == 0, err);
}

struct call call_for(enum message_kind kind, const char *sandbox)
{
    struct call call = { .kind = kind };

    (void) snprintf(call.sandbox, sizeof call.sandbox, "%s", sandbox);
    return call;
}

/* ---- what it says ---- */

static bool too_many_events(struct gateway *g)
{
    uint64_t second = io_now_ms() / 1000;

    if (second != g->event_second) {
        g->event_second = second;
        g->event_count = 0;
    }
    return ++g->event_count > EVENTS_PER_S;
}

static void count_ignored(struct gateway *g)
{
    (void) pthread_mutex_lock(&g->lock);
    g->state.ignored++;
    (void) pthread_mutex_unlock(&g->lock);
}

static int on_event(struct gateway *g, const uint8_t *body, size_t len, struct err *err)
{
    struct egress_event event;

    if (message_get_event(body, len, &event, err) < 0)
        return -1;
    if (too_many_events(g) || !gateway_has(g, event.sandbox))
        count_ignored(g);
    else
        g->config.egress.event(g->config.egress.context, &event);
    return 0;
}

static int on_ask(struct gateway *g, const uint8_t *body, size_t len, struct err *err)
{
    struct egress_ask ask;

    if (message_get_ask(body, len, &ask, err) < 0)
        return -1;
    if (!gateway_has(g, ask.sandbox) || !g->config.egress.ask(g->config.egress.context, &ask))
        gateway_answer(g, ask.ticket, NULL);
    return 0;
}

static int on_dial(struct gateway *g, const uint8_t *body, size_t len, struct err *err)
{
    static const struct err denied = { ERR_DENIED, "no longer open to it" };
    struct egress_dial dial;
    bool allowed;

    if (message_get_dial(body, len, &dial, err) < 0)
        return -1;
    (void) pthread_mutex_lock(&g->lock);
    allowed = known_nets_allow(g->known, &dial);
    (void) pthread_mutex_unlock(&g->lock);
    if (allowed) {
        g->config.egress.dial(g->config.egress.context, &dial);
    } else {
        count_ignored(g);
        gateway_dialed(g, &dial, -1, &denied);
    }
    return 0;
}

/* What is known of sandboxes follows the answers, in their order. */
static void learn(struct gateway *g, const struct call *call)
{
    uint32_t kind = call->result.err.kind;

    if (call->kind == MESSAGE_SET && kind == ERR_NONE)
        (void) known_add(g->known, call->sandbox);
    else if (call->kind == MESSAGE_DROP ||
             (call->kind == MESSAGE_SET && (call->with_sockets || kind == ERR_NO_SANDBOX)))
        known_remove(g->known, call->sandbox);
}

/* One without a waiting caller is the answer to a network that was told in the beginning. */
static int on_result(struct gateway *g, uint64_t serial, const uint8_t *body, size_t len,
                     struct err *err)
{
    struct message_result result;
    struct call *call;

    if (message_get_result(body, len, &result, err) < 0)
        return -1;
    (void) pthread_mutex_lock(&g->lock);
    for (call = g->calls; call && (call->serial != serial || call->done); call = call->next)
        ;
    if (call) {
        call->result = result;
        call->done = true;
        learn(g, call);
        (void) pthread_cond_broadcast(&g->changed);
    }
    (void) pthread_mutex_unlock(&g->lock);
    return 0;
}

static int take(struct gateway *g, const struct message_head *head, const uint8_t *body,
                struct err *err)
{
    switch ((enum message_kind) head->kind) {
    case MESSAGE_RESULT:
        return on_result(g, head->serial, body, head->size, err);
    case MESSAGE_EVENT:
        return on_event(g, body, head->size, err);
    case MESSAGE_ASK:
        return on_ask(g, body, head->size, err);
    case MESSAGE_DIAL:
        return on_dial(g, body, head->size, err);
    default:
        return err_set(err, ERR_PROTOCOL, "unexpected message %u", head->kind);
    }
}

/* Whole messages of what was read; the rest stays for more. */
static int take_all(struct gateway *g, struct err *err)
{
    size_t at = 0;

    for (;;) {
        struct message_head head;

        if (g->len - at < sizeof head)
            break;
        memcpy(&head, g->buffer + at, sizeof head);
        if (message_head_check(&head, false, err) < 0)
            return -1;
        if (g->len - at - sizeof head < head.size)
            break;
        if (take(g, &head, g->buffer + at + sizeof head, err) < 0)
            return -1;
        at += sizeof head + head.size;
    }
    memmove(g->buffer, g->buffer + at, g->len - at);
    g->len -= at;
    return 0;
}

/* Until the connection ends (0), or it said what it must not say. Descriptors that it sends are dropped by the kernel. */
static int read_all(struct gateway *g, int fd, struct err *err)
{
    for (;;) {
        ssize_t n = read(fd, g->buffer + g->len, sizeof g->buffer - g->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        g->len += (size_t) n;
        if (take_all(g, err) < 0)
            return -1;
    }
}

/* ---- the connection ---- */

/* Settings, and all private networks, in one go: no other thread sends before `up`. */
static int put_all(struct gateway *g, struct message_out *out, struct err *err)
{
    int r;

    (void) pthread_mutex_lock(&g->lock);
    r = message_put_config(out, 0, &g->config.egress, err);
    for (const struct known_tenant *t = known_tenants(g->known); r == 0 && t; t = t->next)
        r = message_put_nets(out, 0, t->name, t->nets, t->count, err);
    (void) pthread_mutex_unlock(&g->lock);
    return r;
}

/* The answer to the first message: the gateway is there, and understands us. */
static int hear_config(int fd, struct err *err)
{
    struct message_result result;
    struct message_head head;
    uint8_t body[MESSAGE_REPORT_MOST];
    struct timeval patience = { .tv_sec = 2 * ANSWER_MS / 1000 }, none = { .tv_sec = 0 };

    (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (recv(fd, &head, sizeof head, MSG_WAITALL) != (ssize_t) sizeof head)
        return unavailable(err, "does not answer");
    if (message_head_check(&head, false, err) < 0)
        return -1;
    if (head.kind != MESSAGE_RESULT)
        return err_set(err, ERR_PROTOCOL, "unexpected message %u", head.kind);
    if (head.size > 0 && recv(fd, body, head.size, MSG_WAITALL) != (ssize_t) head.size)
        return unavailable(err, "does not answer");
    if (message_get_result(body, head.size, &result, err) < 0)
        return -1;
    (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    *err = result.err;
    return err->kind == ERR_NONE ? 0 : -1;
}

static int greet(struct gateway *g, int fd, struct err *err)
{
    struct message_out out = { .data = NULL };
    struct timeval patience = { .tv_sec = ANSWER_MS / 1000 };
    int r = put_all(g, &out, err);

    (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (r == 0 && send_bytes(fd, &out, NULL, 0) < 0)
        r = unavailable(err, "does not listen");
    message_out_done(&out);
    return r < 0 ? -1 : hear_config(fd, err);
}

static void come_up(struct gateway *g, int fd)
{
    (void) pthread_mutex_lock(&g->lock);
    g->fd = fd;
    g->up = true;
    g->session++;
    g->state.connects++;
    (void) pthread_cond_broadcast(&g->changed);
    (void) pthread_mutex_unlock(&g->lock);
    g->len = 0;
    log_line(LOG_INFO, "gateway connected");
    g->config.up(g->config.egress.context);
}

static void go_down(struct gateway *g)
{
    (void) pthread_mutex_lock(&g->send_lock);
    (void) pthread_mutex_lock(&g->lock);
    own_close(&g->fd);
    g->up = false;
    g->session++;
    g->down_ms = io_now_ms();
    known_clear(g->known);
    for (struct call *call = g->calls; call; call = call->next)
        call->lost = !call->done;
    (void) pthread_cond_broadcast(&g->changed);
    (void) pthread_mutex_unlock(&g->lock);
    (void) pthread_mutex_unlock(&g->send_lock);
}

/* One connection from its beginning to its end. -1: there was none, or it had to be cut off. */
static int live(struct gateway *g)
{
    struct err err = { .kind = ERR_NONE };
    int fd = -1, r;

    if (gateway_connect(g->directory, &fd, &err) < 0 || greet(g, fd, &err) < 0) {
        own_close(&fd);
        log_line(LOG_DEBUG, "gateway not reached: %s", err.msg);
        return -1;
    }
    come_up(g, fd);
    r = read_all(g, fd, &err);
    if (r < 0)
        log_line(LOG_ERROR, "gateway cut off: %s", err.msg);
    else
        log_line(LOG_WARNING, "gateway lost; connections of sandboxes are cut");
    go_down(g);
    return r;
}

static void *run(void *arg)
{
    struct gateway *g = arg;
    int wait = AGAIN_MS;

    for (;;) {
        wait = live(g) == 0 ? AGAIN_MS : wait * 2 > AGAIN_MOST ? AGAIN_MOST : wait * 2;
        (void) poll(NULL, 0, wait);
    }
    return NULL;
}

int gateway_start(const struct gateway_config *config, struct gateway **ret, struct err *err)
{
    struct gateway *g = calloc(1, sizeof *g);
    pthread_condattr_t clock;
    pthread_t thread;

    if (!g || !(g->known = known_new())) {
        free(g);
        return no_memory(err);
    }
    g->config = *config;
    (void) snprintf(g->directory, sizeof g->directory, "%s", config->directory);
    g->fd = -1;
    (void) pthread_mutex_init(&g->lock, NULL);
    (void) pthread_mutex_init(&g->send_lock, NULL);
    (void) pthread_condattr_init(&clock);
    (void) pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&g->changed, &clock);
    *ret = g; /* the thread may call back at once */
    if (pthread_create(&thread, NULL, run, g) != 0) {
        *ret = NULL;
        known_free(g->known);
        free(g);
        return no_memory(err);
    }
    (void) pthread_detach(thread);
    return 0;
}
