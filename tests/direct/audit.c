#include "base/json.h"
#include "base/own.h"
#include "cli/report.h"
#include "cli/subverbs.h"
#include "cli/table.h"
#include "direct/substore.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define LS_DEFAULT 50

struct audit_values {
    const char *tenant, *sandbox, *action, *outcome, *head;
    uint64_t since_ms; /* before now */
    uint64_t older_ms;
    uint64_t limit;
};

#define AT(field) offsetof(struct audit_values, field)

/* clang-format off */
#define FILTERS \
    { 0, "tenant",  OPTION_TEXT,     AT(tenant),   "NAME",   COMPLETE_NONE, "of this tenant only" }, \
    { 0, "sandbox", OPTION_TEXT,     AT(sandbox),  "ID",     COMPLETE_SANDBOX, "of this sandbox only" }, \
    { 0, "action",  OPTION_TEXT,     AT(action),   "ACTION", COMPLETE_NONE, "exec.run …, or all of a kind: 'exec.'" }, \
    { 0, "outcome", OPTION_TEXT,     AT(outcome),  "WORD",   COMPLETE_NONE, "ok, permission_denied, too_many …" }, \
    { 0, "since",   OPTION_DURATION, AT(since_ms), "TIME",   COMPLETE_NONE, "not older than 1h, 7d …" }

static const struct option ls_options[] = {
    FILTERS,
    { 'n', "limit", OPTION_NUMBER, AT(limit), "N", COMPLETE_NONE, "so many, the newest (50)" },
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

static struct audit_filter filter_of(const struct audit_values *values)
{
    uint64_t now = store_now_ms();

    return (struct audit_filter){ .tenant = values->tenant,
                                  .sandbox_id = values->sandbox,
                                  .action = values->action,
                                  .outcome = values->outcome,
                                  .since_ms = values->since_ms && values->since_ms < now
                                                  ? now - values->since_ms
                                                  : 0,
                                  .limit = values->limit };
}

/* Parses and opens. -1: continue. */
static int begin(const char *name, int argc, char **argv, struct audit_values *values,
                 struct store **ret)
{
    struct err err = { 0 };
    char **operands;
    int count, code;

    code = subverb_parse(&audit_verb, name, argc, argv, values, "", 0, 0, &operands, &count);
    if (code >= 0)
        return code;
    return subverb_store(ret, &err) < 0 ? report_error(&err) : -1;
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

static int row(void *arg, const struct audit_record *r, struct err *err)
{
    struct table *table = arg;
    char text[128];

    (void) err;
    table_cell(table, "%" PRIu64, r->seq);
    table_cell(table, "%s", when_text(text, sizeof text, r->time_ms));
    table_cell(table, "%s", report_text(text, sizeof text, r->user_id));
    table_cell(table, "%s", r->action);
    table_cell(table, "%s", r->outcome);
    table_cell(table, "%s", r->sandbox_id[0] ? r->sandbox_id : "-");
    (void) snprintf(text, sizeof text, "%" PRId64, r->exit_code);
    table_cell(table, "%s", r->exit_code == AUDIT_NO_EXIT ? "-" : text);
    table_cell(table, "%s", report_text(text, sizeof text, r->detail));
    return 0;
}

static int audit_ls(int argc, char **argv)
{
    static const char *const headings[] = { ">SEQ",    "TIME",    "USER",  "ACTION",
                                            "OUTCOME", "SANDBOX", ">EXIT", "DETAIL" };
    struct audit_values values = { .limit = LS_DEFAULT };
    struct audit_filter filter;
    auto_store struct store *store = NULL;
    struct table table;
    struct err err = { 0 };
    int code = begin("ls", argc, argv, &values, &store);

    if (code >= 0)
        return code;
    filter = filter_of(&values);
    table_init(&table, ARRAY_LEN(headings), headings);
    code = store_audit_list(store, &filter, row, &table, &err) < 0 ? report_error(&err) : 0;
    if (code == 0)
        (void) table_print(&table, stdout);
    table_done(&table);
    return report_end(code);
}

static void time_text(char *out, size_t size, uint64_t ms)
{
    time_t seconds = (time_t) (ms / 1000);
    struct tm tm;
    size_t n;

    (void) gmtime_r(&seconds, &tm);
    n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    (void) snprintf(out + n, size - n, ".%03uZ", (unsigned) (ms % 1000));
}

/* Everything that the hash is made of, as it is in the file: usage and events are JSON in text. */
static int line(void *arg, const struct audit_record *r, struct err *err)
{
    struct json_out json;
    char when[40];

    time_text(when, sizeof when, r->time_ms);
    json_out_init(&json, arg);
    json.one_line = true;
    json_out_object(&json, NULL);
    json_out_number(&json, "seq", r->seq);
    json_out_number(&json, "time_ms", r->time_ms);
    json_out_text(&json, "timestamp", when);
    json_out_text(&json, "tenant", r->tenant);
    json_out_text(&json, "user_id", r->user_id);
    json_out_text(&json, "sandbox_id", r->sandbox_id);
    json_out_text(&json, "action", r->action);
    json_out_text(&json, "outcome", r->outcome);
    json_out_text(&json, "request_id", r->request_id);
    json_out_text(&json, "peer", r->peer);
    json_out_text(&json, "code_hash", r->code_hash);
    json_out_text(&json, "resource_usage", r->resource_usage);
    json_out_text(&json, "security_events", r->security_events);
    json_out_text(&json, "detail", r->detail);
    json_out_signed(&json, "duration_ms", r->duration_ms);
    if (r->exit_code == AUDIT_NO_EXIT)
        json_out_text(&json, "exit_code", NULL);
    else
        json_out_signed(&json, "exit_code", r->exit_code);
    json_out_text(&json, "hash", r->hash);
    json_out_end(&json);
    return json_out_finish(&json) < 0 ? err_set(err, ERR_INTERNAL, "cannot write the records") : 0;
}

static int audit_export(int argc, char **argv)
{
    struct audit_values values = { 0 };
    struct audit_filter filter;
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    int code = begin("export", argc, argv, &values, &store);

    if (code >= 0)
        return code;
    filter = filter_of(&values);
    filter.oldest_first = true;
    code = store_audit_list(store, &filter, line, stdout, &err) < 0 ? report_error(&err) : 0;
    return report_end(code);
}

struct search {
    const char *head;
    bool found;
};

static int seek(void *arg, const struct audit_record *r, struct err *err)
{
    struct search *s = arg;

    (void) err;
    s->found |= strcmp(r->hash, s->head) == 0;
    return 0;
}

/* head: a hash that the chain must hold, or NULL. */
static int verify(struct store *store, const char *head, struct audit_chain *ret, struct err *err)
{
    const struct audit_filter all = { 0 };
    struct search search = { head, false };

    if (store_audit_verify(store, ret, err) < 0)
        return -1;
    if (ret->broken_at)
        return err_set(err, ERR_STATE, "the chain is broken: record %" PRIu64 " %s", ret->broken_at,
                       ret->why);
    if (!head)
        return 0;
    if (store_audit_list(store, &all, seek, &search, err) < 0)
        return -1;
    return search.found
               ? 0
               : err_set(err, ERR_STATE, "the chain is whole, but has no record of that hash");
}

static int audit_verify(int argc, char **argv)
{
    struct audit_values values = { 0 };
    auto_store struct store *store = NULL;
    struct audit_chain chain;
    struct err err = { 0 };
    int code = begin("verify", argc, argv, &values, &store);

    if (code >= 0)
        return code;
    if (verify(store, values.head, &chain, &err) < 0)
        return report_error(&err);
    printf("whole records=%" PRIu64 " first=%" PRIu64 " last=%" PRIu64 " head=%s\n", chain.count,
           chain.first, chain.last, chain.count ? chain.head : "-");
    return report_end(0);
}

static int audit_prune(int argc, char **argv)
{
    struct audit_values values = { 0 };
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    uint64_t count = 0;
    char detail[64];
    int code = begin("prune", argc, argv, &values, &store);

    if (code >= 0)
        return code;
    if (values.older_ms == 0 || values.older_ms > store_now_ms()) {
        (void) err_set(&err, ERR_USAGE, "audit prune: say with --older-than what may go");
        return report_error(&err);
    }
    if (store_audit_prune(store, store_now_ms() - values.older_ms, NULL, &count, &err) < 0)
        return report_error(&err);
    (void) snprintf(detail, sizeof detail, "%" PRIu64 " records", count);
    printf("%s\n", detail);
    if (subverb_audit(store, "", "audit.prune", detail, &err) < 0)
        return report_error(&err);
    return report_end(0);
}

int verb_audit(int argc, char **argv)
{
    subverb_product(argv);
    return subverbs_run(&audit_verb, argc, argv);
}
