/* What a model reads: the answer of a tool as text or image, or why there is none and what to do next. There is no
 * structuredContent: clients would show the model that alone, and not the output. */
#include "surface/mcp/mcp.h"

#include "base/own.h"
#include "surface/tools/tools_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CONTENT_CHARS                                                                              \
    60000 /* more would be put aside by clients, where a model without other tools cannot read it */

static json_t *content(json_t *take_blocks, bool is_error)
{
    return json_pack("{s:o, s:b}", "content", take_blocks, "isError", is_error);
}

static json_t *text_block(const char *text, size_t len)
{
    struct text clean = { 0 };
    json_t *block = NULL;

    if (text_add_utf8(&clean, text, len) == 0)
        block = json_pack("{s:s, s:s%}", "type", "text", "text", clean.data ? clean.data : "",
                          clean.len);
    free(clean.data);
    return block ? block
                 : json_pack("{s:s, s:s}", "type", "text", "text", "(no memory for the output)");
}

json_t *mcp_content_text(const char *text, bool is_error)
{
    return content(json_pack("[o]", text_block(text, strlen(text))), is_error);
}

/* ---- answers ---- */

static const char *text_of(json_t *answer, const char *key)
{
    const char *text = mcp_text(answer, key);

    return text ? text : "";
}

static json_int_t number_of(json_t *answer, const char *key)
{
    return json_integer_value(json_object_get(answer, key));
}

/* A new line for what is not the output itself. */
static void begin_note(struct text *out)
{
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        (void) text_add(out, "\n", 1);
}

/* How a command ended, unless it ended well. True: the tool failed, and not only the command. */
static bool note_end(struct text *out, json_t *answer)
{
    const char *why = text_of(answer, "error"), *reason = text_of(answer, "exit_reason");

    if (!why[0])
        return false;
    begin_note(out);
    (void) text_addf(out, "[%s]", why);
    return strcmp(reason, "exit") != 0 && strcmp(reason, "signal") != 0;
}

static void note_process(struct text *out, json_t *answer)
{
    json_int_t proc = number_of(answer, "process_id");

    if (!json_object_get(answer, "running")) {
        begin_note(out);
        (void) text_addf(out,
                         "[read its output with bash_output, process_id %" JSON_INTEGER_FORMAT
                         "; end it with kill_process]",
                         proc);
        return;
    }
    begin_note(out);
    (void) text_addf(
        out,
        "[process %" JSON_INTEGER_FORMAT " %s; continue with stdout_from %" JSON_INTEGER_FORMAT
        " and stderr_from %" JSON_INTEGER_FORMAT "]",
        proc, json_is_true(json_object_get(answer, "running")) ? "is running" : "has ended",
        number_of(answer, "stdout_next"), number_of(answer, "stderr_next"));
}

/* An agent whose program was refused the network learns why. */
static void note_network(struct text *out, json_t *answer)
{
    json_t *refused = json_object_get(answer, "network_refused");
    auto_free char *text = refused ? json_dumps(refused, JSON_COMPACT) : NULL;

    if (!text)
        return;
    begin_note(out);
    (void) text_addf(
        out, "[the network policy refused: %s. Ask the user to allow it, or work without it]",
        text);
}

static void note_cut(struct text *out, const struct tool *tool, json_t *answer,
                     uint64_t lines_shown)
{
    begin_note(out);
    if (tool->run == tool_read)
        (void) text_addf(out, "[there is more: continue with offset %" PRIu64 "]",
                         (uint64_t) number_of(answer, "first_line") + lines_shown);
    else
        (void) text_addf(out, "[there is more: narrow the search, or raise its limit]");
}

static uint64_t count_lines(const char *text, size_t len)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    return lines;
}

static json_t *image_content(json_t *answer)
{
    json_t *image = json_pack("{s:s, s:s, s:s}", "type", "image", "data", text_of(answer, "data"),
                              "mimeType", text_of(answer, "media_type"));

    return content(json_pack("[o]", image), false);
}

json_t *mcp_content(const struct tool *tool, json_t *answer)
{
    json_t *output = json_object_get(answer, "output"), *block;
    const char *text = json_string_value(output);
    size_t len = json_string_length(output), keep;
    bool commands = tool->effect == TOOL_RUNS || json_object_get(answer, "running"), failed = false;
    struct text out = { 0 };

    if (strcmp(text_of(answer, "type"), "image") == 0)
        return image_content(answer);
    /* Asked for as base64, of which a part would be of no use. */
    if (json_string_length(json_object_get(answer, "data")) > CONTENT_CHARS)
        return mcp_content_text("the file is too large to be shown as base64: work on it with bash",
                                true);
    if (json_object_get(answer, "data")) {
        text = text_of(answer, "data");
        len = strlen(text);
    }
    keep = text ? text_cut(text, len, CONTENT_CHARS) : 0;
    if (!commands && keep < len) { /* at a line's end: the rest can be asked for */
        const char *line = memrchr(text, '\n', keep);

        keep = line ? (size_t) (line - text) + 1 : keep;
    }
    (void) text_add(&out, text ? text : "", keep);
    if (!commands && (keep < len || json_is_true(json_object_get(answer, "truncated"))))
        note_cut(&out, tool, answer, count_lines(text, keep));
    if (commands)
        failed = note_end(&out, answer);
    if (json_object_get(answer, "process_id"))
        note_process(&out, answer);
    note_network(&out, answer);
    if (out.len == 0)
        (void) text_addf(&out, commands                 ? "(no output)"
                               : tool->run == tool_read ? "(the file is empty)"
                                                        : "(nothing found)");
    block = text_block(out.data, out.len);
    free(out.data);
    return content(json_pack("[o]", block), failed);
}

/* ---- refusals ---- */

static const char *next_step(const struct err *why, const struct blame *blame)
{
    /* clang-format off */
    static const struct {
        enum err_kind kind;
        const char *advice;
    } rows[] = {
        { ERR_INVALID, "Correct the argument and call again." },
        { ERR_LIMIT, "Ask for less and call again." },
        { ERR_LIMIT_HOST, "Ask for less and call again." },
        { ERR_NO_SANDBOX, "Leave out sandbox_id to use your own sandbox, or look at list_sandboxes." },
        { ERR_NO_TEMPLATE, "Leave out template to use the server's default." },
        { ERR_NO_PROCESS, "Start the command again with run_in_background; its answer has the process_id." },
        { ERR_NO_PATH, "Look with ls or glob which files there are. Paths are those of the sandbox." },
        { ERR_NOT_DIR, "Look with ls at the directory above." },
        { ERR_IS_DIR, "Use ls for a directory." },
        { ERR_NOT_FILE, "Use bash to work with what is not a regular file." },
        { ERR_DENIED, "The user of the sandbox may not do this. Use a path below /home/user or /tmp." },
        { ERR_NO_ROOT, "Leave out user, or make a sandbox that has root." },
        { ERR_DISK_FULL, "Remove files that are not needed, or make a sandbox with a larger disk_mb." },
        { ERR_OOM, "Use less memory, or make a sandbox with more memory_mb." },
        { ERR_TOO_MANY, "Wait a little and try again, or end what is not needed with kill_process or delete_sandbox." },
        { ERR_TOO_BIG, "Work on it in parts, for instance with bash." },
        { ERR_STATE, "Look at list_sandboxes, or at bash_output for a process." },
        { ERR_TIMEOUT, "Try again with a larger timeout, or with run_in_background." },
        { ERR_UNAVAILABLE, "Try again; if it stays so, tell the user that the sandbox server does not answer." },
        { ERR_UNSUPPORTED, "Continue without it, and tell the user." },
        { ERR_NO_PORT, "Start the server in the sandbox first, with run_in_background." },
    };
    /* clang-format on */

    if (strcmp(blame->layer, "policy") == 0)
        return "The policy of this sandbox forbids it. Do not try to get around it: find another "
               "way, or tell the user what is needed.";
    if (strcmp(blame->layer, "quota") == 0)
        return "A quota of this account is used up. End what is not needed with kill_process or "
               "delete_sandbox, or tell the user.";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].kind == why->kind)
            return rows[i].advice;
    return "Tell the user.";
}

json_t *mcp_content_refusal(const struct caller *caller, const struct err *why)
{
    const struct blame *blame = &caller->blame;
    struct text out = { 0 };
    json_t *json;

    (void) text_addf(&out, "%s", why->kind == ERR_INTERNAL ? "the server failed" : why->msg);
    if (blame->rule[0])
        (void) text_addf(&out, " (rule: %s)", blame->rule);
    if (blame->retry_s > 0)
        (void) text_addf(&out, " (try again in %u seconds)", blame->retry_s);
    (void) text_addf(&out, "\n%s", next_step(why, blame));
    json = mcp_content_text(out.data ? out.data : "no memory", true);
    free(out.data);
    return json;
}
