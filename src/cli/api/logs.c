#include "base/base64.h"
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/report.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

struct logs_options {
    bool follow;
    uint64_t from;
};

/* clang-format off */
static const struct option logs_options[] = {
    { 'f', "follow", OPTION_FLAG, offsetof(struct logs_options, follow), NULL, COMPLETE_NONE,
      "continue until the command has ended" },
    { 0, "from", OPTION_NUMBER, offsetof(struct logs_options, from), "N", COMPLETE_NONE,
      "begin at byte N of stdout and of stderr" },
};

const struct verb logs_verb = {
    .name = "logs",
    .synopsis = "[OPTION…] SANDBOX [PROC]",
    .summary = "what the commands of a sandbox wrote",
    .details =
        "PROC is the number that 'cove exec --detach' printed and 'cove ps SANDBOX' lists;\n"
        "without it, all commands are shown, in the order of their start. A sandbox keeps the\n"
        "last 256 KiB of each stream; what was dropped before is said on stderr.",
    .options = logs_options,
    .option_count = ARRAY_LEN(logs_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_logs,
};
/* clang-format on */

/* One command: what it had written when we asked, by stream. */
struct shown {
    uint64_t bytes[2], next[2], from;
    bool follow;
};

static int write_bytes(int stream, const char *data, size_t len, struct err *err)
{
    if (io_write_all(stream ? STDERR_FILENO : STDOUT_FILENO, data, len) == 0)
        return 0;
    /* The reader is gone: end as quietly as SIGPIPE would have ended us. */
    if (errno == EPIPE)
        exit(128 + SIGPIPE);
    return err_sys(err, errno, "write");
}

static int show_output(struct shown *s, int stream, json_t *event, struct err *err)
{
    json_t *value = json_object_get(event, "data");
    const char *data = json_string_value(value);
    size_t len = json_string_length(value), skip;
    auto_free uint8_t *decoded = NULL;
    uint64_t offset = show_number(event, "offset");

    if (!data)
        return err_set(err, ERR_PROTOCOL, "the server sent output without data");
    if (show_number(event, "missed") > 0)
        report_note("%" PRIu64 " earlier bytes are gone", show_number(event, "missed"));
    if (strcmp(show_text(event, "data_encoding"), "base64") == 0) {
        ssize_t n;

        decoded = malloc(len + 1);
        n = decoded ? base64_get(data, len, decoded) : -1;
        if (n < 0)
            return err_set(err, ERR_PROTOCOL, "the server sent output that is not base64");
        data = (const char *) decoded;
        len = (size_t) n;
    }
    s->next[stream] = offset + len;
    skip = s->from > offset ? s->from - offset < len ? (size_t) (s->from - offset) : len : 0;
    return write_bytes(stream, data + skip, len - skip, err);
}

/* Everything that was there when we asked has been shown. */
static bool caught_up(const struct shown *s)
{
    return !s->follow && s->next[0] >= s->bytes[0] && s->next[1] >= s->bytes[1];
}

/* 1: continue, 0: that was all. */
static int take_event(struct shown *s, json_t *event, struct err *err)
{
    const char *type = show_text(event, "type");

    if (strcmp(type, "stdout") == 0 || strcmp(type, "stderr") == 0)
        return show_output(s, strcmp(type, "stderr") == 0, event, err) < 0 ? -1 : !caught_up(s);
    if (strcmp(type, "error") == 0)
        return ask_error(json_object_get(event, "error"), err);
    return strcmp(type, "end") != 0;
}

static int read_events(struct call *call, struct shown *s, struct err *err)
{
    struct ask_lines lines = { .call = call };
    json_t *event = NULL;
    int r = call_answer(call, err) < 0 || ask_check(call, err) < 0 ? -1 : 1;

    while (r == 1 && (r = ask_next(&lines, &event, err)) == 1) {
        r = take_event(s, event, err);
        json_decref(event);
    }
    ask_lines_done(&lines);
    return r;
}

static int show_proc(const char *sandbox, json_t *proc, const struct logs_options *options,
                     struct err *err)
{
    struct shown s = {
        .bytes = { show_number(proc, "stdout_bytes"), show_number(proc, "stderr_bytes") },
        .from = options->from,
        .follow = options->follow && json_is_true(json_object_get(proc, "running"))
    };
    auto_free char *path = NULL;
    const struct remote *remote;
    struct call call;
    int r;

    for (int i = 0; i < 2; i++)
        s.next[i] = s.from < s.bytes[i] ? s.from : s.bytes[i];
    if (caught_up(&s))
        return 0;
    path = ask_path("/v1/sandboxes/%s/processes/%u/output?from=%u&from_stderr=%u", sandbox,
                    (unsigned long long) show_number(proc, "proc"), (unsigned long long) s.next[0],
                    (unsigned long long) s.next[1]);
    if (!path || server_find(&remote, err) < 0 ||
        call_open(&call, remote,
                  &(struct call_request){
                      .method = "GET", .path = path, .accept = "application/x-ndjson" },
                  err) < 0)
        return path ? -1 : err_set(err, ERR_NO_MEMORY, "no memory for a request");
    r = read_events(&call, &s, err);
    call_close(&call);
    return r < 0 ? -1 : 0;
}

static int show_all(const char *sandbox, uint32_t only, const struct logs_options *options,
                    struct err *err)
{
    json_t *answer = NULL, *proc;
    bool any = false;
    size_t i;
    int r = server_ask("GET", NULL, &answer, err, "/v1/sandboxes/%s/processes", sandbox);

    json_array_foreach(json_object_get(answer, "processes"), i, proc)
    {
        if (r < 0 || (only && show_number(proc, "proc") != only))
            continue;
        any = true;
        r = show_proc(sandbox, proc, options, err);
    }
    json_decref(answer);
    return r == 0 && only && !any
               ? err_set(err, ERR_NO_PROCESS, "there is no process %u in '%s'", only, sandbox)
               : r;
}

static int parse_proc(const char *text, uint32_t *ret, struct err *err)
{
    uint64_t value;

    if (parse_u64(text, &value, err) < 0)
        return err_wrap(err, "PROC");
    if (value == 0 || value > UINT32_MAX)
        return err_set(err, ERR_INVALID, "PROC: '%s' is not a process number", text);
    *ret = (uint32_t) value;
    return 0;
}

int verb_logs(int argc, char **argv)
{
    struct logs_options options = { .follow = false };
    uint32_t only = 0;
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&logs_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count == 0)
        return common_missing(&logs_verb, "a sandbox");
    if (count > 2)
        return common_excess(&logs_verb, operands[2]);
    if (count == 2 && parse_proc(operands[1], &only, &err) < 0)
        return report_error(&err);
    return show_all(operands[0], only, &options, &err) < 0 ? report_error(&err) : 0;
}
