/* ws_client.h - WebSocket, the client's side (RFC 6455): frames out, which are masked, and frames in, which are not.
 *
 * Owns:    nothing. Payload stays in the caller's buffer.
 * Callers: the command line's sessions; fuzz/talk_fuzz.c.
 * Never:   takes a frame that a server may not send: masked, reserved bits, an unknown kind, a length in a longer form than it
 *          needs, a control frame in pieces or of more than 125 bytes. */
#ifndef COVE_HTTP_WS_CLIENT_H
#define COVE_HTTP_WS_CLIENT_H

#include "http/ws.h"

#define WS_CLIENT_HEAD_MAX 14
#define WS_CLIENT_KEY_SIZE 25 /* Sec-WebSocket-Key with its NUL */

/* The value of Sec-WebSocket-Key from 16 random bytes. */
void ws_client_key(const uint8_t random[16], char ret_key[WS_CLIENT_KEY_SIZE]);

/* The head of a frame with `len` bytes, which the caller masks with ws_unmask(data, len, mask, 0) and sends behind. */
size_t ws_client_put(char out[WS_CLIENT_HEAD_MAX], enum ws_op op, uint64_t len,
                     const uint8_t mask[4]);

/* The head of a server's frame, of which `len` bytes are here. Its length; 0: more is needed; -1: the server broke the protocol. */
int ws_client_decode(const uint8_t *in, size_t len, struct ws_frame *ret_frame, struct err *err);

#endif
