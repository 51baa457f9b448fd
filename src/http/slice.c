#include "http/slice.h"

static unsigned char lower(char c)
{
    return (unsigned char) (c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

bool slice_is(struct slice slice, const char *text)
{
    size_t len = strlen(text);

    return slice.at && slice.len == len && memcmp(slice.at, text, len) == 0;
}

bool slice_same_nocase(struct slice a, struct slice b)
{
    if (!a.at || !b.at || a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.at[i]) != lower(b.at[i]))
            return false;
    return true;
}

bool slice_is_nocase(struct slice slice, const char *text)
{
    return slice_same_nocase(slice, slice_of(text));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct slice slice_trim(struct slice slice)
{
    while (slice.len > 0 && is_blank(slice.at[0])) {
        slice.at++;
        slice.len--;
    }
    while (slice.len > 0 && is_blank(slice.at[slice.len - 1]))
        slice.len--;
    return slice;
}

bool slice_cut(struct slice *slice, char c, struct slice *ret_before)
{
    const char *found = slice->len > 0 ? memchr(slice->at, c, slice->len) : NULL;
    size_t before;

    if (!found)
        return false;
    before = (size_t) (found - slice->at);
    *ret_before = (struct slice){ slice->at, before };
    *slice = (struct slice){ found + 1, slice->len - before - 1 };
    return true;
}

bool slice_copy(struct slice slice, char *out, size_t size)
{
    if (!slice.at || slice.len >= size || (slice.len > 0 && memchr(slice.at, '\0', slice.len)))
        return false;
    if (slice.len > 0)
        memcpy(out, slice.at, slice.len);
    out[slice.len] = '\0';
    return true;
}

bool slice_number(struct slice slice, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (slice.len == 0)
        return false;
    for (size_t i = 0; i < slice.len; i++) {
        unsigned digit = (unsigned char) slice.at[i] - (unsigned) '0';

        if (digit > 9 || value > ((uint64_t) INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}
