/* seal.h - texts that lie in the store so that they cannot be read there: AES-256-GCM under a key beside the file.
 *
 * A sealed text is base64 of nonce, cipher text and tag. `about` says what it belongs to, and is part of the tag: a row
 * that was moved to another place does not open.
 *
 * Owns:    <state>/server/secrets.key, 32 random bytes for the owner alone, made at first use.
 * Callers: vault.c, login.c, db.c when it seals what older versions left open.
 * Never:   leaves a key or a plain text in memory that was given back. */
#ifndef COVE_STORE_SEAL_H
#define COVE_STORE_SEAL_H

#include "base/err.h"

#include <stddef.h>

#define SEAL_KEY_LEN 32

/* Reads the key, or makes it. `db_path`: the store's file, beside which it lies. */
int seal_key(const char *db_path, unsigned char ret[SEAL_KEY_LEN], struct err *err);

/* The caller's to free. */
int seal_close(const unsigned char key[SEAL_KEY_LEN], const char *about, const char *text,
               size_t len, char **ret, struct err *err);
/* NUL-terminated; the caller's to wipe and free, by seal_wipe. ERR_UNAVAILABLE: the key is another one, or it was
 * changed. */
int seal_open(const unsigned char key[SEAL_KEY_LEN], const char *about, const char *sealed,
              char **ret, size_t *ret_len, struct err *err);
/* Accepts NULL. */
void seal_wipe(char *text, size_t len);

#endif
