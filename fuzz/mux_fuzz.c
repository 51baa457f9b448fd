/* mux_fuzz.c - what comes over a trunk, to either side: the first byte says which. The rest is fed in pieces whose sizes are in the input, too,
 * while streams of our own are opened, written and read. What must hold is in mux.c's head, and checked here. */
#include "mux/mux.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_hello(struct mux *mux, const struct mux_hello *hello)
{
    if (mux->host || hello->epoch == 0 || strlen(hello->state.name) >= MUX_NAME_MAX)
        abort();
}

static void on_state(struct mux *mux, const struct mux_state *state)
{
    if (mux->host || strlen(state->name) >= MUX_NAME_MAX)
        abort();
}

static void on_welcome(struct mux *mux)
{
    if (!mux->host)
        abort();
}

static int on_opened(struct mux *mux, struct mux_stream *stream, const struct mux_open *open)
{
    if ((stream->id & 1) != (mux->host ? 1u : 0u))
        abort();
    return open->port == 1 ? -1 : 0;
}

static void on_data(struct mux *mux, struct mux_stream *stream)
{
    if (stream->in_len + stream->taken > MUX_WINDOW)
        abort();
    if (stream->id % 3 == 0) /* some read at once, some only at the end */
        mux_take(mux, stream, stream->in_len);
    else if (stream->id % 3 == 1 && stream->in_ended)
        mux_end(mux, stream);
}

static void on_left(struct mux *mux, struct mux_stream *stream)
{
    if (mux->host || stream->ours || !stream->left)
        abort();
}

static void on_credit(struct mux *mux, struct mux_stream *stream)
{
    size_t room = mux_room(mux, stream);

    if (stream->credit > MUX_WINDOW)
        abort();
    if (room > 0)
        mux_send(mux, stream, (const uint8_t *) "x", 1);
}

static void on_gone(struct mux *mux, struct mux_stream *stream)
{
    (void) mux, (void) stream;
}

static const struct mux_calls calls = { on_hello, on_state, on_welcome, on_opened,
                                        on_data,  on_left,  on_credit,  on_gone };

static void check(const struct mux *mux)
{
    uint32_t counts[2] = { 0, 0 };
    const uint8_t *out;

    for (const struct mux_stream *s = mux->first; s; s = s->next) {
        counts[s->ours]++;
        if (s->left && s->ours != mux->host) /* the host's clients only */
            abort();
    }
    if (counts[0] != mux->count[0] || counts[1] != mux->count[1] || counts[0] > MUX_STREAMS ||
        counts[1] > MUX_STREAMS || mux_out(mux, &out) > sizeof mux->out)
        abort();
}

/* A welcome to the epoch that is wanted cannot be guessed: given now and then. */
static void begin(struct mux *mux)
{
    struct mux_hello hello = { .epoch = 1 };
    uint8_t welcome[MUX_HEAD + MUX_WELCOME_LEN] = { MUX_WELCOME, MUX_WELCOME_LEN, [MUX_HEAD] = 1 };
    struct err err;

    if (mux->host) {
        mux_begin(mux, &hello);
        (void) mux_feed(mux, welcome, sizeof welcome, &err);
    } else {
        uint8_t bytes[MUX_HEAD + MUX_HELLO_MAX];
        size_t len = mux_hello_put(bytes + MUX_HEAD, &hello);

        mux_head_put(bytes, MUX_HELLO, (uint32_t) len, 0);
        (void) mux_feed(mux, bytes, MUX_HEAD + len, &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mux mux;
    const struct mux_open open = { .kind = MUX_AGENT };
    struct err err;

    if (size < 2)
        return 0;
    mux_init(&mux, data[0] & 1, &calls, NULL);
    if (data[0] & 2)
        begin(&mux);
    data++, size--;
    while (size > 1) {
        size_t piece = (size_t) data[0] + 1;
        const uint8_t *out;

        data++, size--;
        if (piece > size)
            piece = size;
        if (piece % 7 == 0)
            (void) mux_open(&mux, &open, NULL);
        if (piece % 11 == 0 && mux.host && mux_reads(&mux)) /* clients go */
            for (struct mux_stream *s = mux.first; s; s = s->next)
                if (s->ours)
                    mux_leave(&mux, s);
        if (mux_reads(&mux) && mux_feed(&mux, data, piece, &err) < 0) {
            if (!mux.host)
                abort();
            break;
        }
        check(&mux);
        if (piece % 5 != 0)
            mux_sent(&mux, mux_out(&mux, &out));
        data += piece;
        size -= piece;
    }
    mux_done(&mux);
    return 0;
}
