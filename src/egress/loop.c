#include "egress/egress_own.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH        128
#define TICK_MS      100
#define EVENTS_PER_S 500 /* of all sandboxes: each costs a record */

/* ---- what parts of the gateway share ---- */

int source_arm(struct egress *e, struct source *source, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = source };
    int op = events == 0 ? EPOLL_CTL_DEL : source->armed == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    if (events == source->armed)
        return 0;
    if (epoll_ctl(e->epoll_fd, op, source->fd, &event) < 0)
        return -1;
    source->armed = events;
    return 0;
}

int source_connect(struct egress *e, struct source *source, const struct ip *ip, uint16_t port,
                   void (*ready)(struct egress *e, struct source *source, uint32_t events))
{
    struct sockaddr_storage at;
    socklen_t len = ip_to_sockaddr(ip, port, &at);
    int on = 1;

    source_close(e, source);
    *source =
        (struct source){ .fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                         .alone = true,
                         .ready = ready };
    if (source->fd < 0)
        return -1;
    (void) setsockopt(source->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(source->fd, (const struct sockaddr *) &at, len) < 0 && errno != EINPROGRESS)
        return -1;
    return source_arm(e, source, EPOLLOUT);
}

void source_close(struct egress *e, struct source *source)
{
    if (source->fd >= 0 && !source->alone)
        (void) source_arm(e, source, 0);
    source->armed = 0;
    source->ready = NULL;
    own_close(&source->fd);
}

void free_later(struct egress *e, struct deferred *what)
{
    what->next = e->deferred;
    e->deferred = what;
}

static void free_deferred(struct egress *e)
{
    while (e->deferred) {
        struct deferred *deferred = e->deferred;

        e->deferred = deferred->next;
        free(deferred);
    }
}

void tell(struct egress *e, struct box *box, const struct egress_event *event)
{
    /* A sandbox that tries a thousand times is told of often enough; but not so often that what was let out goes unseen. */
    bool out = event->what == EGRESS_CONNECT || event->what == EGRESS_FAILED;
    struct egress_event *told;

    if (e->event_count == EVENTS_MAX || !bucket_take(out ? &box->lets : &box->events, 1) ||
        (!out && !bucket_take(&e->told, 1))) {
        box->missed++;
        return;
    }
    told = &e->events[e->event_count++];
    *told = *event;
    told->missed = box->missed;
    box->missed = 0;
    (void) snprintf(told->sandbox, EGRESS_ID_MAX, "%s", box->id);
    if (!out && !told->reason[0])
        (void) strcpy(told->reason, egress_rule_means(told->rule));
}

/* ---- the loop ---- */

static void tick(struct egress *e, uint64_t now)
{
    if (now - e->ticked_ms < TICK_MS)
        return;
    e->ticked_ms = now;
    host_look(e, now);
    lookup_tick(e, now);
    for (struct box *box = e->boxes; box; box = box->next) {
        /* A listener that was left alone for want of descriptors; without rules it stays so. */
        if (box->rules)
            (void) source_arm(e, &box->tcp, EPOLLIN);
        box_tell_refused(e, box);
        for (struct flow *flow = box->flows, *next; flow; flow = next) {
            next = flow->next;
            flow_tick(e, flow, now);
        }
    }
}

/* Told without the lock: the listener may take its time, and may ask us something. */
static void deliver(struct egress *e)
{
    static struct egress_event events[EVENTS_MAX]; /* the loop's alone */
    size_t count = e->event_count;

    memcpy(events, e->events, count * sizeof events[0]);
    e->event_count = 0;
    (void) pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < count; i++)
        e->config.event(e->config.context, &events[i]);
}

static void *loop(void *arg)
{
    struct egress *e = arg;
    struct epoll_event events[BATCH];
    eventfd_t woken;

    for (;;) {
        int n = epoll_wait(e->epoll_fd, events, BATCH, TICK_MS);

        (void) pthread_mutex_lock(&e->lock);
        if (e->stop)
            break;
        for (int i = 0; i < n; i++) {
            struct source *source = events[i].data.ptr;

            if (!source)
                (void) eventfd_read(e->wake_fd, &woken);
            else if (source->ready)
                source->ready(e, source, events[i].events);
        }
        tick(e, io_now_ms());
        free_deferred(e);
        deliver(e);
    }
    (void) pthread_mutex_unlock(&e->lock);
    return NULL;
}

int egress_start(const struct egress_config *config, struct egress **ret, struct err *err)
{
    struct epoll_event event = { .events = EPOLLIN };
    struct egress *e = calloc(1, sizeof *e);
    int rc;

    if (!e)
        return err_set(err, ERR_NO_MEMORY, "no memory for the gateway");
    e->config = *config;
    e->told.rate = EVENTS_PER_S;
    shares_init(e);
    (void) pthread_mutex_init(&e->lock, NULL);
    e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->news_fd = host_watch();
    if (e->epoll_fd < 0 || e->wake_fd < 0 ||
        epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, e->wake_fd, &event) < 0) {
        err_sys(err, errno, "start the gateway");
        goto undo;
    }
    host_look(e, io_now_ms());
    rc = pthread_create(&e->thread, NULL, loop, e);
    if (rc != 0) {
        err_sys(err, rc, "start the gateway");
        goto undo;
    }
    *ret = e;
    return 0;

undo:
    own_close(&e->epoll_fd);
    own_close(&e->wake_fd);
    own_close(&e->news_fd);
    free(e);
    return -1;
}

void egress_stop(struct egress *e)
{
    if (!e)
        return;
    (void) pthread_mutex_lock(&e->lock);
    e->stop = true;
    (void) pthread_mutex_unlock(&e->lock);
    (void) eventfd_write(e->wake_fd, 1);
    (void) pthread_join(e->thread, NULL);
    while (e->boxes)
        box_free(e, e->boxes);
    peer_sets_free(e);
    free_deferred(e);
    tls_trust_free(e->trust);
    own_close(&e->epoll_fd);
    own_close(&e->wake_fd);
    own_close(&e->news_fd);
    (void) pthread_mutex_destroy(&e->lock);
    free(e);
}

/* ---- from other threads ---- */

/* Whose certificates count is read when a connection needs it, and not under the lock: it takes a while. */
static int have_trust(struct egress *e, struct err *err)
{
    char why[ERR_MSG_MAX];
    struct tls_trust *trust;
    bool have;

    (void) pthread_mutex_lock(&e->lock);
    have = e->trust;
    (void) pthread_mutex_unlock(&e->lock);
    if (have)
        return 0;
    trust = tls_trust_new(e->config.authorities, why, sizeof why);
    if (!trust)
        return err_set(err, ERR_UNAVAILABLE, "%s", why);
    (void) pthread_mutex_lock(&e->lock);
    if (e->trust)
        tls_trust_free(trust);
    else
        e->trust = trust;
    (void) pthread_mutex_unlock(&e->lock);
    return 0;
}

static void judge_again(struct egress *e, struct box *box, bool moved)
{
    box_open_rows(e, box);
    for (struct flow *flow = box->flows, *next; flow; flow = next) {
        next = flow->next;
        flow_judge_again(e, flow, moved);
    }
}

void egress_set_ranges(struct egress *e, const char *ranges)
{
    (void) pthread_mutex_lock(&e->lock);
    (void) snprintf(e->config.ranges, sizeof e->config.ranges, "%s", ranges);
    for (struct box *box = e->boxes; box; box = box->next)
        if (box->rules)
            judge_again(e, box, false);
    (void) eventfd_write(e->wake_fd, 1); /* a listener may be waiting */
    (void) pthread_mutex_unlock(&e->lock);
}

int egress_set(struct egress *e, const char *sandbox, const char *tenant, const struct reach *rules,
               struct egress_secrets *secrets, const int fds[EGRESS_FDS], struct err *err)
{
    struct reach *copy = NULL;
    struct box *box;

    if (secrets && have_trust(e, err) < 0) {
        for (int i = 0; fds && i < EGRESS_FDS; i++)
            (void) close(fds[i]);
        egress_secrets_free(secrets);
        return -1;
    }
    copy = malloc(sizeof *copy);
    (void) pthread_mutex_lock(&e->lock);
    box = box_find(e, sandbox);
    if (fds && box) { /* a gateway that was opened again: the old sockets catch nothing any more */
        box_free(e, box);
        box = NULL;
    }
    if (fds)
        box = box_new(e, sandbox, tenant, fds, err);
    else if (!box)
        err_set(err, ERR_NO_SANDBOX, "sandbox '%s' has no gateway", sandbox);
    if (!copy && box)
        err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (copy && box) {
        bool moved = box->rules && !upstream_same(&box->rules->upstream, &rules->upstream);

        *copy = *rules;
        free(box->rules);
        box->rules = copy;
        if (secrets) {
            egress_secrets_free(box->secrets);
            box->secrets = secrets;
            secrets = NULL;
        }
        judge_again(e, box, moved);
    } else {
        if (box && fds) /* nothing may be judged without rules */
            box_free(e, box);
        free(copy);
        copy = NULL;
    }
    (void) pthread_mutex_unlock(&e->lock);
    egress_secrets_free(secrets);
    return copy ? 0 : -1;
}

size_t egress_open(struct egress *e, const char *sandbox)
{
    const struct box *box;
    size_t open;

    (void) pthread_mutex_lock(&e->lock);
    box = box_find(e, sandbox);
    open = box ? box->used[EGRESS_CONNECTIONS] + box->used[EGRESS_LOOKUPS] : 0;
    (void) pthread_mutex_unlock(&e->lock);
    return open;
}

/* Takes what is yet to be told of one sandbox. */
static size_t last_words(struct egress *e, const char *sandbox, struct egress_event **ret)
{
    struct egress_event *own = calloc(e->event_count + 1, sizeof *own);
    size_t taken = 0, left = 0;

    for (size_t i = 0; own && i < e->event_count; i++) {
        if (strcmp(e->events[i].sandbox, sandbox) == 0)
            own[taken++] = e->events[i];
        else
            e->events[left++] = e->events[i];
    }
    if (own)
        e->event_count = left;
    *ret = own;
    return taken;
}

/* The caller that drops a sandbox forgets it next: what is to be told of it is told before, by the thread that drops it. */
void egress_drop(struct egress *e, const char *sandbox)
{
    auto_free struct egress_event *events = NULL;
    struct box *box;
    size_t count;

    (void) pthread_mutex_lock(&e->lock);
    box = box_find(e, sandbox);
    if (box)
        box_free(e, box);
    count = last_words(e, sandbox, &events);
    (void) pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < count; i++)
        e->config.event(e->config.context, &events[i]);
}

void egress_counts(struct egress *e, struct egress_counts *ret)
{
    (void) pthread_mutex_lock(&e->lock);
    *ret = e->counts;
    ret->sandboxes = ret->connections = 0;
    for (const struct box *box = e->boxes; box; box = box->next) {
        ret->sandboxes++;
        ret->connections += box->used[EGRESS_CONNECTIONS];
    }
    shares_count(e, ret);
    (void) pthread_mutex_unlock(&e->lock);
}
