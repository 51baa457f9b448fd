/* Connections whose TLS is ended here, since something may be put into their requests.
 *
 *   sandbox ── TLS as the host, by the sandbox's authority ── requests read and rewritten ── TLS to the host, verified ──
 *
 * Both hands are shaken at once, after the connection was made. What was read from one side and understood waits as bytes
 * for the other side's network; while much of that waits, nothing more is read. A host that cannot prove its name is told
 * of inside the sandbox's own TLS, as an answer to its first request: nothing of that request leaves. */
#include "egress/egress_own.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define SHAKE_MS 10000
#define PIECE    16384
#define IN_MOST  32768 /* read from the network, not yet understood */
#define OUT_MOST                                                                                   \
    131072 /* understood, not yet taken by the network; one piece and what is put into it may be more */
#define AT_ONCE 64 /* of one sandbox */

struct opened {
    struct tls_end *ends[2];
    bool ready[2];     /* hands are shaken */
    bool over[2];      /* nothing more comes from it */
    bool closed[2];    /* it was told that nothing more comes */
    char failure[120]; /* why the server is of no use */
};

struct egress_secrets *egress_secrets_new(struct rewrite *rewrite, const char *cert,
                                          const char *key, struct err *err)
{
    struct egress_secrets *secrets = calloc(1, sizeof *secrets);

    if (!secrets || !rewrite) {
        free(secrets);
        rewrite_free(rewrite);
        err_set(err, ERR_NO_MEMORY, "no memory for secrets");
        return NULL;
    }
    secrets->rewrite = rewrite;
    if (!cert || (secrets->ca = tls_ca_new(cert, key)))
        return secrets;
    egress_secrets_free(secrets);
    err_set(err, ERR_UNAVAILABLE, "the sandbox's certificate authority cannot be read");
    return NULL;
}

void egress_secrets_free(struct egress_secrets *secrets)
{
    if (!secrets)
        return;
    rewrite_free(secrets->rewrite);
    tls_ca_free(secrets->ca);
    free(secrets);
}

/* ---- before it is let out ---- */

bool open_concerns(const struct flow *flow, const char *name, bool tls)
{
    const struct egress_secrets *secrets = flow->box->secrets;
    struct rewrite_to to = { name, flow->port, tls };

    return secrets && name[0] && (!tls || secrets->ca) && rewrite_concerns(secrets->rewrite, &to);
}

const char *open_judge(struct egress *e, struct flow *flow, bool tls)
{
    struct box *box = flow->box;

    flow->bound = open_concerns(flow, flow->name, tls);
    if (!flow->bound || !tls)
        return NULL;
    if (box->open_count >= AT_ONCE)
        return "too many connections to hosts of secrets at once";
    if (!share_take(e, box, EGRESS_HANDSHAKES, flow->reason))
        return LIMIT_RULE;
    flow->opens = true;
    box->open_count++;
    return NULL;
}

void open_end(struct flow *flow)
{
    if (flow->opens)
        flow->box->open_count--;
    flow->opens = false;
    if (!flow->opened)
        return;
    for (int s = CLIENT; s <= SERVER; s++)
        tls_end_free(flow->opened->ends[s]);
    free(flow->opened);
    flow->opened = NULL;
}

/* ---- bytes ---- */

static size_t out_len(const struct flow *flow, int s)
{
    const uint8_t *ignored;

    return tls_end_out(flow->opened->ends[s], &ignored);
}

static bool flush(struct flow *flow, int s)
{
    struct tls_end *end = flow->opened->ends[s];
    const uint8_t *data;
    size_t len = tls_end_out(end, &data);
    ssize_t n;

    if (len == 0)
        return true;
    n = send(flow->sides[s].source.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN;
    tls_end_sent(end, (size_t) n);
    return true;
}

static bool take_in(struct egress *e, struct flow *flow, int s)
{
    struct side *side = &flow->sides[s];
    uint64_t room = flow_room(flow);
    size_t most = room < PIECE ? (size_t) room : PIECE;
    ssize_t n;

    if (side->ended || tls_end_waiting(flow->opened->ends[s]) >= IN_MOST)
        return true;
    if (room == 0)
        return true;
    n = recv(side->source.fd, e->copy, most, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN;
    if (n == 0) {
        side->ended = true;
        return true;
    }
    flow_spend(flow, (uint64_t) n);
    e->counts.bytes += (uint64_t) n;
    return tls_end_put(flow->opened->ends[s], e->copy, (size_t) n);
}

/* ---- what is said ---- */

/* Requests that are whole are passed on, with what is put into them. */
static bool pass_requests(struct flow *flow)
{
    auto_free uint8_t *out = NULL;
    size_t len = 0;

    if (!transform(flow, &out, &len))
        return false;
    flow->sent += len;
    return tls_end_write(flow->opened->ends[SERVER], out, len);
}

static bool failed(struct flow *flow, const char *why)
{
    (void) snprintf(flow->reason, sizeof flow->reason, "%s", why);
    flow->answers = true;
    return false;
}

/* From the sandbox. */
static bool up(struct egress *e, struct flow *flow, bool *moved)
{
    struct opened *o = flow->opened;

    while (o->ready[CLIENT] && !o->over[CLIENT] && (o->ready[SERVER] || o->failure[0]) &&
           out_len(flow, SERVER) < OUT_MOST) {
        ssize_t n = tls_end_read(o->ends[CLIENT], e->copy, PIECE);

        if (n == TLS_MORE && !flow->sides[CLIENT].ended)
            break;
        if (n == 0 || n == TLS_MORE) {
            o->over[CLIENT] = true;
            break;
        }
        if (n < 0)
            return false;
        if (o->failure[0])
            return failed(flow, o->failure);
        *moved = true;
        if (!relay_keep(flow, e->copy, (size_t) n) || !pass_requests(flow))
            return false;
    }
    return true;
}

/* From the host. */
static bool down(struct egress *e, struct flow *flow, bool *moved)
{
    struct opened *o = flow->opened;

    while (o->ready[CLIENT] && o->ready[SERVER] && !o->over[SERVER] &&
           out_len(flow, CLIENT) < OUT_MOST) {
        ssize_t n = tls_end_read(o->ends[SERVER], e->copy, PIECE);

        if (n == TLS_MORE && !flow->sides[SERVER].ended)
            break;
        if (n == 0 || n == TLS_MORE) {
            o->over[SERVER] = true;
            break;
        }
        if (n < 0)
            return false;
        *moved = true;
        flow->received += (uint64_t) n;
        if (!tls_end_write(o->ends[CLIENT], e->copy, (size_t) n))
            return false;
        if (http_watch_answer(flow->watch, e->copy, (size_t) n) && flow->first_len > 0 &&
            !pass_requests(flow))
            return false;
    }
    return true;
}

/* ---- steps ---- */

static bool shake(struct egress *e, struct flow *flow)
{
    struct opened *o = flow->opened;
    bool both = o->ready[CLIENT] && o->ready[SERVER];
    char why[sizeof o->failure];

    for (int s = CLIENT; s <= SERVER; s++) {
        int rc;

        if (o->ready[s] || (s == SERVER && o->failure[0]))
            continue;
        rc = tls_end_shake(o->ends[s], why, sizeof why);
        if (rc == 0 && flow->sides[s].ended && tls_end_waiting(o->ends[s]) == 0) {
            (void) snprintf(why, sizeof why, "TLS: cut off");
            rc = -1;
        }
        o->ready[s] = rc == 1;
        if (rc < 0 && s == SERVER) {
            (void) strcpy(o->failure, why);
        } else if (rc < 0) { /* an alert may say why, to the other side */
            (void) flush(flow, CLIENT);
            (void) snprintf(flow->reason, sizeof flow->reason, "%s", why);
            return false;
        }
    }
    if (!both && o->ready[CLIENT] && o->ready[SERVER])
        flow->deadline_ms = io_now_ms() + e->config.limits.idle_ms;
    return true;
}

/* The end of one direction is passed on when all of it is. */
static bool pass_ends(struct flow *flow)
{
    struct opened *o = flow->opened;

    for (int s = CLIENT; s <= SERVER; s++) {
        struct side *side = &flow->sides[s];

        if (!o->over[s == CLIENT ? SERVER : CLIENT])
            continue;
        if (!o->closed[s]) {
            tls_end_close(o->ends[s]);
            o->closed[s] = true;
        }
        if (!flush(flow, s))
            return false;
        if (!side->shut && out_len(flow, s) == 0) {
            (void) shutdown(side->source.fd, SHUT_WR);
            side->shut = true;
        }
    }
    return true;
}

static bool pump(struct egress *e, struct flow *flow)
{
    bool moved;

    do { /* ends: what was read from the network is bounded */
        moved = false;
        if (!shake(e, flow) || !flush(flow, CLIENT) || !flush(flow, SERVER) ||
            !up(e, flow, &moved) || !down(e, flow, &moved))
            return false;
    } while (moved);
    return flush(flow, CLIENT) && flush(flow, SERVER) && pass_ends(flow);
}

static bool wants(const struct flow *flow, int s)
{
    const struct opened *o = flow->opened;

    if (flow->sides[s].ended || o->over[s] || tls_end_waiting(o->ends[s]) >= IN_MOST)
        return false;
    if (!o->ready[s])
        return true;
    if (s == CLIENT && !o->ready[SERVER])
        return o->failure[0];
    return out_len(flow, s == CLIENT ? SERVER : CLIENT) < OUT_MOST;
}

void open_arm(struct egress *e, struct flow *flow)
{
    bool tokens = flow_room(flow) > 0;

    for (int s = CLIENT; s <= SERVER; s++) {
        uint32_t events = (tokens && wants(flow, s) ? EPOLLIN : 0u) |
                          (out_len(flow, s) > 0 ? (uint32_t) EPOLLOUT : 0u);

        if (source_arm(e, &flow->sides[s].source, events) < 0) {
            flow_end(e, flow, true);
            return;
        }
    }
}

static void next_step(struct egress *e, struct flow *flow)
{
    bool fine = pump(e, flow);

    if (fine && !(flow->sides[CLIENT].shut && flow->sides[SERVER].shut))
        open_arm(e, flow);
    else
        relay_finish(e, flow, flow->opened->ready[SERVER] ? EGRESS_CONNECT : EGRESS_FAILED, !fine);
}

static void on_ready(struct egress *e, struct source *source, uint32_t events)
{
    struct side *side = (struct side *) (void *) ((char *) source - offsetof(struct side, source));
    struct flow *flow = side->flow;
    int s = side == &flow->sides[CLIENT] ? CLIENT : SERVER;

    if (flow->state != FLOW_RELAY)
        return; /* refused by what the other side said in the same batch of events */
    if (flow->opened->ready[CLIENT] && flow->opened->ready[SERVER])
        flow->deadline_ms = io_now_ms() + e->config.limits.idle_ms;
    if ((events & EPOLLERR) || ((events & (EPOLLIN | EPOLLHUP)) && !take_in(e, flow, s)))
        relay_finish(e, flow, flow->opened->ready[SERVER] ? EGRESS_CONNECT : EGRESS_FAILED, true);
    else
        next_step(e, flow);
}

void open_begin(struct egress *e, struct flow *flow)
{
    struct opened *o = flow->opened = calloc(1, sizeof *o);

    flow->watch = malloc(sizeof *flow->watch);
    if (!o || !flow->watch ||
        !(o->ends[CLIENT] = tls_end_server(flow->box->secrets->ca, flow->name)) ||
        !(o->ends[SERVER] = tls_end_client(e->trust, flow->name)) ||
        !tls_end_put(o->ends[CLIENT], flow->first, flow->first_len)) {
        (void) snprintf(flow->reason, sizeof flow->reason, "no memory");
        relay_finish(e, flow, EGRESS_FAILED, true);
        return;
    }
    http_watch_init(flow->watch, flow->name);
    flow->first_len = 0;
    flow->deadline_ms = io_now_ms() + SHAKE_MS;
    flow->sides[CLIENT].source.ready = flow->sides[SERVER].source.ready = on_ready;
    next_step(e, flow);
}

bool open_answer(struct flow *flow, const char *text, size_t len)
{
    struct tls_end *end = flow->opened->ends[CLIENT];

    if (!flow->opened->ready[CLIENT] || !tls_end_write(end, (const uint8_t *) text, len))
        return false;
    tls_end_close(end);
    return flush(flow, CLIENT);
}
