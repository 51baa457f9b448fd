#include "wire/agent.h"

#include "base/own.h"
#include "check.h"

/* Encodes, and decodes as an agent would. The bytes live in `buf`. */
static int pass(const struct agent_request *in, struct agent_request *out, struct err *err)
{
    static uint8_t buf[1 << 20];
    ssize_t n = agent_request_encode(in, buf, sizeof buf, err);

    return n < 0 ? -1 : agent_request_decode(out, buf, (size_t) n, err);
}

static void every_op_has_a_name(void)
{
    for (size_t i = 0; i < AGENT_OP_COUNT; i++)
        CHECK(agent_ops[i].name && agent_ops[i].name[0]);
}

static void tags_are_unique_and_limits_are_there(void)
{
    const struct field *tables[] = { agent_request_fields, agent_reply_fields };
    const size_t counts[] = { agent_request_field_count, agent_reply_field_count };

    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < counts[t]; i++) {
            const struct field *f = &tables[t][i];

            CHECK(f->name && f->name[0]);
            if (f->type == FIELD_TEXT || f->type == FIELD_LIST || f->type == FIELD_BYTES)
                CHECK(f->most > 0);
            for (size_t k = 0; k < i; k++)
                CHECK(tables[t][k].tag != f->tag && tables[t][k].offset != f->offset);
        }
}

static void refusals_name_what_is_wrong(void)
{
    static const struct {
        struct agent_request request;
        enum err_kind kind;
        const char *refusal;
    } cases[] = {
        { { .version = 2, .op = AGENT_INFO }, ERR_PROTOCOL, "version 2, this agent speaks 1" },
        { { .version = 1 }, ERR_PROTOCOL, "unknown operation 0" },
        { { .version = 1, .op = AGENT_OP_COUNT }, ERR_PROTOCOL, "unknown operation 30" },
        { { .version = 1, .op = AGENT_INFO, .flags = AGENT_PTY },
          ERR_INVALID,
          "info: unknown flags 0x1" },
        { { .version = 1, .op = AGENT_STAT, .path = "/x", .flags = AGENT_RECURSIVE },
          ERR_INVALID,
          "stat: unknown flags 0x40" },
        { { .version = 1, .op = AGENT_EXEC, .flags = AGENT_FLAG_ALL + 1 },
          ERR_INVALID,
          "flags: 8388608 is over 8388607" },
        { { .version = 1, .op = AGENT_STAT }, ERR_INVALID, "stat: path is missing" },
        { { .version = 1, .op = AGENT_STAT, .path = "" }, ERR_INVALID, "stat: path is missing" },
        { { .version = 1, .op = AGENT_EXEC },
          ERR_INVALID,
          "exec: takes a command or args, one of them" },
        { { .version = 1, .op = AGENT_EXEC, .command = "x", .args = { "x", 2, 1 } },
          ERR_INVALID,
          "exec: takes a command or args, one of them" },
        { { .version = 1, .op = AGENT_ATTACH }, ERR_INVALID, "attach: proc is missing" },
        { { .version = 1, .op = AGENT_SIGNAL }, ERR_INVALID, "signal: proc is missing" },
        { { .version = 1, .op = AGENT_SIGNAL, .proc = 1, .signal = 65 },
          ERR_INVALID,
          "signal: 65 is over 64" },
        { { .version = 1, .op = AGENT_MOVE, .path = "/x" }, ERR_INVALID, "move: to is missing" },
        { { .version = 1, .op = AGENT_CHMOD, .path = "/x" },
          ERR_INVALID,
          "chmod: mode is missing" },
        { { .version = 1, .op = AGENT_CHMOD, .path = "/x", .mode = 0x20000 },
          ERR_INVALID,
          "mode: 131072 is over 69631" },
        { { .version = 1, .op = AGENT_CHOWN, .path = "/x" },
          ERR_INVALID,
          "chown: owner or group is missing" },
        { { .version = 1, .op = AGENT_XATTR_GET, .path = "/x" },
          ERR_INVALID,
          "xattr-get: name is missing" },
        { { .version = 1, .op = AGENT_GLOB, .path = "/x" },
          ERR_INVALID,
          "glob: pattern is missing" },
        { { .version = 1, .op = AGENT_GREP, .path = "/x" },
          ERR_INVALID,
          "grep: pattern is missing" },
        { { .version = 1, .op = AGENT_DIAL }, ERR_INVALID, "dial: port is missing" },
        { { .version = 1, .op = AGENT_DIAL, .port = 65536 },
          ERR_INVALID,
          "port: 65536 is over 65535" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct agent_request out;
        struct err err = { 0 };

        CHECK_INT(pass(&cases[i].request, &out, &err), -1);
        CHECK_STR(err.msg, cases[i].refusal);
        CHECK_INT(err.kind, cases[i].kind);
    }
}

static void a_path_that_is_too_long_is_not_sent(void)
{
    static char path[AGENT_PATH_MAX + 1];
    struct agent_request request = { .version = 1, .op = AGENT_STAT, .path = path }, out;
    struct err err;

    memset(path, 'p', AGENT_PATH_MAX);
    CHECK_INT(pass(&request, &out, &err), -1);
    CHECK_STR(err.msg, "path: too long");
    path[AGENT_PATH_MAX - 1] = '\0';
    CHECK_INT(pass(&request, &out, &err), 0);
    CHECK_STR(out.path, path);
}

static void an_exec_comes_back_whole(void)
{
    struct agent_request request = { .version = 1,
                                     .op = AGENT_EXEC,
                                     .flags = AGENT_PTY | AGENT_STDIN,
                                     .user = "root",
                                     .args = { "echo\0hi", 8, 0 },
                                     .env = { "A=1\0B=", 7, 0 },
                                     .cwd = "/tmp",
                                     .rows = 24,
                                     .columns = 80,
                                     .timeout_ms = 60000 };
    struct agent_request out;
    struct err err;

    CHECK_INT(pass(&request, &out, &err), 0);
    CHECK_INT(out.args.count, 2);
    CHECK_STR(texts_next(&out.args, texts_next(&out.args, NULL)), "hi");
    CHECK_INT(out.env.count, 2);
    CHECK_STR(out.user, "root");
    CHECK_STR(out.cwd, "/tmp");
    CHECK(out.rows == 24 && out.columns == 80 && out.timeout_ms == 60000);
    CHECK(out.command == NULL);
}

static void replies_are_bounded_too(void)
{
    static const struct {
        struct agent_reply reply;
        const char *refusal;
    } cases[] = {
        { { .type = ENTRY_BLOCK + 1 }, "type: 8 is over 7" },
        { { .mode = 010000 }, "mode: 4096 is over 4095" },
        { { .ended = EXIT_COUNT }, "ended: 7 is over 6" },
        { { .exit_code = 256 }, "exit_code: 256 is over 255" },
        { { .event = EVENT_OVERFLOW + 1 }, "event: 7 is over 6" },
        { { .port = 70000 }, "port: 70000 is over 65535" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct agent_reply out;
        uint8_t buf[256];
        struct err err;
        ssize_t n = agent_reply_encode(&cases[i].reply, buf, sizeof buf, &err);

        CHECK_INT(agent_reply_decode(&out, buf, (size_t) n, &err), -1);
        CHECK_STR(err.msg, cases[i].refusal);
    }
}

/* What a guest says of its kernel is added to the host's count, and becomes a number of JSON. */
static void a_count_of_kills_is_no_larger_than_32_bits(void)
{
    static const uint8_t lie[] = { 45, 0, 8, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255 };
    struct agent_reply most = { .oom_kills = UINT32_MAX }, out;
    uint8_t buf[64];
    struct err err;
    ssize_t n = agent_reply_encode(&most, buf, sizeof buf, &err);

    CHECK_INT(agent_reply_decode(&out, buf, (size_t) n, &err), 0);
    CHECK(out.oom_kills == UINT32_MAX);
    CHECK_INT(agent_reply_decode(&out, lie, sizeof lie, &err), -1);
    CHECK_STR(err.msg, "oom_kills: not a number");
}

static void names_of_numbers_are_never_null(void)
{
    CHECK_STR(agent_entry_type_name(ENTRY_LINK), "symlink");
    CHECK_STR(agent_entry_type_name(99), "unknown");
    CHECK_STR(agent_event_name(EVENT_OVERFLOW), "overflow");
    CHECK_STR(agent_event_name(99), "unknown");
    CHECK_STR(agent_exit_name(EXIT_OOM), "oom");
    CHECK_STR(agent_exit_name(99), "unknown");
}

CHECK_MAIN(T(every_op_has_a_name), T(tags_are_unique_and_limits_are_there),
           T(refusals_name_what_is_wrong), T(a_path_that_is_too_long_is_not_sent),
           T(an_exec_comes_back_whole), T(replies_are_bounded_too),
           T(a_count_of_kills_is_no_larger_than_32_bits), T(names_of_numbers_are_never_null))
