#include "http/put.h"

#include "http/chars.h"

static void put_base(struct put *put, uint64_t value, unsigned base, unsigned width)
{
    char digits[24];
    size_t at = sizeof digits;

    while (value > 0 || width > 0 || at == sizeof digits) {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
        width -= width > 0;
    }
    put_bytes(put, digits + at, sizeof digits - at);
}

void put_number(struct put *put, uint64_t value)
{
    put_base(put, value, 10, 1);
}

void put_padded(struct put *put, uint64_t value, unsigned width)
{
    put_base(put, value, 10, width < 20 ? width : 20);
}

void put_hex(struct put *put, uint64_t value)
{
    put_base(put, value, 16, 1);
}

void put_percent(struct put *put, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char) text.at[i];

        if (char_is(text.at[i], CHAR_PLAIN)) {
            put_char(put, text.at[i]);
            continue;
        }
        put_char(put, '%');
        put_char(put, "0123456789ABCDEF"[c >> 4]);
        put_char(put, "0123456789ABCDEF"[c & 15]);
    }
}
