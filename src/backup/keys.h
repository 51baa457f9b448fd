/* keys.h - the two keys that a state directory stands on, and how a backup carries them.
 *
 * `image` signs the images of paused sandboxes and snapshots (image.key), `secrets` opens the secrets in the store
 * (server/secrets.key). A backup holds them only sealed: AES-256-GCM under a key that scrypt makes of a passphrase. The manifest names them
 * by a hash, and is signed with a key made of `image`: who has neither the passphrase nor the keys cannot change a backup unseen.
 *
 * Owns:    nothing. Callers wipe with keys_wipe.
 * Callers: the verbs backup and restore. */
#ifndef COVE_BACKUP_KEYS_H
#define COVE_BACKUP_KEYS_H

#include "backup/manifest.h"
#include "base/err.h"

#define KEYS_LEN       32
#define PASSPHRASE_MAX 1024

struct keys {
    unsigned char image[KEYS_LEN], secrets[KEYS_LEN];
    bool has_secrets; /* a store that never had a secret has no key for them */
};

/* Those of <dir>/image.key and <dir>/server/secrets.key, or <dir>/secrets.key. ERR_NO_PATH: there are none. */
int keys_read(int dir_fd, struct keys *ret, struct err *err);
/* Into a state directory: root's, and `uid`'s. */
int keys_write(const struct keys *keys, int dir_fd, uint32_t uid, uint32_t gid, struct err *err);
void keys_wipe(struct keys *keys);

/* The first line of a file. ERR_INVALID: it is empty, or shorter than 8 characters. */
int passphrase_read(const char *path, char ret[PASSPHRASE_MAX], struct err *err);

void keys_name(const struct keys *keys, char ret[BACKUP_KEYS_HEX]);
void keys_sign(const struct keys *keys, unsigned char ret[SHA256_LEN]);

int keys_seal(const struct keys *keys, const char *passphrase, struct backup_manifest *manifest,
              struct err *err);
/* ERR_DENIED: another passphrase. */
int keys_open(const struct backup_manifest *manifest, const char *passphrase, struct keys *ret,
              struct err *err);

#endif
