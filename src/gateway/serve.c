#include "gateway/serve.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "egress/message.h"
#include "gateway/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

struct server {
    int fd;
    struct outbox *outbox;
    struct egress *egress; /* NULL until CONFIG */
    struct egress_config config;
    uint64_t mark; /* of this connection, in every ticket: an answer to the one before fits none */
};

struct request {
    struct message_head head;
    uint8_t *body;
    int fds[EGRESS_FDS]; /* -1: none, or taken */
};

/* ---- what the gateway has to say ---- */

static void on_event(void *context, const struct egress_event *event)
{
    struct server *s = context;

    outbox_event(s->outbox, event);
}

static bool on_ask(void *context, const struct egress_ask *ask)
{
    struct server *s = context;
    struct egress_ask marked = *ask;

    marked.ticket ^= s->mark;
    return outbox_ask(s->outbox, &marked);
}

static void on_dial(void *context, const struct egress_dial *dial)
{
    struct server *s = context;
    struct egress_dial marked = *dial;

    marked.ticket ^= s->mark;
    outbox_dial(s->outbox, &marked);
}

/* ---- requests: each fills in the result, if it has one. -1: not of the form that it has to be ---- */

typedef int handler(struct server *s, struct request *r, struct message_result *ret,
                    struct err *err);

static int do_config(struct server *s, struct request *r, struct message_result *ret,
                     struct err *err)
{
    if (s->egress)
        return err_set(err, ERR_PROTOCOL, "configured twice");
    if (message_get_config(r->body, r->head.size, &s->config, err) < 0)
        return -1;
    s->config.event = on_event;
    s->config.ask = on_ask;
    s->config.dial = on_dial;
    s->config.context = s;
    if (egress_start(&s->config, &s->egress, &ret->err) < 0) { /* another one may come */
        free((char *) (uintptr_t) s->config.authorities);
        s->config.authorities = NULL;
    }
    return 0;
}

/* Secrets as the gateway has them. NULL is no failure if there are none. */
static struct egress_secrets *secrets_of(struct message_set *set, struct err *err)
{
    struct message_secrets *secrets = set->secrets;
    struct egress_secrets *made;

    if (!secrets)
        return NULL;
    made = egress_secrets_new(take_ptr(&secrets->rewrite), secrets->cert, secrets->key, err);
    message_secrets_free(take_ptr(&set->secrets));
    return made;
}

static int do_set(struct server *s, struct request *r, struct message_result *ret, struct err *err)
{
    auto_free struct message_set *set = calloc(1, sizeof *set);
    struct egress_secrets *secrets;

    if (!set)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (message_get_set(r->body, r->head.size, set, err) < 0)
        return -1;
    secrets = secrets_of(set, &ret->err);
    if (ret->err.kind != ERR_NONE)
        return 0;
    (void) egress_set(s->egress, set->sandbox, set->tenant, &set->rules, secrets,
                      r->head.fds ? r->fds : NULL, &ret->err);
    for (size_t i = 0; i < EGRESS_FDS; i++)
        r->fds[i] = -1;               /* taken in any case */
    explicit_bzero(set, sizeof *set); /* the login of a proxy */
    return 0;
}

static int do_drop(struct server *s, struct request *r, struct message_result *ret, struct err *err)
{
    char sandbox[EGRESS_ID_MAX];

    (void) ret;
    if (message_get_sandbox(r->body, r->head.size, sandbox, err) < 0)
        return -1;
    egress_drop(s->egress, sandbox);
    return 0;
}

static int do_open(struct server *s, struct request *r, struct message_result *ret, struct err *err)
{
    char sandbox[EGRESS_ID_MAX];

    if (message_get_sandbox(r->body, r->head.size, sandbox, err) < 0)
        return -1;
    ret->open = egress_open(s->egress, sandbox);
    return 0;
}

static int do_counts(struct server *s, struct request *r, struct message_result *ret,
                     struct err *err)
{
    (void) r;
    (void) err;
    ret->has_counts = true;
    egress_counts(s->egress, &ret->counts);
    return 0;
}

static int do_ranges(struct server *s, struct request *r, struct message_result *ret,
                     struct err *err)
{
    char ranges[EGRESS_RANGES_MAX];

    (void) ret;
    if (message_get_ranges(r->body, r->head.size, ranges, err) < 0)
        return -1;
    egress_set_ranges(s->egress, ranges);
    return 0;
}

static int do_nets(struct server *s, struct request *r, struct message_result *ret, struct err *err)
{
    struct message_nets nets;

    if (message_get_nets(r->body, r->head.size, &nets, err) < 0)
        return -1;
    (void) egress_nets_set(s->egress, nets.tenant, nets.nets, nets.count, &ret->err);
    message_nets_done(&nets);
    return 0;
}

static int do_answer(struct server *s, struct request *r, struct message_result *ret,
                     struct err *err)
{
    struct egress_process process;
    uint64_t ticket;

    (void) ret;
    if (message_get_answer(r->body, r->head.size, &ticket, &process, err) < 0)
        return -1;
    egress_answer(s->egress, ticket ^ s->mark, process.pid ? &process : NULL);
    return 0;
}

static int do_dialed(struct server *s, struct request *r, struct message_result *ret,
                     struct err *err)
{
    struct egress_dial dial;
    struct err why;

    (void) ret;
    if (message_get_dialed(r->body, r->head.size, &dial, &why, err) < 0)
        return -1;
    dial.ticket ^= s->mark;
    egress_dialed(s->egress, &dial, take_fd(&r->fds[0]), &why);
    return 0;
}

static handler *const handlers[MESSAGE_KINDS] = {
    [MESSAGE_CONFIG] = do_config, [MESSAGE_SET] = do_set,       [MESSAGE_DROP] = do_drop,
    [MESSAGE_OPEN] = do_open,     [MESSAGE_COUNTS] = do_counts, [MESSAGE_NETS] = do_nets,
    [MESSAGE_ANSWER] = do_answer, [MESSAGE_DIALED] = do_dialed, [MESSAGE_RANGES] = do_ranges,
};

static int handle(struct server *s, struct request *r, struct err *err)
{
    struct message_result result = { .err.kind = ERR_NONE };

    if (!s->egress && r->head.kind != MESSAGE_CONFIG)
        return err_set(err, ERR_PROTOCOL, "not configured yet");
    if (handlers[r->head.kind](s, r, &result, err) < 0)
        return err_wrap(err, "message '%s'", message_rows[r->head.kind].name);
    if (message_rows[r->head.kind].answered)
        outbox_result(s->outbox, r->head.serial, &result);
    return 0;
}

/* ---- reading ---- */

/* 1: coved is gone. */
static int read_head(struct server *s, struct request *r, struct err *err)
{
    size_t count = 0, more;
    ssize_t n = io_recv_fds(s->fd, &r->head, sizeof r->head, r->fds, EGRESS_FDS, &count);

    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return 1;
    more = n > 0 ? sizeof r->head - (size_t) n : 0;
    if (n < 0 || (more > 0 && io_read_all(s->fd, (uint8_t *) &r->head + n, more) < 0))
        return err_sys(err, errno, "read from coved");
    if (message_head_check(&r->head, true, err) < 0)
        return -1;
    if (r->head.fds != count)
        return err_set(err, ERR_PROTOCOL, "%zu descriptors came, not %u", count, r->head.fds);
    return 0;
}

static int read_request(struct server *s, struct request *r, struct err *err)
{
    int n = read_head(s, r, err);

    if (n != 0)
        return n;
    r->body = malloc(r->head.size + 1u);
    if (!r->body)
        return err_set(err, ERR_NO_MEMORY, "no memory for a request");
    if (io_read_all(s->fd, r->body, r->head.size) < 0)
        return err_sys(err, errno, "read from coved");
    return 0;
}

/* There may have been secrets in it. */
static void request_done(struct request *r)
{
    if (r->body)
        explicit_bzero(r->body, r->head.size);
    free(r->body);
    for (size_t i = 0; i < EGRESS_FDS; i++)
        own_close(&r->fds[i]);
}

static int next(struct server *s, struct err *err)
{
    struct request r = { .body = NULL };
    int n;

    for (size_t i = 0; i < EGRESS_FDS; i++)
        r.fds[i] = -1;
    n = read_request(s, &r, err);
    if (n == 0)
        n = handle(s, &r, err);
    request_done(&r);
    return n;
}

int serve(int fd, struct err *err)
{
    static struct server s; /* one at a time; large */
    int r = 0;

    s = (struct server){ .fd = fd };
    if (getrandom(&s.mark, sizeof s.mark, 0) != (ssize_t) sizeof s.mark)
        r = err_sys(err, errno, "random numbers");
    else
        r = outbox_start(fd, &s.outbox, err);
    while (r == 0)
        r = next(&s, err);
    (void) shutdown(fd, SHUT_RDWR);
    egress_stop(s.egress); /* may still have something to say */
    outbox_stop(s.outbox);
    free((char *) (uintptr_t) s.config.authorities);
    (void) close(fd);
    return r < 0 ? -1 : 0;
}
