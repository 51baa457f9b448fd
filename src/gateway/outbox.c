#include "gateway/outbox.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define EVENTS_MOST  (512 * 1024)      /* bytes that wait, when an event or a question comes */
#define RESULTS_MOST (4 * 1024 * 1024) /* the same for what coved waits for */
#define LOST_MOST    64                /* sandboxes whose lost events are counted */

struct lost {
    char sandbox[EGRESS_ID_MAX];
    uint64_t count;
};

struct outbox {
    int fd; /* borrowed */
    pthread_t thread;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t more;
    bool stop, waits; /* waits: the thread does */
    struct message_out out;
    struct lost lost[LOST_MOST];
};

/* A failure is seen by the reader of the socket, too. */
static void send_bytes(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        data += n;
        len -= (size_t) n;
    }
}

static void *send_all(void *arg)
{
    struct message_out own = { .data = NULL };
    struct outbox *o = arg;

    (void) pthread_mutex_lock(&o->lock);
    for (;;) {
        struct message_out swap = own;

        while (o->out.len == 0 && !o->stop) {
            o->waits = true;
            (void) pthread_cond_wait(&o->more, &o->lock);
            o->waits = false;
        }
        if (o->stop)
            break;
        own = o->out;
        o->out = swap;
        o->out.len = 0;
        (void) pthread_mutex_unlock(&o->lock);
        send_bytes(o->fd, own.data, own.len);
        (void) pthread_mutex_lock(&o->lock);
    }
    (void) pthread_mutex_unlock(&o->lock);
    message_out_done(&own);
    return NULL;
}

int outbox_start(int fd, struct outbox **ret, struct err *err)
{
    struct outbox *o = calloc(1, sizeof *o);

    if (!o)
        return err_set(err, ERR_NO_MEMORY, "no memory for the gateway");
    o->fd = fd;
    (void) pthread_mutex_init(&o->lock, NULL);
    (void) pthread_cond_init(&o->more, NULL);
    if (pthread_create(&o->thread, NULL, send_all, o) != 0) {
        free(o);
        return err_set(err, ERR_NO_MEMORY, "no thread for the gateway");
    }
    *ret = o;
    return 0;
}

void outbox_stop(struct outbox *o)
{
    if (!o)
        return;
    (void) pthread_mutex_lock(&o->lock);
    o->stop = true;
    (void) pthread_cond_signal(&o->more);
    (void) pthread_mutex_unlock(&o->lock);
    (void) pthread_join(o->thread, NULL);
    message_out_done(&o->out);
    free(o);
}

static void wake(struct outbox *o)
{
    if (o->waits)
        (void) pthread_cond_signal(&o->more);
}

/* ---- events that are lost ---- */

/* Of more sandboxes than there are places, some are not counted. */
static struct lost *lost_of(struct outbox *o, const char *sandbox)
{
    for (size_t i = 0; i < LOST_MOST; i++)
        if (strcmp(o->lost[i].sandbox, sandbox) == 0)
            return &o->lost[i];
    return NULL;
}

static void lose(struct outbox *o, const struct egress_event *event)
{
    struct lost *lost = lost_of(o, event->sandbox);

    if (!lost && (lost = lost_of(o, "")))
        (void) strcpy(lost->sandbox, event->sandbox);
    if (lost)
        lost->count += 1 + event->missed;
}

static void add_lost(struct outbox *o, struct egress_event *event)
{
    struct lost *lost = lost_of(o, event->sandbox);

    if (!lost)
        return;
    event->missed += lost->count;
    *lost = (struct lost){ .count = 0 };
}

/* ---- messages ---- */

void outbox_event(struct outbox *o, const struct egress_event *event)
{
    struct egress_event copy = *event;
    struct err ignored;

    (void) pthread_mutex_lock(&o->lock);
    if (o->out.len >= EVENTS_MOST) {
        lose(o, event);
    } else {
        add_lost(o, &copy);
        if (message_put_event(&o->out, &copy, &ignored) < 0)
            lose(o, &copy);
        wake(o);
    }
    (void) pthread_mutex_unlock(&o->lock);
}

bool outbox_ask(struct outbox *o, const struct egress_ask *ask)
{
    struct err ignored;
    bool room;

    (void) pthread_mutex_lock(&o->lock);
    room = o->out.len < EVENTS_MOST && message_put_ask(&o->out, ask, &ignored) == 0;
    wake(o);
    (void) pthread_mutex_unlock(&o->lock);
    return room;
}

void outbox_dial(struct outbox *o, const struct egress_dial *dial)
{
    struct err ignored;

    (void) pthread_mutex_lock(&o->lock);
    /* One that finds no room is given up by the gateway after a while. */
    if (o->out.len < RESULTS_MOST)
        (void) message_put_dial(&o->out, dial, &ignored);
    wake(o);
    (void) pthread_mutex_unlock(&o->lock);
}

void outbox_result(struct outbox *o, uint64_t serial, const struct message_result *result)
{
    struct err err;

    (void) pthread_mutex_lock(&o->lock);
    if (o->out.len >= RESULTS_MOST || message_put_result(&o->out, serial, result, &err) < 0)
        log_line(LOG_WARNING, "coved does not take its answers");
    wake(o);
    (void) pthread_mutex_unlock(&o->lock);
}
