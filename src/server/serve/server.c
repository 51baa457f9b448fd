#include "server/serve/server.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "server/life/pool.h"
#include "server/net/network.h"
#include "server/serve/admin.h"
#include "server/serve/conn.h"
#include "server/serve/listener.h"
#include "server/serve/peer_owner.h"
#include "server/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define BATCH    64
#define SWEEP_MS 500
#define QUEUE_MS 2000 /* a request that found no worker for so long is refused */
#define DRAIN_MS 30000
/* Kept by the kernel for a client that does not read; it would keep megabytes. */
#define UNSENT_MAX (256 * 1024)
#define CUT_MS     500
#define LINGER_MS  10000 /* a worker without work goes after this */
#define STACK_SIZE (256 * 1024)
#define FDS_EACH   3 /* of a request: a link to the keeper, a connection to the agent, a pipe's end */
#define FDS_OWN    64 /* the store, the log, epoll, idle links */
#define ADMIN_MORE 32 /* connections and workers for administrators alone */

struct server {
    struct app *app;
    struct tls_context *tls;
    struct conn_waits waits;
    struct listener listeners[LISTENERS_MAX];
    struct peer_owners owners;
    int epoll_fd, signal_fd;
    int spare_fd;         /* given up to refuse politely when descriptors run out */
    atomic_bool draining; /* set by the main thread, looked at by workers */
    uint64_t connections_most, warned_ms;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t work, done;
    struct conn *queue_first, *queue_last; /* by conn->next; waiting for a worker */
    struct conn *all;                      /* every connection that is not queued or busy */
    struct conn *busy;                     /* with a worker */
    size_t connections, workers, idle_workers, serving, queued;
};

/* ---- the list of waiting connections ---- */

static void list_add(struct conn **list, struct conn *conn)
{
    conn->prev = NULL;
    conn->next = *list;
    if (*list)
        (*list)->prev = conn;
    *list = conn;
}

static void list_remove(struct conn **list, struct conn *conn)
{
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        *list = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    conn->prev = conn->next = NULL;
}

static void drop(struct server *s, struct conn *conn)
{
    conn_free(conn);
    s->connections--;
    (void) pthread_cond_signal(&s->done);
}

/* ---- workers ---- */

/* Back to the waiter; lock held. One-shot: only one worker ever has it. */
static void rest(struct server *s, struct conn *conn)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = conn };

    conn->busy = false;
    list_add(&s->all, conn);
    if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event) < 0) {
        list_remove(&s->all, conn);
        drop(s, conn);
    }
}

/* Lock held. Whether workers may linger: not while anybody waits for one, nor when many are taken. */
static void note_crowd(struct server *s)
{
    size_t taken = s->workers - s->idle_workers;

    atomic_store(&s->waits.crowded,
                 s->draining || s->queue_first || taken > app_config(s->app)->threads / 2);
}

/* The one that waits longest; NULL: none does. */
static struct conn *queue_take(struct server *s)
{
    struct conn *conn = s->queue_first;

    if (!conn)
        return NULL;
    s->queue_first = conn->next;
    if (!s->queue_first)
        s->queue_last = NULL;
    s->queued--;
    conn->next = NULL;
    note_crowd(s);
    return conn;
}

/* A worker that waits for a slow client does nothing else: another may work in its place. */
static size_t workers_most(struct server *s, bool admin)
{
    size_t waiting = atomic_load(&s->waits.now), most = 2 * atomic_load(&s->waits.most);

    return app_config(s->app)->threads + (waiting < most ? waiting : most) +
           (admin ? ADMIN_MORE : 0);
}

/* NULL: the worker goes. One that was started for administrators does so when none waits: with another client's command it could
 * not be started again for the next administrator. */
static struct conn *next_work(struct server *s)
{
    struct timespec until = io_after_ms(LINGER_MS);

    if (s->workers > workers_most(s, s->queue_first && s->queue_first->admin))
        return NULL;
    s->idle_workers++;
    while (!s->queue_first)
        if (pthread_cond_clockwait(&s->work, &s->lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT &&
            !s->queue_first)
            break;
    s->idle_workers--;
    return queue_take(s);
}

static void *worker(void *arg)
{
    struct server *s = arg;
    struct conn *conn;

    (void) pthread_mutex_lock(&s->lock);
    while ((conn = next_work(s))) {
        bool stays;

        list_add(&s->busy, conn);
        s->serving++;
        (void) pthread_mutex_unlock(&s->lock);
        stays = serve_connection(s->app, conn);
        (void) pthread_mutex_lock(&s->lock);
        s->serving--;
        list_remove(&s->busy, conn);
        atomic_store(&conn->resumable, false);
        if (stays && !s->draining)
            rest(s, conn);
        else
            drop(s, conn);
    }
    s->workers--;
    (void) pthread_cond_signal(&s->done);
    (void) pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool start_worker(struct server *s)
{
    pthread_attr_t attr;
    pthread_t thread;
    bool started;

    (void) pthread_attr_init(&attr);
    (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void) pthread_attr_setstacksize(&attr, STACK_SIZE);
    started = pthread_create(&thread, &attr, worker, s) == 0;
    (void) pthread_attr_destroy(&attr);
    s->workers += started;
    return started;
}

/* Administrators come first. */
static void queue_put(struct server *s, struct conn *conn)
{
    bool first = conn->admin || !s->queue_first;

    conn->next = first ? s->queue_first : NULL;
    if (first)
        s->queue_first = conn;
    else
        s->queue_last->next = conn;
    if (!conn->next)
        s->queue_last = conn;
    s->queued++;
}

/* Hands a readable connection on; lock held. False: no thread could ever take it. Otherwise it waits in the
 * queue, at most QUEUE_MS: a burst of short requests is no reason to refuse any. */
static bool dispatch(struct server *s, struct conn *conn)
{
    if (s->idle_workers <= s->queued &&
        (s->workers >= workers_most(s, conn->admin) || !start_worker(s)) && s->workers == 0)
        return false;
    conn->busy = true;
    conn->queued_ms = io_now_ms();
    queue_put(s, conn);
    note_crowd(s);
    (void) pthread_cond_signal(&s->work);
    return true;
}

/* ---- the waiter ---- */

/* What a sandbox sends through the gateway is no request to this server, whatever way it took and whatever key it has. A
 * client that cannot be known is a stranger; on loopback there are none. Why it is refused; NULL: it is not. */
static const char *refuse_peer(struct server *s, const struct conn *conn,
                               const struct sockaddr *peer)
{
    s->owners.gateway = network_uid(s->app);
    switch (peer_owner_of(&s->owners, conn->fd, peer)) {
    case PEER_GATEWAY:
        return "this server takes no requests of sandboxes through their network";
    case PEER_PULLER:
        return "this server takes no requests of the program that pulls images";
    case PEER_UNKNOWN:
        return conn->loopback || conn->preamble ? "the sender of this request is not known" : NULL;
    case PEER_ELSEWHERE:
    case PEER_LOCAL:
        break;
    }
    return NULL;
}

/* Who comes by the unix socket is an administrator, or has no rights: loopback's rights do not count there. */
static const char *refuse_stranger(struct server *s, struct conn *conn)
{
    uid_t uid;

    conn->admin = admin_knows(s->app, conn->fd, &uid);
    (void) snprintf(conn->peer, sizeof conn->peer, "uid:%ld",
                    uid == ADMIN_NOBODY ? -1L : (long) uid);
    return conn->admin ? NULL
                       : "only root and members of the administrators' group may use this socket";
}

static void take_connection(struct server *s, int fd, const struct sockaddr *peer,
                            const struct listener *from)
{
    const struct config *config = app_config(s->app);
    struct conn *conn = conn_new(fd, peer, from->plain ? NULL : s->tls, &s->waits);
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = conn };
    int one = 1, unsent = UNSENT_MAX;
    const char *why;

    if (!conn) {
        (void) close(fd);
        return;
    }
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    conn->since_ms = io_now_ms();
    conn->preamble = config->proxy_protocol && !from->admin;
    why = from->admin ? refuse_stranger(s, conn) : refuse_peer(s, conn, peer);
    (void) pthread_mutex_lock(&s->lock);
    s->connections++;
    if (s->connections > s->connections_most + (conn->admin ? ADMIN_MORE : 0)) {
        serve_refusal(conn, 0, 503, "too_many", "as many connections as allowed are open");
        drop(s, conn);
    } else if (why) {
        atomic_fetch_add(&s->app->refused, 1);
        serve_refusal(conn, 0, 403, "permission_denied", why);
        drop(s, conn);
    } else if (conn->preamble && !conn_peer_in(conn, config->proxy_from)) {
        serve_refusal(conn, 0, 403, "permission_denied",
                      "this server is reached through its proxy");
        drop(s, conn);
    } else if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        drop(s, conn);
    } else {
        list_add(&s->all, conn);
    }
    (void) pthread_mutex_unlock(&s->lock);
}

/* Out of descriptors: the connection is taken with the spare one, told, and closed. */
static void refuse_without_descriptor(struct server *s, const struct listener *from)
{
    struct conn_waits waits = { 0 };
    uint64_t now = io_now_ms();
    int fd;

    own_close(&s->spare_fd);
    fd = accept4(from->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        struct conn plain = { .fd = fd, .waits = &waits };

        if (from->plain || !s->tls)
            serve_refusal(&plain, 0, 503, "unavailable", "the server is out of descriptors");
        (void) close(fd);
    }
    s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    atomic_fetch_add(&s->app->refused, 1);
    if (now - s->warned_ms >= 1000) {
        log_line(LOG_WARNING, "out of descriptors: connections are refused");
        s->warned_ms = now;
    }
}

static void accept_all(struct server *s, const struct listener *from)
{
    for (int i = 0; i < BATCH; i++) {
        struct sockaddr_storage peer;
        socklen_t len = sizeof peer;
        int fd = accept4(from->fd, (struct sockaddr *) &peer, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            take_connection(s, fd, (const struct sockaddr *) &peer, from);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE)
            refuse_without_descriptor(s, from);
        return;
    }
}

static void on_readable(struct server *s, struct conn *conn)
{
    (void) pthread_mutex_lock(&s->lock);
    list_remove(&s->all, conn);
    if (!dispatch(s, conn)) {
        atomic_fetch_add(&s->app->refused, 1);
        serve_refusal(conn, 0, 503, "too_many", "too many requests at once");
        drop(s, conn);
    }
    (void) pthread_mutex_unlock(&s->lock);
}

/* Lock held. Workers may have begun to wait since the queue was filled: then others take what is in it. Nothing is refused
 * while a worker is free, which only waits for a processor of a busy host. */
static void sweep_queue(struct server *s, uint64_t now)
{
    for (size_t more = s->queued; more > s->idle_workers; more--)
        if (s->workers >= workers_most(s, s->queue_first->admin) || !start_worker(s))
            break;
    while (s->queue_first && s->serving == s->workers &&
           now - s->queue_first->queued_ms >= QUEUE_MS) {
        struct conn *conn = queue_take(s);

        atomic_fetch_add(&s->app->refused, 1);
        serve_refusal(conn, 0, 503, "too_many", "too many requests at once");
        drop(s, conn);
    }
}

/* Ends what waits too long: idle connections quietly, begun heads with 408. */
static void sweep(struct server *s)
{
    const struct config *config = app_config(s->app);
    uint64_t now = io_now_ms();

    (void) pthread_mutex_lock(&s->lock);
    sweep_queue(s, now);
    for (struct conn *conn = s->all, *next; conn; conn = next) {
        uint64_t most = conn->head_begun ? config->head_ms : config->idle_ms;

        next = conn->next;
        if (now - conn->since_ms < most)
            continue;
        list_remove(&s->all, conn);
        if (conn->head_begun)
            serve_refusal(conn, 0, 408, "timeout", "the request's head took too long");
        drop(s, conn);
    }
    (void) pthread_mutex_unlock(&s->lock);
}

/* ---- settings ---- */

/* Nothing is changed when the certificate cannot be used. */
static int load_tls(struct server *s, const struct config *config, struct err *err)
{
    char why[200];
    struct tls_context *fresh = NULL;

    if (config->tls_cert[0]) {
        fresh = tls_context_new(config->tls_cert, config->tls_key, why, sizeof why);
        if (!fresh)
            return err_set(err, ERR_USAGE, "the certificate or key cannot be used: %s", why);
    }
    /* Connections of the old one keep it alive by themselves. */
    if (s->tls)
        tls_context_free(s->tls);
    s->tls = fresh;
    return 0;
}

/* Connections leave descriptors for the work that they ask for: what is under way must be able to continue. */
static void apply_limits(struct server *s, const struct config *config)
{
    uint64_t most = UINT64_MAX,
             work = (config->threads + ADMIN_MORE) * FDS_EACH + ADMIN_MORE + FDS_OWN;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
        most = files.rlim_cur - (work < files.rlim_cur / 2 ? work : files.rlim_cur / 2);
    (void) pthread_mutex_lock(&s->lock);
    s->connections_most = config->connections < most ? config->connections : most;
    (void) pthread_mutex_unlock(&s->lock);
    atomic_store(&s->waits.most, config->stalled);
    log_init("coved", config->verbose ? LOG_DEBUG : LOG_INFO);
}

static void tell_change(const struct setting *setting)
{
    if (setting->change == LIVE)
        log_line(LOG_INFO, "reload: %s is changed", setting->name);
    else
        log_line(LOG_WARNING, "reload: %s needs a restart, and stays as it was", setting->name);
}

static void reload(struct server *s)
{
    struct app *app = s->app;
    struct config fresh, *next = malloc(sizeof *next);
    bool check = false;
    struct err err = { .msg = "no memory" };

    if (!next || config_load(&fresh, app->argc, app->argv, &check, &err) < 0 ||
        load_tls(s, &fresh, &err) < 0) {
        log_line(LOG_ERROR, "not reloaded, nothing is changed: %s", err.msg);
        free(next);
        return;
    }
    *next = *app_config(app);
    config_adopt(next, &fresh, tell_change);
    apply_limits(s, next);
    atomic_store(&app->config, next); /* the old one is not freed: see app_config */
    pool_changed();
    network_reload(app);
    log_line(LOG_INFO, "reloaded");
}

static void on_signal(struct server *s)
{
    struct signalfd_siginfo info;

    if (read(s->signal_fd, &info, sizeof info) != (ssize_t) sizeof info)
        return;
    if (info.ssi_signo == SIGHUP) {
        reload(s);
        return;
    }
    log_line(LOG_INFO, "draining signal=%u", info.ssi_signo);
    (void) pthread_mutex_lock(&s->lock); /* workers read it, in note_crowd */
    s->draining = true;
    atomic_store(&s->waits.crowded, true);
    (void) pthread_mutex_unlock(&s->lock);
}

/* ---- start and end ---- */

static int watch(struct server *s, int fd, void *tag, struct err *err)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = tag };

    return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? err_sys(err, errno, "epoll") : 0;
}

static int set_up(struct server *s, struct err *err)
{
    sigset_t set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGINT);
    (void) sigaddset(&set, SIGHUP);
    (void) pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void) signal(SIGPIPE, SIG_IGN);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->signal_fd < 0 || s->epoll_fd < 0)
        return err_sys(err, errno, "set up");
    if (peer_owners_open(&s->owners, false, err) < 0)
        return -1;
    apply_limits(s, app_config(s->app));
    if (load_tls(s, app_config(s->app), err) < 0 ||
        listeners_open(s->listeners, app_config(s->app), s->app->admin_fd, &s->app->loopback, err) <
            0)
        return -1;
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        if (s->listeners[i].fd >= 0 && watch(s, s->listeners[i].fd, &s->listeners[i], err) < 0)
            return -1;
    return watch(s, s->signal_fd, &s->signal_fd, err);
}

/* Lock held. false: not all are gone by then. */
static bool wait_for_connections(struct server *s, uint64_t ms)
{
    struct timespec until = io_after_ms(ms);

    while (s->connections > 0)
        if (pthread_cond_clockwait(&s->done, &s->lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT)
            return s->connections == 0;
    return true;
}

/* New connections are refused by the kernel; requests under way end; then we do. A client that can continue elsewhere is cut first: an
 * answer that only ends with its process would hold up the next server, and with it everybody else. */
static void drain(struct server *s)
{

    listeners_close(s->listeners);
    (void) pthread_mutex_lock(&s->lock);
    while (s->all) {
        struct conn *conn = s->all;

        list_remove(&s->all, conn);
        drop(s, conn);
    }
    for (uint64_t waited = 0; waited < DRAIN_MS; waited += CUT_MS) {
        if (wait_for_connections(s, CUT_MS))
            break;
        for (struct conn *conn = s->busy; conn; conn = conn->next)
            if (atomic_load(&conn->resumable))
                (void) shutdown(conn->fd, SHUT_RDWR);
    }
    if (s->connections > 0)
        log_line(LOG_WARNING, "cut connections=%zu", s->connections);
    (void) pthread_mutex_unlock(&s->lock);
}

int server_run(struct app *app, struct err *err)
{
    static struct server s;
    uint64_t swept = 0;

    s.app = app;
    s.signal_fd = s.epoll_fd = s.spare_fd = -1;
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        s.listeners[i].fd = -1;
    (void) pthread_mutex_init(&s.lock, NULL);
    (void) pthread_cond_init(&s.work, NULL);
    (void) pthread_cond_init(&s.done, NULL);
    if (set_up(&s, err) < 0)
        return -1;
    log_line(LOG_INFO, "ready listen=%s tls=%s keys=%s", s.listeners[0].at,
             s.listeners[1].at[0] ? s.listeners[1].at
             : s.tls              ? "yes"
                                  : "no",
             app->loopback && app_config(app)->local ? "not from loopback" : "always");
    if (!app_config(app)->public_domain[0])
        log_line(LOG_INFO,
                 "public_domain is not set: getHost() of E2B's SDKs names E2B's own domain; "
                 "docs/e2b.md says how to set it");
    while (!s.draining) {
        struct epoll_event events[BATCH];
        int n = epoll_wait(s.epoll_fd, events, BATCH, SWEEP_MS);

        for (int i = 0; i < n; i++) {
            void *what = events[i].data.ptr;

            if (what == &s.listeners[LISTENER_PLAIN] || what == &s.listeners[LISTENER_TLS] ||
                what == &s.listeners[LISTENER_ADMIN])
                accept_all(&s, what);
            else if (what == &s.signal_fd)
                on_signal(&s);
            else
                on_readable(&s, what);
        }
        if (io_now_ms() - swept >= SWEEP_MS) {
            sweep(&s);
            swept = io_now_ms();
        }
    }
    drain(&s);
    return 0;
}
