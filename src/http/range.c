#include "http/range.h"

#include "http/date.h"
#include "http/put.h"

#define UNIT "bytes="

/* A position as large as it likes: past INT64_MAX it is past every file. */
static bool parse_position(struct slice text, uint64_t *ret)
{
    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char) (text.at[i] - '0') > 9)
            return false;
    if (!slice_number(text, ret))
        *ret = INT64_MAX;
    return true;
}

static enum range_result suffix(uint64_t want, uint64_t size, struct range *ret_range)
{
    if (want == 0)
        return RANGE_UNSATISFIABLE;
    if (size == 0)
        return RANGE_NONE; /* satisfiable, but Content-Range cannot say "nothing" */
    *ret_range = want < size ? (struct range){ size - want, want } : (struct range){ 0, size };
    return RANGE_OK;
}

enum range_result range_parse(struct slice value, uint64_t size, struct range *ret_range)
{
    struct slice before, after = value;
    uint64_t first, last = INT64_MAX;

    if (value.len < strlen(UNIT) ||
        !slice_is_nocase((struct slice){ value.at, strlen(UNIT) }, UNIT))
        return RANGE_NONE;
    after = slice_trim((struct slice){ value.at + strlen(UNIT), value.len - strlen(UNIT) });
    if (!slice_cut(&after, '-', &before))
        return RANGE_NONE;
    if (before.len == 0)
        return parse_position(after, &last) ? suffix(last, size, ret_range) : RANGE_NONE;
    if (!parse_position(before, &first) || (after.len > 0 && !parse_position(after, &last)) ||
        first > last)
        return RANGE_NONE;
    if (first >= size)
        return RANGE_UNSATISFIABLE;
    if (last >= size)
        last = size - 1;
    *ret_range = (struct range){ first, last - first + 1 };
    return RANGE_OK;
}

void range_put(char out[RANGE_TEXT_SIZE], const struct range *range, uint64_t size)
{
    struct put put = put_into(out, RANGE_TEXT_SIZE);

    put_text(&put, "bytes ");
    if (range) {
        put_number(&put, range->first);
        put_char(&put, '-');
        put_number(&put, range->first + range->len - 1);
    } else {
        put_char(&put, '*');
    }
    put_char(&put, '/');
    put_number(&put, size);
    put_char(&put, '\0');
}

void etag_put(char out[ETAG_SIZE], uint64_t mtime_ns, uint64_t size)
{
    struct put put = put_into(out, ETAG_SIZE);

    put_char(&put, '"');
    put_hex(&put, mtime_ns);
    put_char(&put, '-');
    put_hex(&put, size);
    put_char(&put, '"');
    put_char(&put, '\0');
}

/* The next tag of the list. Tags have no escapes, and may have commas: no list of value.h. */
static bool etag_next(struct slice *rest, struct slice *ret_tag, bool *ret_weak)
{
    struct slice before;

    while (rest->len > 0 && strchr(" \t,", rest->at[0]) && rest->at[0] != '\0')
        *rest = (struct slice){ rest->at + 1, rest->len - 1 };
    *ret_weak = rest->len >= 2 && memcmp(rest->at, "W/", 2) == 0;
    if (*ret_weak)
        *rest = (struct slice){ rest->at + 2, rest->len - 2 };
    if (rest->len == 0 || rest->at[0] != '"')
        return false;
    *ret_tag = *rest;
    *rest = (struct slice){ rest->at + 1, rest->len - 1 };
    if (!slice_cut(rest, '"', &before))
        return false;
    ret_tag->len = before.len + 2;
    return true;
}

bool etag_in(struct slice list, const char *etag, bool weak)
{
    bool ours_weak = strncmp(etag, "W/", 2) == 0, theirs_weak;
    struct slice tag;

    list = slice_trim(list);
    if (slice_is(list, "*"))
        return true;
    while (etag_next(&list, &tag, &theirs_weak))
        if (slice_is(tag, ours_weak ? etag + 2 : etag) && (weak || (!ours_weak && !theirs_weak)))
            return true;
    return false;
}

bool range_not_modified(struct slice if_none_match, struct slice if_modified_since,
                        const char *etag, int64_t mtime)
{
    int64_t since;

    if (if_none_match.at)
        return etag_in(if_none_match, etag, true);
    return if_modified_since.at && date_parse(if_modified_since, &since) && mtime <= since;
}

bool range_applies(struct slice if_range, const char *etag, int64_t mtime)
{
    int64_t when;

    if (!if_range.at)
        return true;
    if (date_parse(if_range, &when))
        return when == mtime;
    return !slice_is(if_range, "*") && etag_in(if_range, etag, false);
}
