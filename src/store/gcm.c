#include "store/gcm.h"

#include <openssl/evp.h>
#include <string.h>

static bool run(const struct gcm *g, bool seal)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n = 0, last = 0;
    bool fine =
        ctx && EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, g->key, g->nonce, seal ? 1 : 0) == 1;

    fine = fine &&
           EVP_CipherUpdate(ctx, NULL, &n, (const uint8_t *) g->about, (int) strlen(g->about)) == 1;
    fine = fine && EVP_CipherUpdate(ctx, g->text, &n, g->text, (int) g->len) == 1;
    if (fine && !seal)
        fine = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, GCM_TAG_LEN, g->tag) == 1;
    fine = fine && EVP_CipherFinal_ex(ctx, g->text + n, &last) == 1;
    if (fine && seal)
        fine = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, GCM_TAG_LEN, g->tag) == 1;
    EVP_CIPHER_CTX_free(ctx);
    return fine;
}

bool gcm_seal(const struct gcm *gcm)
{
    return run(gcm, true);
}

bool gcm_open(const struct gcm *gcm)
{
    return run(gcm, false);
}
