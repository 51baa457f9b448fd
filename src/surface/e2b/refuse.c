#include "surface/e2b/e2b.h"

#include <string.h>

/* A message may quote what is no UTF-8. */
static json_t *text(const char *message)
{
    json_t *json = json_string(message);

    return json ? json : json_string("the request cannot be served");
}

int e2b_refuse_gone(struct exchange *x, const char *sandbox, uint16_t closed_port)
{
    json_t *body = json_pack("{s:o, s:s, s:i}", "sandboxId", text(sandbox), "message",
                             closed_port ? "The sandbox is running but port is not open"
                                         : "The sandbox was not found",
                             "code", 502);
    struct err ignored;

    if (exchange_param(x, "paused")[0])
        (void) json_object_set_new(body, "paused", json_true());
    if (closed_port)
        (void) json_object_set_new(body, "port", json_integer(closed_port));
    return exchange_reply_json(x, 502, body, &ignored);
}

int e2b_refuse(struct exchange *x, const struct err *why)
{
    int status = exchange_error_status(x, why);
    struct err ignored;

    if (status == 502 && why->kind == ERR_NO_SANDBOX)
        return e2b_refuse_gone(x, exchange_param(x, "sandbox"), 0);
    return exchange_reply_json(
        x, status, json_pack("{s:i, s:o}", "code", status, "message", text(why->msg)), &ignored);
}
