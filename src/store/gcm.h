/* gcm.h - AES-256-GCM of one text, in place. Apart from seal.c, since OpenSSL has an ERR_STATE of its own.
 *
 * Pure. */
#ifndef COVE_STORE_GCM_H
#define COVE_STORE_GCM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GCM_KEY_LEN   32
#define GCM_NONCE_LEN 12
#define GCM_TAG_LEN   16

struct gcm {
    const uint8_t *key, *nonce;
    const char *about; /* part of the tag */
    uint8_t *text;
    size_t len;
    uint8_t *tag;
};

bool gcm_seal(const struct gcm *gcm);
/* False: it is not what was sealed. */
bool gcm_open(const struct gcm *gcm);

#endif
