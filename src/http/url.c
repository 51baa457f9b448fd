#include "http/url.h"

#include "base/utf8.h"
#include "http/chars.h"
#include "http/put.h"

/* One character, which is at in.at[*at]; *at is moved behind it. */
static int decode_one(struct slice in, size_t *at, unsigned flags, char *ret, struct err *err)
{
    char c = in.at[(*at)++];

    if (c == '%') {
        if (in.len - *at < 2 || !char_is(in.at[*at], CHAR_HEX) ||
            !char_is(in.at[*at + 1], CHAR_HEX))
            return err_set(err, ERR_INVALID, "a percent sign without two hex digits");
        c = (char) (char_hex(in.at[*at]) << 4 | char_hex(in.at[*at + 1]));
        *at += 2;
    } else if (c == '+' && (flags & URL_PLUS)) {
        c = ' ';
    }
    if (c == '\0')
        return err_set(err, ERR_INVALID, "a NUL byte is not allowed");
    *ret = c;
    return 0;
}

ssize_t url_decode(struct slice in, unsigned flags, char *out, size_t size, struct err *err)
{
    struct utf8 utf8 = { 0 };
    size_t len = 0;

    for (size_t at = 0; at < in.len;) {
        char c;

        if (decode_one(in, &at, flags, &c, err) < 0)
            return -1;
        if ((flags & URL_UTF8) && !utf8_feed(&utf8, &c, 1))
            return err_set(err, ERR_INVALID, "it is not UTF-8");
        if (len + 1 >= size)
            return err_set(err, ERR_TOO_BIG, "it is longer than %zu bytes",
                           size > 0 ? size - 1 : 0);
        out[len++] = c;
    }
    if (!utf8_whole(&utf8))
        return err_set(err, ERR_INVALID, "it is not UTF-8");
    if (size == 0)
        return err_set(err, ERR_TOO_BIG, "it is longer than 0 bytes");
    out[len] = '\0';
    return (ssize_t) len;
}

struct url_query url_query(struct slice query)
{
    return (struct url_query){ query, 0 };
}

int url_query_next(struct url_query *query, struct url_pair *ret_pair, struct err *err)
{
    while (query->rest.len > 0) {
        struct url_pair pair = { 0 };
        struct slice text;

        if (!slice_cut(&query->rest, '&', &text)) {
            text = query->rest;
            query->rest.len = 0;
        }
        if (text.len == 0)
            continue;
        if (++query->pairs > URL_PAIRS_MAX)
            return err_set(err, ERR_TOO_BIG, "the query has more than %d parameters",
                           URL_PAIRS_MAX);
        if (slice_cut(&text, '=', &pair.key))
            pair.value = text;
        else
            pair.key = text;
        *ret_pair = pair;
        return 1;
    }
    return 0;
}

/* Whether the raw key decodes to that text. One that does not decode is no key of ours. */
static bool key_is(struct slice raw, const char *key)
{
    struct err err;
    size_t n = 0;

    for (size_t at = 0; at < raw.len; n++) {
        char c;

        if (decode_one(raw, &at, URL_PLUS, &c, &err) < 0 || c != key[n])
            return false;
    }
    return key[n] == '\0';
}

int url_query_get(struct slice query, const char *key, char *out, size_t size, struct err *err)
{
    struct url_query pairs = url_query(query);
    struct url_pair pair;
    bool found = false;
    int r;

    if (size > 0)
        out[0] = '\0';
    while ((r = url_query_next(&pairs, &pair, err)) > 0) {
        if (!key_is(pair.key, key))
            continue;
        if (found)
            return err_set(err, ERR_INVALID, "query parameter '%s' is given twice", key);
        found = true;
        if (url_decode(pair.value, URL_PLUS | URL_UTF8, out, size, err) < 0)
            return err_wrap(err, "query parameter '%s'", key);
    }
    return r < 0 ? -1 : found;
}

/* What a segment decodes to, as far as url_path reports it. */
static int look_at(struct slice segment, struct url_path *path, struct err *err)
{
    size_t n = 0;
    bool only_dots = true;

    for (size_t at = 0; at < segment.len; n++) {
        char c;

        if (decode_one(segment, &at, 0, &c, err) < 0)
            return err_wrap(err, "path");
        only_dots &= c == '.';
        path->hidden |= c == '/' || c == '\\';
    }
    path->dots |= only_dots && (n == 1 || n == 2);
    return 0;
}

int url_path_split(struct slice path, struct url_path *ret_path, struct err *err)
{
    bool last = false;

    ret_path->count = 0;
    ret_path->dots = ret_path->empty = ret_path->slash = ret_path->hidden = false;
    if (path.len == 0 || path.at[0] != '/')
        return err_set(err, ERR_INVALID, "path: it does not begin with a slash");
    path = (struct slice){ path.at + 1, path.len - 1 };
    if (path.len == 0)
        return 0;
    while (!last) {
        struct slice segment;

        if (!slice_cut(&path, '/', &segment)) {
            last = true;
            segment = path;
        }
        if (last && segment.len == 0) {
            ret_path->slash = true;
            break;
        }
        ret_path->empty |= segment.len == 0;
        if (look_at(segment, ret_path, err) < 0)
            return -1;
        if (ret_path->count == URL_SEGMENTS_MAX)
            return err_set(err, ERR_TOO_BIG, "path: more than %d segments", URL_SEGMENTS_MAX);
        ret_path->segments[ret_path->count++] = segment;
    }
    return 0;
}

size_t url_encode(struct slice in, char *out, size_t size)
{
    struct put put = put_into(out, size);

    put_percent(&put, in);
    return put.len;
}
