#include "base/base64.h"
#include "base/sha256.h"

#include "check.h"

#include <string.h>

static void bytes_go_there_and_back(void)
{
    static const char *const rows[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[BASE64_SIZE(6)];
        uint8_t bytes[8] = { 0 };

        base64_put(text, (const uint8_t *) rows[i][0], strlen(rows[i][0]));
        CHECK_STR(text, rows[i][1]);
        CHECK_INT(base64_get(text, strlen(text), bytes), (ssize_t) strlen(rows[i][0]));
        CHECK_STR((const char *) bytes, rows[i][0]);
    }
}

static void what_is_no_base64_is_refused(void)
{
    static const char *const rows[] = { "Z",    "Zg",       "Zg=",  "Zg =", "Z===",
                                        "====", "Zg==Zg==", "Zm9-", "Zm9\n" };
    uint8_t bytes[8];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(base64_get(rows[i], strlen(rows[i]), bytes), -1);
}

/* RFC 4231, cases 1 and 2. */
static void hmac_is_that_of_the_rfc(void)
{
    unsigned char key[20], mac[SHA256_LEN];
    char hex[SHA256_HEX];

    memset(key, 0x0b, sizeof key);
    sha256_hmac(key, sizeof key, "Hi There", 8, mac);
    sha256_hex(mac, sizeof mac, hex);
    CHECK_STR(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    sha256_hmac("Jefe", 4, "what do ya want for nothing?", 28, mac);
    sha256_hex(mac, sizeof mac, hex);
    CHECK_STR(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

CHECK_MAIN(T(bytes_go_there_and_back), T(what_is_no_base64_is_refused), T(hmac_is_that_of_the_rfc))
