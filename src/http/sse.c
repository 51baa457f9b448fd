#include "http/sse.h"

#include "http/put.h"
#include "http/utf8.h"

static size_t line_len(struct slice text)
{
    size_t n = 0;

    while (n < text.len && text.at[n] != '\r' && text.at[n] != '\n')
        n++;
    return n;
}

static int put_field(struct put *put, const char *name, const char *value, struct err *err)
{
    if (!value)
        return 0;
    if (strpbrk(value, "\r\n"))
        return err_set(err, ERR_INVALID, "a line break in the %s of an event", name);
    put_text(put, name);
    put_text(put, ": ");
    put_text(put, value);
    put_char(put, '\n');
    return 0;
}

static void put_data(struct put *put, struct slice data)
{
    for (;;) {
        size_t n = line_len(data), skip;

        put_text(put, "data: ");
        put_bytes(put, data.at, n);
        put_char(put, '\n');
        if (n == data.len)
            return;
        skip = data.at[n] == '\r' && n + 1 < data.len && data.at[n + 1] == '\n' ? n + 2 : n + 1;
        data = (struct slice){ data.at + skip, data.len - skip };
    }
}

ssize_t sse_event(char *out, size_t size, const char *event, const char *id, struct slice data,
                  struct err *err)
{
    struct put put = put_into(out, size);

    if (put_field(&put, "event", event, err) < 0 || put_field(&put, "id", id, err) < 0)
        return -1;
    put_data(&put, data);
    put_char(&put, '\n');
    return (ssize_t) put.len;
}

size_t sse_comment(char *out, size_t size, const char *text)
{
    struct put put = put_into(out, size);

    put_text(&put, ": ");
    for (; *text; text++)
        put_char(&put, *text == '\r' || *text == '\n' ? ' ' : *text);
    put_text(&put, "\n\n");
    return put.len;
}

static void put_escaped(struct put *put, char c)
{
    static const char names[] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                  ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\' };
    unsigned char byte = (unsigned char) c;

    if (byte < sizeof names && names[byte]) {
        put_char(put, '\\');
        put_char(put, names[byte]);
    } else if (byte < 0x20 || byte == 0x7f) {
        put_text(put, "\\u00");
        put_char(put, "0123456789abcdef"[byte >> 4]);
        put_char(put, "0123456789abcdef"[byte & 15]);
    } else {
        put_char(put, c);
    }
}

size_t sse_json_escape(struct slice text, bool last, char *out, size_t size, size_t *ret_used)
{
    struct put put = put_into(out, size);
    size_t used = 0;

    while (used < text.len) {
        struct put before = put;
        int n = utf8_first(text.at + used, text.len - used);

        if (n < 0 && !last)
            break;
        if (n == 1)
            put_escaped(&put, text.at[used]);
        else if (n > 1)
            put_bytes(&put, text.at + used, (size_t) n);
        else
            put_text(&put, "\xef\xbf\xbd");
        if (!put_fits(&put)) {
            put = before;
            break;
        }
        used += n > 1 ? (size_t) n : 1;
    }
    *ret_used = used;
    return put.len;
}
