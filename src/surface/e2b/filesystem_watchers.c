/* CreateWatcher, GetWatcherEvents, RemoveWatcher: watching without a stream, as the synchronous Python SDK does it.
 *
 * A watcher is an open connection to the agent and nothing more: events wait in its socket and in inotify's own queue until
 * they are asked for, and when those are full the agent says that events were lost. So a watcher that no client asks
 * costs no thread and a bounded memory. It belongs to one sandbox, and ends with a request, IDLE_MS after the
 * last question, GONE_MS when the agent has ended it, or with this process.
 *
 * What must hold: the table is touched with the lock; a watcher in use (users > 0) is not freed; its
 * connection is read with its own lock. A thread clears away what has ended; it runs while there are watchers. */
#include "surface/e2b/filesystem_watch.h"

#include "base/io.h"
#include "base/own.h"
#include "surface/e2b/envd.h"
#include "surface/e2b/rpc.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#define WATCHERS_MAX   1024
#define SANDBOX_MAX    16
#define EVENTS_MAX     4096 /* of one answer; the rest waits for the next */
#define IDLE_MS        300000
#define GONE_MS        30000
#define SWEEP_EVERY_MS 5000
#define ID_SIZE        24

struct watcher {
    char id[ID_SIZE], sandbox[ID_LEN + 1];
    pthread_mutex_t reading; /* the watch */
    struct fs_watch watch;
    uint64_t asked_ms; /* with the table's lock, as the next two */
    unsigned users;
    bool removed;
};

static struct {
    pthread_mutex_t lock;
    struct watcher *all[WATCHERS_MAX];
    size_t count;
    bool sweeping; /* the thread runs */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void free_watcher(struct watcher *w)
{
    fs_watch_close(&w->watch);
    (void) pthread_mutex_destroy(&w->reading);
    free(w);
}

/* With the lock: out of the table, and freed now or by its last user. */
static void drop(size_t i)
{
    struct watcher *w = table.all[i];

    table.all[i] = table.all[--table.count];
    w->removed = true;
    if (w->users == 0)
        free_watcher(w);
}

static bool ended(const struct watcher *w, uint64_t now)
{
    struct pollfd p = { .fd = w->watch.stream.fd, .events = POLLRDHUP };
    uint64_t idle = now - w->asked_ms;

    if (w->users > 0 || idle < GONE_MS)
        return false;
    return idle >= IDLE_MS || (poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP)));
}

static void *sweep(void *arg)
{
    bool more = true;

    (void) arg;
    while (more) {
        uint64_t now;

        (void) poll(NULL, 0, SWEEP_EVERY_MS);
        (void) pthread_mutex_lock(&table.lock);
        now = io_now_ms();
        for (size_t i = table.count; i > 0; i--)
            if (ended(table.all[i - 1], now))
                drop(i - 1);
        more = table.sweeping = table.count > 0;
        (void) pthread_mutex_unlock(&table.lock);
    }
    return NULL;
}

/* With the lock. */
static int start_sweeping(struct err *err)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    if (table.sweeping)
        return 0;
    (void) pthread_attr_init(&attr);
    (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create(&thread, &attr, sweep, NULL);
    (void) pthread_attr_destroy(&attr);
    if (rc != 0)
        return err_sys(err, rc, "start a thread");
    table.sweeping = true;
    return 0;
}

/* With the lock: whether one more may be. */
static int check_room(const char *sandbox, struct err *err)
{
    size_t own = 0;

    for (size_t i = 0; i < table.count; i++)
        own += strcmp(table.all[i]->sandbox, sandbox) == 0;
    if (own >= SANDBOX_MAX)
        return err_set(err, ERR_TOO_MANY, "a sandbox has at most %d watchers", SANDBOX_MAX);
    if (table.count == WATCHERS_MAX)
        return err_set(err, ERR_TOO_MANY, "there are %d watchers already", WATCHERS_MAX);
    return 0;
}

static int add(struct watcher *w, struct err *err)
{
    int r;

    (void) pthread_mutex_lock(&table.lock);
    r = check_room(w->sandbox, err);
    if (r == 0)
        r = start_sweeping(err);
    if (r == 0)
        table.all[table.count++] = w;
    (void) pthread_mutex_unlock(&table.lock);
    return r;
}

static int create_watcher(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    struct watcher *w = calloc(1, sizeof *w);
    uint64_t number;
    int r;

    if (!w)
        return err_set(err, ERR_NO_MEMORY, "no memory for a watcher");
    w->watch = FS_WATCH_NONE;
    (void) pthread_mutex_init(&w->reading, NULL);
    (void) snprintf(w->sandbox, sizeof w->sandbox, "%s", exchange_param(x, "sandbox"));
    w->asked_ms = io_now_ms();
    r = getrandom(&number, sizeof number, 0) == sizeof number
            ? 0
            : err_set(err, ERR_INTERNAL, "no random bytes");
    if (r == 0) {
        (void) snprintf(w->id, sizeof w->id, "w%016llx", (unsigned long long) number);
        *ret = json_pack("{s:s}", "watcherId", w->id);
        (void) pthread_mutex_lock(&table.lock);
        r = check_room(w->sandbox, err); /* before the agent is asked for it */
        (void) pthread_mutex_unlock(&table.lock);
    }
    if (r == 0)
        r = fs_watch_open(x, in, &w->watch, err);
    if (r == 0)
        r = add(w, err);
    if (r < 0)
        free_watcher(w);
    return r;
}

/* ---- using one ---- */

/* With the lock: the place of the sandbox's watcher that the message names. */
static int find(struct exchange *x, json_t *in, size_t *ret, struct err *err)
{
    const char *id = NULL;

    if (rpc_text(in, "watcherId", &id, err) < 0)
        return -1;
    for (size_t i = 0; id && i < table.count; i++)
        if (strcmp(table.all[i]->id, id) == 0 &&
            strcmp(table.all[i]->sandbox, exchange_param(x, "sandbox")) == 0) {
            *ret = i;
            return 0;
        }
    return err_set(err, ERR_NO_PATH, "watcher with id %.32s not found", id ? id : "");
}

static struct watcher *take(struct exchange *x, json_t *in, struct err *err)
{
    struct watcher *w = NULL;
    size_t i;

    (void) pthread_mutex_lock(&table.lock);
    if (find(x, in, &i, err) == 0) {
        w = table.all[i];
        w->users++;
        w->asked_ms = io_now_ms();
    }
    (void) pthread_mutex_unlock(&table.lock);
    return w;
}

static void give(struct watcher *w)
{
    (void) pthread_mutex_lock(&table.lock);
    if (--w->users == 0 && w->removed)
        free_watcher(w);
    (void) pthread_mutex_unlock(&table.lock);
}

static int get_events(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    struct watcher *w = take(x, in, err);
    json_t *events;
    int r = 1;

    if (!w)
        return -1;
    events = json_array();
    (void) pthread_mutex_lock(&w->reading);
    while (r == 1 && json_array_size(events) < EVENTS_MAX)
        r = fs_watch_poll(&w->watch, events, err);
    (void) pthread_mutex_unlock(&w->reading);
    give(w);
    /* What happened before the end is told first. */
    if (r < 0 && err->kind != ERR_NO_PATH && json_array_size(events) == 0) {
        json_decref(events);
        return -1;
    }
    *ret = json_pack("{s:o}", "events", events);
    return 0;
}

static int remove_watcher(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    size_t i;
    int r;

    (void) ret;
    (void) pthread_mutex_lock(&table.lock);
    r = find(x, in, &i, err);
    if (r == 0)
        drop(i);
    (void) pthread_mutex_unlock(&table.lock);
    return r;
}

/* ---- handlers ---- */

int filesystem_create_watcher(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, create_watcher, err);
}

int filesystem_get_watcher_events(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, get_events, err);
}

int filesystem_remove_watcher(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, remove_watcher, err);
}
