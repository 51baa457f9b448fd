/* kdf.h - scrypt (RFC 7914). Apart from keys.c, since OpenSSL has an ERR_STATE of its own.
 *
 * Pure. */
#ifndef COVE_BACKUP_KDF_H
#define COVE_BACKUP_KDF_H

#include <stdbool.h>
#include <stddef.h>

/* N is 1 << cost, r 8, p 1: 1 KiB << cost of memory. */
bool kdf_scrypt(const char *passphrase, const unsigned char *salt, size_t salt_len, unsigned cost,
                unsigned char ret[32]);

#endif
