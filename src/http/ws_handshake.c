#include "base/base64.h"
#include "http/sha1.h"
#include "http/ws.h"

#include <string.h>

#define KEY_LEN 24 /* 16 bytes in base64 */
#define MAGIC   "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

void ws_accept(struct slice key, char ret_accept[WS_ACCEPT_SIZE])
{
    char text[SHA1_TEXT_MAX];
    uint8_t digest[SHA1_LEN];
    size_t len = key.len < KEY_LEN ? key.len : KEY_LEN;

    memcpy(text, key.at, len);
    memcpy(text + len, MAGIC, strlen(MAGIC));
    sha1(text, len + strlen(MAGIC), digest);
    base64_put(ret_accept, digest, sizeof digest);
}

/* 22 digits and "==". The last digit stands for two bits, so it can only be one of four. */
static bool key_ok(struct slice key)
{
    if (key.len != KEY_LEN || memcmp(key.at + 22, "==", 2) != 0 || !memchr("AQgw", key.at[21], 4))
        return false;
    for (size_t i = 0; i < 22; i++) {
        char c = key.at[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            c != '+' && c != '/')
            return false;
    }
    return true;
}

bool ws_wanted(const struct head *head)
{
    return head->upgrade && head_has(head, "Upgrade", "websocket");
}

int ws_handshake(const struct head *head, char ret_accept[WS_ACCEPT_SIZE], unsigned *ret_status,
                 struct err *err)
{
    struct slice key = head_get(head, "Sec-WebSocket-Key");

    *ret_status = 426;
    if (!ws_wanted(head))
        return err_set(err, ERR_INVALID, "this is a WebSocket: Upgrade: websocket is missing");
    if (!head_has(head, "Sec-WebSocket-Version", "13"))
        return err_set(err, ERR_INVALID, "Sec-WebSocket-Version is not 13");
    *ret_status = 400;
    if (head->method != METHOD_GET)
        return err_set(err, ERR_INVALID, "a WebSocket begins with GET");
    if (head->body == HEAD_CHUNKED || head->content_length > 0)
        return err_set(err, ERR_INVALID, "a WebSocket does not begin with a body");
    if (head_count(head, "Sec-WebSocket-Key") != 1 || !key_ok(key))
        return err_set(err, ERR_INVALID, "Sec-WebSocket-Key is not one key of 16 bytes in base64");
    *ret_status = 101;
    ws_accept(key, ret_accept);
    return 0;
}
