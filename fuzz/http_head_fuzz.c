/* http_head_fuzz.c - request heads, pipelined.
 *
 * The head is read at once and byte by byte: both must say the same, and no proper prefix of a
 * whole head may be whole. What is accepted is checked against the rules that smuggling breaks. */
#include "http/head.h"
#include "http/url.h"
#include "http/ws.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void inside(const struct head *head, struct slice slice)
{
    if (slice.at && !slice_is(slice, "/"))
        must(slice.at >= head->buf && slice.at + slice.len <= head->buf + head->len);
    for (size_t i = 0; i < slice.len; i++)
        must(slice.at[i] != '\r' && slice.at[i] != '\n' && slice.at[i] != '\0');
}

static void check_accepted(const struct head *head)
{
    struct head_list list = head_list(head, "connection");
    char accept[WS_ACCEPT_SIZE], text[64];
    struct slice item;
    struct url_path path;
    struct err err;
    unsigned status;

    must(head->len >= 4 && memcmp(head->buf + head->len - 4, "\r\n\r\n", 4) == 0);
    must(head->minor == 0 || head_count(head, "host") == 1);
    must(head_count(head, "content-length") <= 1 && head_count(head, "transfer-encoding") <= 1);
    must(!head_get(head, "content-length").at || !head_get(head, "transfer-encoding").at);
    must((head->body == HEAD_CHUNKED) == (head_get(head, "transfer-encoding").at != NULL));
    must((head->body == HEAD_LENGTH) == (head_get(head, "content-length").at != NULL));
    must(head->content_length <= INT64_MAX);
    must(!head->keep_alive || !head_has(head, "connection", "close"));
    inside(head, head_method(head));
    inside(head, head_path(head));
    inside(head, head_query(head));
    inside(head, head_host(head));
    for (size_t i = 0; i < head->field_count; i++) {
        inside(head, head_field_name(head, i));
        inside(head, head_field_value(head, i));
        must(head_field_name(head, i).len > 0);
    }
    while (head_list_next(&list, &item))
        inside(head, item);
    must(head_path(head).len > 0);
    (void) url_path_split(head_path(head), &path, &err);
    (void) url_query_get(head_query(head), "a", text, sizeof text, &err);
    if (ws_handshake(head, accept, &status, &err) == 0)
        must(strlen(accept) == WS_ACCEPT_SIZE - 1);
}

/* The same bytes, one more at each call. Returns as head_feed does. */
static int feed_slowly(struct head *head, const char *buf, size_t size, struct err *err)
{
    int r = 0;

    head_init(head);
    for (size_t len = 0; len <= size && r == 0; len++)
        r = head_feed(head, buf, len, err);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *buf = (const char *) data;

    while (size > 0) {
        struct head fast, slow;
        struct err fast_err = { 0 }, slow_err = { 0 };
        int r;

        head_init(&fast);
        r = head_feed(&fast, buf, size, &fast_err);
        must(feed_slowly(&slow, buf, size, &slow_err) == r);
        must(fast.status == slow.status && strcmp(fast_err.msg, slow_err.msg) == 0);
        must((r < 0) == (fast.status >= 400) && (r >= 0 || fast_err.msg[0]));
        must(r != 0 || size < HEAD_MAX);
        if (r <= 0)
            break;
        must(memcmp(&fast, &slow, offsetof(struct head, buf)) == 0 && fast.len <= size);
        must(memcmp(fast.fields, slow.fields, fast.field_count * sizeof fast.fields[0]) == 0);
        check_accepted(&fast);
        buf += fast.len;
        size -= fast.len;
    }
    return 0;
}
