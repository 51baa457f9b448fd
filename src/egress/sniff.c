#include "egress/sniff.h"

#include "http/chars.h"

#include <string.h>
#include <strings.h>

/* ---- TLS: the ClientHello (RFC 8446), perhaps in several records ---- */

#define RECORD_HEAD    5
#define RECORD_MOST    16384
#define HELLO          1
#define EXTENSION_NAME 0
#define EXTENSION_ECH  0xfe0d
#define NAME_TYPE_HOST 0
#define RECORD_FIRST   20 /* kinds of records: 22 is the handshake */
#define RECORD_LAST    24

struct bytes {
    const uint8_t *at;
    size_t len;
};

static bool take(struct bytes *from, size_t len, struct bytes *ret)
{
    if (from->len < len)
        return false;
    *ret = (struct bytes){ from->at, len };
    from->at += len;
    from->len -= len;
    return true;
}

static bool number(struct bytes *from, size_t width, size_t *ret)
{
    struct bytes digits;

    if (!take(from, width, &digits))
        return false;
    *ret = 0;
    for (size_t i = 0; i < width; i++)
        *ret = *ret << 8 | digits.at[i];
    return true;
}

/* A vector with its length before it. */
static bool vector(struct bytes *from, size_t width, struct bytes *ret)
{
    size_t len;

    return number(from, width, &len) && take(from, len, ret);
}

/* The only host name of the list; anything odd is no name. */
static bool server_name(struct bytes extension, char ret[REACH_NAME_MAX])
{
    struct bytes list, name;
    size_t type;

    return vector(&extension, 2, &list) && extension.len == 0 && number(&list, 1, &type) &&
           type == NAME_TYPE_HOST && vector(&list, 2, &name) && list.len == 0 &&
           name_normal((const char *) name.at, name.len, ret);
}

static enum sniff read_hello(struct bytes hello, char ret_name[REACH_NAME_MAX])
{
    struct bytes skipped, extensions, extension;
    bool named = false;
    size_t type;

    if (!take(&hello, 2 + 32, &skipped) || !vector(&hello, 1, &skipped) ||
        !vector(&hello, 2, &skipped) || !vector(&hello, 1, &skipped))
        return SNIFF_BAD;
    if (hello.len == 0)
        return SNIFF_TLS; /* no extensions, so no name */
    if (!vector(&hello, 2, &extensions) || hello.len != 0)
        return SNIFF_BAD;
    while (extensions.len > 0) {
        if (!number(&extensions, 2, &type) || !vector(&extensions, 2, &extension))
            return SNIFF_BAD;
        if (type == EXTENSION_NAME && (named || !server_name(extension, ret_name)))
            return SNIFF_BAD;
        named |= type == EXTENSION_NAME;
        /* An encrypted hello in an outer one cannot be told from the noise that browsers send in its place; then the
         * outer name counts. An inner one in the open does not count. */
        if (type == EXTENSION_ECH && extension.len > 0 && extension.at[0] != 0)
            return SNIFF_BAD;
    }
    return SNIFF_TLS;
}

/* Puts the handshake of several records together. */
static enum sniff sniff_tls(struct bytes data, char ret_name[REACH_NAME_MAX])
{
    uint8_t text[SNIFF_MAX];
    size_t have = 0, want = 4;

    while (have < want) {
        struct bytes head, body, rest = data;
        size_t len;

        if (!take(&rest, RECORD_HEAD, &head))
            return SNIFF_MORE;
        len = (size_t) head.at[3] << 8 | head.at[4];
        if (head.at[0] != SNIFF_TLS_BYTE || head.at[1] != 3 || len == 0 || len > RECORD_MOST)
            return SNIFF_BAD;
        if (!take(&rest, len, &body)) {
            /* Enough of it may be here already to see that it is too much. */
            return have + len > sizeof text ? SNIFF_BAD : SNIFF_MORE;
        }
        if (have + len > sizeof text)
            return SNIFF_BAD;
        memcpy(text + have, body.at, len);
        have += len;
        data = rest;
        if (have >= 4) {
            want = 4 + ((size_t) text[1] << 16 | (size_t) text[2] << 8 | text[3]);
            if (text[0] != HELLO || want > sizeof text)
                return SNIFF_BAD;
        }
    }
    return read_hello((struct bytes){ text + 4, want - 4 }, ret_name);
}

/* ---- HTTP/1 ---- */

static const char *const methods[] = { "GET ",    "HEAD ",    "POST ",  "PUT ",    "PATCH ",
                                       "DELETE ", "OPTIONS ", "TRACE ", "CONNECT " };

/* What some server or other takes for a blank. */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f) || c == (char) 0x85 ||
           c == (char) 0xa0;
}

/* Stands in no line of text. */
static bool is_binary(unsigned char c)
{
    return c < ' ' && !is_blank((char) c);
}

/* 1: it begins with a method that everyone knows, or with a line that ends as requests do; 0: it may yet; -1: no.
 * Servers take methods that are not in the list, and blanks that are none: what decides is "HTTP/" in the line. */
static int begins_as_http(const char *text, size_t len)
{
    size_t word_len = 0;
    bool word = true;

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (len >= strlen(methods[i]) && memcmp(text, methods[i], strlen(methods[i])) == 0)
            return 1;
    for (size_t i = 0; i < len; i++) {
        word = word && char_is(text[i], CHAR_TOKEN);
        if (!word && (i == 0 || (i == word_len && !is_blank(text[i]))))
            return -1; /* no word and blank at its beginning */
        word_len += word;
        if (is_binary((unsigned char) text[i]) && text[i] != '\n')
            return -1;
        if (i + 5 <= len && strncasecmp(text + i, "HTTP/", 5) == 0)
            return 1;
        if (text[i] == '\n')
            return -1;
    }
    return len >= SNIFF_MAX ? -1 : 0;
}

/* Empty lines and blanks before a request are passed over by many servers; a line of the PROXY protocol goes before one,
 * and HTTP/2 has its hosts where this code does not read them. */
static bool hides_http(const char *text, size_t len)
{
    return is_blank(text[0]) || (len >= 6 && memcmp(text, "PROXY ", 6) == 0) ||
           (len >= 4 && memcmp(text, "PRI ", 4) == 0);
}

/* "example.com:8080" → "example.com"; nothing and an address of IPv6 are "". False: neither. */
static bool host_of(const char *value, size_t len, char ret[REACH_NAME_MAX])
{
    const char *colon;

    while (len > 0 && (value[0] == ' ' || value[0] == '\t'))
        value++, len--;
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t' || value[len - 1] == '\r'))
        len--;
    ret[0] = '\0';
    if (len == 0 || value[0] == '[')
        return true;
    colon = memchr(value, ':', len);
    if (colon)
        len = (size_t) (colon - value);
    return name_normal(value, len, ret);
}

/* Lines up to the empty one; exactly one Host. A request line with a whole URL in it, or CONNECT, is for a proxy, which
 * this gateway is not. */
static enum sniff sniff_http(const char *text, size_t len, char ret_name[REACH_NAME_MAX])
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    const char *line = memchr(text, '\n', len), *target = memchr(text, ' ', len);
    unsigned hosts = 0;

    if (!end)
        return len >= SNIFF_MAX ? SNIFF_BAD : SNIFF_MORE;
    if (!target || target > line || (target[1] != '/' && target[1] != '*'))
        return SNIFF_BAD;
    while (line < end) {
        const char *begin = line + 1, *next = memchr(begin, '\n', (size_t) (end + 2 - begin));

        if (!next)
            break;
        if (*begin == ' ' || *begin == '\t')
            return SNIFF_BAD; /* a folded line: read differently by everyone */
        if ((size_t) (next - begin) > 5 && strncasecmp(begin, "host:", 5) == 0) {
            char name[REACH_NAME_MAX];

            hosts++;
            if (!host_of(begin + 5, (size_t) (next - begin) - 5, name))
                return SNIFF_BAD; /* and a server may read a name out of it */
            (void) strcpy(ret_name, name);
        }
        line = next;
    }
    return hosts > 1 ? SNIFF_BAD : SNIFF_HTTP;
}

enum sniff sniff_first(const uint8_t *data, size_t len, char ret_name[REACH_NAME_MAX])
{
    enum sniff http_kind;
    int http;

    ret_name[0] = '\0';
    if (len == 0)
        return SNIFF_MORE;
    if (data[0] == SNIFF_TLS_BYTE) {
        enum sniff kind = sniff_tls((struct bytes){ data, len }, ret_name);

        if (kind != SNIFF_TLS)
            ret_name[0] = '\0';
        return kind == SNIFF_MORE && len >= SNIFF_MAX ? SNIFF_BAD : kind;
    }
    /* An alert or an empty change before the hello: servers pass over it, and read the name behind. */
    if (data[0] >= RECORD_FIRST && data[0] <= RECORD_LAST)
        return len < 2 ? SNIFF_MORE : data[1] == 3 ? SNIFF_BAD : SNIFF_OTHER;
    if (hides_http((const char *) data, len))
        return SNIFF_BAD;
    http = begins_as_http((const char *) data, len);
    if (http < 0)
        return SNIFF_OTHER;
    if (http == 0)
        return SNIFF_MORE;
    http_kind = sniff_http((const char *) data, len, ret_name);
    if (http_kind != SNIFF_HTTP)
        ret_name[0] = '\0';
    return http_kind;
}
