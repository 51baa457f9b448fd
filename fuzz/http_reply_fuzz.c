/* http_reply_fuzz.c - response heads, as a hostile server may send them.
 *
 * The head is read at once and byte by byte: both must say the same. What is accepted is checked against the rules that
 * response splitting and smuggling break. */
#include "http/reply.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static size_t count(const struct reply *reply, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < reply->field_count; i++)
        n += slice_is_nocase(reply_field_name(reply, i), name);
    return n;
}

static void inside(const struct reply *reply, struct slice slice)
{
    must(slice.at >= reply->buf && slice.at + slice.len <= reply->buf + reply->len);
    for (size_t i = 0; i < slice.len; i++)
        must(slice.at[i] != '\r' && slice.at[i] != '\n' && slice.at[i] != '\0');
}

static void check_accepted(const struct reply *reply)
{
    size_t lengths = count(reply, "content-length"), codings = count(reply, "transfer-encoding");

    must(reply->len >= 4 && memcmp(reply->buf + reply->len - 4, "\r\n\r\n", 4) == 0);
    must(reply->status >= 100 && reply->status <= 599 && reply->minor <= 1);
    must(lengths + codings <= 1 && reply->has_length == (lengths == 1));
    must((reply->body == REPLY_CHUNKED) == (codings == 1));
    must(reply->body != REPLY_LENGTH || lengths == 1);
    must(reply->content_length <= INT64_MAX);
    for (size_t i = 0; i < reply->field_count; i++) {
        inside(reply, reply_field_name(reply, i));
        inside(reply, reply_field_value(reply, i));
        must(reply_field_name(reply, i).len > 0);
    }
    (void) reply_get(reply, "upgrade");
    must(reply->upgrade ==
         (reply->minor == 1 && reply_has(reply, "connection", slice_of("upgrade"))));
}

static int feed_slowly(struct reply *reply, const char *buf, size_t size, struct err *err)
{
    int r = 0;

    reply_init(reply);
    for (size_t len = 0; len <= size && r == 0; len++)
        r = reply_feed(reply, buf, len, err);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *buf = (const char *) data;
    struct reply fast, slow;
    struct err fast_err = { 0 }, slow_err = { 0 };
    int r;

    reply_init(&fast);
    r = reply_feed(&fast, buf, size, &fast_err);
    must(feed_slowly(&slow, buf, size, &slow_err) == r);
    must(strcmp(fast_err.msg, slow_err.msg) == 0 && (r >= 0 || fast_err.kind == ERR_PROTOCOL));
    must(r != 0 || size < REPLY_MAX);
    if (r == 1) {
        must(memcmp(&fast, &slow, offsetof(struct reply, buf)) == 0 && fast.len <= size);
        check_accepted(&fast);
    }
    return 0;
}
