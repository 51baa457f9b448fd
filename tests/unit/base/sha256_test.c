#include "base/sha256.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

static void hex_of(const void *data, size_t len, char out[SHA256_HEX])
{
    unsigned char hash[SHA256_LEN];

    sha256_of(data, len, hash);
    sha256_hex(hash, sizeof hash, out);
}

/* FIPS 180-4's own examples. */
static void known_answers(void)
{
    static const struct {
        const char *text, *hash;
    } rows[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    char hex[SHA256_HEX], *million = malloc(1000000);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hex_of(rows[i].text, strlen(rows[i].text), hex);
        CHECK_STR(hex, rows[i].hash);
    }
    CHECK(million != NULL);
    memset(million, 'a', 1000000);
    hex_of(million, 1000000, hex);
    CHECK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void parts_make_no_difference(void)
{
    unsigned char data[1000], whole[SHA256_LEN], parts[SHA256_LEN];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char) (i * 7);
    for (size_t len = 0; len <= sizeof data; len += 37)
        for (size_t step = 1; step <= 200; step += 21) {
            struct sha256 hash;

            sha256_of(data, len, whole);
            sha256_init(&hash);
            for (size_t at = 0; at < len; at += step)
                sha256_add(&hash, data + at, len - at < step ? len - at : step);
            sha256_done(&hash, parts);
            CHECK(memcmp(whole, parts, sizeof whole) == 0);
        }
}

static void by_hand_it_is_the_same(void)
{
    sha256_by_hand();
    known_answers();
    parts_make_no_difference();
}

CHECK_MAIN(T(known_answers), T(parts_make_no_difference), T(by_hand_it_is_the_same))
