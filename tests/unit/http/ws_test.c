#include "http/ws.h"

#include "base/base64.h"
#include "http/sha1.h"

#include "check.h"

#define LIMIT 100000

static void the_accept_key_is_that_of_the_rfc(void)
{
    char accept[WS_ACCEPT_SIZE], text[BASE64_SIZE(3)];
    uint8_t digest[SHA1_LEN];

    ws_accept(slice_of("dGhlIHNhbXBsZSBub25jZQ=="), accept);
    CHECK_STR(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    sha1("", 0, digest);
    CHECK(memcmp(digest,
                 "\xda\x39\xa3\xee\x5e\x6b\x4b\x0d\x32\x55\xbf\xef\x95\x60\x18\x90\xaf\xd8"
                 "\x07\x09",
                 SHA1_LEN) == 0);
    sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, digest);
    CHECK(memcmp(digest,
                 "\x84\x98\x3e\x44\x1c\x3b\xd2\x6e\xba\xae\x4a\xa1\xf9\x51\x29\xe5\xe5\x46"
                 "\x70\xf1",
                 SHA1_LEN) == 0);
    base64_put(text, (const uint8_t *) "f", 1);
    CHECK_STR(text, "Zg==");
    base64_put(text, (const uint8_t *) "fo", 2);
    CHECK_STR(text, "Zm8=");
    base64_put(text, (const uint8_t *) "foo", 3);
    CHECK_STR(text, "Zm9v");
}

#define KEY     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
#define START   "GET /chat HTTP/1.1\r\nHost: a\r\n"

static void handshakes_are_judged(void)
{
    static const struct {
        const char *text;
        unsigned status;
        const char *why;
    } cases[] = {
        { START UPGRADE KEY VERSION "\r\n", 101, NULL },
        { START "upgrade: h2c, WebSocket\r\nconnection: UPGRADE\r\n" KEY VERSION "\r\n", 101,
          NULL },
        { START KEY VERSION "\r\n", 426, "this is a WebSocket: Upgrade: websocket is missing" },
        { START "Upgrade: websocket\r\n" KEY VERSION "\r\n", 426,
          "this is a WebSocket: Upgrade: websocket is missing" },
        { "GET / HTTP/1.0\r\nHost: a\r\n" UPGRADE KEY VERSION "\r\n", 426,
          "this is a WebSocket: Upgrade: websocket is missing" },
        { START UPGRADE KEY "Sec-WebSocket-Version: 8\r\n\r\n", 426,
          "Sec-WebSocket-Version is not 13" },
        { START UPGRADE KEY "\r\n", 426, "Sec-WebSocket-Version is not 13" },
        { "POST / HTTP/1.1\r\nHost: a\r\n" UPGRADE KEY VERSION "\r\n", 400,
          "a WebSocket begins with GET" },
        { START "Content-Length: 1\r\n" UPGRADE KEY VERSION "\r\n", 400,
          "a WebSocket does not begin with a body" },
        { START UPGRADE VERSION "\r\n", 400,
          "Sec-WebSocket-Key is not one key of 16 bytes in base64" },
        { START UPGRADE KEY KEY VERSION "\r\n", 400,
          "Sec-WebSocket-Key is not one key of 16 bytes in base64" },
        { START UPGRADE "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZB==\r\n" VERSION "\r\n", 400,
          "Sec-WebSocket-Key is not one key of 16 bytes in base64" },
        { START UPGRADE "Sec-WebSocket-Key: abc\r\n" VERSION "\r\n", 400,
          "Sec-WebSocket-Key is not one key of 16 bytes in base64" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char accept[WS_ACCEPT_SIZE];
        unsigned status = 0;
        struct head head;
        struct err err = { 0 };
        int r;

        head_init(&head);
        CHECK_INT(head_feed(&head, cases[i].text, strlen(cases[i].text), &err), 1);
        r = ws_handshake(&head, accept, &status, &err);
        CHECK_INT(status, cases[i].status);
        CHECK_INT(r, cases[i].why ? -1 : 0);
        if (cases[i].why)
            CHECK_STR(err.msg, cases[i].why);
        else
            CHECK_STR(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}

/* All events of an input, as text: "T<..>" a text's piece with [ first and ] last, and so on. With
 * pieces joined, so that the same input gives the same text however it is split. */
static int play(const char *in, size_t len, size_t step, uint64_t max, char *log,
                uint16_t *ret_code, struct err *err)
{
    struct ws_reader reader;
    char piece[1024];
    size_t at = 0;

    ws_reader_init(&reader, max);
    log[0] = '\0';
    while (at < len) {
        size_t n = len - at < step ? len - at : step, used = 0, done = 0;

        memcpy(piece, in + at, n);
        while (done < n) {
            struct ws_event event;
            int r = ws_read(&reader, piece + done, n - done, &used, &event, err);

            *ret_code = reader.close_code;
            if (r < 0)
                return -1;
            done += used;
            if (r == 0) {
                CHECK_INT(done, n);
                continue;
            }
            if (event.first)
                strcat(log, event.op == WS_TEXT ? "T[" : "B[");
            if (event.op >= WS_CLOSE)
                strcat(log, event.op == WS_PING   ? "<ping "
                            : event.op == WS_PONG ? "<pong "
                                                  : "<close ");
            if (event.op == WS_CLOSE)
                (void) sprintf(log + strlen(log), "%d ", event.code);
            strncat(log, event.data.at ? event.data.at : "", event.data.len);
            if (event.last)
                strcat(log, "]");
            if (event.op >= WS_CLOSE)
                strcat(log, ">");
        }
        at += n;
    }
    return 0;
}

#define M0 "\x00\x00\x00\x00" /* a mask that changes nothing keeps the cases readable */

struct frames {
    const char *in;
    size_t len;
    const char *log;
    int code; /* 0: accepted */
    const char *why;
};
#define IN(text) text, sizeof(text) - 1

static const struct frames frames[] = {
    /* RFC 6455, section 5.7: a masked "Hello". */
    { IN("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "T[Hello]", 0, NULL },
    { IN("\x89\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "<ping Hello>", 0, NULL },
    { IN("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "<pong Hello>", 0, NULL },
    { IN("\x01\x83" M0 "Hel\x80\x82" M0 "lo"), "T[Hello]", 0, NULL },
    { IN("\x01\x83" M0 "Hel\x89\x81" M0 "!\x00\x80" M0 "\x80\x82" M0 "lo"), "T[Hel<ping !>lo]", 0,
      NULL },
    { IN("\x82\x80" M0 "\x81\x80" M0), "B[]T[]", 0, NULL },
    { IN("\x89\x80" M0), "<ping >", 0, NULL },
    { IN("\x88\x80" M0), "<close 1005 >", 0, NULL },
    { IN("\x88\x82" M0 "\x03\xe8"), "<close 1000 >", 0, NULL },
    { IN("\x88\x85" M0 "\x0b\xb8"
         "bye"),
      "<close 3000 bye>", 0, NULL },
    { IN("\x88\x80" M0 "what follows is dropped"), "<close 1005 >", 0, NULL },
    { IN("\x01\x81" M0 "\xc3\x80\x81" M0 "\xa9"), "T[\xc3\xa9]", 0, NULL },
    /* Refused. */
    { IN("\x81\x05Hello"), NULL, 1002, "WebSocket: a client's frame is not masked" },
    { IN("\xc1\x80" M0), NULL, 1002, "WebSocket: a reserved bit is set" },
    { IN("\xa1\x80" M0), NULL, 1002, "WebSocket: a reserved bit is set" },
    { IN("\x91\x80" M0), NULL, 1002, "WebSocket: a reserved bit is set" },
    { IN("\x83\x80" M0), NULL, 1002, "WebSocket: opcode 3 is not known" },
    { IN("\x8b\x80" M0), NULL, 1002, "WebSocket: opcode 11 is not known" },
    { IN("\x8f\x80" M0), NULL, 1002, "WebSocket: opcode 15 is not known" },
    { IN("\x09\x80" M0), NULL, 1002, "WebSocket: a control frame is fragmented" },
    { IN("\x08\x80" M0), NULL, 1002, "WebSocket: a control frame is fragmented" },
    { IN("\x89\xfe\x00\x7e" M0), NULL, 1002,
      "WebSocket: a control frame is longer than 125 bytes" },
    { IN("\x80\x80" M0), NULL, 1002, "WebSocket: a continuation without a message" },
    { IN("\x81\x80" M0 "\x80\x80" M0), NULL, 1002, "WebSocket: a continuation without a message" },
    { IN("\x01\x80" M0 "\x81\x80" M0), NULL, 1002, "WebSocket: a message begins inside another" },
    { IN("\x82\xfe\x00\x05" M0 "Hello"), NULL, 1002,
      "WebSocket: a length is not in its shortest form" },
    { IN("\x82\xfe\x00\x7d" M0), NULL, 1002, "WebSocket: a length is not in its shortest form" },
    { IN("\x82\xff\x00\x00\x00\x00\x00\x00\xff\xff" M0), NULL, 1002,
      "WebSocket: a length is not in its shortest form" },
    { IN("\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00" M0), NULL, 1002,
      "WebSocket: a length has its highest bit set" },
    { IN("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" M0), NULL, 1009,
      "WebSocket: a message is larger than allowed" },
    { IN("\x82\xff\x00\x00\x00\x00\x00\x01\x86\xa1" M0), NULL, 1009,
      "WebSocket: a message is larger than allowed" },
    { IN("\x02\x81" M0 "a\x80\xff\x00\x00\x00\x00\x00\x01\x86\xa0" M0), NULL, 1009,
      "WebSocket: a message is larger than allowed" },
    { IN("\x81\x81" M0 "\xff"), NULL, 1007, "WebSocket: a text is not UTF-8" },
    { IN("\x81\x81" M0 "\xc3"), NULL, 1007, "WebSocket: a text is not UTF-8" },
    { IN("\x01\x81" M0 "\xc3\x80\x80" M0), NULL, 1007, "WebSocket: a text is not UTF-8" },
    { IN("\x01\x83" M0 "\xed\xa0\x80"), NULL, 1007, "WebSocket: a text is not UTF-8" },
    { IN("\x88\x81" M0 "\x03"), NULL, 1002, "WebSocket: a close frame has half a code" },
    { IN("\x88\x82" M0 "\x00\x00"), NULL, 1002, "WebSocket: a close frame has an invalid code" },
    { IN("\x88\x82" M0 "\x03\xed"), NULL, 1002, "WebSocket: a close frame has an invalid code" },
    { IN("\x88\x83" M0 "\x03\xe8\xff"), NULL, 1007,
      "WebSocket: the reason of a close is not UTF-8" },
};

static void frames_are_read_or_refused_however_they_are_split(void)
{
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
        for (size_t step = 1; step <= frames[i].len; step++) {
            struct err err = { 0 };
            uint16_t code = 0;
            char log[256];
            int r = play(frames[i].in, frames[i].len, step, LIMIT, log, &code, &err);

            CHECK_INT(r, frames[i].log ? 0 : -1);
            CHECK_INT(code, frames[i].code);
            CHECK_STR(frames[i].log ? log : err.msg, frames[i].log ? frames[i].log : frames[i].why);
        }
}

static void masks_are_undone_at_any_offset(void)
{
    static const uint8_t mask[4] = { 0x37, 0xfa, 0x21, 0x3d };
    char text[64], masked[64];

    for (unsigned i = 0; i < sizeof text; i++) {
        text[i] = (char) (i * 7);
        masked[i] = (char) ((uint8_t) text[i] ^ mask[i % 4]);
    }
    for (size_t cut = 0; cut <= sizeof text; cut++) {
        char got[64];

        memcpy(got, masked, sizeof got);
        ws_unmask(got, cut, mask, 0);
        ws_unmask(got + cut, sizeof got - cut, mask, cut);
        CHECK(memcmp(got, text, sizeof got) == 0);
    }
}

static void heads_of_frames_have_the_shortest_length(void)
{
    static const struct {
        uint64_t len;
        size_t size;
        const char *bytes;
    } cases[] = {
        { 0, 2, "\x82\x00" },
        { 125, 2, "\x82\x7d" },
        { 126, 4, "\x82\x7e\x00\x7e" },
        { 256, 4, "\x82\x7e\x01\x00" }, /* RFC 6455, section 5.7 */
        { 65535, 4, "\x82\x7e\xff\xff" },
        { 65536, 10, "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00" }, /* and this */
    };
    char out[WS_OUT_HEAD_MAX];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(ws_frame_put(out, WS_BINARY, true, cases[i].len), cases[i].size);
        CHECK(memcmp(out, cases[i].bytes, cases[i].size) == 0);
    }
    (void) ws_frame_put(out, WS_TEXT, false, 3);
    CHECK(memcmp(out, "\x01\x03", 2) == 0);
}

static void close_frames_are_whole(void)
{
    char out[WS_CLOSE_FRAME_MAX], reason[200];

    CHECK_INT(ws_close_put(out, WS_CODE_NORMAL, "bye"), 7);
    CHECK(memcmp(out,
                 "\x88\x05\x03\xe8"
                 "bye",
                 7) == 0);
    CHECK_INT(ws_close_put(out, WS_CODE_NONE, "bye"), 2);
    CHECK(memcmp(out, "\x88\x00", 2) == 0);
    CHECK_INT(ws_close_put(out, WS_CODE_PROTOCOL, NULL), 4);
    memset(reason, 'a', 122);
    (void) strcpy(reason + 122, "\xe2\x82\xac\xe2\x82\xac");
    CHECK_INT(ws_close_put(out, WS_CODE_POLICY, reason), 4 + 122);
    CHECK_INT(out[1], 124);
}

static void codes_are_those_that_may_be_sent(void)
{
    static const unsigned good[] = { 1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 4999 };
    static const unsigned bad[] = { 0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535 };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK(ws_code_ok(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!ws_code_ok(bad[i]));
}

CHECK_MAIN(T(the_accept_key_is_that_of_the_rfc), T(handshakes_are_judged),
           T(frames_are_read_or_refused_however_they_are_split), T(masks_are_undone_at_any_offset),
           T(heads_of_frames_have_the_shortest_length), T(close_frames_are_whole),
           T(codes_are_those_that_may_be_sent))
