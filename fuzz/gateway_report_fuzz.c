/* What a gateway that was taken over says to coved: bytes of a stream, as server/gateway/gateway.c cuts them. Whatever is taken is safe to log,
 * to keep and to show. */
#include "base/parse.h"
#include "egress/message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static void check_text(const char *text, size_t size)
{
    must(strnlen(text, size) < size);
    for (; *text; text++)
        must((unsigned char) *text >= 0x20 && (unsigned char) *text < 0x7f);
}

static void check_event(const uint8_t *body, size_t len)
{
    struct egress_event e;
    struct err err;

    if (message_get_event(body, len, &e, &err) < 0)
        return;
    must(e.what < EGRESS_WHATS && id_ok(e.sandbox));
    must(!e.from[0] == !e.to[0] && (!e.from[0] || (id_ok(e.from) && id_ok(e.to))));
    check_text(e.host, sizeof e.host);
    check_text(e.rule, sizeof e.rule);
    check_text(e.reason, sizeof e.reason);
    check_text(e.process.name, sizeof e.process.name);
    must((int64_t) e.sent >= 0 && (int64_t) e.received >= 0 && (int64_t) e.missed >= 0);
}

static void check_rest(const struct message_head *head, const uint8_t *body)
{
    struct message_result result;
    struct egress_dial dial;
    struct egress_ask ask;
    struct err err;

    if (head->kind == MESSAGE_RESULT && message_get_result(body, head->size, &result, &err) == 0) {
        must(result.err.kind < ERR_KIND_COUNT);
        check_text(result.err.msg, sizeof result.err.msg);
    }
    if (head->kind == MESSAGE_ASK && message_get_ask(body, head->size, &ask, &err) == 0)
        must(id_ok(ask.sandbox));
    if (head->kind == MESSAGE_DIAL && message_get_dial(body, head->size, &dial, &err) == 0) {
        must(id_ok(dial.from) && id_ok(dial.to) && dial.port != 0);
        check_text(dial.tenant, sizeof dial.tenant);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct message_head head;
    struct err err;

    while (size >= sizeof head) {
        memcpy(&head, data, sizeof head);
        if (message_head_check(&head, false, &err) < 0)
            return 0;
        must(head.size + sizeof head <= MESSAGE_REPORT_MOST && head.fds == 0);
        data += sizeof head;
        size -= sizeof head;
        if (head.size > size)
            head.size = (uint32_t) size;
        if (head.kind == MESSAGE_EVENT)
            check_event(data, head.size);
        else
            check_rest(&head, data);
        data += head.size;
        size -= head.size;
    }
    return 0;
}
