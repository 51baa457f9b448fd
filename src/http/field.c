#include "http/field.h"

#include "http/chars.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

int field_parse(struct slice line, struct http_field *ret_field, struct err *err)
{
    size_t n = char_span(line.at, line.len, CHAR_TOKEN);
    struct slice name = { line.at, n };

    if (is_blank(line.at[0]))
        return err_set(err, ERR_INVALID, "a header line begins with a blank: folding is refused");
    if (n == line.len)
        return err_set(err, ERR_INVALID, "header line '%.*s' has no colon", SLICE_ARGS(name));
    if (is_blank(line.at[n]))
        return err_set(err, ERR_INVALID,
                       "header '%.*s' has a blank in its name or before its colon",
                       SLICE_ARGS(name));
    if (line.at[n] != ':')
        return err_set(err, ERR_INVALID, "a header name has the byte 0x%02x, which is not allowed",
                       (unsigned char) line.at[n]);
    if (n == 0)
        return err_set(err, ERR_INVALID, "a header has no name");
    ret_field->name = name;
    ret_field->value = slice_trim((struct slice){ line.at + n + 1, line.len - n - 1 });
    return 0;
}
