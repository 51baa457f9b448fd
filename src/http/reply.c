/* As head.c does it for requests: over the bytes once, in order; a line is judged when its CRLF is there, a byte that
 * may stand in no line at once. */
#include "http/reply.h"

#include "http/chars.h"
#include "http/field.h"
#include "http/response.h"
#include "http/value.h"

#include <assert.h>

static int refuse(struct err *err, const char *sentence)
{
    return err_set(err, ERR_PROTOCOL, "%s", sentence);
}

static struct head_span span_of(const struct reply *reply, struct slice slice)
{
    return (struct head_span){ (uint16_t) (slice.at - reply->buf), (uint16_t) slice.len };
}

/* "HTTP/1.1 200 OK"; the reason may be missing, and means nothing. */
static int on_status_line(struct reply *reply, struct slice line, struct err *err)
{
    const char *at = line.at;

    if (line.len < 12 || memcmp(at, "HTTP/1.", 7) != 0 || (at[7] != '0' && at[7] != '1') ||
        at[8] != ' ')
        return refuse(err, "the answer does not begin with HTTP/1.1 or 1.0 and a blank");
    for (size_t i = 9; i < 12; i++) {
        if (at[i] < '0' || at[i] > '9')
            return refuse(err, "the answer has no status of three digits");
        reply->status = (uint16_t) (10 * reply->status + (at[i] - '0'));
    }
    if (line.len > 12 && at[12] != ' ')
        return refuse(err, "the answer has no status of three digits");
    if (reply->status < 100 || reply->status > 599)
        return refuse(err, "the answer's status is not between 100 and 599");
    reply->minor = (uint8_t) (at[7] - '0');
    return 0;
}

static int on_content_length(struct reply *reply, struct slice value, struct err *err)
{
    if (reply->has_length)
        return refuse(err, "the answer gives Content-Length twice");
    if (reply->chunked)
        return refuse(err, "the answer gives Content-Length and Transfer-Encoding");
    if (!slice_number(value, &reply->content_length))
        return refuse(err, "the answer's Content-Length is not a length");
    reply->has_length = true;
    return 0;
}

static int on_transfer_encoding(struct reply *reply, struct slice value, struct err *err)
{
    if (reply->chunked)
        return refuse(err, "the answer gives Transfer-Encoding twice");
    if (reply->has_length)
        return refuse(err, "the answer gives Content-Length and Transfer-Encoding");
    if (reply->minor == 0)
        return refuse(err, "Transfer-Encoding is not part of HTTP/1.0");
    if (!slice_is_nocase(value, "chunked"))
        return refuse(err, "the answer's Transfer-Encoding is not chunked");
    reply->chunked = true;
    return 0;
}

static int on_field_line(struct reply *reply, struct slice line, struct err *err)
{
    struct http_field field;

    if (field_parse(line, &field, err) < 0) {
        err->kind = ERR_PROTOCOL;
        return -1;
    }
    if (reply->field_count == REPLY_FIELDS_MAX)
        return err_set(err, ERR_PROTOCOL, "the answer has more than %d headers", REPLY_FIELDS_MAX);
    reply->fields[reply->field_count].name = span_of(reply, field.name);
    reply->fields[reply->field_count].value = span_of(reply, field.value);
    reply->field_count++;
    if (slice_is_nocase(field.name, "Content-Length"))
        return on_content_length(reply, field.value, err);
    if (slice_is_nocase(field.name, "Transfer-Encoding"))
        return on_transfer_encoding(reply, field.value, err);
    if (slice_is_nocase(field.name, "Connection"))
        reply->upgrade |= reply->minor == 1 && value_list_has(field.value, "upgrade");
    return 0;
}

/* A length beside 204 is wrong and common: it is passed over, since there is no body whatever it says. Chunks beside
 * it would leave their end on the wire (RFC 9112, section 6.3). */
static int on_end(struct reply *reply, struct err *err)
{
    if (!status_has_body(reply->status)) {
        if (reply->chunked)
            return refuse(err, "the answer has Transfer-Encoding where no body can be");
        reply->body = REPLY_NO_BODY;
    } else {
        reply->body = reply->chunked      ? REPLY_CHUNKED
                      : reply->has_length ? REPLY_LENGTH
                                          : REPLY_TO_END;
    }
    reply->done = true;
    return 1;
}

static int on_line(struct reply *reply, struct slice line, struct err *err)
{
    if (reply->begun)
        return line.len > 0 ? on_field_line(reply, line, err) : on_end(reply, err);
    reply->begun = true;
    return on_status_line(reply, line, err);
}

/* At a byte that is not plain. 1: a line ended, 0: the byte behind CR is not there yet. */
static int on_break(struct reply *reply, size_t end, struct err *err)
{
    const char *at = reply->buf + reply->scanned;

    if (*at == '\n')
        return refuse(err, "a line of the answer's head ends with LF alone, not CRLF");
    if (*at != '\r')
        return err_set(err, ERR_PROTOCOL,
                       "the answer's head has the byte 0x%02x, which is not allowed",
                       (unsigned char) *at);
    if ((size_t) reply->scanned + 1 >= end)
        return 0;
    return at[1] == '\n' ? 1 : refuse(err, "the answer's head has a CR without LF");
}

static int feed(struct reply *reply, const char *buf, size_t len, struct err *err)
{
    size_t end = len < REPLY_MAX ? len : REPLY_MAX;
    int r = 0;

    while (r == 0) {
        reply->scanned +=
            (uint16_t) char_span(buf + reply->scanned, end - reply->scanned, CHAR_VALUE);
        r = reply->scanned < end ? on_break(reply, end, err) : 0;
        if (r == 0 && end == REPLY_MAX)
            return err_set(err, ERR_PROTOCOL, "the answer's head is larger than %d bytes",
                           REPLY_MAX);
        if (r <= 0)
            return r;
        r = on_line(
            reply, (struct slice){ buf + reply->line, reply->scanned - (size_t) reply->line }, err);
        reply->scanned += 2;
        reply->line = reply->scanned;
    }
    reply->len = reply->line;
    return r;
}

void reply_init(struct reply *reply)
{
    memset(reply, 0, offsetof(struct reply, fields));
}

int reply_feed(struct reply *reply, const char *buf, size_t len, struct err *err)
{
    int r;

    assert(!reply->done && !reply->failed);
    reply->buf = buf;
    r = feed(reply, buf, len, err);
    reply->failed = r < 0;
    return r;
}

/* ---- what a complete head says ---- */

static struct slice text_of(const struct reply *reply, struct head_span span)
{
    return (struct slice){ reply->buf + span.at, span.len };
}

struct slice reply_field_name(const struct reply *reply, size_t index)
{
    return text_of(reply, reply->fields[index].name);
}

struct slice reply_field_value(const struct reply *reply, size_t index)
{
    return text_of(reply, reply->fields[index].value);
}

struct slice reply_get(const struct reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->field_count; i++)
        if (slice_is_nocase(reply_field_name(reply, i), name))
            return reply_field_value(reply, i);
    return (struct slice){ 0 };
}

bool reply_has(const struct reply *reply, const char *name, struct slice word)
{
    for (size_t i = 0; i < reply->field_count; i++) {
        struct slice rest = reply_field_value(reply, i), item;

        if (!slice_is_nocase(reply_field_name(reply, i), name))
            continue;
        while (value_list_next(&rest, &item))
            if (slice_same_nocase(item, word))
                return true;
    }
    return false;
}
