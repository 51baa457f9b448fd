#include "surface/tools/tools.h"

#include "base/io.h"
#include "base/own.h"
#include "server/form/tools_args.h"
#include "server/guard/audit.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/net/network_events.h"
#include "surface/tools/tools_stream.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct tool tools_table[] = {
    { "Bash", "runs a command in a login shell", tool_bash,
      "command, timeout (ms), timeout_seconds, cpu_timeout (ms of CPU time), run_in_background, cwd, env, user, description" },
    { "BashOutput", "shows what a background process has written so far", tool_bash_output,
      "process_id, stdout_from, stderr_from" },
    { "KillProcess", "ends a background process and its children", tool_kill,
      "process_id, signal" },
    { "Read", "reads a text file; tells images and other binary files apart", tool_read,
      "file_path, offset (line), limit (lines), line_numbers, encoding (utf-8, base64)" },
    { "Write", "writes a whole file; makes missing directories", tool_write,
      "file_path, content, encoding (utf-8, base64)" },
    { "Edit", "replaces one text by another in a file", tool_edit,
      "file_path, old_string, new_string, replace_all" },
    { "MultiEdit", "several edits of one file: all of them or none", tool_multi_edit,
      "file_path, edits: [{old_string, new_string, replace_all}]" },
    { "Glob", "finds files by name, newest first", tool_glob,
      "pattern, path, limit, hidden" },
    { "Grep", "searches files with a regular expression", tool_grep,
      "pattern, path, glob, output_mode (content, files_with_matches, count), -i, -n, -A, -B, -C, head_limit, "
      "fixed_strings, hidden" },
    { "LS", "lists a directory", tool_ls,
      "path, ignore: [pattern], limit" },
};
/* clang-format on */
const size_t tools_count = ARRAY_LEN(tools_table);

static const struct tool *tool_find(const char *name)
{
    static const struct {
        const char *alias, *name;
    } aliases[] = { { "KillShell", "KillProcess" }, { "KillBash", "KillProcess" } };

    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        if (strcmp(aliases[i].alias, name) == 0)
            name = aliases[i].name;
    for (size_t i = 0; i < tools_count; i++)
        if (strcmp(tools_table[i].name, name) == 0)
            return &tools_table[i];
    return NULL;
}

static int check_tool(struct ops *ops, const struct session *session, const struct tool *tool,
                      struct err *err)
{
    struct policy_verdict verdict;

    if (policy_gate_tool(ops->app, ops->caller, session->sandbox, tool->name, &verdict, err) == 0)
        return 0;
    audit_note(ops->caller, "tool.refused", session->sandbox,
               &(struct audit_facts){ .exit_code = AUDIT_NO_EXIT,
                                      .duration_ms = -1,
                                      .refusal = err,
                                      .rule = verdict.rule,
                                      .risk = policy_risk_name(verdict.risk) });
    return caller_blame(ops->caller, "tool_name", verdict.rule, "policy");
}

/* One try in one sandbox. */
static int call_in(struct ops *ops, const struct tool *tool, const char *sandbox, json_t *arguments,
                   struct tools_stream *stream, struct session *session, json_t **ret,
                   struct err *err)
{
    uint64_t begun = io_now_ms();
    json_t *refusals;
    struct tool_call call = { .ops = ops, .session = session, .arguments = arguments };

    if (stream->wish != V1_PLAIN) {
        call.watch = tools_stream_watch;
        call.watch_context = stream;
    }
    if (session_find(ops, sandbox, session, err) < 0 || check_tool(ops, session, tool, err) < 0)
        return -1;
    call.answer = json_pack("{s:s, s:s, s:b, s:n}", "tool", tool->name, "sandbox_id",
                            session->sandbox, "success", 1, "error");
    if (!call.answer)
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    if (tool->run(&call, err) < 0) {
        json_decref(call.answer);
        return -1;
    }
    if (!json_object_get(call.answer, "duration_ms"))
        (void) json_object_set_new(call.answer, "duration_ms",
                                   json_integer((json_int_t) (io_now_ms() - begun)));
    /* An agent whose program was refused the network learns why. */
    refusals = network_refusals(ops->app, session->sandbox);
    if (refusals)
        (void) json_object_set_new(call.answer, "network_refused", refusals);
    *ret = call.answer;
    return 0;
}

static int call_tool(struct exchange *x, const struct tool *tool, const char *sandbox,
                     json_t *arguments, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct tools_stream stream = { .x = x, .wish = v1_accepts(x) };
    struct session session = { 0 };
    json_t *answer = NULL;
    int r;

    if (stream.wish != V1_PLAIN && quota_stream_begin(exchange_caller(x), err) < 0)
        return -1;
    r = call_in(&ops, tool, sandbox, arguments, &stream, &session, &answer, err);
    if (r < 0 && !sandbox && err->kind == ERR_NO_SANDBOX && !stream.begun) {
        session_forget(&ops, &session); /* the default one is lost: another */
        (void) exchange_blame(x, NULL, NULL, NULL);
        r = call_in(&ops, tool, NULL, arguments, &stream, &session, &answer, err);
    }
    if (stream.wish == V1_PLAIN)
        return r < 0 ? -1 : exchange_reply_json(x, 200, answer, err);
    r = tools_stream_end(&stream, r, answer, err);
    quota_stream_end(exchange_caller(x));
    return r;
}

/* ---- routes ---- */

int tools_route_execute(struct exchange *x, struct err *err)
{
    const char *name = NULL, *sandbox = NULL;
    json_t *body = NULL, *arguments = NULL;
    const struct arg args[] = {
        { "tool_name", ARG_TEXT, &name, 0, 64 },       { "tool", ARG_TEXT, &name, 0, 64 },
        { "arguments", ARG_OBJECT, &arguments, 0, 0 }, { "input", ARG_OBJECT, &arguments, 0, 0 },
        { "sandbox_id", ARG_TEXT, &sandbox, 0, 64 },
    };
    const struct tool *tool;
    json_t *none;
    int r;

    if (exchange_json(x, &body, err) < 0)
        return -1;
    none = json_object();
    r = args_read(exchange_caller(x), body, "", args, ARRAY_LEN(args), err);
    if (r == 0)
        r = args_need(exchange_caller(x), name, "tool_name", err);
    tool = r == 0 ? tool_find(name) : NULL;
    if (r == 0 && !tool)
        r = args_bad(exchange_caller(x), "", "tool_name", "is not a tool of this server: see GET /tools", err);
    if (r == 0)
        r = call_tool(x, tool, sandbox, arguments ? arguments : none, err);
    json_decref(none);
    json_decref(body);
    return r;
}

/* The arguments at the top, beside sandbox_id; `preset` where the tool's own default is not meant. */
static int direct(struct exchange *x, const char *name, const char *preset_key,
                  const char *preset_value, struct err *err)
{
    json_t *body = NULL, *id;
    const char *sandbox = NULL;
    int r = 0;

    if (exchange_json(x, &body, err) < 0)
        return -1;
    id = json_incref(json_object_get(body, "sandbox_id"));
    (void) json_object_del(body, "sandbox_id");
    if (id && json_is_string(id))
        sandbox = json_string_value(id);
    else if (id && !json_is_null(id))
        r = args_bad(exchange_caller(x), "", "sandbox_id", "is not a text", err);
    if (preset_key && !json_object_get(body, preset_key))
        (void) json_object_set_new(body, preset_key, json_string(preset_value));
    if (r == 0)
        r = call_tool(x, tool_find(name), sandbox, body, err);
    json_decref(id);
    json_decref(body);
    return r;
}

int tools_route_bash(struct exchange *x, struct err *err)
{
    return direct(x, "Bash", NULL, NULL, err);
}

int tools_route_read(struct exchange *x, struct err *err)
{
    return direct(x, "Read", NULL, NULL, err);
}

int tools_route_write(struct exchange *x, struct err *err)
{
    return direct(x, "Write", NULL, NULL, err);
}

int tools_route_search(struct exchange *x, struct err *err)
{
    return direct(x, "Grep", "output_mode", "content", err);
}

int tools_route_list(struct exchange *x, struct err *err)
{
    json_t *list = json_array();

    for (size_t i = 0; i < tools_count; i++)
        (void) json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", tools_table[i].name,
                                                     "description", tools_table[i].help,
                                                     "arguments", tools_table[i].arguments));
    return exchange_reply_json(x, 200, json_pack("{s:o}", "tools", list), err);
}
