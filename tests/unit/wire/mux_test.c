#include "wire/mux.h"

#include "check.h"

static void a_head_comes_back(void)
{
    uint8_t bytes[MUX_HEAD];
    struct mux_head head;
    struct err err;

    mux_head_put(bytes, MUX_DATA, MUX_DATA_MAX, 0x01020304);
    CHECK(memcmp(bytes, "\x05\x00\x80\x00\x04\x03\x02\x01", sizeof bytes) == 0);
    CHECK_INT(mux_head_get(bytes, &head, &err), 0);
    CHECK_INT(head.type, MUX_DATA);
    CHECK_INT(head.len, MUX_DATA_MAX);
    CHECK_INT(head.stream, 0x01020304);
}

static void invalid_heads_are_refused_each_in_its_words(void)
{
    static const struct {
        const char *bytes, *refusal;
    } cases[] = {
        { "\0\0\0\0\0\0\0\0", "mux: unknown frame type 0" },
        { "\x09\0\0\0\0\0\0\0", "mux: unknown frame type 9" },
        { "\xff\0\0\0\0\0\0\0", "mux: unknown frame type 255" },
        { "\5\0\0\0\1\0\0\0", "mux: frame 'data' of 0 bytes, must have 1 to 32768" },
        { "\5\1\x80\0\1\0\0\0", "mux: frame 'data' of 32769 bytes, must have 1 to 32768" },
        { "\5\xff\xff\xff\1\0\0\0", "mux: frame 'data' of 16777215 bytes, must have 1 to 32768" },
        { "\5\1\0\0\0\0\0\0", "mux: frame 'data' of stream 0" },
        { "\2\x08\0\0\1\0\0\0", "mux: frame 'welcome' of stream 1" },
        { "\6\5\0\0\1\0\0\0", "mux: frame 'credit' of 5 bytes, must have 4 to 4" },
        { "\7\1\0\0\1\0\0\0", "mux: frame 'end' of 1 bytes, must have 0 to 0" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mux_head head = { .len = 4711 };
        struct err err;

        CHECK_INT(mux_head_get((const uint8_t *) cases[i].bytes, &head, &err), -1);
        CHECK_STR(err.msg, cases[i].refusal);
        CHECK_INT(err.kind, ERR_PROTOCOL);
        CHECK_INT(head.len, 4711);
    }
}

static void hello_comes_back_with_the_longest_name(void)
{
    struct mux_hello hello = { .epoch = 0x1122334455667788,
                               .time_ms = 1763300000000,
                               .state = { .flags = MUX_NETWORK } },
                     got;
    uint8_t bytes[MUX_HELLO_MAX];
    struct err err;
    size_t len;

    memset(hello.seed, 0xa5, sizeof hello.seed);
    memset(hello.state.name, 'n', MUX_NAME_MAX - 1);
    len = mux_hello_put(bytes, &hello);
    CHECK_INT(len, MUX_HELLO_MAX);
    CHECK_INT(mux_hello_get(bytes, len, &got, &err), 0);
    CHECK(got.epoch == hello.epoch && got.time_ms == hello.time_ms);
    CHECK(memcmp(got.seed, hello.seed, sizeof got.seed) == 0);
    CHECK_INT(got.state.flags, hello.state.flags);
    CHECK_STR(got.state.name, hello.state.name);
}

static void lies_in_hello_and_state_are_refused(void)
{
    struct mux_hello hello = { .epoch = 0 }, got;
    struct mux_state state;
    uint8_t bytes[MUX_HELLO_MAX];
    struct err err;
    size_t len = mux_hello_put(bytes, &hello);

    CHECK_INT(mux_hello_get(bytes, len, &got, &err), -1); /* an epoch that is none */
    bytes[0] = 1;
    CHECK_INT(mux_hello_get(bytes, len, &got, &err), 0);
    CHECK_INT(mux_hello_get(bytes, len - 1, &got, &err), -1);
    bytes[len - 1] = 0x80; /* an unknown flag */
    CHECK_INT(mux_hello_get(bytes, len, &got, &err), -1);
    CHECK_STR(err.msg, "mux: unknown flags in the state");
    CHECK_INT(mux_state_get((const uint8_t *) "\0a\0b", 4, &state, &err), -1);
    CHECK_INT(mux_state_get((const uint8_t *) "", 0, &state, &err), -1);
    CHECK_INT(mux_state_get((const uint8_t *) "\1host", 5, &state, &err), 0);
    CHECK_STR(state.name, "host");
    CHECK_INT(state.flags, MUX_NETWORK);
}

static void every_kind_of_stream_comes_back_and_no_other(void)
{
    static const struct mux_open opens[] = {
        { .kind = MUX_AGENT },
        { .kind = MUX_QUESTION },
        { .kind = MUX_TCP4, .port = 443, .source_port = 51234, .address = { 93, 184, 216, 34 } },
        { .kind = MUX_TCP6, .port = 1, .source_port = 65535, .address = { 0x20, 1, [15] = 9 } },
    };
    uint8_t bytes[MUX_OPEN_MAX + 1] = { 0 };
    struct mux_open got;
    struct err err;

    for (size_t i = 0; i < sizeof opens / sizeof opens[0]; i++) {
        size_t len = mux_open_put(bytes, &opens[i]);

        CHECK(len <= MUX_OPEN_MAX);
        CHECK_INT(mux_open_get(bytes, len, &got, &err), 0);
        CHECK(memcmp(&got, &opens[i], sizeof got) == 0);
        CHECK_INT(mux_open_get(bytes, len + 1, &got, &err), -1);
        CHECK_INT(mux_open_get(bytes, len - 1, &got, &err), -1);
    }
    for (int kind = 0; kind < 256; kind++) {
        bytes[0] = (uint8_t) kind;
        CHECK(mux_open_get(bytes, 1, &got, &err) == (kind == 'a' || kind == 'd' ? 0 : -1));
    }
}

CHECK_MAIN(T(a_head_comes_back), T(invalid_heads_are_refused_each_in_its_words),
           T(hello_comes_back_with_the_longest_name), T(lies_in_hello_and_state_are_refused),
           T(every_kind_of_stream_comes_back_and_no_other))
