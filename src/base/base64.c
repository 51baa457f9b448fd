#include "base/base64.h"

void base64_put(char *out, const uint8_t *data, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t i = 0;

    for (; i + 2 < len; i += 3, out += 4) {
        uint32_t bits = (uint32_t) data[i] << 16 | (uint32_t) data[i + 1] << 8 | data[i + 2];

        out[0] = digits[bits >> 18];
        out[1] = digits[bits >> 12 & 63];
        out[2] = digits[bits >> 6 & 63];
        out[3] = digits[bits & 63];
    }
    if (i < len) {
        uint32_t bits = (uint32_t) data[i] << 16 | (i + 1 < len ? (uint32_t) data[i + 1] << 8 : 0);

        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        *out++ = i + 1 < len ? digits[bits >> 6 & 63] : '=';
        *out++ = '=';
    }
    *out = '\0';
}

int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

ssize_t base64_get(const char *text, size_t len, uint8_t *out)
{
    size_t padding = 0, n = 0;

    while (padding < 2 && padding < len && text[len - padding - 1] == '=')
        padding++;
    if (len % 4 != 0)
        return -1;
    for (size_t i = 0; i < len; i += 4) {
        size_t take = i + 4 == len ? 3 - padding : 3;
        uint32_t group = 0;

        for (size_t k = 0; k < 4; k++) {
            int value = k > take ? 0 : base64_value(text[i + k]);

            if (value < 0)
                return -1;
            group = group << 6 | (uint32_t) value;
        }
        for (size_t k = 0; k < take; k++)
            out[n++] = (uint8_t) (group >> (16 - 8 * k));
    }
    return (ssize_t) n;
}
