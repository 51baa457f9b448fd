#include "http/strip.h"

/* The piece before the next `c`, or all that is left; false where nothing is. */
static bool next_piece(struct slice *rest, char c, struct slice *ret)
{
    if (!rest->at)
        return false;
    if (!slice_cut(rest, c, ret)) {
        *ret = *rest;
        *rest = (struct slice){ 0 };
    }
    return true;
}

static bool has_key(struct slice pair, const char *key, struct slice *ret_value)
{
    struct slice name = pair, value = pair;

    if (slice_cut(&value, '=', &name))
        *ret_value = value;
    else
        *ret_value = (struct slice){ pair.at + pair.len, 0 };
    return slice_is(name, key);
}

size_t strip_query_find(struct slice query, const char *key, struct slice *ret_value)
{
    struct slice pair, value;
    size_t count = 0;

    while (next_piece(&query, '&', &pair)) {
        if (!has_key(pair, key, &value))
            continue;
        *ret_value = value;
        count++;
    }
    return count;
}

void strip_query(struct put *put, struct slice query, const char *key)
{
    struct slice pair, value;
    char before = '?';

    if (query.at && strip_query_find(query, key, &value) == 0) {
        put_char(put, '?');
        put_bytes(put, query.at, query.len);
        return;
    }
    while (next_piece(&query, '&', &pair)) {
        if (has_key(pair, key, &value))
            continue;
        put_char(put, before);
        put_bytes(put, pair.at, pair.len);
        before = '&';
    }
}

bool strip_cookie_next(struct slice *rest, struct slice *ret_name, struct slice *ret_value)
{
    struct slice pair, value;

    if (!next_piece(rest, ';', &pair))
        return false;
    pair = value = slice_trim(pair);
    if (slice_cut(&value, '=', ret_name)) {
        *ret_name = slice_trim(*ret_name);
        *ret_value = slice_trim(value);
    } else {
        *ret_name = (struct slice){ pair.at, 0 };
        *ret_value = pair;
    }
    return true;
}

static bool is_one_of(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is(name, names[i]))
            return true;
    return false;
}

bool strip_cookies(struct put *put, struct slice value, const char *const *names, size_t count)
{
    struct slice rest = value, ahead, name, text;
    bool ours = false, first = true;

    for (ahead = value; strip_cookie_next(&ahead, &name, &text);)
        ours |= is_one_of(name, names, count);
    if (!ours) {
        put_bytes(put, value.at, value.len);
        return true;
    }
    for (;;) {
        struct slice piece = rest, before = rest;

        if (!strip_cookie_next(&rest, &name, &text))
            return !first;
        if (is_one_of(name, names, count) || (name.len == 0 && text.len == 0))
            continue;
        if (!slice_cut(&piece, ';', &before))
            before = piece;
        before = slice_trim(before);
        if (!first)
            put_text(put, "; ");
        put_bytes(put, before.at, before.len);
        first = false;
    }
}
