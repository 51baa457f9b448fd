/* Requests of a connection, as they may be passed on: each head rewritten (rewrite.h), each body as it is, nothing that was not
 * understood. What comes out in one round is bounded, however many requests come at once. */
#include "egress/egress_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MORE_MOST (512 * 1024) /* that one round may be longer than what came */

struct out {
    uint8_t *data;
    size_t len, room;
};

static bool make_room(struct out *out, size_t more)
{
    size_t room = out->len + more;
    uint8_t *wider;

    if (room <= out->room)
        return true;
    wider = realloc(out->data, 2 * room);
    if (!wider)
        return false;
    out->data = wider;
    out->room = 2 * room;
    return true;
}

/* Refused for what it said. Who waits for an answer gets one; in the middle of another it would be read as part of that. */
static bool refuse_request(struct flow *flow, const struct err *why)
{
    bool secret = why->kind == ERR_DENIED && flow->in_head;

    flow->refused = true;
    (void) snprintf(flow->rule, sizeof flow->rule, "%s", secret ? "secret" : why->msg);
    (void) snprintf(flow->reason, sizeof flow->reason, "%s", why->msg);
    flow->answers = !flow->watch->upgraded && flow->sides[CLIENT].held_len == 0 &&
                    (flow->sent == 0 || flow->received > flow->received_then);
    return false;
}

static bool add_head(struct flow *flow, struct out *out, size_t most, struct err *why)
{
    struct rewrite_to to = { flow->watch->name, flow->port, flow->opened != NULL };
    ssize_t n;

    if (!make_room(out, REWRITE_OUT_MAX))
        return err_set(why, ERR_NO_MEMORY, "no memory"), false;
    flow->in_head = true;
    n = rewrite_head(flow->box->secrets->rewrite, &to, &flow->watch->head,
                     (char *) out->data + out->len, why);
    if (n < 0)
        return false;
    flow->in_head = false;
    out->len += (size_t) n;
    if (out->len > most)
        return err_set(why, ERR_TOO_BIG, "too many requests at once"), false;
    return true;
}

bool transform(struct flow *flow, uint8_t **ret, size_t *ret_len)
{
    size_t used = 0, most = flow->first_len + MORE_MOST;
    struct out out = { .data = NULL };
    struct err why = { .kind = ERR_NONE };
    bool fine = true;

    flow->in_head = false;
    while (used < flow->first_len) {
        const uint8_t *at = flow->first + used;
        bool head;
        ssize_t n = http_watch_step(flow->watch, at, flow->first_len - used, &head, &why);

        fine = n >= 0;
        if (n <= 0)
            break;
        if (head) {
            fine = add_head(flow, &out, most, &why);
            if (fine)
                flow->received_then = flow->received;
        } else if ((fine = make_room(&out, (size_t) n))) {
            memcpy(out.data + out.len, at, (size_t) n);
            out.len += (size_t) n;
        }
        if (!fine)
            break;
        used += (size_t) n;
    }
    if (!fine) {
        free(out.data);
        return refuse_request(flow, &why);
    }
    flow->first_len -= used;
    memmove(flow->first, flow->first + used, flow->first_len);
    *ret = out.data;
    *ret_len = out.len;
    if (flow->first_len > SNIFF_MAX) {
        err_set(&why, ERR_TOO_BIG, "more than can be kept while it waits for an answer");
        return refuse_request(flow, &why);
    }
    return true;
}
