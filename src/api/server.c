#include "api/server.h"

#include "api/conn.h"
#include "api/serve.h"
#include "base/address.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define BATCH      64
#define SWEEP_MS   500
#define LISTEN_FD  3
#define DRAIN_MS   30000
#define LINGER_MS  10000 /* a worker without work goes after this */
#define STACK_SIZE (256 * 1024)

struct server {
    struct app *app;
    struct tls_context *tls;
    int epoll_fd, listen_fd, signal_fd;
    int spare_fd; /* given up to refuse politely when descriptors run out */
    bool draining;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t work, done;
    struct conn *queue_first, *queue_last; /* by conn->next; waiting for a worker */
    struct conn *all;                      /* every connection that is not queued or busy */
    size_t connections, workers, idle_workers;
};

/* ---- the list of waiting connections ---- */

static void list_add(struct server *s, struct conn *conn)
{
    conn->prev = NULL;
    conn->next = s->all;
    if (s->all)
        s->all->prev = conn;
    s->all = conn;
}

static void list_remove(struct server *s, struct conn *conn)
{
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        s->all = conn->next;
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
    list_add(s, conn);
    if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event) < 0) {
        list_remove(s, conn);
        drop(s, conn);
    }
}

static struct conn *next_work(struct server *s)
{
    struct timespec until;

    (void) clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LINGER_MS / 1000;
    s->idle_workers++;
    while (!s->queue_first)
        if (pthread_cond_timedwait(&s->work, &s->lock, &until) == ETIMEDOUT && !s->queue_first)
            break;
    s->idle_workers--;
    if (s->queue_first) {
        struct conn *conn = s->queue_first;

        s->queue_first = conn->next;
        if (!s->queue_first)
            s->queue_last = NULL;
        conn->next = NULL;
        return conn;
    }
    return NULL;
}

static void *worker(void *arg)
{
    struct server *s = arg;
    struct conn *conn;

    (void) pthread_mutex_lock(&s->lock);
    while ((conn = next_work(s))) {
        bool stays;

        (void) pthread_mutex_unlock(&s->lock);
        stays = serve_connection(s->app, conn);
        (void) pthread_mutex_lock(&s->lock);
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

/* Hands a readable connection on; lock held. False: nobody is free. */
static bool dispatch(struct server *s, struct conn *conn)
{
    size_t queued = 0;

    for (const struct conn *c = s->queue_first; c; c = c->next)
        queued++;
    if (s->idle_workers <= queued && (s->workers >= s->app->config.threads || !start_worker(s)) &&
        s->workers <= queued)
        return false;
    conn->busy = true;
    conn->next = NULL;
    if (s->queue_last)
        s->queue_last->next = conn;
    else
        s->queue_first = conn;
    s->queue_last = conn;
    (void) pthread_cond_signal(&s->work);
    return true;
}

/* ---- the waiter ---- */

static void take_connection(struct server *s, int fd)
{
    struct conn *conn = conn_new(fd, s->tls);
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = conn };
    int one = 1;

    if (!conn) {
        (void) close(fd);
        return;
    }
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    conn->since_ms = io_now_ms();
    (void) pthread_mutex_lock(&s->lock);
    s->connections++;
    if (s->connections > s->app->config.connections) {
        serve_refusal(conn, 503, "too_many", "as many connections as allowed are open");
        drop(s, conn);
    } else if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        drop(s, conn);
    } else {
        list_add(s, conn);
    }
    (void) pthread_mutex_unlock(&s->lock);
}

static void accept_all(struct server *s)
{
    for (int i = 0; i < BATCH; i++) {
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            take_connection(s, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE) {
            /* Out of descriptors: take it with the spare one, close it, go on. */
            own_close(&s->spare_fd);
            fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0)
                (void) close(fd);
            s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
            log_line(LOG_WARNING, "out of descriptors: a connection was refused");
        }
        return;
    }
}

static void on_readable(struct server *s, struct conn *conn)
{
    (void) pthread_mutex_lock(&s->lock);
    list_remove(s, conn);
    if (!dispatch(s, conn)) {
        atomic_fetch_add(&s->app->refused, 1);
        serve_refusal(conn, 503, "too_many", "as many requests as allowed are under way");
        drop(s, conn);
    }
    (void) pthread_mutex_unlock(&s->lock);
}

/* Ends what waits too long: idle connections quietly, begun heads with 408. */
static void sweep(struct server *s)
{
    uint64_t now = io_now_ms();

    (void) pthread_mutex_lock(&s->lock);
    for (struct conn *conn = s->all, *next; conn; conn = next) {
        uint64_t most = conn->head_begun ? s->app->config.head_ms : s->app->config.idle_ms;

        next = conn->next;
        if (now - conn->since_ms < most)
            continue;
        list_remove(s, conn);
        if (conn->head_begun)
            serve_refusal(conn, 408, "timeout", "the request's head took too long");
        drop(s, conn);
    }
    (void) pthread_mutex_unlock(&s->lock);
}

static void load_tls(struct server *s)
{
    char why[200];
    struct tls_context *fresh;

    if (!s->app->config.tls_cert[0])
        return;
    fresh = tls_context_new(s->app->config.tls_cert, s->app->config.tls_key, why, sizeof why);
    if (!fresh) {
        log_line(LOG_ERROR, "certificate not taken: %s", why);
        return;
    }
    /* Connections of the old one keep it alive by themselves. */
    if (s->tls)
        tls_context_free(s->tls);
    s->tls = fresh;
}

static void on_signal(struct server *s)
{
    struct signalfd_siginfo info;

    if (read(s->signal_fd, &info, sizeof info) != (ssize_t) sizeof info)
        return;
    if (info.ssi_signo == SIGHUP) {
        load_tls(s);
        log_line(LOG_INFO, "reloaded");
        return;
    }
    log_line(LOG_INFO, "draining signal=%u", info.ssi_signo);
    s->draining = true;
}

/* ---- start and end ---- */

/* Socket 3, when whoever started us listens already (LISTEN_FDS, as systemd and `cove up` do it): then no
 * connection is refused while the server is being restarted. */
static bool is_inherited(void)
{
    const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");

    return count && strcmp(count, "1") == 0 && pid && strtol(pid, NULL, 10) == (long) getpid();
}

static int start_listening(struct server *s, struct err *err)
{
    struct config *config = &s->app->config;
    struct address address;

    if (address_parse(config->listen, &address, err) < 0)
        return -1;
    if (!address.loopback)
        config->local = false; /* anywhere else demands keys */
    if (is_inherited()) {
        s->listen_fd = LISTEN_FD;
        if (fcntl(LISTEN_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(LISTEN_FD, F_SETFL, O_NONBLOCK) < 0)
            return err_sys(err, errno, "use the socket that was handed over");
        return 0;
    }
    if (address_listen(&address, &s->listen_fd, err) < 0)
        return -1;
    address_print(&address, config->listen, sizeof config->listen);
    return 0;
}

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
    load_tls(s);
    if (s->app->config.tls_cert[0] && !s->tls)
        return err_set(err, ERR_USAGE, "the certificate or key cannot be used");
    if (start_listening(s, err) < 0)
        return -1;
    return watch(s, s->listen_fd, &s->listen_fd, err) < 0 ||
                   watch(s, s->signal_fd, &s->signal_fd, err) < 0
               ? -1
               : 0;
}

/* New connections are refused by the kernel; requests under way end; then we do. */
static void drain(struct server *s)
{
    struct timespec until;

    own_close(&s->listen_fd);
    (void) pthread_mutex_lock(&s->lock);
    while (s->all) {
        struct conn *conn = s->all;

        list_remove(s, conn);
        drop(s, conn);
    }
    (void) clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += DRAIN_MS / 1000;
    while (s->connections > 0)
        if (pthread_cond_timedwait(&s->done, &s->lock, &until) == ETIMEDOUT)
            break;
    if (s->connections > 0)
        log_line(LOG_WARNING, "cut connections=%zu", s->connections);
    (void) pthread_mutex_unlock(&s->lock);
}

int server_run(struct app *app, struct err *err)
{
    static struct server s;
    uint64_t swept = 0;

    s.app = app;
    s.listen_fd = s.signal_fd = s.epoll_fd = s.spare_fd = -1;
    (void) pthread_mutex_init(&s.lock, NULL);
    (void) pthread_cond_init(&s.work, NULL);
    (void) pthread_cond_init(&s.done, NULL);
    if (set_up(&s, err) < 0)
        return -1;
    log_line(LOG_INFO, "ready listen=%s tls=%s keys=%s", app->config.listen, s.tls ? "yes" : "no",
             app->config.local ? "not from loopback" : "always");
    while (!s.draining) {
        struct epoll_event events[BATCH];
        int n = epoll_wait(s.epoll_fd, events, BATCH, SWEEP_MS);

        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &s.listen_fd)
                accept_all(&s);
            else if (events[i].data.ptr == &s.signal_fd)
                on_signal(&s);
            else
                on_readable(&s, events[i].data.ptr);
        }
        if (io_now_ms() - swept >= SWEEP_MS) {
            sweep(&s);
            swept = io_now_ms();
        }
    }
    drain(&s);
    return 0;
}
