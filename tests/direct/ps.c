#include "base/own.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/verbs.h"
#include "direct/common.h"

#include <string.h>
#include <time.h>

struct ps_options {
    bool json, quiet;
};

/* clang-format off */
static const struct option ps_options[] = {
    { 0, "json", OPTION_FLAG, offsetof(struct ps_options, json), NULL, COMPLETE_NONE,
      "as JSON" },
    { 'q', "quiet", OPTION_FLAG, offsetof(struct ps_options, quiet), NULL, COMPLETE_NONE,
      "ids, or process numbers, only" },
};

const struct verb ps_verb = {
    .name = "ps",
    .synopsis = "[OPTION…] [SANDBOX]",
    .summary = "list sandboxes, or the commands that ran in one",
    .details =
        "With SANDBOX: every command that was started in it, ended ones too. PROC is the number\n"
        "that 'cove logs' takes.",
    .options = ps_options,
    .option_count = sizeof ps_options / sizeof ps_options[0],
    .operands = COMPLETE_SANDBOX,
    .run = verb_ps,
};
/* clang-format on */

static uint64_t now_real_ms(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static uint64_t age_ms(uint64_t since_ms)
{
    uint64_t now = now_real_ms();

    return now > since_ms ? now - since_ms : 0;
}

/* One that is paused to disk has no process: its pid is 0. */
static void sandbox_json(struct json_out *json, const struct keeper_sandbox *s)
{
    json_out_object(json, NULL);
    json_out_text(json, "id", s->id);
    json_out_text(json, "name", s->name[0] ? s->name : NULL);
    json_out_text(json, "template", s->template);
    json_out_text(json, "state", keeper_life_name(s->life));
    json_out_text(json, "tier", s->life != LIFE_PAUSED ? NULL : s->pid ? "memory" : "disk");
    json_out_text(json, "isolation", isolation_name(s->isolation));
    json_out_bool(json, "root", s->flags & KEEPER_FLAG_ROOT);
    json_out_bool(json, "tied", s->flags & KEEPER_FLAG_TIED);
    json_out_signed(json, "pid", s->pid);
    json_out_number(json, "uid_base", s->uid_base);
    json_out_text(json, "disk_kind", keeper_disk_name(s->disk_kind));
    json_out_number(json, "created_ms", s->created_ms);
    json_out_object(json, "limits");
    for (size_t i = 0; i < limit_count; i++)
        json_out_number(json, limit_table[i].unit == LIMIT_CPUS ? "cpu_milli" : limit_table[i].name,
                        limit_value(&s->limits, &limit_table[i]));
    json_out_end(json);
    json_out_end(json);
}

static void sandbox_row(struct table *table, const struct keeper_sandbox *s)
{
    char text[32];

    table_cell(table, "%s", s->id);
    table_cell(table, "%s", s->name[0] ? s->name : "-");
    table_cell(table, "%s", s->template);
    table_cell(table, "%s%s", keeper_life_name(s->life),
               s->life == LIFE_PAUSED && !s->pid ? ", disk" : "");
    table_cell(table, "%s", report_span(text, sizeof text, age_ms(s->created_ms)));
    table_cell(table, "%s", report_size(text, sizeof text, s->limits.memory_bytes));
    table_cell(table, "%g", (double) s->limits.cpu_milli / 1000);
    table_cell(table, "%s", report_size(text, sizeof text, s->limits.disk_bytes));
    table_cell(table, "%s", s->flags & KEEPER_FLAG_ROOT ? "root" : "strict");
}

static int list_sandboxes(struct link *link, enum listing_form form, struct err *err)
{
    static const char *const headings[] = { "ID",      "NAME",  "TEMPLATE", "STATE",  ">AGE",
                                            ">MEMORY", ">CPUS", ">DISK",    "PROFILE" };
    auto_free struct keeper_sandbox *list = NULL;
    struct listing l;
    size_t count = 0;

    if (saved_list(link, &list, &count, err) < 0)
        return -1;
    listing_init(&l, form, ARRAY_LEN(headings), headings);
    for (size_t i = 0; i < count; i++) {
        if (form == LISTING_JSON)
            sandbox_json(&l.json, &list[i]);
        else if (form == LISTING_NAMES)
            printf("%s\n", list[i].id);
        else
            sandbox_row(&l.table, &list[i]);
    }
    return listing_end(&l, 0);
}

/* Arguments come from inside the sandbox: shown, never interpreted. */
static void join_args(const struct texts *args, char *out, size_t size)
{
    char word[512];
    size_t used = 0;

    out[0] = '\0';
    for (const char *arg = texts_next(args, NULL); arg && used + 1 < size;
         arg = texts_next(args, arg)) {
        int n = snprintf(out + used, size - used, "%s%s", used ? " " : "",
                         report_text(word, sizeof word, arg));

        used += n > 0 ? (size_t) n : 0;
    }
}

static void proc_state(const struct agent_reply *p, char *out, size_t size)
{
    if (p->flags & AGENT_RUNNING)
        (void) snprintf(out, size, "running");
    else if (p->ended == EXIT_CODE)
        (void) snprintf(out, size, "exit %u", p->exit_code);
    else if (p->ended == EXIT_SIGNAL)
        (void) snprintf(out, size, "signal %u", p->signal);
    else
        (void) snprintf(out, size, "%s", agent_exit_name(p->ended));
}

static void proc_json(struct json_out *json, const struct agent_reply *p)
{
    json_out_object(json, NULL);
    json_out_number(json, "proc", p->proc);
    json_out_number(json, "pid", p->pid);
    json_out_text(json, "user", p->user);
    json_out_text(json, "tag", p->tag);
    json_out_text(json, "cwd", p->cwd);
    json_out_bool(json, "running", p->flags & AGENT_RUNNING);
    json_out_bool(json, "tty", p->flags & AGENT_IS_PTY);
    json_out_text(json, "ended", p->ended ? agent_exit_name(p->ended) : NULL);
    json_out_number(json, "exit_code", p->exit_code);
    json_out_number(json, "signal", p->signal);
    json_out_signed(json, "started_ms", p->started_ms);
    json_out_number(json, "wall_ms", p->wall_ms);
    json_out_number(json, "cpu_ms", p->cpu_ms);
    json_out_number(json, "peak_bytes", p->peak_bytes);
    json_out_number(json, "stdout_bytes", p->stdout_bytes);
    json_out_number(json, "stderr_bytes", p->stderr_bytes);
    json_out_array(json, "args");
    for (const char *arg = texts_next(&p->args, NULL); arg; arg = texts_next(&p->args, arg))
        json_out_text(json, NULL, arg);
    json_out_end(json);
    json_out_end(json);
}

static void proc_row(struct table *table, const struct agent_reply *p)
{
    char text[256], command[256];

    table_cell(table, "%u", p->proc);
    table_cell(table, "%u", p->pid);
    table_cell(table, "%s", report_text(text, sizeof text, p->user ? p->user : "-"));
    proc_state(p, text, sizeof text);
    table_cell(table, "%s", text);
    table_cell(table, "%s", report_span(text, sizeof text, p->wall_ms));
    table_cell(table, "%s", report_span(text, sizeof text, p->cpu_ms));
    table_cell(table, "%s", report_size(text, sizeof text, p->peak_bytes));
    table_cell(table, "%s", report_text(text, sizeof text, p->tag ? p->tag : "-"));
    join_args(&p->args, command, sizeof command);
    table_cell(table, "%s", command);
}

static int one_proc(void *context, const struct agent_reply *p, struct err *err)
{
    struct listing *l = context;

    (void) err;
    if (l->form == LISTING_JSON)
        proc_json(&l->json, p);
    else if (l->form == LISTING_NAMES)
        printf("%u\n", p->proc);
    else
        proc_row(&l->table, p);
    return 0;
}

static int list_procs(struct link *link, const char *sandbox, enum listing_form form,
                      struct err *err)
{
    static const char *const headings[] = { ">PROC", ">PID",  "USER", "STATE",  ">WALL",
                                            ">CPU",  ">PEAK", "TAG",  "COMMAND" };
    struct listing l;

    listing_init(&l, form, ARRAY_LEN(headings), headings);
    return listing_end(&l, exec_items(link, sandbox, AGENT_PROCS, one_proc, &l, err));
}

int verb_ps(int argc, char **argv)
{
    struct ps_options options = { .json = false };
    enum listing_form form;
    struct link link;
    struct err err;
    char **operands;
    int count, code, r;

    code = common_parse(&ps_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 1)
        return common_excess(&ps_verb, operands[1]);
    if (common_open(&link, &err) < 0)
        return report_error(&err);
    form = options.json ? LISTING_JSON : options.quiet ? LISTING_NAMES : LISTING_TABLE;
    r = count ? saved_resolve(&link, &operands[0], &err) : 0;
    if (r == 0)
        r = count ? list_procs(&link, operands[0], form, &err) : list_sandboxes(&link, form, &err);
    link_close(&link);
    return r < 0 ? report_error(&err) : report_end(0);
}
