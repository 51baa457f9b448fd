/* mux.h - the streams of one trunk: windows, epochs, ends. It reads and writes memory only; hub.c moves the bytes.
 *
 * The other end counts as hostile. What it can make us hold is bounded: MUX_STREAMS streams of its own, a window of bytes for each,
 * and MUX_OUT_MAX bytes of answers, after which mux_reads() says to read no more. Who sends beyond a window, or uses
 * a number wrongly, loses that stream. A frame that cannot be understood is an error of mux_feed on the host's side; the guest's side
 * skips everything until the zeros before the next HELLO.
 *
 * A reader that does not read stalls its own stream: its window is not returned.
 *
 * Owns:    the streams, their buffers and what is to be sent. Never descriptors: those are hub.c's.
 * Life:    mux_init .. mux_done. A stream is there from `opened` or mux_open to `gone`. */
#ifndef COVE_MUX_MUX_H
#define COVE_MUX_MUX_H

#include "wire/mux.h"

#include <stdbool.h>

#define MUX_WINDOW   (256u * 1024u)
#define MUX_STREAMS  256u                /* of each side */
#define MUX_OUT_CALM (128u * 1024u)      /* unsent bytes; above, no stream is read */
#define MUX_OUT_MAX  (2u * MUX_OUT_CALM) /* above, the trunk is not read */

struct mux;
struct mux_stream;

struct mux_calls {
    /* Guest: a new epoch begins, and has no streams. */
    void (*hello)(struct mux *mux, const struct mux_hello *hello);
    void (*state)(struct mux *mux, const struct mux_state *state);
    /* Host: the guest answered. */
    void (*welcome)(struct mux *mux);
    /* The other side wants a stream; -1: it is reset. */
    int (*opened)(struct mux *mux, struct mux_stream *stream, const struct mux_open *open);
    /* There are more bytes in stream->in, or their end. */
    void (*data)(struct mux *mux, struct mux_stream *stream);
    /* Guest: the client of this operation is gone; bytes of the client's may still come, up to their end. The stream
     * is not reset by this. */
    void (*left)(struct mux *mux, struct mux_stream *stream);
    /* mux_room may have grown. */
    void (*credit)(struct mux *mux, struct mux_stream *stream);
    /* Before it is freed: by a reset, by a new epoch, or because both sides have ended. */
    void (*gone)(struct mux *mux, struct mux_stream *stream);
};

struct mux_stream {
    struct mux_stream *prev, *next;
    uint32_t id;
    bool ours;      /* we opened it */
    bool in_ended;  /* the other side sends no more */
    bool out_ended; /* nor do we */
    bool left; /* an operation's client is gone; the host has said so, or the guest has heard so */
    uint8_t kind;
    uint8_t *in; /* owned: bytes that came and are not taken yet */
    uint32_t in_len, in_room;
    uint32_t taken;  /* bytes that were taken, and not yet returned as credit */
    uint32_t credit; /* bytes that we may send */
    void *owner;     /* the caller's */
};

struct mux {
    bool host;
    bool ready; /* guest: there was a HELLO; host: there was its WELCOME */
    bool lost;  /* guest: until enough zeros came */
    uint64_t epoch;
    const struct mux_calls *calls;
    struct mux_stream *first; /* the last used one */
    uint32_t count[2];        /* streams of theirs, of ours */
    uint32_t last_id;
    uint32_t zeros; /* guest, lost: so many in a row */
    uint32_t in_have;
    uint8_t in[MUX_FRAME_MAX];
    uint32_t out_from, out_to;
    uint8_t out[MUX_OUT_MAX + 2u * MUX_FRAME_MAX];
    void *owner; /* the caller's */
};

void mux_init(struct mux *mux, bool host, const struct mux_calls *calls, void *owner);
void mux_done(struct mux *mux);

/* Host: begins an epoch. Every stream is gone, and no bytes of the old epoch are sent any more. */
void mux_begin(struct mux *mux, const struct mux_hello *hello);
/* Host, when it is ready. */
void mux_tell(struct mux *mux, const struct mux_state *state);

/* Bytes of the trunk. -1: the other side does not keep to the protocol (host only). */
int mux_feed(struct mux *mux, const uint8_t *data, size_t len, struct err *err);
/* Whether there is room for what the next bytes of the trunk may make us say. */
bool mux_reads(const struct mux *mux);

/* What is to be sent: mux_out, then mux_sent of so many. */
size_t mux_out(const struct mux *mux, const uint8_t **ret);
void mux_sent(struct mux *mux, size_t len);

/* NULL: there are too many, or the trunk is not ready, or there is no memory. */
struct mux_stream *mux_open(struct mux *mux, const struct mux_open *open, void *owner);
/* Host: the client of an operation is gone. What is sent on the stream afterwards still arrives. */
void mux_leave(struct mux *mux, struct mux_stream *stream);
/* How many bytes may be sent on the stream now. */
size_t mux_room(const struct mux *mux, const struct mux_stream *stream);
/* At most mux_room. Guest: what is sent to a client that is gone goes nowhere. */
void mux_send(struct mux *mux, struct mux_stream *stream, const uint8_t *data, size_t len);
/* Bytes at the front of stream->in are done with. The stream may be gone after it, as after the next two. */
void mux_take(struct mux *mux, struct mux_stream *stream, size_t len);
void mux_end(struct mux *mux, struct mux_stream *stream);
void mux_reset(struct mux *mux, struct mux_stream *stream);

#endif
