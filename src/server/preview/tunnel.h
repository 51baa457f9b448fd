/* tunnel.h - bytes between a client and a TCP port of a sandbox, over one WebSocket.
 *
 *   both     binary   bytes of the connection, in messages of any size
 *            text     {"type": "end"}: this side sends no more; the other direction continues
 *   server   text     {"type": "error", "error": {"code", "message"}}: the connection broke; a close follows
 *
 * When both sides have ended, the server closes with 1000. A close of the client's ends both directions. Nothing is read ahead: the port
 * is read only when the client has taken what came before, the client only when the port has.
 *
 * Never:   looks at the bytes, or waits for one direction while the other could move. */
#ifndef COVE_SERVER_PREVIEW_TUNNEL_H
#define COVE_SERVER_PREVIEW_TUNNEL_H

#include "server/serve/exchange.h"

/* The caller's rights were checked, and that the request asks for a WebSocket. -1 before the upgrade: ERR_NO_SANDBOX, ERR_NO_PORT,
 * ERR_TOO_MANY (slots.h, quota.h). */
int tunnel_exchange(struct exchange *x, const char *sandbox, uint16_t port, struct err *err);

#endif
