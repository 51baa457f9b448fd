#include "base/utf8.h"

#include "base/own.h"

/* Lead bytes above 0x7f, how many bytes follow, and what the first of those may be. */
static const struct {
    uint8_t first, last, left, least, most;
} leads[] = {
    { 0xc2, 0xdf, 1, 0x80, 0xbf }, { 0xe0, 0xe0, 2, 0xa0, 0xbf }, { 0xe1, 0xec, 2, 0x80, 0xbf },
    { 0xed, 0xed, 2, 0x80, 0x9f }, { 0xee, 0xef, 2, 0x80, 0xbf }, { 0xf0, 0xf0, 3, 0x90, 0xbf },
    { 0xf1, 0xf3, 3, 0x80, 0xbf }, { 0xf4, 0xf4, 3, 0x80, 0x8f },
};

static bool begin(struct utf8 *utf8, uint8_t byte)
{
    for (size_t i = 0; i < ARRAY_LEN(leads); i++)
        if (byte >= leads[i].first && byte <= leads[i].last) {
            *utf8 = (struct utf8){ leads[i].left, leads[i].least, leads[i].most };
            return true;
        }
    return false;
}

bool utf8_feed(struct utf8 *utf8, const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t) at[i];

        if (utf8->left > 0) {
            if (byte < utf8->least || byte > utf8->most)
                return false;
            *utf8 = (struct utf8){ (uint8_t) (utf8->left - 1), 0x80, 0xbf };
        } else if (byte >= 0x80 && !begin(utf8, byte)) {
            return false;
        }
    }
    return true;
}

bool utf8_ok(const char *at, size_t len)
{
    struct utf8 utf8 = { 0 };

    return utf8_feed(&utf8, at, len) && utf8_whole(&utf8);
}

int utf8_first(const char *at, size_t len)
{
    struct utf8 utf8 = { 0 };

    for (size_t i = 0; i < len; i++) {
        if (!utf8_feed(&utf8, at + i, 1))
            return 0;
        if (utf8_whole(&utf8))
            return (int) i + 1;
    }
    return -1;
}

void utf8_clean(char *at, size_t len)
{
    for (size_t i = 0; i < len;) {
        int n = utf8_first(at + i, len - i);

        if (n <= 0)
            at[i] = '?';
        i += n > 0 ? (size_t) n : 1;
    }
}
