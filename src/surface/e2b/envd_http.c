/* envd over HTTP, but for contents of files: health, metrics, environment, and what browsers ask first. */
#include "surface/e2b/envd.h"

#include "base/io.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#define SAMPLE_MS 100 /* over which the use of the processors is measured */

/* ---- CORS: every origin may, with any header; nothing here goes by cookies ---- */

static int preflight(struct exchange *x, struct err *err)
{
    const char *method = exchange_header(x, "Access-Control-Request-Method");
    const char *headers = exchange_header(x, "Access-Control-Request-Headers");

    /* A header's value is without line breaks, or the head would not have been taken. */
    if (!method)
        return err_set(err, ERR_TOO_BIG, "a head that is too large");
    if (headers && strlen(headers) > 1024)
        headers = "*";
    if (exchange_add_header(x, "Access-Control-Allow-Methods", method, err) < 0 ||
        (headers && exchange_add_header(x, "Access-Control-Allow-Headers", headers, err) < 0) ||
        exchange_add_header(x, "Access-Control-Max-Age", "7200", err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err) < 0 ? -1 : 1;
}

int envd_greet(struct exchange *x, struct err *err)
{
    const struct head *head = exchange_head(x);

    if (!head_get(head, "Origin").at)
        return 0;
    if (exchange_add_header(x, "Access-Control-Allow-Origin", "*", err) < 0)
        return -1;
    if (head->method == METHOD_OPTIONS && head_get(head, "Access-Control-Request-Method").at)
        return preflight(x, err);
    return exchange_add_header(x, "Access-Control-Expose-Headers",
                               "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Location, "
                               "Cache-Control, X-Content-Type-Options",
                               err);
}

/* ---- what is there ---- */

int envd_health(struct exchange *x, struct err *err)
{
    if (exchange_add_header(x, "Cache-Control", "no-store", err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

int envd_metrics(struct exchange *x, struct err *err)
{
    const char *sandbox = exchange_param(x, "sandbox");
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_stats before, now;
    uint64_t from_us = io_now_us(), spent_us;
    double cores;

    if (ops_sandbox_stats(&ops, sandbox, &before, err) < 0)
        return -1;
    (void) poll(NULL, 0, SAMPLE_MS);
    if (ops_sandbox_stats(&ops, sandbox, &now, err) < 0)
        return -1;
    spent_us = io_now_us() - from_us;
    cores = (double) now.limits.cpu_milli / 1000;
    if (exchange_add_header(x, "Cache-Control", "no-store", err) < 0)
        return -1;
    return exchange_reply_json(
        x, 200,
        json_pack(
            "{s:I, s:I, s:f, s:I, s:I, s:i, s:I, s:I, s:I, s:I}", "ts", (json_int_t) time(NULL),
            "cpu_count", (json_int_t) ((now.limits.cpu_milli + 999) / 1000), "cpu_used_pct",
            spent_us > 0 && cores > 0
                ? 100.0 * (double) (now.keeper.cpu_us - before.keeper.cpu_us) /
                      ((double) spent_us * cores)
                : 0.0,
            "mem_total", (json_int_t) now.limits.memory_bytes, "mem_used",
            (json_int_t) now.keeper.memory_bytes, "mem_cache", 0, "mem_total_mib",
            (json_int_t) (now.limits.memory_bytes >> 20), "mem_used_mib",
            (json_int_t) (now.keeper.memory_bytes >> 20), "disk_used",
            (json_int_t) now.keeper.disk_bytes, "disk_total", (json_int_t) now.limits.disk_bytes),
        err);
}

int envd_envs(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *env;

    if (ops_sandbox_env(&ops, exchange_param(x, "sandbox"), &env, err) < 0 ||
        exchange_add_header(x, "Cache-Control", "no-store", err) < 0)
        return -1;
    return exchange_reply_json(x, 200, env, err);
}
