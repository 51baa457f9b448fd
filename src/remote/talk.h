/* talk.h - the client's side of GET /v1/session, a command's input, output and end over one WebSocket, and of
 * GET /v1/sandboxes/…/tunnel/…, the bytes of a port.
 *
 * Pull style, so that a caller can poll several things at once: talk_fd for reading, and for writing while talk_pending.
 *
 * Owns:    the connection, and one piece of input that has not left yet.
 * Callers: cli/api/session.c, cli/api/port_forward.c; fuzz/talk_fuzz.c feeds it a hostile server.
 * Never:   buffers output: a caller that does not call talk_next stops the command, and nothing else. */
#ifndef COVE_REMOTE_TALK_H
#define COVE_REMOTE_TALK_H

#include "http/ws_client.h"
#include "remote/ask.h"

#define TALK_PIECE 32768 /* of stdin, at most */

enum talk_type { TALK_STDOUT, TALK_STDERR, TALK_TEXT, TALK_CLOSED };

struct talk_event {
    enum talk_type type;
    const char *data; /* borrowed, until the next call */
    size_t len;
    json_t *json; /* TALK_TEXT; the caller's to decref */
};

struct talk {
    struct call call;
    struct ws_frame frame;
    uint64_t left;  /* of the frame's payload; meaningful while in_frame */
    uint8_t stream; /* of a binary frame; 0: not read yet */
    bool in_frame, closed;
    bool raw;      /* a tunnel: binary frames are bytes of the port, all of them TALK_STDOUT */
    uint32_t mask; /* of the next frame */
    char out[TALK_PIECE + 512];
    size_t out_at, out_len;
};

/* take_order: the reference is taken. The handshake is done when it returns. */
int talk_open(struct talk *talk, const struct remote *remote, json_t *take_order, struct err *err);
/* path: encoded, as ask_path makes it. */
int talk_tunnel(struct talk *talk, const struct remote *remote, const char *path, struct err *err);
void talk_close(struct talk *talk);
int talk_fd(const struct talk *talk);

/* 1 with an event, 0: none is here yet, -1. */
int talk_next(struct talk *talk, struct talk_event *ret, struct err *err);

/* Queued whole (true), or not at all (false: flush first). talk_flush never waits. */
bool talk_stdin(struct talk *talk, const void *data, size_t len);
bool talk_stdin_end(struct talk *talk);
/* Of a tunnel: no more bytes follow. */
bool talk_end(struct talk *talk);
bool talk_resize(struct talk *talk, unsigned rows, unsigned columns);
bool talk_pending(const struct talk *talk);
int talk_flush(struct talk *talk, struct err *err);

#endif
