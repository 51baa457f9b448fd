#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/host.h"
#include "cli/report.h"
#include "wire/limits.h"

#include <string.h>

struct ps_options {
    bool json, quiet, keeper;
};

#define AT(field) offsetof(struct ps_options, field)

/* clang-format off */
static const struct option ps_options[] = {
    { 0,   "json",   OPTION_FLAG, AT(json),   NULL, COMPLETE_NONE, "as JSON" },
    { 'q', "quiet",  OPTION_FLAG, AT(quiet),  NULL, COMPLETE_NONE, "ids, or process numbers, only" },
    { 0,   "keeper", OPTION_FLAG, AT(keeper), NULL, COMPLETE_NONE,
      "ask the keeper itself, for when the server is down; needs root" },
};
static const struct option info_options[] = {
    { 0,   "json",   OPTION_FLAG, AT(json),   NULL, COMPLETE_NONE, "as JSON (as it always is)" },
};

const struct verb ps_verb = {
    .name = "ps",
    .synopsis = "[OPTION…] [SANDBOX]",
    .summary = "list sandboxes, or the commands that ran in one",
    .details =
        "With SANDBOX: every command that was started in it, ended ones too. PROC is the number\n"
        "that 'cove logs' takes.",
    .options = ps_options,
    .option_count = ARRAY_LEN(ps_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_ps,
};
const struct verb info_verb = {
    .name = "info",
    .synopsis = "SANDBOX…",
    .summary = "all that is known about sandboxes, as JSON",
    .options = info_options,
    .option_count = ARRAY_LEN(info_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_info,
};
/* clang-format on */

/* The fields that programs know from before the server was asked, and those that it has beyond. */
static json_t *sandbox_json(json_t *s)
{
    json_t *out = json_copy(s), *limits = json_copy(json_object_get(s, "limits"));

    (void) json_object_set_new(out, "root",
                               json_boolean(strcmp(show_text(s, "profile"), "root") == 0));
    (void) json_object_set_new(out, "created_ms",
                               json_integer((json_int_t) show_time(s, "created_at")));
    (void) json_object_set_new(
        limits, "cpu_milli",
        json_integer(
            (json_int_t) (json_number_value(json_object_get(limits, "cpus")) * 1000 + 0.5)));
    (void) json_object_set_new(out, "limits", limits);
    return out;
}

static void sandbox_row(struct table *table, json_t *s)
{
    const char *name = show_text(s, "name"), *tier = show_text(s, "tier");
    const char *isolation = show_text(s, "isolation");
    json_t *limits = json_object_get(s, "limits");
    char text[256];

    table_cell(table, "%s", show_text(s, "id"));
    table_cell(table, "%s", name[0] ? name : "-");
    table_cell(table, "%s", report_text(text, sizeof text, show_text(s, "template")));
    table_cell(table, "%s%s", show_text(s, "state"), strcmp(tier, "disk") == 0 ? ", disk" : "");
    table_cell(table, "%s", report_span(text, sizeof text, show_age(show_time(s, "created_at"))));
    table_cell(table, "%s", report_size(text, sizeof text, show_number(limits, "memory")));
    table_cell(table, "%g", json_number_value(json_object_get(limits, "cpus")));
    table_cell(table, "%s", report_size(text, sizeof text, show_number(limits, "disk")));
    table_cell(table, "%s", show_text(s, "profile"));
    table_cell(table, "%s", isolation[0] ? isolation : "-"); /* "": a server before it had any */
}

static void print(json_t *list, const struct ps_options *options, size_t columns,
                  const char *const *headings, const char *id, json_t *(*convert)(json_t *),
                  void (*row)(struct table *, json_t *))
{
    json_t *out = json_array(), *item;
    struct table table;
    struct err err;
    size_t i;

    table_init(&table, columns, headings);
    json_array_foreach(list, i, item)
    {
        json_t *value = json_object_get(item, id);

        if (options->json)
            (void) json_array_append_new(out, convert(item));
        else if (options->quiet && json_is_integer(value))
            printf("%lld\n", (long long) json_integer_value(value));
        else if (options->quiet && show_id(item, id, &err) < 0)
            (void) report_error(&err);
        else if (!options->quiet)
            row(&table, item);
    }
    if (options->json)
        show_json(json_incref(out));
    else if (!options->quiet)
        (void) table_print(&table, stdout);
    json_decref(out);
    table_done(&table);
}

static int list_sandboxes(const struct ps_options *options, struct err *err)
{
    static const char *const headings[] = {
        "ID",      "NAME",  "TEMPLATE", "STATE",   ">AGE",
        ">MEMORY", ">CPUS", ">DISK",    "PROFILE", "ISOLATION"
    };
    json_t *list;

    if (server_list("/v1/sandboxes", "sandboxes", &list, err) < 0)
        return -1;
    print(list, options, ARRAY_LEN(headings), headings, "id", sandbox_json, sandbox_row);
    json_decref(list);
    return 0;
}

/* ---- commands ---- */

static json_t *proc_json(json_t *p)
{
    json_t *out = json_copy(p), *ended = json_object_get(p, "exit_reason");

    (void) json_object_set(out, "tty", json_object_get(p, "pty"));
    if (ended)
        (void) json_object_set(out, "ended", ended);
    else
        (void) json_object_set_new(out, "ended", json_null());
    (void) json_object_set_new(out, "started_ms",
                               json_integer((json_int_t) show_time(p, "started_at")));
    return out;
}

static void proc_state(json_t *p, char *out, size_t size)
{
    const char *why = show_text(p, "exit_reason");

    if (json_is_true(json_object_get(p, "running")))
        (void) snprintf(out, size, "running");
    else if (strcmp(why, "exit") == 0)
        (void) snprintf(out, size, "exit %u", (unsigned) show_number(p, "exit_code"));
    else if (strcmp(why, "signal") == 0)
        (void) snprintf(out, size, "signal %u", (unsigned) show_number(p, "signal"));
    else
        (void) snprintf(out, size, "%s", why);
}

/* Arguments come from inside the sandbox: shown, never interpreted. */
static void join_args(json_t *args, char *out, size_t size)
{
    char word[512];
    size_t used = 0, i;
    json_t *arg;

    out[0] = '\0';
    json_array_foreach(args, i, arg)
    {
        const char *text = json_string_value(arg);
        int n = used + 1 < size ? snprintf(out + used, size - used, "%s%s", used ? " " : "",
                                           report_text(word, sizeof word, text ? text : ""))
                                : 0;

        used += n > 0 ? (size_t) n : 0;
    }
}

static void proc_row(struct table *table, json_t *p)
{
    const char *user = show_text(p, "user"), *tag = show_text(p, "tag");
    char text[256], command[256];

    table_cell(table, "%u", (unsigned) show_number(p, "proc"));
    table_cell(table, "%u", (unsigned) show_number(p, "pid"));
    table_cell(table, "%s", report_text(text, sizeof text, user[0] ? user : "-"));
    proc_state(p, text, sizeof text);
    table_cell(table, "%s", text);
    table_cell(table, "%s", report_span(text, sizeof text, show_number(p, "wall_ms")));
    table_cell(table, "%s", report_span(text, sizeof text, show_number(p, "cpu_ms")));
    table_cell(table, "%s", report_size(text, sizeof text, show_number(p, "peak_bytes")));
    table_cell(table, "%s", report_text(text, sizeof text, tag[0] ? tag : "-"));
    join_args(json_object_get(p, "args"), command, sizeof command);
    table_cell(table, "%s", command);
}

static int list_procs(const char *sandbox, const struct ps_options *options, struct err *err)
{
    static const char *const headings[] = { ">PROC", ">PID",  "USER", "STATE",  ">WALL",
                                            ">CPU",  ">PEAK", "TAG",  "COMMAND" };
    json_t *answer = NULL;

    if (server_ask("GET", NULL, &answer, err, "/v1/sandboxes/%s/processes", sandbox) < 0)
        return -1;
    print(json_object_get(answer, "processes"), options, ARRAY_LEN(headings), headings, "proc",
          proc_json, proc_row);
    json_decref(answer);
    return 0;
}

int verb_ps(int argc, char **argv)
{
    struct ps_options options = { .json = false };
    struct err err;
    char **operands;
    int count, code, r;

    code = common_parse(&ps_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > (options.keeper ? 0 : 1))
        return common_excess(&ps_verb, operands[options.keeper ? 0 : 1]);
    if (options.keeper)
        return host_ps(options.json, options.quiet);
    r = count ? list_procs(operands[0], &options, &err) : list_sandboxes(&options, &err);
    return r < 0 ? report_error(&err) : report_end(0);
}

int verb_info(int argc, char **argv)
{
    struct ps_options options = { .json = true };
    json_t *out = json_array();
    struct err err;
    char **names;
    int count, code;

    code = common_parse(&info_verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    if (count == 0)
        return common_missing(&info_verb, "a sandbox");
    for (int i = 0; i < count; i++) {
        json_t *answer = NULL;

        if (server_ask("GET", NULL, &answer, &err, "/v1/sandboxes/%s", names[i]) < 0) {
            json_decref(out);
            return report_error(&err);
        }
        (void) json_array_append_new(out, sandbox_json(answer));
        json_decref(answer);
    }
    show_json(out);
    return report_end(0);
}
