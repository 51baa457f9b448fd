#include "surface/tools/tools.h"

#include "base/io.h"
#include "base/own.h"
#include "server/form/form.h"
#include "server/guard/audit.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/net/network.h"
#include "server/net/network_events.h"
#include "server/serve/kept.h"
#include "surface/tools/tools_stream.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct tool tools_table[] = {
    { "Bash", "bash", "runs a command in a shell that keeps its directory, variables and functions",
      "Runs a command with bash in the sandbox. The shell keeps its directory, variables and functions between calls of a session. "
      "A command that takes long or serves something: set run_in_background, then read its output with bash_output.",
      TOOL_RUNS, tool_bash, &tool_bash_form },
    { "BashOutput", "bash_output", "shows what a background process has written so far",
      "Shows what a background process has written so far, whether it still runs, and from where to continue reading.",
      TOOL_READS, tool_bash_output, &tool_bash_output_form },
    { "KillProcess", "kill_process", "ends a background process and its children",
      "Ends a background process and all that it started.",
      TOOL_RUNS, tool_kill, &tool_kill_form },
    { "Read", "read", "reads a text file; tells images and other binary files apart",
      "Reads a file of the sandbox. Images come back as images.",
      TOOL_READS, tool_read, &tool_read_form },
    { "Write", "write", "writes a whole file; makes missing directories",
      "Writes a whole file in the sandbox; missing directories are made. To change a part of a file, use edit.",
      TOOL_WRITES, tool_write, &tool_write_form },
    { "Edit", "edit", "replaces one text by another in a file",
      "Replaces one text by another in a file of the sandbox.",
      TOOL_WRITES, tool_edit, &tool_edit_form },
    { "MultiEdit", "multi_edit", "several edits of one file: all of them or none",
      "Makes several edits of one file in the sandbox: all of them or none.",
      TOOL_WRITES, tool_multi_edit, &tool_multi_edit_form },
    { "Glob", "glob", "finds files by name, newest first",
      "Finds files of the sandbox by name, newest first.",
      TOOL_READS, tool_glob, &tool_glob_form },
    { "Grep", "grep", "searches files with a regular expression",
      "Searches files of the sandbox with a regular expression.",
      TOOL_READS, tool_grep, &tool_grep_form },
    { "LS", "ls", "lists a directory",
      "Lists a directory of the sandbox.",
      TOOL_READS, tool_ls, &tool_ls_form },
};
/* clang-format on */
const size_t tools_count = ARRAY_LEN(tools_table);

void tool_arguments(const struct tool *tool, char *out, size_t size)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < tool->form->count && len < size; i++)
        if (tool->form->rows[i].help)
            len += (size_t) snprintf(out + len, size - len, "%s%s", len > 0 ? ", " : "",
                                     tool->form->rows[i].name);
}

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

/* Whether anything was shown already: a call that was seen to begin is not begun again. */
struct watched {
    const struct tools_order *order;
    bool any;
};

static int watch_noted(void *context, const struct exec_event *event, struct err *err)
{
    struct watched *watched = context;

    watched->any = true;
    return watched->order->watch(watched->order->watch_context, event, err);
}

/* Without a network there is no gateway that would tell what it refused: the sign is what the program says of it. */
static json_t *refused_offline(struct ops *ops, const char *sandbox, json_t *answer)
{
    static const char *const signs[] = { "not resolve", /* curl, git, apt, ssh */
                                         "Name or service not known",
                                         "Temporary failure in name resolution",
                                         "Temporary failure resolving",
                                         "ENOTFOUND",
                                         "EAI_AGAIN",
                                         "ENETUNREACH",
                                         "etwork is unreachable" };
    const char *output = json_string_value(json_object_get(answer, "output"));
    struct reach rules;
    struct err ignored;
    bool said = false;

    for (size_t i = 0; output && i < ARRAY_LEN(signs) && !said; i++)
        said = strstr(output, signs[i]) != NULL;
    if (!said || network_get(ops->app, sandbox, &rules, &ignored) < 0 || rules.mode != REACH_OFF)
        return NULL;
    return json_pack("[{s:s, s:s, s:s, s:s}]", "sandbox", sandbox, "event", "refused", "rule",
                     "off", "reason", egress_rule_means("off"));
}

/* One try in one sandbox. */
static int call_in(struct ops *ops, struct watched *watched, struct session *session, json_t **ret,
                   struct err *err)
{
    const struct tools_order *order = watched->order;
    const struct tool *tool = order->tool;
    uint64_t begun = io_now_ms();
    json_t *refusals;
    struct tool_call call = { .ops = ops,
                              .session = session,
                              .arguments = order->arguments,
                              .watch = order->watch ? watch_noted : NULL,
                              .watch_context = watched };

    if (session_find(ops, order->sandbox, session, err) < 0 ||
        check_tool(ops, session, tool, err) < 0)
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
    if (!refusals)
        refusals = refused_offline(ops, session->sandbox, call.answer);
    if (refusals)
        (void) json_object_set_new(call.answer, "network_refused", refusals);
    *ret = call.answer;
    return 0;
}

int tools_call(struct ops *ops, const struct tools_order *order, json_t **ret, struct err *err)
{
    struct watched watched = { .order = order };
    struct session session = { 0 };
    int r = call_in(ops, &watched, &session, ret, err);

    if (r < 0 && !order->sandbox && err->kind == ERR_NO_SANDBOX && !watched.any) {
        session_forget(ops, &session); /* the default one is lost: another */
        (void) caller_blame(ops->caller, NULL, NULL, NULL);
        r = call_in(ops, &watched, &session, ret, err);
    }
    return r;
}

static int call_tool(struct exchange *x, const struct tool *tool, const char *sandbox,
                     json_t *arguments, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct tools_stream stream = { .x = x, .wish = v1_accepts(x) };
    struct tools_order order = { .tool = tool, .sandbox = sandbox, .arguments = arguments };
    json_t *answer = NULL;
    int r;

    if (stream.wish == V1_PLAIN)
        return tools_call(&ops, &order, &answer, err) < 0
                   ? -1
                   : exchange_reply_json(x, 200, answer, err);
    if (quota_stream_begin(exchange_caller(x), err) < 0)
        return -1;
    order.watch = tools_stream_watch;
    order.watch_context = &stream;
    r = tools_call(&ops, &order, &answer, err);
    r = tools_stream_end(&stream, r, answer, err);
    quota_stream_end(exchange_caller(x));
    return r;
}

/* ---- routes ---- */

static json_t *any_object(void)
{
    return json_pack("{s:s}", "type", "object");
}

struct execute {
    const char *name, *sandbox;
    json_t *arguments;
};

/* clang-format off */
#define SANDBOX_HELP "id or name of the sandbox to work in (default: your own, which is made when it is needed)"
static const struct form_field execute_rows[] = {
    { "tool_name", FORM_TEXT, .at = offsetof(struct execute, name), .most = 64, .help = "the name of a tool of GET /tools", .needed = true },
    { "tool", FORM_TEXT, .at = offsetof(struct execute, name), .most = 64 },
    { "arguments", FORM_OBJECT, .at = offsetof(struct execute, arguments), .help = "of the tool: GET /tools and docs/tools.md have them",
      .describe = any_object },
    { "input", FORM_OBJECT, .at = offsetof(struct execute, arguments), .describe = any_object },
    { "sandbox_id", FORM_CONTENT, .at = offsetof(struct execute, sandbox), .most = 64, .help = SANDBOX_HELP },
};
static const struct form_field where_rows[] = {
    { "sandbox_id", FORM_CONTENT, .most = 64, .help = SANDBOX_HELP },
};
/* clang-format on */
const struct form tools_execute_form = FORM_OF(execute_rows);
const struct form tool_where_form = FORM_OF(where_rows, .open = true);

int tools_route_execute(struct exchange *x, struct err *err)
{
    struct execute order = { 0 };
    json_t *body = NULL, *none;
    const struct tool *tool;
    int r;

    if (exchange_json(x, &body, err) < 0)
        return -1;
    none = json_object();
    r = form_read(exchange_caller(x), body, &tools_execute_form, &order, err);
    tool = r == 0 ? tool_find(order.name) : NULL;
    if (r == 0 && !tool)
        r = form_bad(exchange_caller(x), err, "tool_name", "unknown tool: see GET /tools");
    if (r == 0)
        r = call_tool(x, tool, order.sandbox, order.arguments ? order.arguments : none, err);
    json_decref(none);
    json_decref(body);
    return r;
}

/* The arguments at the top, beside sandbox_id; `other` where the tool's own default is not meant. */
static int direct(struct exchange *x, const char *name, const struct form_field *other,
                  struct err *err)
{
    json_t *body = NULL, *id;
    const char *sandbox = NULL;
    int r;

    if (exchange_json(x, &body, err) < 0)
        return -1;
    id = json_incref(json_object_get(body, "sandbox_id"));
    r = form_read(exchange_caller(x), body, &tool_where_form, &sandbox, err);
    (void) json_object_del(body, "sandbox_id");
    if (other && !json_object_get(body, other->name))
        (void) json_object_set_new(body, other->name, json_string(other->fallback));
    if (r == 0)
        r = call_tool(x, tool_find(name), sandbox, body, err);
    json_decref(id);
    json_decref(body);
    return r;
}

int tools_route_bash(struct exchange *x, struct err *err)
{
    return direct(x, "Bash", NULL, err);
}

int tools_route_read(struct exchange *x, struct err *err)
{
    return direct(x, "Read", NULL, err);
}

int tools_route_write(struct exchange *x, struct err *err)
{
    return direct(x, "Write", NULL, err);
}

int tools_route_search(struct exchange *x, struct err *err)
{
    return direct(x, "Grep", tool_search_body_form.rows, err);
}

static json_t *list_json(struct app *app)
{
    json_t *list = json_array();
    char arguments[512];

    (void) app; /* the tools are the same whatever the settings are */
    for (size_t i = 0; i < tools_count; i++) {
        tool_arguments(&tools_table[i], arguments, sizeof arguments);
        (void) json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:o}", "name", tools_table[i].name, "description",
                            tools_table[i].help, "arguments", arguments, "input_schema",
                            form_schema(tools_table[i].form, FORM_LISTED)));
    }
    return json_pack("{s:o}", "tools", list);
}

int tools_route_list(struct exchange *x, struct err *err)
{
    static struct kept answer;

    return exchange_reply_kept(x, &answer, list_json, err);
}
