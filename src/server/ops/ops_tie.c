#include "server/ops/ops_tie.h"

#include "base/io.h"
#include "base/log.h"
#include "server/ops/ops_own.h"

#include <poll.h>
#include <string.h>

#define RETRY_MS 200
#define UNTIE_MS 20000

/* A link with a tie is never anybody else's: it is closed, not given back. */
static void drop_link(struct ops *ops, struct ops_tie *tie)
{
    if (tie->link.fd >= 0)
        app_link_give(ops->app, &tie->link, false);
    tie->link.fd = -1;
}

static int tie_link(struct ops *ops, struct ops_tie *tie, struct err *err)
{
    if (app_link_take(ops->app, &tie->link, err) < 0) {
        tie->link.fd = -1;
        return -1;
    }
    if (sandbox_tie(&tie->link, tie->sandbox, err) == 0)
        return 0;
    drop_link(ops, tie);
    return -1;
}

int ops_tie(struct ops *ops, const char *sandbox, struct ops_tie *ret, struct err *err)
{
    *ret = OPS_TIE_NONE;
    (void) snprintf(ret->sandbox, sizeof ret->sandbox, "%s", sandbox);
    ret->renew_ms = io_now_ms() + OPS_TIE_EVERY_MS;
    return tie_link(ops, ret, err);
}

int ops_tie_fd(const struct ops_tie *tie)
{
    return tie->link.fd;
}

static bool link_ended(const struct ops_tie *tie)
{
    struct pollfd p = { .fd = tie->link.fd };

    return tie->link.fd >= 0 && poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void move_on(struct ops *ops, struct ops_tie *tie)
{
    struct err err;

    if (store_sandbox_set_deadline(ops->app->store, tie->sandbox, store_now_ms() + OPS_TIE_MS,
                                   STORE_TIMEOUT_KILL, &err) < 0 &&
        err.kind != ERR_NO_SANDBOX)
        log_line(LOG_WARNING, "sandbox=%s its deadline is not moved on: %s", tie->sandbox, err.msg);
}

void ops_tie_keep(struct ops *ops, struct ops_tie *tie, uint64_t *ret_wait_ms)
{
    uint64_t now = io_now_ms();
    struct err ignored;

    if (link_ended(tie))
        drop_link(ops, tie);
    if (tie->link.fd < 0 && now >= tie->retry_ms) {
        (void) tie_link(ops, tie, &ignored);
        tie->retry_ms = now + RETRY_MS;
    }
    if (now >= tie->renew_ms) {
        move_on(ops, tie);
        tie->renew_ms = now + OPS_TIE_EVERY_MS;
    }
    *ret_wait_ms = tie->link.fd < 0 ? RETRY_MS : tie->renew_ms - now;
}

void ops_untie(struct ops *ops, struct ops_tie *tie)
{
    uint64_t until = io_now_ms() + UNTIE_MS;
    struct err err;
    int r;

    /* A keeper that is being restarted is back in a moment; what is left then is the deadline's. */
    while ((r = ops_sandbox_kill(ops, tie->sandbox, &err)) < 0 && err.kind == ERR_UNAVAILABLE &&
           io_now_ms() < until)
        (void) poll(NULL, 0, RETRY_MS);
    if (r < 0 && err.kind != ERR_NO_SANDBOX)
        log_line(LOG_WARNING, "sandbox=%s not ended with its maker: %s", tie->sandbox, err.msg);
    drop_link(ops, tie);
}
