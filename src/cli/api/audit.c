#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define LS_DEFAULT 50
#define PAGE_MOST  1000

struct audit_values {
    const char *tenant, *sandbox, *action, *outcome, *head;
    uint64_t since_ms; /* before now */
    uint64_t older_ms;
    uint64_t limit; /* 0: all */
};

#define AT(field) offsetof(struct audit_values, field)

/* clang-format off */
#define FILTERS \
    { 0, "tenant",  OPTION_TEXT,     AT(tenant),   "NAME",   COMPLETE_NONE, "of this tenant only" }, \
    { 0, "sandbox", OPTION_TEXT,     AT(sandbox),  "SANDBOX", COMPLETE_SANDBOX, "of this sandbox only: its id, or its name while it exists" }, \
    { 0, "action",  OPTION_TEXT,     AT(action),   "ACTION", COMPLETE_NONE, "exec.run …, or all of a kind: 'exec.'" }, \
    { 0, "outcome", OPTION_TEXT,     AT(outcome),  "WORD",   COMPLETE_NONE, "ok, permission_denied, too_many …" }, \
    { 0, "since",   OPTION_DURATION, AT(since_ms), "TIME",   COMPLETE_NONE, "not older than 1h, 7d …" }

static const struct option ls_options[] = {
    FILTERS,
    { 'n', "limit", OPTION_NUMBER, AT(limit), "N", COMPLETE_NONE, "so many, the newest; 0: all (50)" },
};
static const struct option export_options[] = { FILTERS };
static const struct option verify_options[] = {
    { 0, "head", OPTION_TEXT, AT(head), "HASH", COMPLETE_NONE, "a hash noted earlier must still be in the chain" },
};
static const struct option prune_options[] = {
    { 0, "older-than", OPTION_DURATION, AT(older_ms), "TIME", COMPLETE_NONE, "what is older than 90d …" },
};

static int audit_ls(int argc, char **argv);
static int audit_verify(int argc, char **argv);
static int audit_export(int argc, char **argv);
static int audit_prune(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "ls", .synopsis = "[OPTION…]", .summary = "the newest records, newest first",
      .options = ls_options, .option_count = ARRAY_LEN(ls_options), .run = audit_ls },
    { .name = "verify", .synopsis = "[--head HASH]", .summary = "recompute the chain: is any record changed or missing?",
      .options = verify_options, .option_count = ARRAY_LEN(verify_options), .run = audit_verify },
    { .name = "export", .synopsis = "[OPTION…]", .summary = "every record as a line of JSON, oldest first",
      .options = export_options, .option_count = ARRAY_LEN(export_options), .run = audit_export },
    { .name = "prune", .synopsis = "--older-than TIME", .summary = "remove old records; the chain stays valid",
      .options = prune_options, .option_count = ARRAY_LEN(prune_options), .run = audit_prune },
};

const struct verb audit_verb = {
    .name = "audit",
    .synopsis = "ls|verify|export|prune …",
    .summary = "the audit log: who did what; shows whether a record was changed",
    .command_at = 1,
    .run = verb_audit,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

int verb_audit(int argc, char **argv)
{
    return subverbs_run(&audit_verb, argc, argv);
}

static int parse(const char *name, int argc, char **argv, struct audit_values *values)
{
    char **operands;
    int count;

    return subverb_parse(&audit_verb, name, argc, argv, values, "", 0, 0, &operands, &count);
}

/* ---- records ---- */

/* "/v1/audit?…" with all that does not change from page to page; the caller's to free. */
static char *path_of(const struct audit_values *values, bool oldest_first)
{
    const struct {
        const char *name, *value;
    } filters[] = { { "tenant", values->tenant },
                    { "sandbox", values->sandbox },
                    { "action", values->action },
                    { "outcome", values->outcome } };
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    (void) fprintf(out, "/v1/audit?oldest_first=%s", oldest_first ? "true" : "false");
    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        auto_free char *value = filters[i].value ? ask_path("%s", filters[i].value) : NULL;

        if (value)
            (void) fprintf(out, "&%s=%s", filters[i].name, value);
    }
    if (values->since_ms)
        (void) fprintf(out, "&since_ms=%" PRIu64, show_age(values->since_ms));
    return fclose(out) == 0 ? text : NULL;
}

/* Page by page: a log of a year does not fit into memory. */
static int each_record(const struct audit_values *values, bool oldest_first,
                       int (*each)(void *arg, json_t *record, struct err *err), void *arg,
                       struct err *err)
{
    auto_free char *path = path_of(values, oldest_first);
    uint64_t left = values->limit ? values->limit : UINT64_MAX, cursor = 0;
    const struct remote *remote;

    if (!path)
        return err_set(err, ERR_NO_MEMORY, "no memory for a request");
    if (server_find(&remote, err) < 0)
        return -1;
    do {
        auto_free char *page = NULL;
        json_t *answer = NULL, *record;
        size_t i;
        int r = 0;

        if (asprintf(&page, "%s&limit=%" PRIu64 "&cursor=%" PRIu64, path,
                     left < PAGE_MOST ? left : PAGE_MOST, cursor) < 0)
            page = NULL;
        if (ask(remote, "GET", page, NULL, &answer, err) < 0)
            return -1;
        json_array_foreach(json_object_get(answer, "records"), i, record)
        {
            if (r == 0)
                r = each(arg, record, err);
        }
        left -= i < left ? i : left;
        cursor = show_number(answer, "next");
        json_decref(answer);
        if (r < 0)
            return -1;
    } while (cursor && left > 0);
    return 0;
}

/* With seconds: records of one moment belong together. */
static const char *when_text(char *out, size_t size, uint64_t ms)
{
    time_t t = (time_t) (ms / 1000);
    struct tm tm;

    if (!localtime_r(&t, &tm) || strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        (void) snprintf(out, size, "-");
    return out;
}

static int put_row(void *arg, json_t *record, struct err *err)
{
    json_t *exit_code = json_object_get(record, "exit_code");
    struct table *table = arg;
    char text[128];

    (void) err;
    table_cell(table, "%" PRIu64, show_number(record, "seq"));
    table_cell(table, "%s", when_text(text, sizeof text, show_number(record, "time_ms")));
    table_cell(table, "%s", report_text(text, sizeof text, show_text(record, "user_id")));
    table_cell(table, "%s", show_text(record, "action"));
    table_cell(table, "%s", show_text(record, "outcome"));
    table_cell(table, "%s",
               show_text(record, "sandbox_id")[0] ? show_text(record, "sandbox_id") : "-");
    (void) snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(exit_code));
    table_cell(table, "%s", json_is_integer(exit_code) ? text : "-");
    table_cell(table, "%s", report_text(text, sizeof text, show_text(record, "detail")));
    return 0;
}

static int audit_ls(int argc, char **argv)
{
    static const char *const headings[] = { ">SEQ",    "TIME",    "USER",  "ACTION",
                                            "OUTCOME", "SANDBOX", ">EXIT", "DETAIL" };
    struct audit_values values = { .limit = LS_DEFAULT };
    struct table table;
    struct err err;
    int code = parse("ls", argc, argv, &values);

    if (code >= 0)
        return code;
    table_init(&table, ARRAY_LEN(headings), headings);
    code = each_record(&values, false, put_row, &table, &err) < 0 ? report_error(&err) : 0;
    if (code == 0)
        (void) table_print(&table, stdout);
    table_done(&table);
    return report_end(code);
}

static int put_line(void *arg, json_t *record, struct err *err)
{
    return json_dumpf(record, arg, 0) < 0 || fputc('\n', arg) == EOF
               ? err_set(err, ERR_INTERNAL, "cannot write the records")
               : 0;
}

static int audit_export(int argc, char **argv)
{
    struct audit_values values = { 0 };
    struct err err;
    int code = parse("export", argc, argv, &values);

    if (code >= 0)
        return code;
    code = each_record(&values, true, put_line, stdout, &err) < 0 ? report_error(&err) : 0;
    return report_end(code);
}

/* ---- the chain ---- */

static int check_chain(json_t *chain, bool with_head, struct err *err)
{
    if (!json_is_true(json_object_get(chain, "whole")))
        return err_set(err, ERR_STATE, "the chain is broken: record %" PRIu64 " %.120s",
                       show_number(chain, "broken_at"), show_text(chain, "reason"));
    return with_head && !json_is_true(json_object_get(chain, "head_found"))
               ? err_set(err, ERR_STATE, "the chain is whole, but has no record of that hash")
               : 0;
}

static int audit_verify(int argc, char **argv)
{
    struct audit_values values = { 0 };
    json_t *chain = NULL;
    char text[128];
    struct err err;
    int code = parse("verify", argc, argv, &values);

    if (code >= 0)
        return code;
    if (server_ask("POST", json_pack("{s:s*}", "head", values.head), &chain, &err,
                   "/v1/audit/verify") < 0)
        return report_error(&err);
    code = check_chain(chain, values.head != NULL, &err) < 0 ? report_error(&err) : 0;
    if (code == 0)
        printf(
            "whole records=%" PRIu64 " first=%" PRIu64 " last=%" PRIu64 " head=%s\n",
            show_number(chain, "records"), show_number(chain, "first"), show_number(chain, "last"),
            show_text(chain, "head")[0] ? report_text(text, sizeof text, show_text(chain, "head"))
                                        : "-");
    json_decref(chain);
    return report_end(code);
}

static int audit_prune(int argc, char **argv)
{
    struct audit_values values = { 0 };
    json_t *answer = NULL, *body;
    struct err err;
    int code = parse("prune", argc, argv, &values);

    if (code >= 0)
        return code;
    if (values.older_ms == 0) {
        (void) err_set(&err, ERR_USAGE, "audit prune: --older-than TIME is needed");
        return report_error(&err);
    }
    body = json_pack("{s:f}", "older_than", (double) values.older_ms / 1000);
    if (server_ask("POST", body, &answer, &err, "/v1/audit/prune") < 0)
        return report_error(&err);
    printf("%" PRIu64 " records\n", show_number(answer, "removed"));
    json_decref(answer);
    return report_end(0);
}
