/* What always holds: in_len + taken <= MUX_WINDOW for each stream, because DATA beyond the window resets it; credit <= MUX_WINDOW,
 * because CREDIT beyond it does. The out buffer never overflows: streams are read below MUX_OUT_CALM only, the trunk below MUX_OUT_MAX,
 * and one frame of the trunk makes at most a few small frames. */
#include "mux/mux.h"

#include "base/own.h"
#include "wire/frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define IN_FIRST 4096u

/* ---- out ---- */

static uint32_t unsent(const struct mux *m)
{
    return m->out_to - m->out_from;
}

static void put_bytes(struct mux *m, const void *data, size_t len)
{
    if (m->out_from > 0 && m->out_to + len > sizeof m->out) {
        memmove(m->out, m->out + m->out_from, unsent(m));
        m->out_to -= m->out_from;
        m->out_from = 0;
    }
    assert(m->out_to + len <= sizeof m->out);
    memcpy(m->out + m->out_to, data, len);
    m->out_to += (uint32_t) len;
}

static void put_frame(struct mux *m, enum mux_type type, uint32_t stream, const void *data,
                      size_t len)
{
    uint8_t head[MUX_HEAD];

    mux_head_put(head, type, (uint32_t) len, stream);
    put_bytes(m, head, sizeof head);
    if (len > 0)
        put_bytes(m, data, len);
}

size_t mux_out(const struct mux *m, const uint8_t **ret)
{
    *ret = m->out + m->out_from;
    return unsent(m);
}

void mux_sent(struct mux *m, size_t len)
{
    assert(len <= unsent(m));
    m->out_from += (uint32_t) len;
    if (m->out_from == m->out_to)
        m->out_from = m->out_to = 0;
}

bool mux_reads(const struct mux *m)
{
    return unsent(m) < MUX_OUT_MAX;
}

/* ---- streams ---- */

static void unlink_stream(struct mux *m, struct mux_stream *s)
{
    *(s->prev ? &s->prev->next : &m->first) = s->next;
    if (s->next)
        s->next->prev = s->prev;
}

static void link_first(struct mux *m, struct mux_stream *s)
{
    s->prev = NULL;
    s->next = m->first;
    if (s->next)
        s->next->prev = s;
    m->first = s;
}

/* The one that was used last is asked for next, most of the time. */
static struct mux_stream *find(struct mux *m, uint32_t id)
{
    for (struct mux_stream *s = m->first; s; s = s->next) {
        if (s->id != id)
            continue;
        if (s->prev) {
            unlink_stream(m, s);
            link_first(m, s);
        }
        return s;
    }
    return NULL;
}

static struct mux_stream *add(struct mux *m, uint32_t id, uint8_t kind, bool ours)
{
    struct mux_stream *s = m->count[ours] < MUX_STREAMS ? calloc(1, sizeof *s) : NULL;

    if (!s)
        return NULL;
    s->id = id;
    s->kind = kind;
    s->ours = ours;
    s->credit = MUX_WINDOW;
    link_first(m, s);
    m->count[ours]++;
    return s;
}

static void drop(struct mux *m, struct mux_stream *s)
{
    unlink_stream(m, s);
    m->count[s->ours]--;
    m->calls->gone(m, s);
    free(s->in);
    free(s);
}

static void drop_all(struct mux *m)
{
    while (m->first)
        drop(m, m->first);
}

/* Guest: no program reads what we send on this stream. */
static bool is_deaf(const struct mux *m, const struct mux_stream *s)
{
    return s->left && !m->host;
}

static void drop_if_over(struct mux *m, struct mux_stream *s)
{
    if (!s->in_ended || s->in_len > 0)
        return;
    if (s->out_ended)
        drop(m, s);
    else if (is_deaf(m, s))
        mux_reset(m, s);
}

struct mux_stream *mux_open(struct mux *m, const struct mux_open *open, void *owner)
{
    uint8_t body[MUX_OPEN_MAX];
    struct mux_stream *s;
    uint32_t id = m->last_id;

    if (!m->ready || !mux_reads(m))
        return NULL;
    do { /* the host's are even, the guest's odd; 0 is of none */
        id += 2;
    } while (id < 2 || find(m, id));
    s = add(m, id, open->kind, true);
    if (!s)
        return NULL;
    m->last_id = id;
    s->owner = owner;
    put_frame(m, MUX_OPEN, id, body, mux_open_put(body, open));
    return s;
}

size_t mux_room(const struct mux *m, const struct mux_stream *s)
{
    if (s->out_ended)
        return 0;
    if (is_deaf(m, s))
        return MUX_DATA_MAX;
    if (unsent(m) >= MUX_OUT_CALM)
        return 0;
    return s->credit < MUX_DATA_MAX ? s->credit : MUX_DATA_MAX;
}

void mux_send(struct mux *m, struct mux_stream *s, const uint8_t *data, size_t len)
{
    assert(len > 0 && len <= mux_room(m, s));
    if (is_deaf(m, s))
        return;
    s->credit -= (uint32_t) len;
    put_frame(m, MUX_DATA, s->id, data, len);
}

void mux_take(struct mux *m, struct mux_stream *s, size_t len)
{
    uint8_t body[4];

    assert(len <= s->in_len);
    if (len > 0 && len < s->in_len)
        memmove(s->in, s->in + len, s->in_len - len);
    s->in_len -= (uint32_t) len;
    s->taken += (uint32_t) len;
    if (s->in_len == 0) { /* idle streams hold no memory */
        free(s->in);
        s->in = NULL;
        s->in_room = 0;
    }
    if (s->taken >= MUX_WINDOW / 4 && !s->in_ended) {
        frame_put_u32(body, s->taken);
        put_frame(m, MUX_CREDIT, s->id, body, sizeof body);
        s->taken = 0;
    }
    drop_if_over(m, s);
}

void mux_end(struct mux *m, struct mux_stream *s)
{
    if (!s->out_ended)
        put_frame(m, MUX_END, s->id, NULL, 0);
    s->out_ended = true;
    drop_if_over(m, s);
}

void mux_leave(struct mux *m, struct mux_stream *s)
{
    static const uint8_t none[4];

    if (s->left)
        return;
    s->left = true;
    put_frame(m, MUX_CREDIT, s->id, none, sizeof none);
}

void mux_reset(struct mux *m, struct mux_stream *s)
{
    put_frame(m, MUX_RESET, s->id, NULL, 0);
    drop(m, s);
}

/* ---- frames that come ---- */

static int keep(struct mux_stream *s, const uint8_t *data, uint32_t len)
{
    uint32_t room = s->in_room ? s->in_room : IN_FIRST;
    uint8_t *in;

    while (room < s->in_len + len)
        room *= 2;
    if (room > s->in_room) {
        in = realloc(s->in, room);
        if (!in)
            return -1;
        s->in = in;
        s->in_room = room;
    }
    memcpy(s->in + s->in_len, data, len);
    s->in_len += len;
    return 0;
}

static void on_open(struct mux *m, const struct mux_head *head, const struct mux_open *open)
{
    struct mux_stream *s = NULL;

    /* A number of our own side is never theirs to open; one that is in use ends with what used it. */
    if ((head->stream & 1) == (m->host ? 1 : 0))
        s = find(m, head->stream);
    else
        goto refuse;
    if (s) {
        mux_reset(m, s);
        return;
    }
    s = add(m, head->stream, open->kind, false);
    if (!s)
        goto refuse;
    if (m->calls->opened(m, s, open) < 0)
        mux_reset(m, s);
    return;
refuse:
    put_frame(m, MUX_RESET, head->stream, NULL, 0);
}

static void on_data(struct mux *m, struct mux_stream *s, const uint8_t *data, uint32_t len)
{
    if (s->in_ended || s->in_len + s->taken + len > MUX_WINDOW || keep(s, data, len) < 0)
        mux_reset(m, s);
    else
        m->calls->data(m, s);
}

/* Guest: an operation's client is gone. */
static void on_left(struct mux *m, struct mux_stream *s)
{
    if (s->left || s->ours)
        return;
    s->left = true;
    m->calls->left(m, s);
    if (s->in_ended && s->in_len == 0)
        drop_if_over(m, s);
    else
        m->calls->credit(m, s); /* there is room for all that goes nowhere */
}

static void on_credit(struct mux *m, struct mux_stream *s, uint32_t more)
{
    if (more == 0 && !m->host) {
        on_left(m, s);
        return;
    }
    if (more > MUX_WINDOW - s->credit) {
        mux_reset(m, s);
        return;
    }
    s->credit += more;
    m->calls->credit(m, s);
}

static void on_end(struct mux *m, struct mux_stream *s)
{
    s->in_ended = true;
    if (s->in_len == 0 && (s->out_ended || is_deaf(m, s)))
        drop_if_over(m, s);
    else
        m->calls->data(m, s);
}

/* Guest: a client that is gone behind all that it had to say has said it still. */
static void on_reset(struct mux *m, struct mux_stream *s)
{
    if (!m->host && !s->ours && s->in_ended && s->in_len > 0)
        on_left(m, s);
    else
        drop(m, s);
}

static int on_hello(struct mux *m, const uint8_t *body, uint32_t len, struct err *err)
{
    struct mux_hello hello;
    uint8_t answer[MUX_WELCOME_LEN];

    if (mux_hello_get(body, len, &hello, err) < 0)
        return -1;
    drop_all(m);
    m->out_from = m->out_to = 0; /* of the old epoch */
    m->epoch = hello.epoch;
    m->ready = true;
    frame_put_u64(answer, hello.epoch);
    put_frame(m, MUX_WELCOME, 0, answer, sizeof answer);
    m->calls->hello(m, &hello);
    return 0;
}

/* Frames about a stream that is gone already were on their way when it went. */
static int on_stream(struct mux *m, const struct mux_head *head, const uint8_t *body,
                     struct err *err)
{
    struct mux_open open;
    struct mux_stream *s;

    if (head->type == MUX_OPEN) {
        if (mux_open_get(body, head->len, &open, err) < 0)
            return -1;
        on_open(m, head, &open);
        return 0;
    }
    s = find(m, head->stream);
    if (!s)
        return 0;
    if (head->type == MUX_DATA)
        on_data(m, s, body, head->len);
    else if (head->type == MUX_CREDIT)
        on_credit(m, s, frame_get_u32(body));
    else if (head->type == MUX_END)
        on_end(m, s);
    else
        on_reset(m, s);
    return 0;
}

static int on_frame(struct mux *m, const struct mux_head *head, const uint8_t *body,
                    struct err *err)
{
    struct mux_state state;

    if (head->type == MUX_HELLO && !m->host)
        return on_hello(m, body, head->len, err);
    if (!m->ready)
        return 0; /* what is left of another epoch */
    if (head->type == MUX_STATE && !m->host) {
        if (mux_state_get(body, head->len, &state, err) < 0)
            return -1;
        m->calls->state(m, &state);
        return 0;
    }
    if (head->stream == 0)
        return err_set(err, ERR_PROTOCOL, "mux: frame '%s' from the wrong side",
                       mux_type_name(head->type));
    return on_stream(m, head, body, err);
}

/* Bytes of one frame into m->in; how many were used. */
static size_t collect(struct mux *m, const uint8_t *data, size_t len, size_t want)
{
    size_t n = want - m->in_have;

    if (n > len)
        n = len;
    memcpy(m->in + m->in_have, data, n);
    m->in_have += (uint32_t) n;
    return n;
}

/* Host, before the guest's answer: everything up to exactly that frame is of an earlier epoch. */
static size_t skip_to_welcome(struct mux *m, const uint8_t *data, size_t len)
{
    uint8_t want[MUX_HEAD + MUX_WELCOME_LEN];

    mux_head_put(want, MUX_WELCOME, MUX_WELCOME_LEN, 0);
    frame_put_u64(want + MUX_HEAD, m->epoch);
    for (size_t i = 0; i < len; i++) {
        if (m->in_have == sizeof want) {
            memmove(m->in, m->in + 1, sizeof want - 1);
            m->in_have--;
        }
        m->in[m->in_have++] = data[i];
        if (m->in_have == sizeof want && memcmp(m->in, want, sizeof want) == 0) {
            m->in_have = 0;
            m->ready = true;
            m->calls->welcome(m);
            return i + 1;
        }
    }
    return len;
}

/* Guest, after a frame that it did not understand. */
static size_t skip_to_zeros(struct mux *m, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == 0) {
            m->zeros++;
        } else if (m->zeros >= MUX_DATA_MAX) { /* some may have completed the head that was wrong */
            m->lost = false;
            return i;
        } else {
            m->zeros = 0;
        }
    }
    return len;
}

static void lose(struct mux *m)
{
    m->lost = true;
    m->ready = false;
    m->in_have = 0;
    m->zeros = 0;
    drop_all(m);
}

/* A frame, or a part of one. *ret_used: how many of the bytes. */
static int feed_some(struct mux *m, const uint8_t *data, size_t len, size_t *ret_used,
                     struct err *err)
{
    struct mux_head head;
    size_t used;

    if (m->in_have == 0 && data[0] == 0) {
        *ret_used = 1;
        return 0;
    }
    used = m->in_have < MUX_HEAD ? collect(m, data, len, MUX_HEAD) : 0;
    *ret_used = used;
    if (m->in_have < MUX_HEAD)
        return 0;
    if (mux_head_get(m->in, &head, err) < 0)
        return -1;
    used += collect(m, data + used, len - used, MUX_HEAD + head.len);
    *ret_used = used;
    if (m->in_have < MUX_HEAD + head.len)
        return 0;
    m->in_have = 0;
    return on_frame(m, &head, m->in + MUX_HEAD, err);
}

int mux_feed(struct mux *m, const uint8_t *data, size_t len, struct err *err)
{
    while (len > 0) {
        size_t used = 0;

        if (m->host && !m->ready) {
            used = skip_to_welcome(m, data, len);
        } else if (m->lost) {
            used = skip_to_zeros(m, data, len);
        } else if (feed_some(m, data, len, &used, err) < 0) {
            if (m->host)
                return -1;
            lose(m);
        }
        data += used;
        len -= used;
    }
    return 0;
}

/* ---- life ---- */

void mux_init(struct mux *m, bool host, const struct mux_calls *calls, void *owner)
{
    memset(m, 0, sizeof *m);
    m->host = host;
    m->calls = calls;
    m->owner = owner;
    m->last_id = host ? 0 : UINT32_MAX; /* + 2 is 1 */
}

void mux_done(struct mux *m)
{
    drop_all(m);
}

void mux_begin(struct mux *m, const struct mux_hello *hello)
{
    static const uint8_t zeros[MUX_FRAME_MAX];
    uint8_t body[MUX_HELLO_MAX];

    drop_all(m);
    m->ready = false;
    m->in_have = 0;
    m->epoch = hello->epoch;
    m->out_from = m->out_to = 0;
    put_bytes(m, zeros, sizeof zeros);
    put_frame(m, MUX_HELLO, 0, body, mux_hello_put(body, hello));
}

void mux_tell(struct mux *m, const struct mux_state *state)
{
    uint8_t body[MUX_STATE_MAX];

    if (m->ready && mux_reads(m))
        put_frame(m, MUX_STATE, 0, body, mux_state_put(body, state));
}
