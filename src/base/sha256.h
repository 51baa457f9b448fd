/* sha256.h - SHA-256 (FIPS 180-4), and comparing secrets without telling how much of them fits. */
#ifndef COVE_BASE_SHA256_H
#define COVE_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32
#define SHA256_HEX 65 /* with the NUL */

struct sha256 {
    uint32_t state[8];
    uint64_t total;
    unsigned char block[64];
};

void sha256_init(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t len);
void sha256_done(struct sha256 *hash, unsigned char ret[SHA256_LEN]);

void sha256_of(const void *data, size_t len, unsigned char ret[SHA256_LEN]);
/* HMAC (RFC 2104); keys of up to 64 bytes. */
void sha256_hmac(const void *key, size_t key_len, const void *data, size_t len,
                 unsigned char ret[SHA256_LEN]);
/* `count` bytes as lower case hex digits, NUL-terminated. */
void sha256_hex(const unsigned char *bytes, size_t count, char *out);

/* From now on as on a processor that has no instructions for it: for tests of that path. */
void sha256_by_hand(void);

/* Takes as long for any two inputs of that length. */
bool same_secret(const void *a, const void *b, size_t len);
/* The same of texts; tells their lengths apart at once, as those of tokens are known to all. */
bool same_secret_text(const char *shown, const char *secret);

#endif
