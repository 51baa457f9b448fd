#include "server/net/network_owner.h"

#include "base/own.h"
#include "client/exec.h"

#include <stdlib.h>
#include <string.h>

#define WAITING_MAX 64
#define THREADS     8 /* as many as one sandbox may have questions at once */
#define ANSWER_MS   1800

struct owners {
    struct app *app; /* borrowed */
    owners_answer_fn *answer;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t more;
    size_t first, count;
    struct egress_ask waiting[WAITING_MAX];
};

void owners_clean(const char *said, char *out, size_t size)
{
    size_t i = 0;

    for (; said[i] && i + 1 < size; i++)
        out[i] = said[i] >= 0x20 && said[i] < 0x7f ? said[i] : '?';
    out[i] = '\0';
}

/* With the rights of the template's user, and for a socket of root's with root's, where the sandbox has root. */
static int look(struct link *link, const struct egress_ask *ask, struct exec_owner *ret,
                struct err *err)
{
    char peer[IP_TEXT_MAX];
    struct exec_ends ends = { ask->datagram, ask->from_port, peer, ask->to_port };

    ip_print(&ask->to, peer);
    if (exec_owner(link, ask->sandbox, NULL, &ends, ret, err) < 0)
        return -1;
    if (ret->pid != 0 || ret->uid != 0)
        return 0;
    return exec_owner(link, ask->sandbox, "root", &ends, ret, err);
}

static bool find(struct app *app, const struct egress_ask *ask, struct egress_process *ret)
{
    struct exec_owner owner = { .pid = 0 };
    struct link link;
    struct err err;
    int patience, r;

    if (app_link_take(app, &link, &err) < 0)
        return false;
    patience = link.patience_ms;
    link.patience_ms = ANSWER_MS;
    r = look(&link, ask, &owner, &err);
    link.patience_ms = patience;
    app_link_give(app, &link,
                  r == 0 || (err.kind != ERR_UNAVAILABLE && err.kind != ERR_PROTOCOL &&
                             err.kind != ERR_TIMEOUT));
    if (r < 0 || owner.pid == 0)
        return false;
    ret->pid = owner.pid;
    owners_clean(owner.program, ret->name, sizeof ret->name);
    return true;
}

static void *work(void *arg)
{
    struct owners *o = arg;

    for (;;) {
        struct egress_process process = { .pid = 0 };
        struct egress_ask ask;

        (void) pthread_mutex_lock(&o->lock);
        while (o->count == 0)
            (void) pthread_cond_wait(&o->more, &o->lock);
        ask = o->waiting[o->first];
        o->first = (o->first + 1) % WAITING_MAX;
        o->count--;
        (void) pthread_mutex_unlock(&o->lock);
        o->answer(o->app, ask.ticket, find(o->app, &ask, &process) ? &process : NULL);
    }
    return NULL;
}

int owners_start(struct app *app, owners_answer_fn *answer, struct owners **ret, struct err *err)
{
    struct owners *o = calloc(1, sizeof *o);

    if (!o)
        return err_set(err, ERR_NO_MEMORY, "no memory for the gateway");
    o->app = app;
    o->answer = answer;
    (void) pthread_mutex_init(&o->lock, NULL);
    (void) pthread_cond_init(&o->more, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;

        /* A thread that began keeps the struct for the life of the process, which ends now. */
        if (pthread_create(&thread, NULL, work, o) != 0)
            return err_set(err, ERR_NO_MEMORY, "no thread for the gateway");
        (void) pthread_detach(thread);
    }
    *ret = o;
    return 0;
}

bool owners_ask(struct owners *o, const struct egress_ask *ask)
{
    bool room;

    (void) pthread_mutex_lock(&o->lock);
    room = o->count < WAITING_MAX;
    if (room) {
        o->waiting[(o->first + o->count++) % WAITING_MAX] = *ask;
        (void) pthread_cond_signal(&o->more);
    }
    (void) pthread_mutex_unlock(&o->lock);
    return room;
}
