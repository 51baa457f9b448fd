#include "http/proxy.h"

#include "check.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

static int feed(const char *data, size_t len, struct proxy *proxy, struct err *err)
{
    err->msg[0] = '\0';
    return proxy_feed(data, len, proxy, err);
}

static void version_1_is_read(void)
{
    static const char four[] = "PROXY TCP4 192.0.2.7 127.0.0.1 40000 443\r\nGET /";
    static const char six[] = "PROXY TCP6 2001:db8::1 ::1 1 65535\r\n";
    struct proxy proxy;
    struct err err;

    CHECK_INT(feed(four, sizeof four - 1, &proxy, &err), 1);
    CHECK_INT(proxy.family, PROXY_IPV4);
    CHECK(memcmp(proxy.source, "\xc0\x00\x02\x07", 4) == 0);
    CHECK_INT(proxy.port, 40000);
    CHECK_STR(four + proxy.len, "GET /");
    CHECK_INT(feed(six, sizeof six - 1, &proxy, &err), 1);
    CHECK_INT(proxy.family, PROXY_IPV6);
    CHECK_INT(proxy.source[0], 0x20);
    CHECK_INT(proxy.source[15], 1);
    CHECK_INT(feed("PROXY UNKNOWN whatever\r\n", 24, &proxy, &err), 1);
    CHECK_INT(proxy.family, PROXY_UNKNOWN);
    CHECK_INT(feed("PROXY UNKNOWN\r\n", 15, &proxy, &err), 1);
}

static void version_2_is_read(void)
{
    static const char four[] =
        SIGNATURE "\x21\x11\0\x0f\xc0\0\2\7\x7f\0\0\1\x9c\x40\x01\xbb\x04\0\0rest";
    static const char six[] = SIGNATURE "\x21\x21\0\x24"
                                        "\x20\1\r\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
                                        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
                                        "\0\1\0\2";
    static const char local[] = SIGNATURE "\x20\0\0\0", unix_socket[] = SIGNATURE "\x21\x31\0\1x";
    struct proxy proxy;
    struct err err;

    CHECK_INT(feed(four, sizeof four - 1, &proxy, &err), 1);
    CHECK_INT(proxy.family, PROXY_IPV4);
    CHECK(memcmp(proxy.source, "\xc0\x00\x02\x07", 4) == 0);
    CHECK_INT(proxy.port, 40000);
    CHECK_STR(four + proxy.len, "rest"); /* behind the extension */
    CHECK_INT(feed(six, sizeof six - 1, &proxy, &err), 1);
    CHECK_INT(proxy.family, PROXY_IPV6);
    CHECK_INT(proxy.source[15], 1);
    CHECK_INT(proxy.port, 1);
    CHECK_INT(feed(local, sizeof local - 1, &proxy, &err), 1);
    CHECK_INT(proxy.family, PROXY_UNKNOWN);
    CHECK_INT(feed(unix_socket, sizeof unix_socket - 1, &proxy, &err), 1);
    CHECK_INT(proxy.family, PROXY_UNKNOWN);
}

static void every_prefix_of_a_preamble_wants_more(void)
{
    static const struct {
        const char *at;
        size_t len;
    } whole[] = {
        { "PROXY TCP4 192.0.2.7 127.0.0.1 40000 443\r\n", 42 },
        { SIGNATURE "\x21\x11\0\x0c\xc0\0\2\7\x7f\0\0\1\x9c\x40\x01\xbb", 28 },
    };
    struct proxy proxy;
    struct err err;

    for (size_t i = 0; i < 2; i++) {
        for (size_t n = 0; n < whole[i].len; n++)
            CHECK_INT(feed(whole[i].at, n, &proxy, &err), 0);
        CHECK_INT(feed(whole[i].at, whole[i].len, &proxy, &err), 1);
        CHECK_INT(proxy.len, whole[i].len);
    }
}

static void what_is_no_preamble_is_refused_at_once(void)
{
#define TEXT(s) s, sizeof(s) - 1
    static const struct {
        const char *at;
        size_t len;
        const char *why;
    } cases[] = {
        { TEXT("G"), "the PROXY preamble is missing" },
        { TEXT("GET / HTTP/1.1\r\n"), "the PROXY preamble is missing" },
        { TEXT("PROXYTCP4"), "the PROXY preamble is missing" },
        { TEXT("\x16\x03\x01"), "the PROXY preamble is missing" },
        { TEXT("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n"),
          "the PROXY preamble does not end with CR and LF" },
        { TEXT("PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n"),
          "the PROXY preamble is neither of TCP4, TCP6 nor UNKNOWN" },
        { TEXT("PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n"), "the PROXY preamble has an invalid address" },
        { TEXT("PROXY TCP4 ::1 ::1 1 2\r\n"), "the PROXY preamble has an invalid address" },
        { TEXT("PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n"),
          "the PROXY preamble has an invalid address" },
        { TEXT("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n"), "the PROXY preamble has an invalid address" },
        { TEXT("PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n"), "the PROXY preamble has an invalid port" },
        { TEXT("PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n"),
          "the PROXY preamble has an invalid port" },
        { TEXT("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n"), "the PROXY preamble has an invalid port" },
        { TEXT(SIGNATURE "\x11"),
          "the PROXY preamble has a version or a command that is not known" },
        { TEXT(SIGNATURE "\x22"),
          "the PROXY preamble has a version or a command that is not known" },
        { TEXT(SIGNATURE "\x21\x11\0\x0b\0\0\0\0\0\0\0\0\0\0\0"),
          "the PROXY preamble is too short for its addresses" },
        { TEXT(SIGNATURE "\x21\x21\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0"),
          "the PROXY preamble is too short for its addresses" },
        { TEXT(SIGNATURE "\x21\x11\x10\x01"), "the PROXY preamble is too long" },
    };
    char line[200];
    struct proxy proxy;
    struct err err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(feed(cases[i].at, cases[i].len, &proxy, &err), -1);
        CHECK_STR(err.msg, cases[i].why);
    }
    memset(line, 'x', sizeof line);
    memcpy(line, "PROXY UNKNOWN ", 14);
    CHECK_INT(feed(line, 106, &proxy, &err), 0);
    CHECK_INT(feed(line, 107, &proxy, &err), -1);
    CHECK_STR(err.msg, "the PROXY preamble is a line that is too long");
}

CHECK_MAIN(T(version_1_is_read), T(version_2_is_read), T(every_prefix_of_a_preamble_wants_more),
           T(what_is_no_preamble_is_refused_at_once))
