/* ws.h - WebSocket, the server's side (RFC 6455): handshake, frames in, frames out.
 *
 * Owns:    nothing but the struct. Payload is unmasked in the caller's buffer and handed out as
 *          slices of it; a message of any size passes through, piece by piece.
 * Callers: the terminal and other streams of the server.
 * Never:   answers by itself. The caller sends the pong and the close that events ask for. */
#ifndef COVE_HTTP_WS_H
#define COVE_HTTP_WS_H

#include "base/err.h"
#include "base/utf8.h"
#include "http/head.h"

enum ws_op {
    WS_CONTINUE = 0,
    WS_TEXT = 1,
    WS_BINARY = 2,
    WS_CLOSE = 8,
    WS_PING = 9,
    WS_PONG = 10,
};

enum ws_code {
    WS_CODE_NORMAL = 1000,
    WS_CODE_GOING_AWAY = 1001,
    WS_CODE_PROTOCOL = 1002,
    WS_CODE_UNACCEPTABLE = 1003,
    WS_CODE_NONE = 1005, /* never sent: a close frame without a code */
    WS_CODE_BAD_TEXT = 1007,
    WS_CODE_POLICY = 1008,
    WS_CODE_TOO_BIG = 1009,
    WS_CODE_INTERNAL = 1011,
    WS_CODE_TRY_LATER = 1013,
};

/* ---- handshake ---- */

#define WS_ACCEPT_SIZE 29 /* Sec-WebSocket-Accept with its NUL */
void ws_accept(struct slice key, char ret_accept[WS_ACCEPT_SIZE]);

/* Whether a complete head asks for WebSocket at all: then ws_handshake judges how. */
bool ws_wanted(const struct head *head);

/* 0 with the value of Sec-WebSocket-Accept for the 101; -1 with the status to answer (426 comes
 * with "Sec-WebSocket-Version: 13"). Subprotocols are the caller's to choose: head_list of
 * Sec-WebSocket-Protocol. */
int ws_handshake(const struct head *head, char ret_accept[WS_ACCEPT_SIZE], unsigned *ret_status,
                 struct err *err);

/* ---- frames in ---- */

#define WS_CONTROL_MAX 125
#define WS_IN_HEAD_MAX 14

struct ws_frame {
    enum ws_op op;
    bool fin;
    uint64_t len;
    uint8_t mask[4];
};

/* Decodes the head of a client's frame. Its length; 0: more is needed; -1: close with 1002. */
int ws_frame_decode(const uint8_t *in, size_t len, struct ws_frame *ret_frame, struct err *err);

/* Unmasks in place; `offset` is that of the first byte in its frame. */
void ws_unmask(char *data, size_t len, const uint8_t mask[4], uint64_t offset);

/* 1000 to 1003, 1007 to 1014, 3000 to 4999: what may be in a close frame. */
bool ws_code_ok(unsigned code);

struct ws_event {
    enum ws_op op; /* WS_TEXT or WS_BINARY with a piece of a message; WS_PING, WS_PONG, WS_CLOSE */
    struct slice data; /* the piece (it may be empty), the payload, the reason of the close */
    bool first, last;  /* of a message: this is its first piece, its last piece */
    uint16_t code;     /* of the close: WS_CODE_NONE if it had none */
};

struct ws_reader {
    uint64_t message_max; /* larger messages are refused with 1009 */
    uint16_t close_code;  /* when ws_read returned -1: what to close with */

    /* ws.c's own. */
    struct ws_frame frame;
    uint64_t done;        /* bytes of the frame's payload so far */
    uint64_t message_len; /* bytes of the message so far */
    enum ws_op message;   /* of the message that is open; WS_CONTINUE: none is */
    bool in_frame, fresh, closed;
    struct utf8 utf8;
    uint8_t head_len;
    uint8_t head[WS_IN_HEAD_MAX];
    char control[WS_CONTROL_MAX];
};

void ws_reader_init(struct ws_reader *reader, uint64_t message_max);

/* Reads on; in is written to (unmasked). 1: an event, valid until the next call. 0: all was used
 * and more is needed. -1: refused; close with reader->close_code. Behind a close frame all input
 * is dropped. Pieces of text are checked as they come: each may end inside a character. */
int ws_read(struct ws_reader *reader, char *in, size_t len, size_t *ret_used,
            struct ws_event *ret_event, struct err *err);

/* ---- frames out, never masked ---- */

#define WS_OUT_HEAD_MAX 10
/* The head of a frame with `len` bytes of payload, which the caller sends behind it. */
size_t ws_frame_put(char out[WS_OUT_HEAD_MAX], enum ws_op op, bool fin, uint64_t len);

/* A whole close frame. A reason that is too long is cut between characters. WS_CODE_NONE: no code,
 * no reason. */
#define WS_CLOSE_FRAME_MAX 127
size_t ws_close_put(char out[WS_CLOSE_FRAME_MAX], unsigned code, const char *reason);

#endif
