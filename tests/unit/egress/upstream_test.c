#include "egress/connect.h"
#include "egress/socks5.h"
#include "egress/upstream.h"

#include "base/own.h"
#include "check.h"
#include "egress/ip.h"

static struct upstream proxy(const char *text, const char *user, const char *password)
{
    struct upstream u;
    struct err err;

    CHECK(upstream_parse(text, &u, &err) == 0);
    CHECK(upstream_set_login(&u, user, password, &err) == 0);
    return u;
}

static void what_is_no_proxy_is_refused(void)
{
    static const char *const rows[] = {
        "",
        "proxy:1080",
        "ftp://proxy:1080",
        "socks5://proxy",
        "socks5://proxy:",
        "socks5://proxy:0",
        "socks5://proxy:65536",
        "socks5://:1080",
        "socks5://pro xy:1080",
        "socks5://2001:db8::1:1080",
        "socks5://[proxy]:1080",
        "socks5://[]:1080",
        "http://user:word@proxy:1080",
        "http://proxy:80/",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa://proxy:1",
    };
    struct upstream u;
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK(upstream_parse(rows[i], &u, &err) == -1);
    CHECK(upstream_parse("http://user:word@proxy:1080", &u, &err) == -1);
    CHECK(!strstr(err.msg, "word"));
}

static void a_proxy_is_shown_as_it_was_named(void)
{
    static const struct {
        const char *text, *address;
    } rows[] = {
        { "socks5://Proxy.Example.com:1080", "proxy.example.com:1080" },
        { "http://203.0.113.7:3128", "203.0.113.7:3128" },
        { "http://[2001:DB8::1]:3128", "[2001:db8::1]:3128" },
        { "http://[::ffff:10.0.0.1]:1", "10.0.0.1:1" },
    };
    char text[UPSTREAM_ADDRESS_MAX];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct upstream u = proxy(rows[i].text, "u", "p");

        upstream_address(&u, text);
        CHECK_STR(text, rows[i].address);
    }
}

static void two_proxies_are_the_same_with_all_they_have(void)
{
    struct upstream a = proxy("socks5://a:1", "u", "p"), b = proxy("socks5://a:1", "u", "q");

    CHECK(upstream_same(&a, &a));
    CHECK(!upstream_same(&a, &b));
    b = a;
    b.trusted = true;
    CHECK(!upstream_same(&a, &b));
}

static void socks5_says_what_the_standard_says(void)
{
    struct upstream open = proxy("socks5://a:1", NULL, NULL),
                    u = proxy("socks5://a:1", "me", "xyz");
    uint8_t out[SOCKS5_SAY_MAX];
    struct ip ip;

    CHECK(socks5_greeting(&open, out) == 3 && memcmp(out, "\5\1\0", 3) == 0);
    CHECK(socks5_greeting(&u, out) == 4 && memcmp(out, "\5\2\0\2", 4) == 0);
    CHECK(socks5_login(&u, out) == 8 && memcmp(out, "\1\2me\3xyz", 8) == 0);
    CHECK(socks5_request("a.com", NULL, 443, out) == 12 &&
          memcmp(out, "\5\1\0\3\5a.com\1\xbb", 12) == 0);
    CHECK(ip_parse("10.1.2.3", &ip));
    CHECK(socks5_request(NULL, &ip, 80, out) == 10 &&
          memcmp(out, "\5\1\0\1\12\1\2\3\0\120", 10) == 0);
    CHECK(ip_parse("2001:db8::1", &ip));
    CHECK(socks5_request(NULL, &ip, 80, out) == 22 && out[3] == 4 && out[4] == 0x20 &&
          out[19] == 1);
}

static void socks5_reads_answers_however_they_come(void)
{
    static const uint8_t name[] = "\5\0\0\3\3abc\0\1rest";
    bool login = true;
    size_t used = 0;
    struct err err;

    CHECK(socks5_method((const uint8_t *) "\5", 1, true, &login, &used, &err) == 0);
    CHECK(socks5_method((const uint8_t *) "\5\2x", 3, true, &login, &used, &err) == 1);
    CHECK(login && used == 2);
    CHECK(socks5_method((const uint8_t *) "\5\2", 2, false, &login, &used, &err) == -1);
    CHECK_STR(err.msg, "it wants a login");
    CHECK(socks5_method((const uint8_t *) "\5\1", 2, true, &login, &used, &err) == -1);
    CHECK(socks5_method((const uint8_t *) "H", 1, true, &login, &used, &err) == -1);
    CHECK_STR(err.msg, "it does not speak SOCKS5");
    CHECK(socks5_verdict((const uint8_t *) "\1\0", 2, &used, &err) == 1);
    CHECK(socks5_verdict((const uint8_t *) "\1\7", 2, &used, &err) == -1);
    CHECK(socks5_verdict((const uint8_t *) "\5", 1, &used, &err) == -1);
    for (size_t len = 0; len < 10; len++)
        CHECK(socks5_reply(name, len, &used, &err) == 0);
    CHECK(socks5_reply(name, 14, &used, &err) == 1 && used == 10);
    CHECK(socks5_reply((const uint8_t *) "\5\2", 2, &used, &err) == -1);
    CHECK_STR(err.msg, "its rules do not allow it");
    CHECK(socks5_reply((const uint8_t *) "\5\xff", 2, &used, &err) == -1);
    CHECK_STR(err.msg, "it refused");
    CHECK(socks5_reply((const uint8_t *) "\5\0\0\2\0", 5, &used, &err) == -1);
}

static void http_is_asked_to_connect(void)
{
    struct upstream open = proxy("http://a:1", NULL, NULL), u = proxy("http://a:1", "me", "a:b");
    char out[CONNECT_SAY_MAX];
    struct ip ip;
    size_t len = connect_request(&open, "a.com", NULL, 443, out);

    out[len] = '\0';
    CHECK_STR(out, "CONNECT a.com:443 HTTP/1.1\r\nHost: a.com:443\r\n\r\n");
    CHECK(ip_parse("2001:db8::1", &ip));
    len = connect_request(&u, NULL, &ip, 80, out);
    out[len] = '\0';
    CHECK_STR(out, "CONNECT [2001:db8::1]:80 HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n"
                   "Proxy-Authorization: Basic bWU6YTpi\r\n\r\n");
}

static void the_longest_request_fits(void)
{
    struct upstream u = proxy("http://a:1", NULL, NULL);
    char out[CONNECT_SAY_MAX], name[UPSTREAM_HOST_MAX];
    uint8_t say[SOCKS5_SAY_MAX];

    memset(u.user, 'u', UPSTREAM_LOGIN_MAX - 1);
    memset(u.password, 'p', UPSTREAM_LOGIN_MAX - 1);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK(connect_request(&u, name, NULL, 65535, out) < CONNECT_SAY_MAX);
    CHECK(socks5_login(&u, say) <= SOCKS5_SAY_MAX);
    CHECK(socks5_request(name, NULL, 65535, say) <= SOCKS5_SAY_MAX);
}

static int reply_to(const char *text, size_t *ret_used, struct err *err)
{
    struct reply reply;

    reply_init(&reply);
    return connect_reply(&reply, (const uint8_t *) text, strlen(text), ret_used, err);
}

static void http_answers_are_read_strictly(void)
{
    static char endless[CONNECT_REPLY_MAX + 64];
    struct err err;
    size_t used = 0;

    CHECK(reply_to("HTTP/1.0 200 OK\r\n\r\n220 hello", &used, &err) == 1 && used == 19);
    CHECK(reply_to("HTTP/1.1 200 OK\r\nX: y\r\n", &used, &err) == 0);
    CHECK(reply_to("HTTP/1.1 407 No\r\n\r\n", &used, &err) == -1);
    CHECK_STR(err.msg, "it does not take the login (407)");
    CHECK(reply_to("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", &used, &err) == -1);
    CHECK_STR(err.msg, "it refused (302)");
    CHECK(reply_to("HTTP/1.1 101 Switching\r\n\r\n", &used, &err) == -1);
    CHECK(reply_to("\5\0", &used, &err) == -1);
    CHECK_STR(err.msg, "its answer is not HTTP");
    memset(endless, 'x', sizeof endless - 1);
    memcpy(endless, "HTTP/1.1 200 OK\r\nX: ", 20);
    CHECK(reply_to(endless, &used, &err) == -1);
    CHECK_STR(err.msg, "its answer does not end");
}

CHECK_MAIN(T(what_is_no_proxy_is_refused), T(a_proxy_is_shown_as_it_was_named),
           T(two_proxies_are_the_same_with_all_they_have), T(socks5_says_what_the_standard_says),
           T(socks5_reads_answers_however_they_come), T(http_is_asked_to_connect),
           T(the_longest_request_fits), T(http_answers_are_read_strictly))
