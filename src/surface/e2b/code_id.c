#include "surface/e2b/code.h"

#include "base/sha256.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static void print_uuid(unsigned char bytes[16], char ret[CODE_ID_MAX])
{
    char hex[33];

    bytes[6] = (unsigned char) ((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (unsigned char) ((bytes[8] & 0x3f) | 0x80);
    sha256_hex(bytes, 16, hex);
    (void) snprintf(ret, CODE_ID_MAX, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                    hex + 20);
}

int code_id_new(char ret[CODE_ID_MAX], struct err *err)
{
    unsigned char random[16];

    if (getrandom(random, sizeof random, 0) != sizeof random)
        return err_set(err, ERR_INTERNAL, "no random bytes");
    print_uuid(random, ret);
    return 0;
}

void code_id_default(const char *sandbox, const struct code_language *language,
                     char ret[CODE_ID_MAX])
{
    unsigned char digest[SHA256_LEN];
    char text[ID_LEN + 32];
    int len = snprintf(text, sizeof text, "%s %s", sandbox, language->name);

    sha256_of(text, (size_t) len, digest);
    print_uuid(digest, ret);
}

bool code_id_is(const char *text)
{
    size_t len = strlen(text);

    return len == CODE_ID_MAX - 1 && strspn(text, "0123456789abcdef-") == len;
}
