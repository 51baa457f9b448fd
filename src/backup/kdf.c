#include "backup/kdf.h"

#include <openssl/evp.h>
#include <string.h>

bool kdf_scrypt(const char *passphrase, const unsigned char *salt, size_t salt_len, unsigned cost,
                unsigned char ret[32])
{
    return EVP_PBE_scrypt(passphrase, strlen(passphrase), salt, salt_len, 1ull << cost, 8, 1,
                          2048ull << cost, ret, 32) == 1;
}
