#include "http/sse.h"

#include "base/utf8.h"
#include "http/put.h"

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
