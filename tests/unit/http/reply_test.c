#include "http/reply.h"

#include "check.h"

struct bad {
    const char *text;
    size_t len; /* 0: strlen */
    const char *why;
};

#define OK "HTTP/1.1 200 OK\r\n"

/* clang-format off */
static const struct bad bads[] = {
    { "HTTP/2.0 200 OK\r\n\r\n", 0, "the answer does not begin with HTTP/1.1 or 1.0 and a blank" },
    { "HTTP/1.2 200 OK\r\n\r\n", 0, "the answer does not begin with HTTP/1.1 or 1.0 and a blank" },
    { "http/1.1 200 OK\r\n\r\n", 0, "the answer does not begin with HTTP/1.1 or 1.0 and a blank" },
    { "HTTP/1.1200 OK\r\n\r\n", 0, "the answer does not begin with HTTP/1.1 or 1.0 and a blank" },
    { "\r\nHTTP/1.1 200 OK\r\n\r\n", 0, "the answer does not begin with HTTP/1.1 or 1.0 and a blank" },
    { "SSH-2.0-OpenSSH_9.2p1\r\n", 0, "the answer does not begin with HTTP/1.1 or 1.0 and a blank" },
    { "HTTP/1.1 20 OK\r\n\r\n", 0, "the answer has no status of three digits" },
    { "HTTP/1.1 2000 OK\r\n\r\n", 0, "the answer has no status of three digits" },
    { "HTTP/1.1 +20 OK\r\n\r\n", 0, "the answer has no status of three digits" },
    { "HTTP/1.1 099 OK\r\n\r\n", 0, "the answer's status is not between 100 and 599" },
    { "HTTP/1.1 600 OK\r\n\r\n", 0, "the answer's status is not between 100 and 599" },
    { "HTTP/1.1 200 OK\n\n", 0, "a line of the answer's head ends with LF alone, not CRLF" },
    { OK "X: a\n\r\n", 0, "a line of the answer's head ends with LF alone, not CRLF" },
    { OK "X: a\rSet-Cookie: b\r\n\r\n", 0, "the answer's head has a CR without LF" },
    { OK "X: a\0b\r\n\r\n", sizeof(OK "X: a\0b\r\n\r\n") - 1, "the answer's head has the byte 0x00, which is not allowed" },
    { OK "X: a\x1b[2J\r\n\r\n", 0, "the answer's head has the byte 0x1b, which is not allowed" },
    { OK "X: a\r\n b\r\n\r\n", 0, "a header line begins with a blank: folding is refused" },
    { OK "X : a\r\n\r\n", 0, "header 'X' has a blank in its name or before its colon" },
    { OK "X\r\n\r\n", 0, "header line 'X' has no colon" },
    { OK ": a\r\n\r\n", 0, "a header has no name" },
    { OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 0, "the answer gives Content-Length twice" },
    { OK "Content-Length: 5\r\ncontent-length: 6\r\n\r\n", 0, "the answer gives Content-Length twice" },
    { OK "Content-Length: -1\r\n\r\n", 0, "the answer's Content-Length is not a length" },
    { OK "Content-Length: 5, 5\r\n\r\n", 0, "the answer's Content-Length is not a length" },
    { OK "Content-Length: 0x10\r\n\r\n", 0, "the answer's Content-Length is not a length" },
    { OK "Content-Length: 9223372036854775808\r\n\r\n", 0, "the answer's Content-Length is not a length" },
    { OK "Content-Length:\r\n\r\n", 0, "the answer's Content-Length is not a length" },
    { OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 0, "the answer gives Content-Length and Transfer-Encoding" },
    { OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 0, "the answer gives Content-Length and Transfer-Encoding" },
    { OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 0, "the answer gives Transfer-Encoding twice" },
    { OK "Transfer-Encoding: gzip, chunked\r\n\r\n", 0, "the answer's Transfer-Encoding is not chunked" },
    { OK "Transfer-Encoding: xchunked\r\n\r\n", 0, "the answer's Transfer-Encoding is not chunked" },
    { "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, "Transfer-Encoding is not part of HTTP/1.0" },
    { "HTTP/1.1 204 X\r\nTransfer-Encoding: chunked\r\n\r\n", 0, "the answer has Transfer-Encoding where no body can be" },
    { "HTTP/1.1 100 X\r\nTransfer-Encoding: chunked\r\n\r\n", 0, "the answer has Transfer-Encoding where no body can be" },
};
/* clang-format on */

static size_t len_of(const struct bad *bad)
{
    return bad->len ? bad->len : strlen(bad->text);
}

static void every_bad_answer_is_refused_with_its_reason_however_it_is_split(void)
{
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        struct reply whole, slow;
        struct err err = { 0 }, slow_err = { 0 };
        int r = 0;

        reply_init(&whole);
        CHECK_INT(reply_feed(&whole, bads[i].text, len_of(&bads[i]), &err), -1);
        CHECK_STR(err.msg, bads[i].why);
        CHECK_INT(err.kind, ERR_PROTOCOL);
        reply_init(&slow);
        for (size_t len = 0; r == 0 && len <= len_of(&bads[i]); len++)
            r = reply_feed(&slow, bads[i].text, len, &slow_err);
        CHECK_INT(r, -1);
        CHECK_STR(slow_err.msg, bads[i].why);
    }
}

static void heads_without_end_are_refused_at_their_limit(void)
{
    static char text[REPLY_MAX + 10];
    struct reply reply;
    struct err err = { 0 };

    memset(text, 'a', sizeof text);
    memcpy(text, OK "X: ", sizeof OK "X: " - 1);
    reply_init(&reply);
    CHECK_INT(reply_feed(&reply, text, REPLY_MAX - 1, &err), 0);
    CHECK_INT(reply_feed(&reply, text, REPLY_MAX, &err), -1);
    CHECK_STR(err.msg, "the answer's head is larger than 32768 bytes");
}

static void too_many_headers_are_refused(void)
{
    static char text[REPLY_MAX];
    struct reply reply;
    struct err err = { 0 };
    size_t len = sizeof OK - 1;

    memcpy(text, OK, len);
    for (int i = 0; i <= REPLY_FIELDS_MAX; i++, len += 6)
        memcpy(text + len, "X: a\r\n", 6);
    reply_init(&reply);
    CHECK_INT(reply_feed(&reply, text, len, &err), -1);
    CHECK_STR(err.msg, "the answer has more than 200 headers");
    memcpy(text + sizeof OK - 1 + 6 * REPLY_FIELDS_MAX, "\r\n", 2);
    reply_init(&reply);
    CHECK_INT(reply_feed(&reply, text, len, &err), 1);
    CHECK_INT(reply.field_count, REPLY_FIELDS_MAX);
}

static struct reply read_reply(const char *text)
{
    struct reply reply;
    struct err err = { 0 };

    reply_init(&reply);
    CHECK_INT(reply_feed(&reply, text, strlen(text), &err), 1);
    return reply;
}

static void the_body_is_framed_as_status_and_headers_say(void)
{
    static const struct {
        const char *text;
        enum reply_body body;
    } rows[] = {
        { OK "Content-Length: 0\r\n\r\n", REPLY_LENGTH },
        { OK "\r\n", REPLY_TO_END },
        { "HTTP/1.0 200\r\n\r\n", REPLY_TO_END },
        { OK "Transfer-Encoding: Chunked\r\n\r\n", REPLY_CHUNKED },
        { "HTTP/1.1 204 No Content\r\n\r\n", REPLY_NO_BODY },
        { "HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", REPLY_NO_BODY },
        { "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", REPLY_NO_BODY },
        { "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", REPLY_NO_BODY },
        { "HTTP/1.1 500 \r\n\r\n", REPLY_TO_END },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(read_reply(rows[i].text).body, rows[i].body);
}

static void headers_are_found_in_any_case_and_lists_over_lines(void)
{
    struct reply reply = read_reply("HTTP/1.1 101 X\r\nconnection: a\r\nUPGRADE: websocket\r\n"
                                    "Connection: X-Own , Upgrade\r\nX-Text: caf\xc3\xa9 \t x\r\n"
                                    "\r\nrest");

    CHECK_INT(reply.status, 101);
    CHECK(reply.upgrade);
    CHECK(slice_is(reply_get(&reply, "upgrade"), "websocket"));
    CHECK(slice_is(reply_get(&reply, "x-text"), "caf\xc3\xa9 \t x"));
    CHECK(!reply_get(&reply, "X-Own").at);
    CHECK(reply_has(&reply, "Connection", slice_of("x-own")));
    CHECK(reply_has(&reply, "connection", slice_of("A")));
    CHECK(!reply_has(&reply, "Connection", slice_of("b")));
    CHECK_INT(reply.field_count, 4);
    CHECK(slice_is((struct slice){ reply.buf + reply.len, 4 }, "rest"));
}

CHECK_MAIN(T(every_bad_answer_is_refused_with_its_reason_however_it_is_split),
           T(heads_without_end_are_refused_at_their_limit), T(too_many_headers_are_refused),
           T(the_body_is_framed_as_status_and_headers_say),
           T(headers_are_found_in_any_case_and_lists_over_lines))
