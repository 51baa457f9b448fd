#include "policy/decode.h"

#include "base/base64.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

/* The alphabet of URLs has '-' and '_' for '+' and '/'. */
static int digit_value(char c)
{
    return base64_value(c == '-' ? '+' : c == '_' ? '/' : c);
}

ssize_t decode_base64(const char *in, size_t len, char *out)
{
    uint32_t bits = 0;
    unsigned count = 0;
    size_t n = 0;

    for (size_t i = 0; i < len && in[i] != '='; i++) {
        int value = digit_value(in[i]);

        if (isspace((unsigned char) in[i]))
            continue;
        if (value < 0)
            return -1;
        bits = bits << 6 | (uint32_t) value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[n++] = (char) (bits >> count);
            bits &= (1u << count) - 1;
        }
    }
    return (ssize_t) n;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char) tolower((unsigned char) c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

ssize_t decode_hex(const char *in, size_t len, char *out)
{
    size_t n = 0, i = 0;

    while (i < len) {
        if (isspace((unsigned char) in[i]) || in[i] == ':' || in[i] == ',') {
            i++;
        } else if (i + 1 < len && (in[i] == '\\' || in[i] == '0') && tolower(in[i + 1]) == 'x') {
            i += 2;
        } else if (i + 1 < len && hex_value(in[i]) >= 0 && hex_value(in[i + 1]) >= 0) {
            out[n++] = (char) (hex_value(in[i]) << 4 | hex_value(in[i + 1]));
            i += 2;
        } else {
            return -1;
        }
    }
    return (ssize_t) n;
}

static size_t put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char) code;
        return 1;
    }
    if (code < 0x800) { /* from at least "\\u80": shorter than what it was written as */
        out[0] = (char) (0xc0 | code >> 6);
        out[1] = (char) (0x80 | (code & 0x3f));
        return 2;
    }
    out[0] = (char) (0xe0 | (code >> 12 & 0xf));
    out[1] = (char) (0x80 | (code >> 6 & 0x3f));
    out[2] = (char) (0x80 | (code & 0x3f));
    return 3;
}

/* Digits of a base from *at on, at most `most` of them. Returns how many there were. */
static unsigned digits(const char *in, size_t len, size_t *at, unsigned base, unsigned most,
                       uint32_t *ret_value)
{
    unsigned n = 0;

    *ret_value = 0;
    while (n < most && *at < len && hex_value(in[*at]) >= 0 &&
           (unsigned) hex_value(in[*at]) < base) {
        *ret_value = *ret_value * base + (uint32_t) hex_value(in[(*at)++]);
        n++;
    }
    return n;
}

size_t decode_escapes(const char *in, size_t len, char *out)
{
    static const char plain[] = "abefnrtv\\'\"?E", meant[] = "\a\b\033\f\n\r\t\v\\'\"?\033";
    size_t n = 0, i = 0;

    while (i < len) {
        const char *hit;
        uint32_t value;
        char c;

        if (in[i] != '\\' || i + 1 >= len) {
            out[n++] = in[i++];
            continue;
        }
        c = in[i + 1];
        hit = strchr(plain, c);
        if (c && hit) {
            out[n++] = meant[hit - plain];
            i += 2;
        } else if (c >= '0' && c <= '7') {
            i += c == '0' ? 2 : 1; /* \0NNN of echo and \NNN of printf */
            (void) digits(in, len, &i, 8, 3, &value);
            if (value & 0xff)
                out[n++] = (char) value;
        } else if (c == 'x' || c == 'u') {
            size_t from = i;

            i += 2;
            if (digits(in, len, &i, 16, c == 'x' ? 2 : 4, &value) == 0) {
                memmove(out + n, in + from, 2);
                n += 2;
            } else if (value && c == 'x') {
                out[n++] = (char) value;
            } else if (value) {
                n += put_utf8(out + n, value); /* three bytes at most, of "\\uNNNN" or "\\uN" */
            }
        } else if (c == 'c' && i + 2 < len) {
            if (in[i + 2] & 0x1f)
                out[n++] = in[i + 2] & 0x1f;
            i += 3;
        } else {
            out[n++] = in[i++];
            out[n++] = in[i++];
        }
    }
    return n;
}
