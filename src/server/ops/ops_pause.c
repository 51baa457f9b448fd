/* Pauses, resumes, and how long a sandbox lives. */
#include "server/guard/audit.h"
#include "server/guard/quota.h"
#include "server/life/deadline.h"
#include "server/life/sleep.h"
#include "server/ops/ops_own.h"

#include "base/io.h"

#include <inttypes.h>
#include <string.h>

/* ---- pauses ---- */

static int pause_audit(struct ops *ops, const char *sandbox, const struct sleep_told *told,
                       uint64_t begun_ms, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    char detail[ERR_MSG_MAX + 32];

    (void) snprintf(detail, sizeof detail, "%s%s%s", sleep_tier_name(told->tier),
                    told->fallback[0] ? ", since " : "", told->fallback);
    facts.detail = detail;
    facts.duration_ms = (int64_t) (io_now_ms() - begun_ms);
    facts.file_bytes = told->bytes;
    return told->tier == STORE_DISK
               ? audit_durable(ops->caller, "sandbox.pause", sandbox, &facts, err)
               : audit_written(ops->caller, "sandbox.pause", sandbox, &facts, err);
}

int ops_sandbox_pause(struct ops *ops, const char *sandbox, const struct ops_pause *how,
                      struct ops_paused *ret, struct err *err)
{
    const struct sleep_ask ask = {
        .tier = how->tier, .by = STORE_BY_REQUEST, .files_only = how->files_only, .hold = true
    };
    uint64_t begun = io_now_ms();
    struct sleep_told told;

    if (ops_sandbox_check(ops, sandbox, err) < 0)
        return -1;
    if (sleep_pause(ops->app, sandbox, &ask, &told, err) < 0) {
        if (err->kind == ERR_TOO_MANY)
            (void) caller_blame(ops->caller, NULL, quota_named(err), "quota");
        ops_audit(ops, "sandbox.pause", sandbox, err);
        return -1;
    }
    *ret = (struct ops_paused){ .tier = told.tier, .already = told.already };
    memcpy(ret->fallback, told.fallback, sizeof ret->fallback);
    return told.already ? 0 : pause_audit(ops, sandbox, &told, begun, err);
}

/* ---- resumes ---- */

int ops_check_timeout(struct ops *ops, uint64_t timeout_ms, struct err *err)
{
    uint64_t most = app_config(ops->app)->sandbox_timeout_most_ms;

    if (timeout_ms > 0 && timeout_ms <= most)
        return 0;
    err_set(err, ERR_INVALID, "timeout: 1 to %" PRIu64 " seconds", most / 1000);
    return caller_blame(ops->caller, "timeout", NULL, NULL);
}

static int resume(struct ops *ops, const char *sandbox, uint64_t timeout_ms, bool *ret_woken,
                  struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t begun = io_now_ms();

    if (timeout_ms > 0 && ops_check_timeout(ops, timeout_ms, err) < 0)
        return -1;
    if (ops_sandbox_check(ops, sandbox, err) < 0)
        return -1;
    if (sleep_wake(ops->app, sandbox, timeout_ms, 0, ret_woken, err) < 0) {
        if (err->kind == ERR_TOO_MANY)
            (void) caller_blame(ops->caller, NULL, NULL, "quota");
        ops_audit(ops, "sandbox.resume", sandbox, err);
        return -1;
    }
    if (!*ret_woken)
        return 0;
    facts.duration_ms = (int64_t) (io_now_ms() - begun);
    return audit_written(ops->caller, "sandbox.resume", sandbox, &facts, err);
}

int ops_sandbox_resume(struct ops *ops, const char *sandbox, uint64_t timeout_ms, struct err *err)
{
    bool woken;

    return resume(ops, sandbox, timeout_ms, &woken, err);
}

int ops_sandbox_extend(struct ops *ops, const char *sandbox, uint64_t timeout_ms,
                       struct ops_sandbox *ret, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct store_sandbox record;

    if (ops_check_timeout(ops, timeout_ms, err) < 0 || ops_find(ops, sandbox, &record, err) < 0 ||
        store_sandbox_set_deadline(ops->app->store, sandbox, store_now_ms() + timeout_ms,
                                   record.on_timeout & ~STORE_TIMEOUT_HELD, err) < 0)
        return -1;
    deadline_changed(ops->app);
    if (audit_written(ops->caller, "sandbox.extend", sandbox, &facts, err) < 0)
        return -1;
    return ops_sandbox_get(ops, sandbox, ret, err);
}

/* Paused, resumed by another at the same time, running: each is fine in the end. */
int ops_sandbox_connect(struct ops *ops, const char *sandbox, uint64_t timeout_ms,
                        bool *ret_resumed, struct ops_sandbox *ret, struct err *err)
{
    bool resumed = false;

    if (ops_check_timeout(ops, timeout_ms, err) < 0 || ops_sandbox_get(ops, sandbox, ret, err) < 0)
        return -1;
    if (ret->life == LIFE_GONE)
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%s'", sandbox);
    if (ret->life != LIFE_RUNNING && (resume(ops, sandbox, timeout_ms, &resumed, err) < 0 ||
                                      ops_sandbox_get(ops, sandbox, ret, err) < 0))
        return -1;
    *ret_resumed = resumed;
    if (resumed || ret->deadline_ms == 0 || ret->deadline_ms >= store_now_ms() + timeout_ms)
        return 0;
    return ops_sandbox_extend(ops, sandbox, timeout_ms, ret, err);
}
