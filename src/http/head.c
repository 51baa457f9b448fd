/* The parser goes over the bytes once, in order. A line is judged when its CRLF is there, a byte
 * that may stand in no line at once. So the same bytes give the same answer however they arrive:
 * nothing here depends on `len` except where scanning stops. Limits are positions, too.
 *
 * The accessors of a complete head are in head_get.c. */
#include "http/head.h"

#include "base/own.h"
#include "http/chars.h"
#include "http/field.h"
#include "http/target.h"
#include "http/value.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    uint16_t status;
    enum err_kind kind;
} kinds[] = {
    { 400, ERR_INVALID }, { 414, ERR_TOO_BIG },     { 417, ERR_UNSUPPORTED },
    { 431, ERR_TOO_BIG }, { 501, ERR_UNSUPPORTED }, { 505, ERR_UNSUPPORTED },
};

__attribute__((format(printf, 4, 5))) static int refuse(struct head *head, uint16_t status,
                                                        struct err *err, const char *fmt, ...)
{
    enum err_kind kind = ERR_INVALID;
    char msg[ERR_MSG_MAX];
    va_list args;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].status == status)
            kind = kinds[i].kind;
    va_start(args, fmt);
    (void) vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    head->status = status;
    return err_set(err, kind, "%s", msg);
}

/* What a lower module refused, with its sentence. */
static int refused(struct head *head)
{
    head->status = 400;
    return -1;
}

static struct head_span span_of(const struct head *head, struct slice slice)
{
    return (struct head_span){ (uint16_t) (slice.at - head->buf), (uint16_t) slice.len };
}

static const char *const methods[] = {
    [METHOD_OTHER] = "",        [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",
    [METHOD_POST] = "POST",     [METHOD_PUT] = "PUT",         [METHOD_PATCH] = "PATCH",
    [METHOD_DELETE] = "DELETE", [METHOD_OPTIONS] = "OPTIONS", [METHOD_TRACE] = "TRACE",
};
_Static_assert(ARRAY_LEN(methods) == METHOD_COUNT, "every method has a name");

const char *method_name(enum method method)
{
    return method < METHOD_COUNT ? methods[method] : "";
}

static int parse_method(struct head *head, struct slice text, struct err *err)
{
    if (!char_all(text, CHAR_TOKEN))
        return refuse(head, 400, err, "the request line does not begin with a method");
    if (text.len > HEAD_METHOD_MAX)
        return refuse(head, 501, err, "the method is longer than %d bytes", HEAD_METHOD_MAX);
    if (slice_is(text, "CONNECT"))
        return refuse(head, 501, err, "CONNECT is refused: this server is not a proxy");
    head->method_text = span_of(head, text);
    for (size_t i = METHOD_GET; i < METHOD_COUNT; i++)
        if (slice_is(text, methods[i]))
            head->method = (enum method) i;
    return 0;
}

static int parse_version(struct head *head, struct slice text, struct err *err)
{
    if (text.len != 8 || memcmp(text.at, "HTTP/", 5) != 0 || (unsigned) (text.at[5] - '0') > 9 ||
        text.at[6] != '.' || (unsigned) (text.at[7] - '0') > 9)
        return refuse(head, 400, err, "the request line does not end with an HTTP version");
    if (text.at[5] != '1' || text.at[7] > '1')
        return refuse(head, 505, err, "%.8s is not supported, only HTTP/1.1 and 1.0", text.at);
    head->minor = (uint8_t) (text.at[7] - '0');
    return 0;
}

static int parse_authority(struct head *head, struct slice text, struct err *err)
{
    struct host host;

    if (host_parse(text, &host, err) < 0)
        return refused(head);
    head->authority = span_of(head, text);
    head->host = span_of(head, host.name);
    head->port = host.port;
    return 0;
}

static int parse_target(struct head *head, struct slice text, struct err *err)
{
    struct target target;

    if (target_parse(text, &target, err) < 0)
        return refused(head);
    if (target.asterisk && head->method != METHOD_OPTIONS)
        return refuse(head, 400, err, "the request target * is for OPTIONS alone");
    if (target.authority.at && parse_authority(head, target.authority, err) < 0)
        return -1;
    head->asterisk = target.asterisk;
    head->path = span_of(head, target.path);
    head->has_query = target.query.at;
    if (head->has_query)
        head->query = span_of(head, target.query);
    return 0;
}

/* The version comes before method and target: who speaks another HTTP is told so, and not what
 * else is strange about it. */
static int on_request_line(struct head *head, struct slice line, struct err *err)
{
    struct slice method, target;

    if (!slice_cut(&line, ' ', &method) || !slice_cut(&line, ' ', &target))
        return refuse(head, 400, err, "the request line is not 'method target version'");
    if (target.len == 0 || (line.len > 0 && line.at[0] == ' '))
        return refuse(head, 400, err, "the request line has two blanks in a row");
    if (parse_version(head, line, err) < 0 || parse_method(head, method, err) < 0)
        return -1;
    return parse_target(head, target, err);
}

static int on_host(struct head *head, struct slice value, struct err *err)
{
    struct slice target = { head->buf + head->authority.at, head->authority.len };

    if (head->authority.len == 0)
        return parse_authority(head, value, err);
    if (!slice_same_nocase(target, value))
        return refuse(head, 400, err, "the request target names another host than the Host header");
    return 0;
}

static int on_content_length(struct head *head, struct slice value, struct err *err)
{
    if (!slice_number(value, &head->content_length))
        return refuse(head, 400, err, "Content-Length '%.*s' is not a length", SLICE_ARGS(value));
    if (head->body == HEAD_CHUNKED)
        return refuse(head, 400, err, "Content-Length and Transfer-Encoding exclude each other");
    head->body = HEAD_LENGTH;
    return 0;
}

static int on_transfer_encoding(struct head *head, struct slice value, struct err *err)
{
    if (head->minor == 0)
        return refuse(head, 400, err, "Transfer-Encoding is not part of HTTP/1.0");
    if (head->body == HEAD_LENGTH)
        return refuse(head, 400, err, "Content-Length and Transfer-Encoding exclude each other");
    if (!slice_is_nocase(value, "chunked"))
        return refuse(head, 501, err, "Transfer-Encoding '%.*s' is not known, only chunked",
                      SLICE_ARGS(value));
    head->body = HEAD_CHUNKED;
    return 0;
}

static int on_connection(struct head *head, struct slice value, struct err *err)
{
    struct slice item;

    (void) err;
    while (value_list_next(&value, &item)) {
        head->close |= slice_is_nocase(item, "close");
        head->persist |= slice_is_nocase(item, "keep-alive");
        head->upgrade |= head->minor == 1 && slice_is_nocase(item, "upgrade");
    }
    return 0;
}

/* HTTP/1.0 knows no 100 (RFC 9110, section 10.1.1). */
static int on_expect(struct head *head, struct slice value, struct err *err)
{
    if (!slice_is_nocase(value, "100-continue"))
        return refuse(head, 417, err, "Expect '%.*s' cannot be met", SLICE_ARGS(value));
    head->expect_continue = head->minor == 1;
    return 0;
}

/* clang-format off */
#define NAME(text) { text, sizeof text - 1 }

/* Headers that this parser acts on, and those that would mean two things if given twice. */
static const struct {
    struct slice name;
    bool once;
    int (*check)(struct head *head, struct slice value, struct err *err);
} known[] = {
    { NAME("Host"),              true,  on_host },
    { NAME("Content-Length"),    true,  on_content_length },
    { NAME("Transfer-Encoding"), true,  on_transfer_encoding },
    { NAME("Expect"),            true,  on_expect },
    { NAME("Connection"),        false, on_connection },
    { NAME("Authorization"),     true,  NULL },
    { NAME("Origin"),            true,  NULL },
};
/* clang-format on */
#define KNOWN_HOST 0
_Static_assert(ARRAY_LEN(known) <= 8, "head.seen has a bit for each");

static int check_known(struct head *head, const struct http_field *field, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (field->name.len != known[i].name.len || !slice_same_nocase(field->name, known[i].name))
            continue;
        if (known[i].once && (head->seen & 1u << i))
            return refuse(head, 400, err, "the header %s is given twice", known[i].name.at);
        head->seen |= (uint8_t) (1u << i);
        return known[i].check ? known[i].check(head, field->value, err) : 0;
    }
    return 0;
}

static int on_field_line(struct head *head, struct slice line, struct err *err)
{
    struct http_field field;

    if (field_parse(line, &field, err) < 0)
        return refused(head);
    if (head->field_count == HEAD_FIELDS_MAX)
        return refuse(head, 431, err, "the head has more than %d headers", HEAD_FIELDS_MAX);
    head->fields[head->field_count].name = span_of(head, field.name);
    head->fields[head->field_count].value = span_of(head, field.value);
    head->field_count++;
    return check_known(head, &field, err);
}

static int on_end(struct head *head, struct err *err)
{
    if (head->minor == 1 && !(head->seen & 1u << KNOWN_HOST))
        return refuse(head, 400, err, "the header Host is missing");
    head->keep_alive = !head->close && (head->minor == 1 || head->persist);
    if (head->body == HEAD_NO_BODY || (head->body == HEAD_LENGTH && head->content_length == 0))
        head->expect_continue = false; /* nothing is held back */
    head->done = true;
    return 1;
}

/* 1: that was the end of the head. 0: continue. One empty line before the request is passed over: old
 * clients send it behind a body (RFC 9112, section 2.2). */
static int on_line(struct head *head, struct slice line, struct err *err)
{
    if (head->begun)
        return line.len > 0 ? on_field_line(head, line, err) : on_end(head, err);
    if (line.len == 0 && head->blank)
        return refuse(head, 400, err, "empty lines instead of a request");
    head->begun = line.len > 0;
    head->blank = line.len == 0;
    return head->begun ? on_request_line(head, line, err) : 0;
}

static int bad_byte(struct head *head, unsigned char byte, struct err *err)
{
    const char *where = head->begun ? "a header line" : "the request line";

    if (byte == '\n')
        return refuse(head, 400, err, "%s ends with LF alone, not CRLF", where);
    if (!head->begun && head->scanned == 0 && byte == 0x16)
        return refuse(head, 400, err, "this looks like TLS, but this address serves plain HTTP");
    return refuse(head, 400, err, "%s has the byte 0x%02x, which is not allowed", where, byte);
}

/* At a byte that is not plain. 1: a line ended, 0: the byte behind CR is not there yet. */
static int on_break(struct head *head, size_t end, struct err *err)
{
    const char *at = head->buf + head->scanned;

    if (*at != '\r')
        return bad_byte(head, (unsigned char) *at, err);
    if ((size_t) head->scanned + 1 >= end)
        return 0;
    if (at[1] != '\n')
        return refuse(head, 400, err, "a CR without LF");
    return 1;
}

static int too_long(struct head *head, struct err *err)
{
    if (!head->begun)
        return refuse(head, 414, err, "the request line is longer than %d bytes", HEAD_LINE_MAX);
    return refuse(head, 431, err, "the head is larger than %d bytes", HEAD_MAX);
}

/* Over one line's plain bytes, as far as they are there and allowed. 0: more is needed. */
static int scan_line(struct head *head, size_t end, struct err *err)
{
    unsigned plain = head->begun ? CHAR_VALUE : CHAR_LINE;
    size_t most = head->begun ? HEAD_MAX : (size_t) head->line + HEAD_LINE_MAX + 1;
    size_t stop = end < most ? end : most;

    head->scanned += (uint16_t) char_span(head->buf + head->scanned, stop - head->scanned, plain);
    if (head->scanned == most)
        return too_long(head, err);
    return head->scanned < stop ? on_break(head, end, err) : 0;
}

void head_init(struct head *head)
{
    /* The fields are written before they are read: clearing them would cost more than parsing. */
    memset(head, 0, offsetof(struct head, fields));
}

int head_feed(struct head *head, const char *buf, size_t len, struct err *err)
{
    size_t end = len < HEAD_MAX ? len : HEAD_MAX;
    int r = 0;

    assert(!head->done && head->status == 0);
    head->buf = buf;
    while (r == 0) {
        r = scan_line(head, end, err);
        if (r == 0 && end == HEAD_MAX)
            return too_long(head, err);
        if (r <= 0)
            return r;
        r = on_line(head, (struct slice){ buf + head->line, head->scanned - (size_t) head->line },
                    err);
        head->scanned += 2;
        head->line = head->scanned;
    }
    head->len = head->line;
    return r;
}

void head_move(struct head *head, const char *buf)
{
    head->buf = buf;
}
