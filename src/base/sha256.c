#include "base/sha256.h"

#include <assert.h>
#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* ---- by the processor ---- */

#define NEEDS "sha,sse4.1,ssse3"

static _Atomic int known; /* 0: not asked, 1: no, 2: yes; the same for every first caller */

void sha256_by_hand(void)
{
    known = 1;
}

static bool has_instructions(void)
{
    unsigned a, b, c, d;

    if (!known)
        known = __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_1 && c & bit_SSSE3 &&
                        __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA
                    ? 2
                    : 1;
    return known == 2;
}

/* The instructions want the state as ABEF and CDGH. Sixteen steps of four rounds; from the fifth on a step makes its own
 * four words from those of the last four. */
__attribute__((target(NEEDS))) static void compress_fast(uint32_t state[8], const unsigned char *at,
                                                         size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const void *) state), 0xb1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const void *) (state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    __m128i feba, dchg;

    for (; blocks > 0; blocks--, at += 64) {
        __m128i was_abef = abef, was_cdgh = cdgh, m[4];

#pragma GCC unroll 16
        for (unsigned i = 0; i < 16; i++) {
            __m128i *own = &m[i % 4], step;

            if (i < 4)
                *own =
                    _mm_shuffle_epi8(_mm_loadu_si128((const void *) (at + 16 * (size_t) i)), swap);
            else
                *own = _mm_sha256msg2_epu32(
                    _mm_add_epi32(_mm_sha256msg1_epu32(*own, m[(i + 1) % 4]),
                                  _mm_alignr_epi8(m[(i + 3) % 4], m[(i + 2) % 4], 4)),
                    m[(i + 3) % 4]);
            step = _mm_add_epi32(*own, _mm_loadu_si128((const void *) (k + 4 * (size_t) i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, step);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(step, 0x0e));
        }
        abef = _mm_add_epi32(abef, was_abef);
        cdgh = _mm_add_epi32(cdgh, was_cdgh);
    }
    feba = _mm_shuffle_epi32(abef, 0x1b);
    dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((void *) state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((void *) (state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* ---- by hand ---- */

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void schedule(const unsigned char block[64], uint32_t w[64])
{
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t) block[4 * i] << 24 | (uint32_t) block[4 * i + 1] << 16 |
               (uint32_t) block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];

        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void compress_one(uint32_t state[8], const unsigned char block[64])
{
    uint32_t w[64], s[8];

    schedule(block, w);
    memcpy(s, state, sizeof s);
    for (size_t i = 0; i < 64; i++) {
        uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                       ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
        uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

        memmove(s + 1, s, 7 * sizeof s[0]);
        s[4] += one;
        s[0] = one + two;
    }
    for (size_t i = 0; i < 8; i++)
        state[i] += s[i];
}

static void compress(uint32_t state[8], const unsigned char *at, size_t blocks)
{
    if (has_instructions()) {
        compress_fast(state, at, blocks);
        return;
    }
    for (; blocks > 0; blocks--, at += 64)
        compress_one(state, at);
}

void sha256_init(struct sha256 *hash)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

    memcpy(hash->state, start, sizeof start);
    hash->total = 0;
}

void sha256_add(struct sha256 *hash, const void *data, size_t len)
{
    const unsigned char *at = data;

    while (len > 0) {
        size_t have = hash->total % sizeof hash->block, n = sizeof hash->block - have;

        if (have == 0 && len >= sizeof hash->block) { /* straight from where they are */
            n = len - len % sizeof hash->block;
            compress(hash->state, at, n / sizeof hash->block);
            hash->total += n;
            at += n;
            len -= n;
            continue;
        }
        if (n > len)
            n = len;
        memcpy(hash->block + have, at, n);
        hash->total += n;
        at += n;
        len -= n;
        if (have + n == sizeof hash->block)
            compress(hash->state, hash->block, 1);
    }
}

void sha256_done(struct sha256 *hash, unsigned char ret[SHA256_LEN])
{
    static const unsigned char padding[64] = { 0x80 };
    uint64_t bits = hash->total * 8;
    size_t have = hash->total % 64;
    unsigned char length[8];

    for (size_t i = 0; i < 8; i++)
        length[i] = (unsigned char) (bits >> (56 - 8 * i));
    sha256_add(hash, padding, have < 56 ? 56 - have : 120 - have);
    sha256_add(hash, length, sizeof length);
    for (size_t i = 0; i < SHA256_LEN; i++)
        ret[i] = (unsigned char) (hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_of(const void *data, size_t len, unsigned char ret[SHA256_LEN])
{
    struct sha256 hash;

    sha256_init(&hash);
    sha256_add(&hash, data, len);
    sha256_done(&hash, ret);
}

void sha256_hmac(const void *key, size_t key_len, const void *data, size_t len,
                 unsigned char ret[SHA256_LEN])
{
    unsigned char inner[64] = { 0 }, outer[64];
    struct sha256 hash;

    assert(key_len <= sizeof inner);
    memcpy(inner, key, key_len);
    for (size_t i = 0; i < sizeof inner; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    sha256_init(&hash);
    sha256_add(&hash, inner, sizeof inner);
    sha256_add(&hash, data, len);
    sha256_done(&hash, ret);
    sha256_init(&hash);
    sha256_add(&hash, outer, sizeof outer);
    sha256_add(&hash, ret, SHA256_LEN);
    sha256_done(&hash, ret);
}

void sha256_hex(const unsigned char *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    out[2 * count] = '\0';
}

bool same_secret(const void *a, const void *b, size_t len)
{
    const volatile unsigned char *x = a, *y = b;
    unsigned char differs = 0;

    for (size_t i = 0; i < len; i++)
        differs |= x[i] ^ y[i];
    return differs == 0;
}

bool same_secret_text(const char *shown, const char *secret)
{
    size_t len = strlen(secret);

    return strlen(shown) == len && same_secret(shown, secret, len);
}
