#include "http/ws_client.h"

#include "base/base64.h"

#include <string.h>

void ws_client_key(const uint8_t random[16], char ret_key[WS_CLIENT_KEY_SIZE])
{
    _Static_assert(BASE64_SIZE(16) <= WS_CLIENT_KEY_SIZE, "a key fits");
    base64_put(ret_key, random, 16);
}

size_t ws_client_put(char out[WS_CLIENT_HEAD_MAX], enum ws_op op, uint64_t len,
                     const uint8_t mask[4])
{
    size_t n = ws_frame_put(out, op, true, len);

    out[1] = (char) (out[1] | 0x80);
    memcpy(out + n, mask, 4);
    return n + 4;
}

static bool known(unsigned op)
{
    return op <= WS_BINARY || (op >= WS_CLOSE && op <= WS_PONG);
}

static uint64_t big_endian(const uint8_t *in, size_t count)
{
    uint64_t value = 0;

    for (size_t i = 0; i < count; i++)
        value = value << 8 | in[i];
    return value;
}

int ws_client_decode(const uint8_t *in, size_t len, struct ws_frame *ret_frame, struct err *err)
{
    unsigned op, shorter;
    size_t more;
    uint64_t size;

    if (len < 2)
        return 0;
    op = in[0] & 0x0f;
    if ((in[0] & 0x70) || !known(op))
        return err_set(err, ERR_PROTOCOL, "the server sent an unknown kind of frame");
    if (in[1] & 0x80)
        return err_set(err, ERR_PROTOCOL, "the server sent a masked frame");
    size = in[1] & 0x7f;
    more = size == 126 ? 2 : size == 127 ? 8 : 0;
    shorter = size == 126 ? 125 : 0xffff;
    if (op >= WS_CLOSE && (more > 0 || !(in[0] & 0x80)))
        return err_set(err, ERR_PROTOCOL,
                       "the server sent a control frame that is too long or in pieces");
    if (len < 2 + more)
        return 0;
    if (more > 0)
        size = big_endian(in + 2, more);
    if ((more > 0 && size <= shorter) || size > INT64_MAX)
        return err_set(err, ERR_PROTOCOL, "the server sent a frame of an invalid length");
    *ret_frame = (struct ws_frame){ .op = (enum ws_op) op, .fin = in[0] & 0x80, .len = size };
    return (int) (2 + more);
}
