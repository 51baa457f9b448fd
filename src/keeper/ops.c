#include "keeper/ops.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/create.h"
#include "keeper/life.h"
#include "keeper/ops_table.h"
#include "keeper/pool.h"
#include "keeper/sandbox.h"
#include "keeper/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static void put_sandbox(struct keeper_reply *reply, const struct sandbox *s)
{
    reply->sandbox[0] = s->info;
    reply->count = 1;
}

static int op_hello(struct keeper *k, int index, const struct keeper_request *request,
                    struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                    struct err *err)
{
    struct keeper_hello *hello = &reply->hello;

    (void) index, (void) request, (void) sandbox, (void) ret_fds, (void) err;
    hello->pid = (uint32_t) getpid();
    hello->sandboxes = k->sandbox_count - k->pooled;
    hello->sandboxes_max = k->sandboxes_max;
    hello->ids_free = k->slot_limit > k->sandbox_count ? k->slot_limit - k->sandbox_count : 0;
    hello->host_memory = k->host_memory;
    hello->host_cpu_milli = k->host_cpu_milli;
    host_describe(k, hello);
    return 0;
}

void ops_wait_for(struct keeper *k, int index, uint32_t op, const struct sandbox *s)
{
    struct connection *c = &k->connections[index];

    c->pending = true;
    keeper_watch_quiet(k, &c->watch, true); /* or what it sends next would wake us all the time */
    c->op = op;
    c->slot = s->info.slot;
    memcpy(c->id, s->info.id, sizeof c->id);
    c->deadline_ms = io_now_ms() + FREEZE_MS;
    c->again_ms = io_now_ms() + FREEZE_AGAIN_MS;
    k->freezing = k->freezing || op == KEEPER_FREEZE || op == KEEPER_THAW;
}

static int op_create(struct keeper *k, int index, const struct keeper_request *request,
                     struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                     struct err *err)
{
    struct sandbox *made = NULL;

    (void) sandbox, (void) ret_fds;
    if (create_begin(k, request, index, &made, err) < 0)
        return -1;
    if (made->info.life == LIFE_RUNNING) { /* it was in the pool */
        put_sandbox(reply, made);
        return 0;
    }
    ops_wait_for(k, index, KEEPER_CREATE, made);
    return LATER;
}

static int op_get(struct keeper *k, int index, const struct keeper_request *request,
                  struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                  struct err *err)
{
    (void) k, (void) index, (void) request, (void) ret_fds, (void) err;
    put_sandbox(reply, sandbox);
    return 0;
}

static int op_list(struct keeper *k, int index, const struct keeper_request *request,
                   struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                   struct err *err)
{
    const struct sandbox *s;

    (void) index, (void) sandbox, (void) ret_fds, (void) err;
    if (request->flags & KEEPER_FLAG_POOLED)
        pool_heard(k);
    for (uint32_t at = request->cursor; (s = keeper_next_alive(k, &at));) {
        if ((s->info.flags & KEEPER_FLAG_POOLED) != request->flags)
            continue;
        if (reply->count == KEEPER_LIST_MAX) {
            reply->next = sandbox_slot(k, s);
            return 0;
        }
        reply->sandbox[reply->count++] = s->info;
    }
    return 0;
}

static int op_templates(struct keeper *k, int index, const struct keeper_request *request,
                        struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                        struct err *err)
{
    (void) index, (void) sandbox, (void) ret_fds;
    return host_templates(k, request->cursor, reply, err);
}

static int op_template(struct keeper *k, int index, const struct keeper_request *request,
                       struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                       struct err *err)
{
    (void) index, (void) sandbox, (void) ret_fds;
    reply->count = 1;
    return host_template(k, request->template, &reply->about, err);
}

static int op_connect(struct keeper *k, int index, const struct keeper_request *request,
                      struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                      struct err *err)
{
    (void) index;
    put_sandbox(reply, sandbox);
    if ((request->flags & KEEPER_STATS_BRIEF) &&
        sandbox_stats(k, sandbox, true, &reply->connected.stats, err) < 0)
        return -1;
    return sandbox_connect(k, sandbox, ret_fds, err);
}

static int op_stats(struct keeper *k, int index, const struct keeper_request *request,
                    struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                    struct err *err)
{
    (void) index, (void) ret_fds;
    return sandbox_stats(k, sandbox, request->flags & KEEPER_STATS_BRIEF, &reply->stats, err);
}

static int op_freeze(struct keeper *k, int index, const struct keeper_request *request,
                     struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                     struct err *err)
{
    bool frozen = request->op == KEEPER_FREEZE;

    (void) ret_fds;
    if (sandbox_freeze(k, sandbox, frozen, err) < 0)
        return -1;
    if (sandbox->driver->frozen(k, sandbox, frozen) == 1) {
        sandbox_frozen(k, sandbox, frozen);
        put_sandbox(reply, sandbox);
        return 0;
    }
    ops_wait_for(k, index, request->op, sandbox);
    return LATER;
}

static int op_destroy(struct keeper *k, int index, const struct keeper_request *request,
                      struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                      struct err *err)
{
    (void) reply, (void) ret_fds, (void) err;
    ops_wait_for(k, index, request->op, sandbox);
    if (request->op == KEEPER_DESTROY)
        sandbox_stop(k, sandbox, "destroyed");
    return LATER;
}

static int op_tie(struct keeper *k, int index, const struct keeper_request *request,
                  struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                  struct err *err)
{
    uint32_t before = sandbox->info.flags;

    (void) request, (void) ret_fds;
    /* Written down: a keeper that comes after us must not keep it without an owner. */
    sandbox->info.flags |= KEEPER_FLAG_TIED;
    if (sandbox->info.flags != before && sandbox_record(k, sandbox, err) < 0) {
        sandbox->info.flags = before;
        return -1;
    }
    sandbox->tied_to = index;
    sandbox->tie_until_ms = 0;
    put_sandbox(reply, sandbox);
    return 0;
}

static int op_gateway(struct keeper *k, int index, const struct keeper_request *request,
                      struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                      struct err *err)
{
    (void) index, (void) request, (void) reply;
    if (sandbox->info.life != LIFE_RUNNING && sandbox->info.life != LIFE_PAUSED)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s", sandbox->info.id,
                       keeper_life_name(sandbox->info.life));
    if (!sandbox->driver->network)
        return driver_lacks(sandbox->driver, "give a network", err);
    if (sandbox->driver->network(k, sandbox, ret_fds, err) < 0)
        return -1;
    for (int i = 0; i < GATEWAY_FDS; i++)
        if (ret_fds[i] < 0)
            return err_set(err, ERR_UNAVAILABLE, "sandbox '%s' got no network", sandbox->info.id);
    if (!(sandbox->info.flags & KEEPER_FLAG_ROUTED)) { /* a load must know */
        sandbox->info.flags |= KEEPER_FLAG_ROUTED;
        if (sandbox_record(k, sandbox, err) < 0)
            log_line(LOG_WARNING, "sandbox=%s %s", sandbox->info.id, err->msg);
    }
    return 0;
}

static int op_volume(struct keeper *k, int index, const struct keeper_request *request,
                     struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                     struct err *err)
{
    struct connection *c = &k->connections[index];
    uint32_t order = 0;
    int rc = volume_serve(k, request, reply, &order, err);

    (void) sandbox, (void) ret_fds;
    if (rc <= 0)
        return rc;
    c->pending = true;
    keeper_watch_quiet(k, &c->watch, true);
    c->op = request->op;
    c->id[0] = '\0';
    c->order = order;
    return LATER;
}

static handler *const handlers[KEEPER_OP_COUNT] = {
    [KEEPER_HELLO] = op_hello,
    [KEEPER_CREATE] = op_create,
    [KEEPER_GET] = op_get,
    [KEEPER_LIST] = op_list,
    [KEEPER_CONNECT] = op_connect,
    [KEEPER_STATS] = op_stats,
    [KEEPER_FREEZE] = op_freeze,
    [KEEPER_THAW] = op_freeze,
    [KEEPER_DESTROY] = op_destroy,
    [KEEPER_TIE] = op_tie,
    [KEEPER_WAIT] = op_destroy,
    [KEEPER_GATEWAY] = op_gateway,
    [KEEPER_SAVE] = op_save,
    [KEEPER_LOAD] = op_load,
    [KEEPER_IMAGE] = op_image,
    [KEEPER_IMAGES] = op_images,
    [KEEPER_DROP] = op_drop,
    [KEEPER_RECLAIM] = op_reclaim,
    [KEEPER_VOLUME_MAKE] = op_volume,
    [KEEPER_VOLUME_LIST] = op_volume,
    [KEEPER_VOLUME_USERS] = op_volume,
    [KEEPER_VOLUME_DROP] = op_volume,
    [KEEPER_COMPRESS] = op_compress,
    [KEEPER_TEMPLATES] = op_templates,
    [KEEPER_TEMPLATE] = op_template,
};

/* ---- connections ---- */

static void close_connection(struct keeper *k, int index)
{
    struct connection *c = &k->connections[index];
    struct sandbox *s;

    keeper_unwatch(k, &c->watch);
    c->pending = false;
    c->order = 0;
    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));)
        if (s->tied_to == index) {
            s->tied_to = -1;
            sandbox_stop(k, s, "its owner left");
        }
}

/* A caller that does not take its answer is gone: the socket holds many of this size. */
void ops_answer(struct keeper *k, int index, uint32_t op, struct keeper_reply *reply,
                const int *fds, const struct err *err)
{
    int sock = k->connections[index].watch.fd;
    size_t count = 0;

    while (fds && count < KEEPER_FDS_MAX && fds[count] >= 0)
        count++;

    reply->magic = KEEPER_MAGIC;
    reply->version = KEEPER_VERSION;
    reply->op = op;
    if (err)
        reply->err = *err;
    if (io_send_fds(sock, reply, sizeof *reply, fds, count) != (ssize_t) sizeof *reply)
        close_connection(k, index);
}

void ops_answer_pending(struct keeper *k, int index, const struct sandbox *s, const struct err *err)
{
    struct keeper_reply reply = { 0 };

    if (!err) /* and a save's answer is an image */
        put_sandbox(&reply, s);
    k->connections[index].pending = false;
    keeper_watch_quiet(k, &k->connections[index].watch, false);
    ops_answer(k, index, k->connections[index].op, &reply, NULL, err);
}

static void answer_order(struct keeper *k, int index, const struct err *why)
{
    struct keeper_reply reply = { 0 };
    struct connection *c = &k->connections[index];

    c->pending = false;
    c->order = 0;
    keeper_watch_quiet(k, &c->watch, false);
    ops_answer(k, index, c->op, &reply, NULL, why->kind ? why : NULL);
}

bool ops_order_done(struct keeper *k, uint32_t order, const struct err *why)
{
    for (int i = 0; i < k->connection_count; i++)
        if (k->connections[i].watch.fd >= 0 && k->connections[i].order == order) {
            answer_order(k, i, why);
            return true;
        }
    return false;
}

void ops_orders_lost(struct keeper *k, const struct err *why)
{
    for (int i = 0; i < k->connection_count; i++)
        if (k->connections[i].watch.fd >= 0 && k->connections[i].order)
            answer_order(k, i, why);
}

bool ops_waits_for(const struct connection *c, const struct sandbox *s)
{
    return c->watch.fd >= 0 && c->pending && c->slot == s->info.slot &&
           strcmp(c->id, s->info.id) == 0;
}

void ops_sandbox_started(struct keeper *k, const struct sandbox *s)
{
    for (int i = 0; i < k->connection_count; i++)
        if (ops_waits_for(&k->connections[i], s) &&
            (k->connections[i].op == KEEPER_CREATE || k->connections[i].op == KEEPER_LOAD))
            ops_answer_pending(k, i, s, NULL);
}

void ops_sandbox_gone(struct keeper *k, const struct sandbox *s)
{
    for (int i = 0; i < k->connection_count; i++) {
        struct connection *c = &k->connections[i];

        /* Gone is what a destroy or wait is for; only that memory ran out is news to a wait. */
        bool as_asked =
            c->op == KEEPER_DESTROY || (c->op == KEEPER_WAIT && s->failure.kind != ERR_OOM);

        if (ops_waits_for(c, s) && c->op == KEEPER_SAVE && s->saved.id[0])
            ops_answer_saved(k, i, &s->saved, NULL);
        else if (ops_waits_for(c, s))
            ops_answer_pending(k, i, s, as_asked ? NULL : &s->failure);
    }
}

/* A caller can send nonsense faster than anybody reads a log: one line a second, with the count. */
static void log_refusal(const struct err *err)
{
    static uint64_t next_ms, passed_over;

    if (io_now_ms() < next_ms) {
        passed_over++;
        return;
    }
    log_line(LOG_WARNING, "refused request: %s (passed over: %" PRIu64 ")", err->msg, passed_over);
    next_ms = io_now_ms() + 1000;
    passed_over = 0;
}

static void handle(struct keeper *k, int index, const struct keeper_request *request, size_t len)
{
    struct keeper_reply reply = { 0 };
    struct sandbox *sandbox = NULL;
    int fds[KEEPER_FDS_MAX] = { -1, -1, -1, -1 };
    struct err err = { 0 };
    int rc;

    if (keeper_request_check(request, len, &err) < 0) {
        log_refusal(&err);
        ops_answer(k, index, len == sizeof *request ? request->op : 0, &reply, NULL, &err);
        if (err.kind == ERR_PROTOCOL)
            close_connection(k, index);
        return;
    }
    if (keeper_ops[request->op].needs_sandbox && !keeper_ops[request->op].is_create) {
        sandbox = sandbox_find(k, request->sandbox);
        if (!sandbox) {
            if (request->op == KEEPER_WAIT && sandbox_starved(k, request->sandbox))
                err_set(&err, ERR_OOM, "sandbox '%s' ran out of memory", request->sandbox);
            else
                err_set(&err, ERR_NO_SANDBOX, "there is no sandbox '%s'", request->sandbox);
            ops_answer(k, index, request->op, &reply, NULL, &err);
            return;
        }
        if ((sandbox->info.flags & KEEPER_FLAG_POOLED) && !keeper_ops[request->op].of_pool) {
            err_set(&err, ERR_STATE, "sandbox '%s' is in the pool", request->sandbox);
            ops_answer(k, index, request->op, &reply, NULL, &err);
            return;
        }
    }
    rc = handlers[request->op](k, index, request, sandbox, &reply, fds, &err);
    if (rc != LATER)
        ops_answer(k, index, request->op, &reply, fds, rc < 0 ? &err : NULL);
    for (size_t i = 0; i < KEEPER_FDS_MAX; i++)
        own_close(&fds[i]);
}

static void on_request(struct keeper *k, struct watch *watch)
{
    struct connection *c = container_of(watch, struct connection, watch);
    int index = (int) (c - k->connections);
    struct keeper_request request;
    char more;
    struct iovec iov[2] = { { &request, sizeof request }, { &more, 1 } };
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
    ssize_t n;

    if (c->pending) { /* quiet: this is its end */
        close_connection(k, index);
        return;
    }
    memset(&request, 0, sizeof request);
    n = recvmsg(watch->fd, &msg, MSG_DONTWAIT); /* no room for descriptors: none are taken */
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        close_connection(k, index);
    else
        handle(k, index, &request, (size_t) n);
}

static bool peer_allowed(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    /* The socket's mode already says who may connect; this says who did. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    log_line(LOG_DEBUG, "connection pid=%d uid=%u", (int) peer.pid, peer.uid);
    return true;
}

static struct connection *free_connection(struct keeper *k)
{
    for (int i = 0; i < k->connection_count; i++)
        if (k->connections[i].watch.fd < 0)
            return &k->connections[i];
    if (k->connection_count == (int) CONNECTIONS_MAX)
        return NULL;
    k->connections[k->connection_count].watch.fd = -1;
    return &k->connections[k->connection_count++];
}

static void on_connection(struct keeper *k, struct watch *watch)
{
    /* Nonblocking: a caller that does not read its answers must not stop everybody's keeper. */
    auto_close int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct connection *c;
    struct err err;

    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        /* Left in the queue it would wake us for ever: it is taken and closed with the descriptor that
         * is kept for this. */
        own_close(&k->spare_fd);
        fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC);
        own_close(&fd);
        k->spare_fd = fcntl(watch->fd, F_DUPFD_CLOEXEC, 0);
        log_line(LOG_WARNING, "connection refused: no descriptor is left");
        return;
    }
    if (fd < 0 || !peer_allowed(fd))
        return;
    c = free_connection(k);
    if (!c) {
        log_line(LOG_WARNING, "connection refused: there are %u", CONNECTIONS_MAX);
        return;
    }
    c->pending = false;
    if (keeper_watch(k, &c->watch, fd, on_request, &err) < 0)
        log_line(LOG_WARNING, "connection refused: %s", err.msg);
    (void) take_fd(&fd);
}

/* The socket, in a directory that no other user can pass through. */
static int bind_in(int dir_fd, int fd, int gid, struct err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    mode_t old = umask(0177);
    int rc;

    (void) snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/keeper.sock", dir_fd);
    rc = bind(fd, (const struct sockaddr *) &at, sizeof at);
    (void) umask(old);
    if (rc < 0)
        return err_sys(err, errno, "bind keeper.sock");
    if (gid >= 0 && (fchownat(dir_fd, "keeper.sock", 0, (gid_t) gid, AT_SYMLINK_NOFOLLOW) < 0 ||
                     fchmodat(dir_fd, "keeper.sock", 0660, 0) < 0))
        return err_sys(err, errno, "give keeper.sock to its group");
    return listen(fd, 128) < 0 ? err_sys(err, errno, "listen on keeper.sock") : 0;
}

/* It appears when it is ready: one who comes between two steps would be told that it has no right to. */
int ops_listen(struct keeper *k, int gid, struct err *err)
{
    auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    auto_close int dir = -1;

    if (fd < 0)
        return err_sys(err, errno, "make the keeper's socket");
    if (mkdirat(k->state_fd, "keeper.new", 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make keeper.new");
    dir = openat(k->state_fd, "keeper.new", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys(err, errno, "open keeper.new");
    (void) unlinkat(dir, "keeper.sock", 0); /* of one that was killed here */
    if (bind_in(dir, fd, gid, err) < 0)
        return -1;
    /* We hold the lock: no process listens on the one that is there. */
    if (renameat(dir, "keeper.sock", k->state_fd, "keeper.sock") < 0)
        return err_sys(err, errno, "put keeper.sock in its place");
    (void) unlinkat(k->state_fd, "keeper.new", AT_REMOVEDIR);
    k->spare_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return keeper_watch(k, &k->listener, take_fd(&fd), on_connection, err);
}
