#include "egress/http_watch.h"
#include "egress/sniff.h"

#include "base/own.h"
#include "check.h"

/* ---- TLS ---- */

static size_t put16(uint8_t *out, size_t at, size_t value)
{
    out[at] = (uint8_t) (value >> 8);
    out[at + 1] = (uint8_t) value;
    return at + 2;
}

/* A ClientHello in records of at most `record` bytes. name NULL: without the extension. */
static size_t hello(uint8_t *out, const char *name, size_t record)
{
    uint8_t body[1024] = { 1, 0, 0, 0, 3, 3 };
    size_t n = 6 + 32, extensions, done = 0, len = 0;

    body[n++] = 0;         /* no session */
    n = put16(body, n, 2); /* one cipher */
    n = put16(body, n, 0x1301);
    body[n++] = 1;
    body[n++] = 0;
    extensions = n;
    n = put16(body, n, 0);
    n = put16(body, n, 43); /* some other extension first */
    n = put16(body, n, 3);
    memcpy(body + n, "\x02\x03\x04", 3);
    n += 3;
    if (name) {
        n = put16(body, n, 0);
        n = put16(body, n, strlen(name) + 5);
        n = put16(body, n, strlen(name) + 3);
        body[n++] = 0;
        n = put16(body, n, strlen(name));
        memcpy(body + n, name, strlen(name));
        n += strlen(name);
    }
    (void) put16(body, extensions, n - extensions - 2);
    (void) put16(body, 2, n - 4);
    while (done < n) {
        size_t piece = n - done < record ? n - done : record;

        memcpy(out + len, "\x16\x03\x01", 3);
        (void) put16(out, len + 3, piece);
        memcpy(out + len + 5, body + done, piece);
        len += 5 + piece;
        done += piece;
    }
    return len;
}

static void a_hello_has_its_name(void)
{
    uint8_t data[4096];
    char name[REACH_NAME_MAX];
    size_t len = hello(data, "API.Example.com", 16384);

    CHECK_INT(sniff_first(data, len, name), SNIFF_TLS);
    CHECK_STR(name, "api.example.com");
    len = hello(data, "api.example.com", 7); /* in many records */
    CHECK_INT(sniff_first(data, len, name), SNIFF_TLS);
    CHECK_STR(name, "api.example.com");
    len = hello(data, NULL, 16384);
    CHECK_INT(sniff_first(data, len, name), SNIFF_TLS);
    CHECK_STR(name, "");
}

static void a_hello_that_is_not_whole_is_waited_for(void)
{
    uint8_t data[4096];
    char name[REACH_NAME_MAX];
    size_t len = hello(data, "api.example.com", 50);

    for (size_t i = 0; i < len; i++)
        CHECK_INT(sniff_first(data, i, name), SNIFF_MORE);
}

static void broken_hellos_are_bad(void)
{
    uint8_t data[4096];
    char name[REACH_NAME_MAX];
    size_t len = hello(data, "api.example.com", 16384);

    data[9 + 34] = 200; /* a session id longer than all */
    CHECK_INT(sniff_first(data, len, name), SNIFF_BAD);
    len = hello(data, "api example.com", 16384);
    CHECK_INT(sniff_first(data, len, name), SNIFF_BAD);
    len = hello(data, "10.0.0.1", 16384); /* allowed by the letters, and by no rule of names */
    CHECK_INT(sniff_first(data, len, name), SNIFF_TLS);
    CHECK_INT(sniff_first((const uint8_t *) "\x16\x02\x01\0\x05hello", 10, name), SNIFF_BAD);
    CHECK_INT(sniff_first((const uint8_t *) "\x16\x03\x01\xff\xff", 5, name), SNIFF_BAD);
}

/* ---- HTTP ---- */

static enum sniff http(const char *text, char name[REACH_NAME_MAX])
{
    return sniff_first((const uint8_t *) text, strlen(text), name);
}

static void a_request_has_its_host(void)
{
    char name[REACH_NAME_MAX];

    CHECK_INT(http("GET / HTTP/1.1\r\nAccept: */*\r\nhOST:  Example.com:8080 \r\n\r\nbody", name),
              SNIFF_HTTP);
    CHECK_STR(name, "example.com");
    CHECK_INT(http("GET / HTTP/1.0\r\n\r\n", name), SNIFF_HTTP);
    CHECK_STR(name, "");
    CHECK_INT(http("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", name), SNIFF_HTTP);
    CHECK_STR(name, "");
    CHECK_INT(http("SSH-2.0-x\r\n", name), SNIFF_OTHER);
    CHECK_INT(http("", name), SNIFF_MORE);
    CHECK_INT(http("PO", name), SNIFF_MORE);
    CHECK_INT(http("POST / HTTP/1.1\r\nHost: a\r\n", name), SNIFF_MORE);
}

static void requests_that_can_be_read_in_two_ways_are_bad(void)
{
    static const char *const rows[] = {
        "GET / HTTP/1.1\r\nHost: a.com\r\nHost: b.com\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.com\r\n b.com\r\n\r\n",
        "GET http://b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
        "CONNECT b.com:443 HTTP/1.1\r\nHost: a.com\r\n\r\n",
    };
    char name[REACH_NAME_MAX];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_INT(http(rows[i], name), SNIFF_BAD);
}

/* ---- the watch ---- */

static struct http_watch watch;

static ssize_t feed(const char *text)
{
    struct err err;

    return http_watch_feed(&watch, (const uint8_t *) text, strlen(text), &err);
}

#define HEAD(host)       "GET / HTTP/1.1\r\nHost: " host "\r\n\r\n"
#define POST(host, more) "POST / HTTP/1.1\r\nHost: " host "\r\n" more "\r\n\r\n"

static void all_requests_are_for_one_host(void)
{
    http_watch_init(&watch, "a.com");
    CHECK_INT(feed(HEAD("a.com") HEAD("A.com:80")),
              (ssize_t) strlen(HEAD("a.com") HEAD("A.com:80")));
    CHECK_INT(feed(HEAD("b.com")), -1);
    http_watch_init(&watch, "a.com");
    CHECK_INT(feed(POST("a.com", "Content-Length: 5") "hello" HEAD("b.com")), -1);
    http_watch_init(&watch, "a.com");
    CHECK_INT(
        feed(POST("a.com", "Transfer-Encoding: chunked") "5\r\nhello\r\n0\r\n\r\n" HEAD("b.com")),
        -1);
    http_watch_init(&watch, "a.com");
    CHECK_INT(feed(POST("a.com", "Content-Length: 5\r\nTransfer-Encoding: chunked")), -1);
}

static void a_body_may_look_like_anything(void)
{
    http_watch_init(&watch, "a.com");
    CHECK_INT(feed(POST("a.com", "Content-Length: 33") HEAD("b.com")),
              (ssize_t) strlen(POST("a.com", "Content-Length: 33") HEAD("b.com")));
}

static void nothing_of_a_head_goes_before_all_of_it_is_known(void)
{
    const char *text = HEAD("b.com");

    http_watch_init(&watch, "a.com");
    for (size_t i = 1; i < strlen(text); i++) {
        char part[64] = "";
        struct err err;

        memcpy(part, text, i);
        CHECK_INT(http_watch_feed(&watch, (const uint8_t *) part, i, &err), 0);
    }
    CHECK_INT(feed(text), -1);
}

static void a_watch_that_knows_no_name_lets_none_pass(void)
{
    http_watch_init(&watch, "");
    CHECK_INT(feed("GET / HTTP/1.0\r\n\r\n"), (ssize_t) strlen("GET / HTTP/1.0\r\n\r\n"));
    CHECK_INT(feed(HEAD("b.com")), -1);
    http_watch_init(&watch, "");
    CHECK_INT(feed(HEAD("b.com;")), -1);
}

#define UPGRADE(what)                                                                              \
    "GET / HTTP/1.1\r\nHost: a.com\r\nConnection: Upgrade\r\nUpgrade: " what "\r\n\r\n"

static bool answer(const char *text)
{
    return http_watch_answer(&watch, (const uint8_t *) text, strlen(text));
}

static void an_upgrade_counts_when_the_server_agrees(void)
{
    http_watch_init(&watch, "a.com");
    CHECK_INT(feed(UPGRADE("websocket") "frame"), (ssize_t) strlen(UPGRADE("websocket")));
    CHECK_INT(feed("frame"), 0);
    CHECK(!answer("HTTP/1.1 1"));
    CHECK(answer("01 Switching Protocols\r\n"));
    CHECK_INT(feed("\x81\x05 anything"), 11);

    http_watch_init(&watch, "a.com");
    CHECK_INT(feed(UPGRADE("websocket")), (ssize_t) strlen(UPGRADE("websocket")));
    CHECK(answer("HTTP/1.1 200 OK\r\n"));
    CHECK_INT(feed(HEAD("b.com")), -1);
}

static void other_upgrades_are_none(void)
{
    http_watch_init(&watch, "a.com");
    CHECK_INT(feed(UPGRADE("h2c") HEAD("b.com")), -1);
    http_watch_init(&watch, "a.com");
    CHECK_INT(feed(UPGRADE("h2c") "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), -1);
    /* An answer to the first request is none to the second. */
    http_watch_init(&watch, "a.com");
    CHECK_INT(feed(HEAD("a.com") UPGRADE("websocket")),
              (ssize_t) strlen(HEAD("a.com") UPGRADE("websocket")));
    CHECK(!answer("HTTP/1.1 101 x"));
    CHECK_INT(feed(HEAD("b.com")), -1);
}

static void what_servers_take_for_http_is_http(void)
{
    static const struct {
        const char *text;
        enum sniff kind;
    } rows[] = {
        { "PROPFIND / HTTP/1.1\r\nHost: b.com\r\n\r\n", SNIFF_HTTP },
        { "get / http/1.1\r\nHost: b.com\r\n\r\n", SNIFF_HTTP },
        { "GET\t/ HTTP/1.1\r\nHost: b.com\r\n\r\n", SNIFF_BAD },
        { "FOO\v/\vHTTP/1.1\r\nHost: b.com\r\n\r\n", SNIFF_BAD },
        { "\r\nGET / HTTP/1.1\r\nHost: b.com\r\n\r\n", SNIFF_BAD },
        { " GET / HTTP/1.1\r\nHost: b.com\r\n\r\n", SNIFF_BAD },
        { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SNIFF_BAD },
        { "PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\nGET / HTTP/1.1\r\n", SNIFF_BAD },
        { "GET / HTTP/1.1\r\nHost: u@b.com\r\n\r\n", SNIFF_BAD },
        { "GET / HTTP/1.1\r\nHost: b.com, c.com\r\n\r\n", SNIFF_BAD },
        { "\x15\x03\x01", SNIFF_BAD }, /* an alert, and a hello behind it */
        { "\x14\x03", SNIFF_BAD },
        { "FOO / HT", SNIFF_MORE },
        { "EHLO there\r\n", SNIFF_OTHER },
        { "SSH-2.0-OpenSSH_9.6 Debian-1\r\n", SNIFF_OTHER },
        { "{\"id\": 1}", SNIFF_OTHER },
        { "*1\r\n$4\r\nPING\r\n", SNIFF_OTHER },
        { "AMQP\x01", SNIFF_OTHER },
        { "user=me", SNIFF_OTHER },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[REACH_NAME_MAX];

        CHECK_INT(sniff_first((const uint8_t *) rows[i].text, strlen(rows[i].text), name),
                  rows[i].kind);
        CHECK_STR(name, rows[i].kind == SNIFF_HTTP ? "b.com" : "");
    }
}

CHECK_MAIN(T(a_watch_that_knows_no_name_lets_none_pass),
           T(an_upgrade_counts_when_the_server_agrees), T(other_upgrades_are_none),
           T(what_servers_take_for_http_is_http), T(a_hello_has_its_name),
           T(a_hello_that_is_not_whole_is_waited_for), T(broken_hellos_are_bad),
           T(a_request_has_its_host), T(requests_that_can_be_read_in_two_ways_are_bad),
           T(all_requests_are_for_one_host), T(a_body_may_look_like_anything),
           T(nothing_of_a_head_goes_before_all_of_it_is_known))
