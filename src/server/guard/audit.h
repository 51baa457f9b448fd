/* audit.h - who did what: one record per execution, file write, lifecycle change, key use and refusal.
 *
 * Records have the shape of struct audit_record (store/store.h). They hold hashes of commands, never their text,
 * and nothing of files.
 *
 * Callers: ops, for what they did; auth and quota, for what they refused. */
#ifndef COVE_SERVER_GUARD_AUDIT_H
#define COVE_SERVER_GUARD_AUDIT_H

#include "server/guard/caller.h"
#include "store/store.h"

#include <jansson.h>

struct app;

/* What is known beyond who and when. Start from AUDIT_FACTS: zero is a value in exit_code. */
struct audit_facts {
    const char *code; /* hashed here; NULL: none */
    size_t code_len;
    int64_t exit_code;   /* AUDIT_NO_EXIT: none */
    int64_t duration_ms; /* -1: none */
    uint64_t cpu_ms, memory_peak_bytes, stdout_bytes, stderr_bytes, file_bytes; /* 0: left out */
    const struct err *refusal; /* NULL: it was done; kind ERR_NONE counts as done, too */
    const char *rule;          /* a policy rule that spoke: becomes a security event */
    const char *risk;          /* "low" … "critical", with rule */
    const char *detail;        /* a short sentence, where no refusal says one; NULL: none */
    uint64_t refused_syscalls; /* by the jail during this: becomes a security event */
};
#define AUDIT_FACTS ((struct audit_facts){ .exit_code = AUDIT_NO_EXIT, .duration_ms = -1 })

/* Cheap: queued, on disk soon. facts may be NULL. A record that cannot be queued is counted and logged. */
void audit_note(struct caller *caller, const char *action, const char *sandbox_id,
                const struct audit_facts *facts);
/* Written when it returns, which kill -9 does not undo: for the life of sandboxes, before it is answered. */
int audit_written(struct caller *caller, const char *action, const char *sandbox_id,
                  const struct audit_facts *facts, struct err *err);
/* On disk when it returns: for what is still there after a power cut, and for rights. */
int audit_durable(struct caller *caller, const char *action, const char *sandbox_id,
                  const struct audit_facts *facts, struct err *err);
/* What the server does by itself: a sandbox that expired. */
void audit_system(struct app *app, const char *tenant, const char *action, const char *sandbox_id,
                  const struct audit_facts *facts);

/* Forgets records older than before_ms, or the oldest while the store has more than `most` bytes. The record "audit.prune" is
 * written with the first removal, or not at all if nothing went. caller NULL: the server by itself. */
int audit_prune(struct app *app, struct caller *caller, uint64_t before_ms, uint64_t *ret_count,
                struct err *err);
int audit_shrink(struct app *app, uint64_t most, uint64_t *ret_count, struct err *err);

/* Refusals of strangers: a flood of them makes a few records a second, the last of which counts the rest. */
void audit_refusal(struct caller *caller, const char *action, const struct err *why);

/* One record as JSON (docs/tenants.md); NULL when memory is short. */
json_t *audit_json(const struct audit_record *record);

struct audit_page {
    json_t *records; /* array; the caller's to decref */
    uint64_t next;   /* cursor of the next page; 0: this was the last */
};
/* For GET /audit-logs: one page, newest first unless the filter says else; the filter's limit is at most 1000
 * (0: 100). */
int audit_page(struct app *app, const struct audit_filter *filter, struct audit_page *ret,
               struct err *err);
/* The same with another form of a record. */
typedef json_t *audit_form(const struct audit_record *record);
int audit_page_as(struct app *app, const struct audit_filter *filter, audit_form *form,
                  struct audit_page *ret, struct err *err);

/* What was noted so far can be listed when it returns. */
int audit_flush(struct app *app, struct err *err);

/* Records that could not be kept since the start. */
uint64_t audit_lost(void);

#endif
