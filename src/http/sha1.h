/* sha1.h - SHA-1, for the WebSocket handshake alone (RFC 6455 asks for it). It
 * protects nothing there and must protect nothing anywhere else. */
#ifndef COVE_HTTP_SHA1_H
#define COVE_HTTP_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_LEN 20

/* One short text: at most SHA1_TEXT_MAX bytes. */
#define SHA1_TEXT_MAX 119
void sha1(const char *text, size_t len, uint8_t out[SHA1_LEN]);

#endif
