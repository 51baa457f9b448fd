/* policy_gate.h - the one policy check of every surface, and the memory of what it found.
 *
 * Each tenant has the policy of a preset; a sandbox that was made with rules of its own has those instead.
 * Whatever is refused, or is a violation that the policy lets pass, is kept in a ring for the tenant to see.
 *
 * Owns:    compiled policies and the ring, from policy_gate_new to policy_gate_free.
 * Callers: ops*.c before anything reaches an agent; the tools surface for the names of tools.
 * Never:   a boundary: it is advice to well-meaning agents (policy/policy.h). Never blames a caller by itself:
 *          a caller has the verdict's rule for caller_blame(caller, NULL, verdict.rule, "policy"). */
#ifndef COVE_SERVER_GUARD_POLICY_GATE_H
#define COVE_SERVER_GUARD_POLICY_GATE_H

#include "policy/policy.h"
#include "server/app/app.h"
#include "server/guard/caller.h"

#include <jansson.h>

#define GATE_RULE_MAX 64

struct policy_gate;
struct gate_rules;

struct policy_verdict {
    char rule[GATE_RULE_MAX]; /* of the worst violation; "" without one */
    enum policy_risk risk;
    bool allowed, complete;
    size_t violations;
    uint64_t cpu_us; /* that the analysis took */
};

/* `preset`: of tenants; NULL: "standard". `e2b`: of what E2B's dialect makes; NULL: the same. */
struct policy_gate *policy_gate_new(const char *preset, const char *e2b, struct err *err);
void policy_gate_free(struct policy_gate *gate);

/* All of these: 0 when it may continue, -1 with ERR_DENIED and the reason. The verdict is always filled.
 * `sandbox` may be NULL: the tenant's policy. */
int policy_gate_command(struct app *app, const struct caller *caller, const char *sandbox,
                        const char *command, struct policy_verdict *ret, struct err *err);
/* The same for an argv, which no shell sees: judged as if each argument were quoted. */
int policy_gate_args(struct app *app, const struct caller *caller, const char *sandbox,
                     const char *const *args, size_t count, struct policy_verdict *ret,
                     struct err *err);
int policy_gate_path(struct app *app, const struct caller *caller, const char *sandbox,
                     const char *path, enum policy_access access, struct policy_verdict *ret,
                     struct err *err);
int policy_gate_tool(struct app *app, const struct caller *caller, const char *sandbox,
                     const char *tool, struct policy_verdict *ret, struct err *err);

/* For what a list or a search finds, where the client named only the directory. No caller asked for a hit by its name, so
 * one that is left out is neither a violation nor counted. Open may fail with ERR_DENIED and others: nothing passes then. */
struct gate_sieve {
    struct policy_gate *gate;
    struct gate_rules *rules;
    char *last; /* the path before, and what it was: a search has many hits in one file */
    bool last_passes;
};
int policy_gate_sieve_open(struct app *app, const char *sandbox, struct gate_sieve *ret,
                           struct err *err);
bool policy_gate_sieve_passes(struct gate_sieve *sieve, const char *path);
void policy_gate_sieve_close(struct gate_sieve *sieve);

/* Rules of a sandbox's own: the JSON text of a `security` object (docs/tools.md), checked. The maker of the sandbox
 * keeps the text in its metadata under GATE_METADATA, where a later process finds it. */
#define GATE_METADATA "cove.security"

/* Set in the metadata of sandboxes that were made through E2B's dialect (ops_create.e2b): the setting `e2b_policy`
 * counts for them. */
#define GATE_E2B "cove.e2b"

/* Set in the metadata of sandboxes that were made with the root profile: `sudo` is then no violation, and neither is `user: root`. E2B's
 * dialect gives that profile to everybody, unasked; there the setting alone counts. */
#define GATE_ROOT "cove.root"

/* Whether rules of a sandbox's own are at least as strict as its tenant's; see policy_within. */
int policy_gate_within(struct app *app, const struct policy *policy, const char **ret_member,
                       struct err *err);

struct gate_counts {
    uint64_t checked, denied;
    uint64_t by_risk[POLICY_RISK_COUNT]; /* violations */
};
void policy_gate_counts(struct policy_gate *gate, const char *tenant, struct gate_counts *ret);

#endif
