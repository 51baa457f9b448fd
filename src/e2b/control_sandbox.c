#include "e2b/control.h"

int control_kill(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(x);

    if (ops_sandbox_kill(&ops, exchange_param(x, "id"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}
