#include "http/head.h"

#include "check.h"

#define MANY 20000

/* How a case may be given: with a Host line behind its request line, or as it is. */
struct bad {
    const char *text;
    size_t len; /* 0: strlen */
    int status;
    const char *why;
};

#define G   "GET / HTTP/1.1\r\n"
#define H   "Host: a\r\n"
#define END "\r\n"
#define P   "POST / HTTP/1.1\r\n" H

/* clang-format off */
static const struct bad bads[] = {
    /* Line ends. */
    { "GET / HTTP/1.1\nHost: a\n\n", 0, 400, "the request line ends with LF alone, not CRLF" },
    { G "Host: a\n\r\n", 0, 400, "a header line ends with LF alone, not CRLF" },
    { G H "\n", 0, 400, "a header line ends with LF alone, not CRLF" },
    { G H "\rX", 0, 400, "a CR without LF" },
    { G H "X: a\rb\r\n" END, 0, 400, "a CR without LF" },
    { "GET /\r HTTP/1.1\r\n" H END, 0, 400, "a CR without LF" },
    { G H "X: a\r\r\n" END, 0, 400, "a CR without LF" },
    { "\r\n\r\n" G H END, 0, 400, "empty lines instead of a request" },
    { "\n" G H END, 0, 400, "the request line ends with LF alone, not CRLF" },
    /* Header lines. */
    { G H "X: a\r\n b\r\n" END, 0, 400, "a header line begins with a blank: folding is refused" },
    { G H "X: a\r\n\tb\r\n" END, 0, 400, "a header line begins with a blank: folding is refused" },
    { G " Host: a\r\n" END, 0, 400, "a header line begins with a blank: folding is refused" },
    { G H "X : a\r\n" END, 0, 400, "header 'X' has a blank in its name or before its colon" },
    { G H "X\t: a\r\n" END, 0, 400, "header 'X' has a blank in its name or before its colon" },
    { G "Host : a\r\n" END, 0, 400, "header 'Host' has a blank in its name or before its colon" },
    { G H "X Y: a\r\n" END, 0, 400, "header 'X' has a blank in its name or before its colon" },
    { G H ": a\r\n" END, 0, 400, "a header has no name" },
    { G H "X\r\n" END, 0, 400, "header line 'X' has no colon" },
    { G H "X@Y: a\r\n" END, 0, 400, "a header name has the byte 0x40, which is not allowed" },
    { G H "(X): a\r\n" END, 0, 400, "a header name has the byte 0x28, which is not allowed" },
    { G H "\"X\": a\r\n" END, 0, 400, "a header name has the byte 0x22, which is not allowed" },
    { G H "\xc3\xa9: a\r\n" END, 0, 400, "a header name has the byte 0xc3, which is not allowed" },
    { G H "X: a\0b\r\n" END, sizeof(G H "X: a\0b\r\n" END) - 1, 400, "a header line has the byte 0x00, which is not allowed" },
    { G H "X\0: a\r\n" END, sizeof(G H "X\0: a\r\n" END) - 1, 400, "a header line has the byte 0x00, which is not allowed" },
    { G H "X: a\x01\r\n" END, 0, 400, "a header line has the byte 0x01, which is not allowed" },
    { G H "X: a\x0b" "b\r\n" END, 0, 400, "a header line has the byte 0x0b, which is not allowed" },
    { G H "X: a\x1b[0m\r\n" END, 0, 400, "a header line has the byte 0x1b, which is not allowed" },
    { G H "X: a\x7f\r\n" END, 0, 400, "a header line has the byte 0x7f, which is not allowed" },
    /* Host. */
    { G END, 0, 400, "the header Host is missing" },
    { G H H END, 0, 400, "the header Host is given twice" },
    { G H "HOST: b\r\n" END, 0, 400, "the header Host is given twice" },
    { G "Host:\r\n" END, 0, 400, "the host is empty" },
    { G "Host: a b\r\n" END, 0, 400, "'a b' is not a host name" },
    { G "Host: a,b\r\n" END, 0, 400, "'a,b' is not a host name" },
    { G "Host: a/b\r\n" END, 0, 400, "'a/b' is not a host name" },
    { G "Host: u@a\r\n" END, 0, 400, "'u@a' is not a host name" },
    { G "Host: :80\r\n" END, 0, 400, "':80' is not a host name" },
    { G "Host: [::1\r\n" END, 0, 400, "'[::1' is not a host name" },
    { G "Host: []\r\n" END, 0, 400, "'[]' is not a host name" },
    { G "Host: [::1]x\r\n" END, 0, 400, "'[::1]x' is not a host name" },
    { G "Host: ::1\r\n" END, 0, 400, "'::1' is not a host name" },
    { G "Host: a:\r\n" END, 0, 400, "the host has an invalid port ''" },
    { G "Host: a:0\r\n" END, 0, 400, "the host has an invalid port '0'" },
    { G "Host: a:65536\r\n" END, 0, 400, "the host has an invalid port '65536'" },
    { G "Host: a:8o\r\n" END, 0, 400, "the host has an invalid port '8o'" },
    { G "Host: a:+80\r\n" END, 0, 400, "the host has an invalid port '+80'" },
    { G "Host: a:80:80\r\n" END, 0, 400, "the host has an invalid port '80:80'" },
    { G "Host: \xc3\xa9\r\n" END, 0, 400, "'\xc3\xa9' is not a host name" },
    /* Where the body ends. */
    { P "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END, 0, 400, "Content-Length and Transfer-Encoding exclude each other" },
    { P "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" END, 0, 400, "Content-Length and Transfer-Encoding exclude each other" },
    { P "Content-Length: 5\r\nContent-Length: 6\r\n" END, 0, 400, "the header Content-Length is given twice" },
    { P "Content-Length: 5\r\nContent-Length: 5\r\n" END, 0, 400, "the header Content-Length is given twice" },
    { P "Content-Length: 5, 5\r\n" END, 0, 400, "Content-Length '5, 5' is not a length" },
    { P "Content-Length: 5,6\r\n" END, 0, 400, "Content-Length '5,6' is not a length" },
    { P "Content-Length: +5\r\n" END, 0, 400, "Content-Length '+5' is not a length" },
    { P "Content-Length: -5\r\n" END, 0, 400, "Content-Length '-5' is not a length" },
    { P "Content-Length: 0x5\r\n" END, 0, 400, "Content-Length '0x5' is not a length" },
    { P "Content-Length: 5 5\r\n" END, 0, 400, "Content-Length '5 5' is not a length" },
    { P "Content-Length: 5.0\r\n" END, 0, 400, "Content-Length '5.0' is not a length" },
    { P "Content-Length:\r\n" END, 0, 400, "Content-Length '' is not a length" },
    { P "Content-Length: 9223372036854775808\r\n" END, 0, 400, "Content-Length '9223372036854775808' is not a length" },
    { P "Content-Length: 18446744073709551621\r\n" END, 0, 400, "Content-Length '18446744073709551621' is not a length" },
    { P "Transfer-Encoding: gzip, chunked\r\n" END, 0, 501, "Transfer-Encoding 'gzip, chunked' is not known, only chunked" },
    { P "Transfer-Encoding: chunked, gzip\r\n" END, 0, 501, "Transfer-Encoding 'chunked, gzip' is not known, only chunked" },
    { P "Transfer-Encoding: identity\r\n" END, 0, 501, "Transfer-Encoding 'identity' is not known, only chunked" },
    { P "Transfer-Encoding: xchunked\r\n" END, 0, 501, "Transfer-Encoding 'xchunked' is not known, only chunked" },
    { P "Transfer-Encoding: \"chunked\"\r\n" END, 0, 501, "Transfer-Encoding '\"chunked\"' is not known, only chunked" },
    { P "Transfer-Encoding: chunked;q=1\r\n" END, 0, 501, "Transfer-Encoding 'chunked;q=1' is not known, only chunked" },
    { P "Transfer-Encoding:\r\n" END, 0, 501, "Transfer-Encoding '' is not known, only chunked" },
    { P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END, 0, 400, "the header Transfer-Encoding is given twice" },
    { P "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" END, 0, 400, "the header Transfer-Encoding is given twice" },
    { "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n" END, 0, 400, "Transfer-Encoding is not part of HTTP/1.0" },
    { P "Transfer-Encoding : chunked\r\n" END, 0, 400, "header 'Transfer-Encoding' has a blank in its name or before its colon" },
    { P "Transfer-Encoding: \x0b" "chunked\r\n" END, 0, 400, "a header line has the byte 0x0b, which is not allowed" },
    /* Other headers that count once. */
    { G H "Authorization: a\r\nAuthorization: b\r\n" END, 0, 400, "the header Authorization is given twice" },
    { G H "Origin: a\r\nOrigin: a\r\n" END, 0, 400, "the header Origin is given twice" },
    { P "Expect: 200-ok\r\n" END, 0, 417, "Expect '200-ok' cannot be met" },
    /* The request line. */
    { "GET /\r\n" H END, 0, 400, "the request line is not 'method target version'" },
    { "GET\r\n" H END, 0, 400, "the request line is not 'method target version'" },
    { "GET  / HTTP/1.1\r\n" H END, 0, 400, "the request line has two blanks in a row" },
    { "GET /  HTTP/1.1\r\n" H END, 0, 400, "the request line has two blanks in a row" },
    { "GET\t/\tHTTP/1.1\r\n" H END, 0, 400, "the request line has the byte 0x09, which is not allowed" },
    { " GET / HTTP/1.1\r\n" H END, 0, 400, "the request line does not end with an HTTP version" },
    { "GET / HTTP/1.1 \r\n" H END, 0, 400, "the request line does not end with an HTTP version" },
    { "GET /a b HTTP/1.1\r\n" H END, 0, 400, "the request line does not end with an HTTP version" },
    { "GET / http/1.1\r\n" H END, 0, 400, "the request line does not end with an HTTP version" },
    { "GET / HTTP/1.10\r\n" H END, 0, 400, "the request line does not end with an HTTP version" },
    { "GET / HTTP/11\r\n" H END, 0, 400, "the request line does not end with an HTTP version" },
    { "GET / HTTP/1,1\r\n" H END, 0, 400, "the request line does not end with an HTTP version" },
    { "GET / HTTP/+1.\r\n" H END, 0, 400, "the request line does not end with an HTTP version" },
    { "GET / HTTP/0.9\r\n" H END, 0, 505, "HTTP/0.9 is not supported, only HTTP/1.1 and 1.0" },
    { "GET / HTTP/1.2\r\n" H END, 0, 505, "HTTP/1.2 is not supported, only HTTP/1.1 and 1.0" },
    { "GET / HTTP/2.0\r\n" H END, 0, 505, "HTTP/2.0 is not supported, only HTTP/1.1 and 1.0" },
    { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, 505, "HTTP/2.0 is not supported, only HTTP/1.1 and 1.0" },
    { "G(T / HTTP/1.1\r\n" H END, 0, 400, "the request line does not begin with a method" },
    { "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n" H END, 0, 501, "the method is longer than 32 bytes" },
    { "CONNECT a:443 HTTP/1.1\r\n" H END, 0, 501, "CONNECT is refused: this server is not a proxy" },
    { "GET * HTTP/1.1\r\n" H END, 0, 400, "the request target * is for OPTIONS alone" },
    { "OPTIONS *a HTTP/1.1\r\n" H END, 0, 400, "the request target begins with neither / nor http://" },
    { "GET a HTTP/1.1\r\n" H END, 0, 400, "the request target begins with neither / nor http://" },
    { "GET ftp://a/ HTTP/1.1\r\n" H END, 0, 400, "the request target begins with neither / nor http://" },
    { "GET http:/a HTTP/1.1\r\n" H END, 0, 400, "the request target begins with neither / nor http://" },
    { "GET http:/// HTTP/1.1\r\n" H END, 0, 400, "the host is empty" },
    { "GET http://u@a/ HTTP/1.1\r\n" H END, 0, 400, "'u@a' is not a host name" },
    { "GET http://b/ HTTP/1.1\r\n" H END, 0, 400, "the request target names another host than the Host header" },
    { "GET http://a:1/ HTTP/1.1\r\n" H END, 0, 400, "the request target names another host than the Host header" },
    { "GET http://a/ HTTP/1.1\r\n" END, 0, 400, "the header Host is missing" },
    { "GET http://a#/ HTTP/1.1\r\n" H END, 0, 400, "'a#' is not a host name" },
    { "GET /#a HTTP/1.1\r\n" H END, 0, 400, "the request target has the byte 0x23, which is not allowed" },
    { "GET /?a#b HTTP/1.1\r\n" H END, 0, 400, "the request target has the byte 0x23, which is not allowed" },
    { "GET /\\a HTTP/1.1\r\n" H END, 0, 400, "the request target has the byte 0x5c, which is not allowed" },
    { "GET /<a> HTTP/1.1\r\n" H END, 0, 400, "the request target has the byte 0x3c, which is not allowed" },
    { "GET /\xc3\xa9 HTTP/1.1\r\n" H END, 0, 400, "the request line has the byte 0xc3, which is not allowed" },
    { "GET /\0 HTTP/1.1\r\n" H END, sizeof("GET /\0 HTTP/1.1\r\n" H END) - 1, 400, "the request line has the byte 0x00, which is not allowed" },
    { "\x16\x03\x01\x02", 0, 400, "this looks like TLS, but this address serves plain HTTP" },
};
/* clang-format on */

static size_t len_of(const struct bad *bad)
{
    return bad->len ? bad->len : strlen(bad->text);
}

static void every_ambiguous_head_is_refused_with_its_status_and_reason(void)
{
    CHECK(sizeof bads / sizeof bads[0] >= 80);
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        struct head head;
        struct err err = { 0 };

        head_init(&head);
        CHECK_INT(head_feed(&head, bads[i].text, len_of(&bads[i]), &err), -1);
        CHECK_STR(err.msg, bads[i].why);
        CHECK_INT(head.status, bads[i].status);
    }
}

/* Byte by byte, in a buffer that moves each time: the answer comes at the same byte with any split. */
static int feed_split(struct head *head, const char *text, size_t len, size_t split,
                      struct err *err)
{
    char *moved = malloc(len);
    int r;

    head_init(head);
    memcpy(moved, text, split);
    r = split > 0 ? head_feed(head, moved, split, err) : 0;
    if (r == 0) {
        memset(moved, '?', len);
        r = head_feed(head, text, len, err);
    } else {
        head->buf = text;
    }
    free(moved);
    return r;
}

static int feed_bytes(struct head *head, const char *text, size_t len, size_t *ret_at,
                      struct err *err)
{
    int r = 0;

    head_init(head);
    for (*ret_at = 0; *ret_at < len && r == 0;)
        r = head_feed(head, text, ++*ret_at, err);
    return r;
}

static void refusals_are_the_same_wherever_the_input_is_split(void)
{
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++)
        for (size_t split = 0; split <= len_of(&bads[i]); split++) {
            struct head head;
            struct err err = { 0 };

            CHECK_INT(feed_split(&head, bads[i].text, len_of(&bads[i]), split, &err), -1);
            CHECK_STR(err.msg, bads[i].why);
            CHECK_INT(head.status, bads[i].status);
        }
}

#define FULL                                                                                       \
    "POST /v1/a%20b?x=1&y=?2 HTTP/1.1\r\nHost: Ex-ample.com:8080\r\nAccept:a,b\r\n"                \
    "X-Empty:\r\nX-Blank: \t \r\naccept: \t c , ,\"d,e\" \t\r\nContent-Length: 0012\r\n"           \
    "Expect: 100-Continue\r\nConnection: foo, Upgrade\r\nX-Text: caf\xc3\xa9 \t x\r\n\r\n"

static void check_full(const struct head *head)
{
    struct head_list list = head_list(head, "ACCEPT");
    const char *const items[] = { "a", "b", "c", "\"d,e\"" };
    struct slice item;
    size_t n = 0;

    CHECK_INT(head->method, METHOD_POST);
    CHECK(slice_is(head_method(head), "POST"));
    CHECK(slice_is(head_path(head), "/v1/a%20b"));
    CHECK(slice_is(head_query(head), "x=1&y=?2"));
    CHECK(slice_is(head_host(head), "Ex-ample.com"));
    CHECK_INT(head->port, 8080);
    CHECK_INT(head->minor, 1);
    CHECK_INT(head->body, HEAD_LENGTH);
    CHECK_INT(head->content_length, 12);
    CHECK(head->keep_alive && head->expect_continue && head->upgrade && !head->asterisk);
    CHECK_INT(head->len, sizeof FULL - 1);
    CHECK_INT(head->field_count, 9);
    CHECK_INT(head_count(head, "accept"), 2);
    CHECK_INT(head_count(head, "accepts"), 0);
    CHECK(slice_is(head_get(head, "x-empty"), "") && slice_is(head_get(head, "x-blank"), ""));
    CHECK(slice_is(head_get(head, "X-TEXT"), "caf\xc3\xa9 \t x"));
    CHECK(head_get(head, "X").at == NULL);
    CHECK(slice_is(head_field_name(head, 1), "Accept"));
    CHECK(head_has(head, "accept", "C") && !head_has(head, "accept", "d"));
    while (head_list_next(&list, &item)) {
        CHECK(n < 4 && slice_is(item, items[n]));
        n++;
    }
    CHECK_INT(n, 4);
}

static void a_head_is_the_same_wherever_it_is_split(void)
{
    static const char text[] = FULL "body of the request";
    struct err err = { 0 };
    struct head head;
    size_t at;

    for (size_t split = 0; split < sizeof text; split++) {
        CHECK_INT(feed_split(&head, text, sizeof text - 1, split, &err), 1);
        check_full(&head);
    }
    CHECK_INT(feed_bytes(&head, text, sizeof text - 1, &at, &err), 1);
    CHECK_INT(at, sizeof FULL - 1);
    check_full(&head);
}

static int feed(struct head *head, const char *text, struct err *err)
{
    head_init(head);
    return head_feed(head, text, strlen(text), err);
}

static void keep_alive_follows_version_and_connection(void)
{
    static const struct {
        const char *text;
        bool keep;
    } cases[] = {
        { G H END, true },
        { G H "Connection: close\r\n" END, false },
        { G H "Connection: CLOSE\r\n" END, false },
        { G H "Connection: foo\r\nConnection: bar,close\r\n" END, false },
        { G H "Connection: closed\r\n" END, true },
        { G H "Connection: \"close\"\r\n" END, true },
        { G H "Connection: keep-alive, close\r\n" END, false },
        { "GET / HTTP/1.0\r\n" END, false },
        { "GET / HTTP/1.0\r\n" H "Connection: Keep-Alive\r\n" END, true },
        { "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n" END, false },
    };
    struct head head;
    struct err err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(feed(&head, cases[i].text, &err), 1);
        CHECK_INT(head.keep_alive, cases[i].keep);
    }
}

static void methods_have_names_and_other_tokens_are_others(void)
{
    struct head head;
    struct err err;
    char text[64];

    for (int method = METHOD_GET; method < METHOD_COUNT; method++) {
        (void) snprintf(text, sizeof text, "%s / HTTP/1.1\r\n" H END, method_name(method));
        CHECK_INT(feed(&head, text, &err), 1);
        CHECK_INT(head.method, method);
    }
    CHECK_INT(feed(&head, "get / HTTP/1.1\r\n" H END, &err), 1);
    CHECK_INT(head.method, METHOD_OTHER);
    CHECK(slice_is(head_method(&head), "get"));
    CHECK_INT(feed(&head, "PROPFIND / HTTP/1.1\r\n" H END, &err), 1);
    CHECK_INT(head.method, METHOD_OTHER);
    CHECK_STR(method_name(METHOD_OTHER), "");
}

static void targets_come_in_three_forms(void)
{
    static const struct {
        const char *text, *path, *query, *host;
        int port;
    } cases[] = {
        { "GET / HTTP/1.1\r\n" H END, "/", NULL, "a", 0 },
        { "GET /? HTTP/1.1\r\n" H END, "/", "", "a", 0 },
        { "GET //x/../y HTTP/1.1\r\n" H END, "//x/../y", NULL, "a", 0 },
        { "GET /{a}|[b]^`?q=\\d{2} HTTP/1.1\r\n" H END, "/{a}|[b]^`", "q=\\d{2}", "a", 0 },
        { "OPTIONS * HTTP/1.1\r\n" H END, "*", NULL, "a", 0 },
        { "GET http://a HTTP/1.1\r\n" H END, "/", NULL, "a", 0 },
        { "GET HTTPS://A/b?c HTTP/1.1\r\n" H END, "/b", "c", "A", 0 },
        { "GET http://a?c HTTP/1.1\r\n" H END, "/", "c", "a", 0 },
        { "GET http://a:81/ HTTP/1.1\r\nHost: A:81\r\n" END, "/", NULL, "a", 81 },
        { "GET http://b/ HTTP/1.0\r\n" END, "/", NULL, "b", 0 },
        { "GET / HTTP/1.0\r\n" END, "/", NULL, NULL, 0 },
        { G "Host: [::1]:65535\r\n" END, "/", NULL, "[::1]", 65535 },
        { G "Host: 8000-i0abc.x_y.example.com.\r\n" END, "/", NULL, "8000-i0abc.x_y.example.com.",
          0 },
        { "\r\n" G H END, "/", NULL, "a", 0 },
    };
    struct head head;
    struct err err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(feed(&head, cases[i].text, &err), 1);
        CHECK(slice_is(head_path(&head), cases[i].path));
        CHECK(cases[i].query ? slice_is(head_query(&head), cases[i].query) : !head_query(&head).at);
        CHECK(cases[i].host ? slice_is(head_host(&head), cases[i].host) : !head_host(&head).at);
        CHECK_INT(head.port, cases[i].port);
        CHECK_INT(head.len, strlen(cases[i].text));
    }
}

static void bodies_and_expectations(void)
{
    struct head head;
    struct err err;

    CHECK_INT(feed(&head, P END, &err), 1);
    CHECK_INT(head.body, HEAD_NO_BODY);
    CHECK_INT(feed(&head, P "Transfer-Encoding: CHUNKED\r\nExpect: 100-continue\r\n" END, &err), 1);
    CHECK_INT(head.body, HEAD_CHUNKED);
    CHECK(head.expect_continue);
    CHECK_INT(feed(&head, P "Content-Length: 9223372036854775807\r\n" END, &err), 1);
    CHECK(head.content_length == INT64_MAX);
    CHECK_INT(feed(&head, P "Content-Length: 0\r\nExpect: 100-continue\r\n" END, &err), 1);
    CHECK(head.body == HEAD_LENGTH && !head.expect_continue);
    CHECK_INT(
        feed(&head, "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n" END, &err),
        1);
    CHECK(!head.expect_continue);
}

static void pipelined_requests_are_taken_one_after_the_other(void)
{
    static const char text[] = "GET /1 HTTP/1.1\r\n" H END "\r\nGET /2 HTTP/1.1\r\n" H END
                               "GET /3 HTTP/1.1\r\n" H END "GET /4 HT";
    const char *at = text, *const end = text + sizeof text - 1;
    struct head head;
    struct err err;
    unsigned n = 0;

    for (;;) {
        int r;

        head_init(&head);
        r = head_feed(&head, at, (size_t) (end - at), &err);
        if (r == 0)
            break;
        CHECK_INT(r, 1);
        n++;
        CHECK_INT(head_path(&head).at[1], '0' + (int) n);
        at += head.len;
    }
    CHECK_INT(n, 3);
    CHECK(slice_is((struct slice){ at, (size_t) (end - at) }, "GET /4 HT"));
}

/* start, `many` times `fill`, end. */
static size_t build(char *out, const char *start, size_t many, char fill, const char *end)
{
    size_t n = strlen(start);

    memcpy(out, start, n);
    memset(out + n, fill, many);
    memcpy(out + n + many, end, strlen(end));
    return n + many + strlen(end);
}

static void check_limit(const char *start, const char *end, size_t most, int status,
                        const char *why)
{
    static char text[MANY * 2];
    struct err err = { 0 };
    struct head head;
    size_t len, at;

    len = build(text, start, most, 'a', end);
    head_init(&head);
    CHECK_INT(head_feed(&head, text, len, &err), 1);
    CHECK_INT(feed_bytes(&head, text, len, &at, &err), 1);
    len = build(text, start, most + 1, 'a', end);
    head_init(&head);
    CHECK_INT(head_feed(&head, text, len, &err), -1);
    CHECK_STR(err.msg, why);
    CHECK_INT(head.status, status);
    err.msg[0] = '\0';
    CHECK_INT(feed_bytes(&head, text, len, &at, &err), -1);
    CHECK_STR(err.msg, why);
    CHECK_INT(head.status, status);
}

static void the_request_line_ends_at_its_limit(void)
{
    check_limit("GET /", " HTTP/1.1\r\n" H END, HEAD_LINE_MAX - 14, 414,
                "the request line is longer than 8192 bytes");
    check_limit("\r\nGET /", " HTTP/1.1\r\n" H END, HEAD_LINE_MAX - 14, 414,
                "the request line is longer than 8192 bytes");
}

static void the_head_ends_at_its_limit(void)
{
    check_limit(G H "X: ", "\r\n\r\n", HEAD_MAX - strlen(G H "X: \r\n\r\n"), 431,
                "the head is larger than 16384 bytes");
}

static void a_head_has_so_many_headers_and_no_more(void)
{
    char text[2048] = G H;
    struct err err = { 0 };
    struct head head;

    for (unsigned i = 0; i < HEAD_FIELDS_MAX - 1; i++)
        strcat(text, "X: y\r\n");
    strcat(text, END);
    CHECK_INT(feed(&head, text, &err), 1);
    CHECK_INT(head_count(&head, "x"), HEAD_FIELDS_MAX - 1);
    text[strlen(text) - 2] = '\0';
    strcat(text, "X: y\r\n" END);
    CHECK_INT(feed(&head, text, &err), -1);
    CHECK_STR(err.msg, "the head has more than 100 headers");
    CHECK_INT(head.status, 431);
}

static void an_endless_head_is_refused_without_its_end(void)
{
    static char text[MANY];
    struct err err = { 0 };
    struct head head;

    (void) build(text, "GET /", MANY - 20, 'a', "");
    head_init(&head);
    CHECK_INT(head_feed(&head, text, 8000, &err), 0);
    CHECK_INT(head_feed(&head, text, 8193, &err), -1);
    CHECK_INT(head.status, 414);
    (void) build(text, G "X: ", MANY - 40, 'a', "");
    head_init(&head);
    CHECK_INT(head_feed(&head, text, HEAD_MAX - 1, &err), 0);
    CHECK_INT(head_feed(&head, text, HEAD_MAX, &err), -1);
    CHECK_INT(head.status, 431);
}

CHECK_MAIN(T(every_ambiguous_head_is_refused_with_its_status_and_reason),
           T(refusals_are_the_same_wherever_the_input_is_split),
           T(a_head_is_the_same_wherever_it_is_split), T(keep_alive_follows_version_and_connection),
           T(methods_have_names_and_other_tokens_are_others), T(targets_come_in_three_forms),
           T(bodies_and_expectations), T(pipelined_requests_are_taken_one_after_the_other),
           T(the_request_line_ends_at_its_limit), T(the_head_ends_at_its_limit),
           T(a_head_has_so_many_headers_and_no_more), T(an_endless_head_is_refused_without_its_end))
