/* stream.h - one operation of an agent: a request, then frames.
 *
 * Owns:    a connection and its two buffers, from open to close.
 * Callers: exec.c and files.c. What an agent sends counts as hostile: every frame is bounded,
 *          checked, and refused when it was not to be expected.
 * Never:   blocks longer than patience_ms in one call, also when the agent sends a frame byte by byte. */
#ifndef COVE_CLIENT_STREAM_H
#define COVE_CLIENT_STREAM_H

#include "client/link.h"
#include "wire/agent.h"
#include "wire/frame.h"

#include <stdbool.h>

/* Borrowed from the stream; valid until its next call. */
struct frame {
    enum frame_type type;
    const uint8_t *data;
    uint32_t len;
};

struct stream {
    int fd; /* to poll: POLLIN, and POLLOUT while stream_pending() */
    int patience_ms;
    bool exact;  /* never read past a frame: raw bytes may follow (DIAL) */
    uint8_t *in; /* room for one whole frame and more */
    size_t in_have, in_done;
    uint8_t *out; /* queued frames */
    size_t out_have, out_sent;
    uint64_t until_ms; /* of a frame whose data is taken by stream_splice */
};

#define STREAM_NONE ((struct stream){ .fd = -1 })

/* Connects to the sandbox's agent and sends the request; its version is filled in. */
int stream_open(struct stream *stream, struct link *link, const char *sandbox,
                const struct agent_request *request, struct err *err);
/* The same on a connection that is there already; the descriptor is taken, also on failure. */
int stream_start(struct stream *stream, int fd, int patience_ms,
                 const struct agent_request *request, struct err *err);
void stream_close(struct stream *stream);

/* The next frame: 1, or -1. An ERROR frame is -1 with the agent's error; the end of the connection
 * is ERR_UNAVAILABLE. */
int stream_next(struct stream *stream, struct frame *ret, struct err *err);
/* Without waiting: 1, 0 when no whole frame is there yet, or -1. */
int stream_poll(struct stream *stream, struct frame *ret, struct err *err);

/* With `exact`: the head of a DATA frame, whose *ret_len bytes are then taken by stream_splice, all of them: 1. Another frame, as
 * stream_next has it: 0. */
int stream_data_head(struct stream *stream, uint32_t *ret_len, struct frame *ret, struct err *err);
/* Moves some of those bytes, at most `most`, into a pipe that does not block and has room: how many, or -1. */
ssize_t stream_splice(struct stream *stream, int pipe_fd, uint32_t most, struct err *err);

/* Sends a frame, waiting for room. The agent may refuse meanwhile: then -1 with its error. */
int stream_send(struct stream *stream, enum frame_type type, const void *data, uint32_t len,
                struct err *err);

/* The same; its data is what is in a pipe, `len` bytes. */
int stream_send_piped(struct stream *stream, enum frame_type type, int pipe_fd, uint32_t len,
                      struct err *err);

/* Without waiting: a frame is queued whole, or 0 is returned because there is no room. */
int stream_queue(struct stream *stream, enum frame_type type, const void *data, uint32_t len);
int stream_flush(struct stream *stream, struct err *err);
static inline bool stream_pending(const struct stream *stream)
{
    return stream->out_sent < stream->out_have;
}

/* The next frame must be of this type, and is decoded. */
int stream_reply(struct stream *stream, enum frame_type type, struct agent_reply *ret,
                 struct err *err);
/* ITEM: 1, END: 0, both decoded. */
int stream_item(struct stream *stream, struct agent_reply *ret, struct err *err);

/* "the agent sent ..." */
int stream_unexpected(const struct frame *frame, struct err *err);

#endif
