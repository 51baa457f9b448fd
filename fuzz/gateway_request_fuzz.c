/* What coved says to the gateway. The first byte is the kind of message, the rest its body. What is understood can be said again. */
#include "egress/message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static const uint8_t *body_of(const struct message_out *out, size_t *ret_len)
{
    struct message_head head;
    struct err err;

    memcpy(&head, out->data, sizeof head);
    must(message_head_check(&head, true, &err) == 0 && out->len == sizeof head + head.size);
    *ret_len = head.size;
    return out->data + sizeof head;
}

static void try_config(const uint8_t *data, size_t size)
{
    struct egress_config config = { .context = NULL };
    struct message_out out = { .data = NULL };
    struct err err;

    if (message_get_config(data, size, &config, &err) < 0)
        return;
    must(message_put_config(&out, 1, &config, &err) == 0);
    message_out_done(&out);
    free((char *) (uintptr_t) config.authorities);
}

static void try_set(const uint8_t *data, size_t size)
{
    static struct message_set set, again;
    struct message_out out = { .data = NULL };
    const uint8_t *body;
    struct err err;
    size_t len;

    if (message_get_set(data, size, &set, &err) < 0)
        return;
    must(set.rules.allow_count <= REACH_MAX && set.rules.deny_count <= REACH_MAX);
    must(message_put_set(&out, 1, set.sandbox, set.tenant, &set.rules, set.secrets, false, &err) ==
         0);
    body = body_of(&out, &len);
    must(message_get_set(body, len, &again, &err) == 0);
    must(strcmp(set.sandbox, again.sandbox) == 0 && !set.secrets == !again.secrets);
    must(set.rules.allow_count == again.rules.allow_count);
    must(upstream_same(&set.rules.upstream, &again.rules.upstream));
    if (set.secrets)
        must(set.secrets->rewrite->secret_count == again.secrets->rewrite->secret_count);
    message_secrets_free(set.secrets);
    message_secrets_free(again.secrets);
    message_out_done(&out);
}

static void try_nets(const uint8_t *data, size_t size)
{
    struct message_out out = { .data = NULL };
    struct message_nets nets, again;
    const uint8_t *body;
    struct err err;
    size_t len;

    if (message_get_nets(data, size, &nets, &err) < 0)
        return;
    must(message_put_nets(&out, 1, nets.tenant, nets.nets, nets.count, &err) == 0);
    body = body_of(&out, &len);
    must(message_get_nets(body, len, &again, &err) == 0 && again.count == nets.count);
    message_nets_done(&nets);
    message_nets_done(&again);
    message_out_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct egress_process process;
    char sandbox[EGRESS_ID_MAX];
    struct egress_dial dial;
    struct err err, why;
    uint64_t ticket;

    if (size == 0)
        return 0;
    switch (data[0] % MESSAGE_RESULT) {
    case MESSAGE_CONFIG:
        try_config(data + 1, size - 1);
        break;
    case MESSAGE_SET:
        try_set(data + 1, size - 1);
        break;
    case MESSAGE_NETS:
        try_nets(data + 1, size - 1);
        break;
    case MESSAGE_ANSWER:
        (void) message_get_answer(data + 1, size - 1, &ticket, &process, &err);
        break;
    case MESSAGE_DIALED:
        (void) message_get_dialed(data + 1, size - 1, &dial, &why, &err);
        break;
    default:
        (void) message_get_sandbox(data + 1, size - 1, sandbox, &err);
    }
    return 0;
}
