#include "server/guard/audit.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "base/sha256.h"
#include "policy/rules.h"
#include "server/app/app.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define PAGE_DEFAULT 100
#define PAGE_MOST    1000

#define REFUSALS_PER_S 20 /* records of refused strangers */

static atomic_uint_fast64_t lost;

/* What a record points to, until the store has copied it. */
struct draft {
    struct audit_record record;
    char user_id[STORE_TENANT_MAX + 40];
    char code_hash[SHA256_HEX + 8];
    char usage[320];
    char events[512];
};

static void add_number(char *out, size_t size, const char *name, uint64_t value)
{
    size_t used = strlen(out);

    if (value > 0)
        (void) snprintf(out + used, size - used, "%s\"%s\":%" PRIu64, used > 1 ? "," : "", name,
                        value);
}

static void draft_usage(struct draft *d, const struct audit_facts *facts)
{
    (void) strcpy(d->usage, "{");
    add_number(d->usage, sizeof d->usage - 1, "cpu_ms", facts->cpu_ms);
    add_number(d->usage, sizeof d->usage - 1, "memory_mb",
               (facts->memory_peak_bytes + (1 << 20) - 1) >> 20);
    add_number(d->usage, sizeof d->usage - 1, "memory_peak_bytes", facts->memory_peak_bytes);
    add_number(d->usage, sizeof d->usage - 1, "stdout_bytes", facts->stdout_bytes);
    add_number(d->usage, sizeof d->usage - 1, "stderr_bytes", facts->stderr_bytes);
    add_number(d->usage, sizeof d->usage - 1, "file_bytes", facts->file_bytes);
    (void) strcat(d->usage, "}");
}

/* By jansson: rules may be the operator's own words. */
static void draft_events(struct draft *d, const struct audit_facts *facts)
{
    json_t *events;

    (void) strcpy(d->events, "[]");
    if (!facts->rule && !facts->refused_syscalls)
        return;
    events = json_array();
    if (facts->rule)
        (void) json_array_append_new(events, json_pack("{s:s, s:s, s:s}", "type", "policy", "rule",
                                                       facts->rule, "risk",
                                                       facts->risk ? facts->risk : "medium"));
    if (facts->refused_syscalls)
        (void) json_array_append_new(events,
                                     json_pack("{s:s, s:I}", "type", "refused_syscalls", "count",
                                               (json_int_t) facts->refused_syscalls));
    if (json_dumpb(events, d->events, sizeof d->events - 1, JSON_COMPACT) >= sizeof d->events)
        (void) strcpy(d->events, "[]");
    json_decref(events);
}

static void draft_init(struct draft *d, const char *action, const char *sandbox_id,
                       const struct audit_facts *facts)
{
    struct audit_facts none = AUDIT_FACTS;
    unsigned char hash[SHA256_LEN];
    bool refused;

    facts = facts ? facts : &none;
    refused = facts->refusal && facts->refusal->kind != ERR_NONE;
    memset(d, 0, sizeof *d);
    draft_usage(d, facts);
    draft_events(d, facts);
    if (facts->code) {
        (void) strcpy(d->code_hash, "sha256:");
        sha256_of(facts->code, facts->code_len, hash);
        sha256_hex(hash, sizeof hash, d->code_hash + 7);
    }
    d->record = (struct audit_record){
        .sandbox_id = sandbox_id,
        .action = action,
        .outcome = refused ? err_kind_info(facts->refusal->kind)->name : "ok",
        /* What went wrong inside stays in the log, as with answers. */
        .detail = refused && facts->refusal->kind != ERR_INTERNAL ? facts->refusal->msg
                  : facts && facts->detail                        ? facts->detail
                                                                  : "",
        .code_hash = d->code_hash,
        .resource_usage = d->usage,
        .security_events = d->events,
        .duration_ms = facts->duration_ms,
        .exit_code = facts->exit_code,
    };
}

static void draft_caller(struct draft *d, const struct caller *caller)
{
    const char *home = caller->home[0] ? caller->home : caller->tenant;

    if (caller->key_id[0])
        (void) snprintf(d->user_id, sizeof d->user_id, "%s/%s", home, caller->key_id);
    else
        (void) snprintf(d->user_id, sizeof d->user_id, "%s", home);
    d->record.tenant = caller->tenant;
    d->record.user_id = d->user_id;
    d->record.request_id = caller->request;
    d->record.peer = caller->peer;
}

/* A full disk makes many of these: the log gets one line a second at most. */
static void note_lost(const struct err *err)
{
    static atomic_uint_fast64_t said_ms;
    uint64_t now = io_now_ms(), said = atomic_load(&said_ms);

    atomic_fetch_add(&lost, 1);
    if (now - said >= 1000 && atomic_compare_exchange_strong(&said_ms, &said, now))
        log_line(LOG_ERROR, "audit records lost=%" PRIuFAST64 ": %s", atomic_load(&lost), err->msg);
}

int audit_flush(struct app *app, struct err *err)
{
    return store_audit_flush(app->store, err);
}

uint64_t audit_lost(void)
{
    return atomic_load(&lost);
}

/* A refusal that was blamed on a rule of the policy is a security event of that rule. */
static struct audit_facts with_rule(const struct caller *caller, const struct audit_facts *facts)
{
    struct audit_facts own = facts ? *facts : AUDIT_FACTS;
    const char *rule = caller_blamed_rule(caller, "policy");

    if (own.refusal && own.refusal->kind == ERR_DENIED && !own.rule && rule) {
        own.rule = rule;
        own.risk = policy_risk_name(policy_rules[policy_rule_find(rule)].risk);
    }
    return own;
}

void audit_note(struct caller *caller, const char *action, const char *sandbox_id,
                const struct audit_facts *facts)
{
    struct audit_facts own = with_rule(caller, facts);
    struct draft d;
    struct err err;

    draft_init(&d, action, sandbox_id, &own);
    draft_caller(&d, caller);
    if (store_audit_append(caller->app->store, &d.record, STORE_QUEUED, &err) < 0)
        note_lost(&err);
}

static int append(struct caller *caller, const char *action, const char *sandbox_id,
                  const struct audit_facts *facts, enum store_safety safety, struct err *err)
{
    struct draft d;

    draft_init(&d, action, sandbox_id, facts);
    draft_caller(&d, caller);
    if (store_audit_append(caller->app->store, &d.record, safety, err) == 0)
        return 0;
    note_lost(err);
    return err_wrap(err, "the audit log");
}

int audit_durable(struct caller *caller, const char *action, const char *sandbox_id,
                  const struct audit_facts *facts, struct err *err)
{
    return append(caller, action, sandbox_id, facts, STORE_ON_DISK, err);
}

int audit_written(struct caller *caller, const char *action, const char *sandbox_id,
                  const struct audit_facts *facts, struct err *err)
{
    return append(caller, action, sandbox_id, facts, STORE_WRITTEN, err);
}

void audit_system(struct app *app, const char *tenant, const char *action, const char *sandbox_id,
                  const struct audit_facts *facts)
{
    struct draft d;
    struct err err;

    draft_init(&d, action, sandbox_id, facts);
    d.record.tenant = tenant;
    d.record.user_id = "system";
    if (store_audit_append(app->store, &d.record, STORE_QUEUED, &err) < 0)
        note_lost(&err);
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

static void draft_prune(struct draft *d, struct caller *caller, const char *detail)
{
    struct audit_facts facts = AUDIT_FACTS;

    facts.detail = detail;
    draft_init(d, "audit.prune", "", &facts);
    d->record.tenant = "";
    d->record.user_id = "system";
    if (caller)
        draft_caller(d, caller);
}

int audit_prune(struct app *app, struct caller *caller, uint64_t before_ms, uint64_t *ret_count,
                struct err *err)
{
    char detail[80] = "records before ";
    struct draft d;

    time_text(detail + strlen(detail), sizeof detail - strlen(detail), before_ms);
    draft_prune(&d, caller, detail);
    return store_audit_prune(app->store, before_ms, &d.record, ret_count, err);
}

int audit_shrink(struct app *app, uint64_t most, uint64_t *ret_count, struct err *err)
{
    struct draft d;

    draft_prune(&d, NULL, "the oldest records: the log is too large");
    return store_audit_shrink(app->store, most, &d.record, ret_count, err);
}

void audit_refusal(struct caller *caller, const char *action, const struct err *why)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t second, in_second, unsaid;
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t now = io_now_ms() / 1000, skipped = 0;
    struct err told = *why;
    bool quiet;

    (void) pthread_mutex_lock(&lock);
    if (now != second) {
        second = now;
        in_second = 0;
    }
    quiet = ++in_second > REFUSALS_PER_S;
    unsaid += quiet;
    if (!quiet) {
        skipped = unsaid;
        unsaid = 0;
    }
    (void) pthread_mutex_unlock(&lock);
    if (quiet)
        return;
    if (skipped > 0)
        err_wrap(&told, "(%" PRIu64 " earlier refusals are not listed)", skipped);
    facts.refusal = &told;
    audit_note(caller, action, "", &facts);
}

/* ---- for GET /audit-logs ---- */

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *json_or(const char *text, json_t *otherwise)
{
    json_t *value = json_loads(text, 0, NULL);

    if (!value)
        return otherwise;
    json_decref(otherwise);
    return value;
}

json_t *audit_json(const struct audit_record *r)
{
    char when[40];

    time_text(when, sizeof when, r->time_ms);
    return json_pack(
        "{s:I, s:s, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "seq",
        (json_int_t) r->seq, "timestamp", when, "tenant", r->tenant, "sandbox_id",
        text_or_null(r->sandbox_id), "user_id", r->user_id, "action", r->action, "outcome",
        r->outcome, "code_hash", text_or_null(r->code_hash), "duration_ms",
        r->duration_ms < 0 ? json_null() : json_integer(r->duration_ms), "exit_code",
        r->exit_code == AUDIT_NO_EXIT ? json_null() : json_integer(r->exit_code), "resource_usage",
        json_or(r->resource_usage, json_object()), "security_events",
        json_or(r->security_events, json_array()), "detail", text_or_null(r->detail), "request_id",
        text_or_null(r->request_id), "peer", text_or_null(r->peer), "hash", r->hash ? r->hash : "");
}

struct collect {
    audit_form *form;
    json_t *records;
    uint64_t limit, seen, last;
};

static int collect_one(void *arg, const struct audit_record *record, struct err *err)
{
    struct collect *c = arg;
    json_t *json;

    if (++c->seen > c->limit)
        return 0; /* one more than asked for: only to know that there is one */
    json = c->form(record);
    if (!json || json_array_append_new(c->records, json) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    c->last = record->seq;
    return 0;
}

int audit_page(struct app *app, const struct audit_filter *filter, struct audit_page *ret,
               struct err *err)
{
    return audit_page_as(app, filter, audit_json, ret, err);
}

int audit_page_as(struct app *app, const struct audit_filter *filter, audit_form *form,
                  struct audit_page *ret, struct err *err)
{
    struct audit_filter asked = *filter;
    struct collect c = { .form = form, .records = json_array() };

    c.limit = filter->limit == 0          ? PAGE_DEFAULT
              : filter->limit > PAGE_MOST ? PAGE_MOST
                                          : filter->limit;
    asked.limit = c.limit + 1;
    /* A caller sees what it did just now. On a full disk, what there is. */
    if (store_audit_flush(app->store, err) < 0)
        log_line(LOG_WARNING, "audit page without the newest records: %s", err->msg);
    if (!c.records || store_audit_list(app->store, &asked, collect_one, &c, err) < 0) {
        if (!c.records)
            err_set(err, ERR_NO_MEMORY, "no memory for the answer");
        json_decref(c.records);
        return -1;
    }
    *ret = (struct audit_page){ c.records, c.seen > c.limit ? c.last : 0 };
    return 0;
}
