#include "http/value.h"

#include "http/chars.h"
#include "http/put.h"

/* Where the piece ends: at the separator outside quotes, or at the end. */
static size_t piece_len(struct slice text, char separator)
{
    bool quoted = false;

    for (size_t i = 0; i < text.len; i++) {
        if (quoted && text.at[i] == '\\')
            i++;
        else if (text.at[i] == '"')
            quoted = !quoted;
        else if (!quoted && text.at[i] == separator)
            return i;
    }
    return text.len;
}

static struct slice take_piece(struct slice *rest, char separator)
{
    size_t len = piece_len(*rest, separator);
    struct slice piece = { rest->at, len };
    size_t used = len < rest->len ? len + 1 : len;

    *rest = (struct slice){ rest->at + used, rest->len - used };
    return slice_trim(piece);
}

bool value_list_next(struct slice *rest, struct slice *ret_item)
{
    while (rest->len > 0) {
        struct slice item = take_piece(rest, ',');

        if (item.len > 0) {
            *ret_item = item;
            return true;
        }
    }
    return false;
}

bool value_list_has(struct slice value, const char *word)
{
    struct slice item;

    while (value_list_next(&value, &item))
        if (slice_is_nocase(item, word))
            return true;
    return false;
}

struct slice value_main(struct slice value)
{
    return value.len > 0 ? take_piece(&value, ';') : value;
}

/* A token as it is, or a quoted string without its quotes. -1: neither, or no room. */
static ssize_t unquote(struct slice value, char *out, size_t size)
{
    struct put put = put_into(out, size);
    bool quoted = value.len >= 2 && value.at[0] == '"' && value.at[value.len - 1] == '"';
    size_t end = quoted ? value.len - 1 : value.len;

    if (!quoted && !char_all(value, CHAR_TOKEN))
        return -1;
    for (size_t i = quoted; i < end; i++) {
        bool escape = quoted && value.at[i] == '\\' && i + 1 < end &&
                      (value.at[i + 1] == '"' || value.at[i + 1] == '\\');

        if (quoted && value.at[i] == '"')
            return -1;
        put_char(&put, value.at[escape ? ++i : i]);
    }
    put_char(&put, '\0');
    return put_fits(&put) ? (ssize_t) put.len - 1 : -1;
}

ssize_t value_param(struct slice value, const char *name, char *out, size_t size, bool *ret_found)
{
    struct slice raw = { 0 };

    *ret_found = false;
    if (value.len > 0)
        (void) take_piece(&value, ';');
    while (value.len > 0) {
        struct slice rest = take_piece(&value, ';'), key;

        if (!slice_cut(&rest, '=', &key) || !slice_is_nocase(key, name))
            continue;
        if (*ret_found)
            return -1;
        *ret_found = true;
        raw = rest;
    }
    return *ret_found ? unquote(raw, out, size) : -1;
}
