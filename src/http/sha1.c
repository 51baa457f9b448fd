#include "http/sha1.h"

#include <assert.h>
#include <string.h>

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
    if (round < 20)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (round < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (round < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void block(uint32_t state[5], const uint8_t data[64])
{
    uint32_t w[80], s[5];

    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t) data[4 * i] << 24 | (uint32_t) data[4 * i + 1] << 16 |
               (uint32_t) data[4 * i + 2] << 8 | data[4 * i + 3];
    for (unsigned i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t next = rotate(s[0], 5) + mix(i, s[1], s[2], s[3]) + s[4] + w[i];

        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotate(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (unsigned i = 0; i < 5; i++)
        state[i] += s[i];
}

void sha1(const char *text, size_t len, uint8_t out[SHA1_LEN])
{
    uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
    uint8_t data[128] = { 0 };
    size_t end = len < 56 ? 64 : 128; /* the text, 0x80, zeros, and its bits in eight bytes */

    assert(len <= SHA1_TEXT_MAX);
    memcpy(data, text, len);
    data[len] = 0x80;
    data[end - 2] = (uint8_t) (len * 8 >> 8);
    data[end - 1] = (uint8_t) (len * 8);
    for (size_t at = 0; at < end; at += 64)
        block(state, data + at);
    for (unsigned i = 0; i < SHA1_LEN; i++)
        out[i] = (uint8_t) (state[i / 4] >> (24 - 8 * (i % 4)));
}
