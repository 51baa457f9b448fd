/* What the gateway says. coved reads it as if an attacker had written it. */
#include "egress/message_own.h"

#include "base/parse.h"

#include <string.h>

/* ---- checks ---- */

/* Of one line, of printable characters: it goes into logs, and to terminals. */
static int check_line(const char *text, const char *name, struct err *err)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char) *c < 0x20 || (unsigned char) *c >= 0x7f)
            return err_set(err, ERR_PROTOCOL, "%s: unexpected character", name);
    return 0;
}

/* The other way round: what the gateway says is always of that kind, whatever a server or a library told it. */
static const char *cleaned(char *out, size_t size, const char *text)
{
    size_t i = 0;

    for (; text[i] && i + 1 < size; i++)
        out[i] = (unsigned char) text[i] < 0x20 || (unsigned char) text[i] >= 0x7f ? '?' : text[i];
    out[i] = '\0';
    return i > 0 ? out : NULL;
}

static int take_line(char *out, size_t size, const char *text, const char *name, struct err *err)
{
    return message_copy(out, size, text, name, err) < 0 ? -1 : check_line(out, name, err);
}

static int take_id(char out[EGRESS_ID_MAX], const char *text, const char *name, struct err *err)
{
    if (!text || !id_ok(text))
        return err_set(err, ERR_PROTOCOL, "%s: not an id", name);
    return message_copy(out, EGRESS_ID_MAX, text, name, err);
}

/* ---- RESULT ---- */

struct result_record {
    uint32_t kind;
    const char *text;
    uint64_t open;
    struct bytes counts; /* struct egress_counts, which is nothing but numbers; missing: all 0 */
};

#define AT(field) offsetof(struct result_record, field)
static const struct field result_fields[] = {
    { 1, "kind", FIELD_U32, AT(kind), ERR_KIND_COUNT - 1 },
    { 2, "text", FIELD_TEXT, AT(text), ERR_MSG_MAX },
    { 3, "open", FIELD_U64, AT(open), 0 },
    { 4, "counts", FIELD_BYTES, AT(counts), sizeof(struct egress_counts) },
};
#undef AT

int message_put_result(struct message_out *out, uint64_t serial,
                       const struct message_result *result, struct err *err)
{
    bool failed = result->err.kind != ERR_NONE;
    char text[ERR_MSG_MAX];
    struct result_record record = { .kind = result->err.kind,
                                    .text =
                                        cleaned(text, sizeof text, failed ? result->err.msg : ""),
                                    .open = result->open };

    if (result->has_counts)
        record.counts = (struct bytes){ &result->counts, sizeof result->counts };

    return message_put(out, MESSAGE_RESULT, 0, serial, TABLE(result_fields), &record, err);
}

int message_get_result(const void *body, size_t len, struct message_result *ret, struct err *err)
{
    struct result_record record;

    if (record_decode(result_fields, ARRAY_LEN(result_fields), &record, body, len, err) < 0)
        return -1;
    *ret = (struct message_result){ .err.kind = record.kind, .open = record.open };
    ret->has_counts = record.counts.len == sizeof ret->counts;
    if (record.counts.len && !ret->has_counts)
        return err_set(err, ERR_PROTOCOL, "counts: wrong length");
    if (ret->has_counts)
        memcpy(&ret->counts, record.counts.data, sizeof ret->counts);
    return take_line(ret->err.msg, sizeof ret->err.msg, record.text, "text", err);
}

/* ---- EVENT ---- */

struct event_record {
    uint32_t what, port, pid;
    const char *sandbox, *host, *rule, *reason, *process, *from, *to;
    struct bytes ip;
    uint64_t sent, received, ms, missed;
};

#define AT(field) offsetof(struct event_record, field)
static const struct field event_fields[] = {
    { 1, "sandbox", FIELD_TEXT, AT(sandbox), EGRESS_ID_MAX },
    { 2, "what", FIELD_U32, AT(what), EGRESS_WHATS - 1 },
    { 3, "host", FIELD_TEXT, AT(host), REACH_NAME_MAX },
    { 4, "ip", FIELD_BYTES, AT(ip), sizeof(struct ip) },
    { 5, "port", FIELD_U32, AT(port), UINT16_MAX },
    { 6, "rule", FIELD_TEXT, AT(rule), REACH_TEXT_MAX },
    { 7, "reason", FIELD_TEXT, AT(reason), EGRESS_REASON_MAX },
    { 8, "pid", FIELD_U32, AT(pid), 0 },
    { 9, "process", FIELD_TEXT, AT(process), EGRESS_PROCESS_MAX },
    { 10, "sent", FIELD_U64, AT(sent), 0 },
    { 11, "received", FIELD_U64, AT(received), 0 },
    { 12, "ms", FIELD_U64, AT(ms), 0 },
    { 13, "missed", FIELD_U64, AT(missed), 0 },
    { 14, "from", FIELD_TEXT, AT(from), EGRESS_ID_MAX },
    { 15, "to", FIELD_TEXT, AT(to), EGRESS_ID_MAX },
};
#undef AT

int message_put_event(struct message_out *out, const struct egress_event *e, struct err *err)
{
    char host[REACH_NAME_MAX], rule[REACH_TEXT_MAX], reason[EGRESS_REASON_MAX];
    char process[EGRESS_PROCESS_MAX];
    struct event_record record = {
        .what = e->what,
        .port = e->port,
        .pid = e->process.pid,
        .sandbox = e->sandbox,
        .host = cleaned(host, sizeof host, e->host),
        .rule = cleaned(rule, sizeof rule, e->rule),
        .reason = cleaned(reason, sizeof reason, e->reason),
        .process = cleaned(process, sizeof process, e->process.name),
        .from = e->from[0] ? e->from : NULL,
        .to = e->to[0] ? e->to : NULL,
        .ip = { e->ip.bytes, sizeof e->ip.bytes },
        .sent = e->sent,
        .received = e->received,
        .ms = e->ms,
        .missed = e->missed,
    };

    return message_put(out, MESSAGE_EVENT, 0, 0, TABLE(event_fields), &record, err);
}

/* Both, or none: between two sandboxes. */
static int take_ends(const struct event_record *record, struct egress_event *ret, struct err *err)
{
    if (!record->from && !record->to)
        return 0;
    return take_id(ret->from, record->from, "from", err) < 0
               ? -1
               : take_id(ret->to, record->to, "to", err);
}

/* What is shown as a number in JSON has to fit there. */
static int check_sizes(const struct event_record *record, struct err *err)
{
    const uint64_t sizes[] = { record->sent, record->received, record->ms, record->missed };

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (sizes[i] > INT64_MAX)
            return err_set(err, ERR_PROTOCOL, "a number is too large");
    return 0;
}

int message_get_event(const void *body, size_t len, struct egress_event *ret, struct err *err)
{
    struct event_record record;

    if (record_decode(event_fields, ARRAY_LEN(event_fields), &record, body, len, err) < 0 ||
        check_sizes(&record, err) < 0)
        return -1;
    *ret = (struct egress_event){
        .what = (enum egress_what) record.what,
        .port = (uint16_t) record.port,
        .process.pid = record.pid,
        .sent = record.sent,
        .received = record.received,
        .ms = record.ms,
        .missed = record.missed,
    };
    return take_id(ret->sandbox, record.sandbox, "sandbox", err) < 0 ||
                   take_line(ret->host, sizeof ret->host, record.host, "host", err) < 0 ||
                   take_line(ret->rule, sizeof ret->rule, record.rule, "rule", err) < 0 ||
                   take_line(ret->reason, sizeof ret->reason, record.reason, "reason", err) < 0 ||
                   take_line(ret->process.name, sizeof ret->process.name, record.process, "process",
                             err) < 0 ||
                   take_ends(&record, ret, err) < 0 ||
                   message_ip(&ret->ip, &record.ip, "ip", err) < 0
               ? -1
               : 0;
}

/* ---- ASK ---- */

struct ask_record {
    const char *sandbox;
    uint64_t ticket;
    uint32_t datagram, from_port, to_port;
    struct bytes from, to;
};

#define AT(field) offsetof(struct ask_record, field)
static const struct field ask_fields[] = {
    { 1, "sandbox", FIELD_TEXT, AT(sandbox), EGRESS_ID_MAX },
    { 2, "ticket", FIELD_U64, AT(ticket), 0 },
    { 3, "datagram", FIELD_U32, AT(datagram), 1 },
    { 4, "from_port", FIELD_U32, AT(from_port), UINT16_MAX },
    { 5, "to_port", FIELD_U32, AT(to_port), UINT16_MAX },
    { 6, "from", FIELD_BYTES, AT(from), sizeof(struct ip) },
    { 7, "to", FIELD_BYTES, AT(to), sizeof(struct ip) },
};
#undef AT

int message_put_ask(struct message_out *out, const struct egress_ask *ask, struct err *err)
{
    struct ask_record record = {
        .sandbox = ask->sandbox,
        .ticket = ask->ticket,
        .datagram = ask->datagram,
        .from_port = ask->from_port,
        .to_port = ask->to_port,
        .from = { ask->from.bytes, sizeof ask->from.bytes },
        .to = { ask->to.bytes, sizeof ask->to.bytes },
    };

    return message_put(out, MESSAGE_ASK, 0, 0, TABLE(ask_fields), &record, err);
}

int message_get_ask(const void *body, size_t len, struct egress_ask *ret, struct err *err)
{
    struct ask_record record;

    if (record_decode(ask_fields, ARRAY_LEN(ask_fields), &record, body, len, err) < 0)
        return -1;
    *ret = (struct egress_ask){ .ticket = record.ticket,
                                .datagram = record.datagram,
                                .from_port = (uint16_t) record.from_port,
                                .to_port = (uint16_t) record.to_port };
    return take_id(ret->sandbox, record.sandbox, "sandbox", err) < 0 ||
                   message_ip(&ret->from, &record.from, "from", err) < 0
               ? -1
               : message_ip(&ret->to, &record.to, "to", err);
}

/* ---- DIAL ---- */

struct dial_record {
    uint64_t ticket;
    const char *tenant, *from, *to;
    uint32_t port;
};

#define AT(field) offsetof(struct dial_record, field)
static const struct field dial_fields[] = {
    { 1, "ticket", FIELD_U64, AT(ticket), 0 },
    { 2, "tenant", FIELD_TEXT, AT(tenant), EGRESS_ID_MAX },
    { 3, "from", FIELD_TEXT, AT(from), EGRESS_ID_MAX },
    { 4, "to", FIELD_TEXT, AT(to), EGRESS_ID_MAX },
    { 5, "port", FIELD_U32, AT(port), UINT16_MAX },
};
#undef AT

int message_put_dial(struct message_out *out, const struct egress_dial *dial, struct err *err)
{
    struct dial_record record = { dial->ticket, dial->tenant, dial->from, dial->to, dial->port };

    return message_put(out, MESSAGE_DIAL, 0, 0, TABLE(dial_fields), &record, err);
}

int message_get_dial(const void *body, size_t len, struct egress_dial *ret, struct err *err)
{
    struct dial_record record;

    if (record_decode(dial_fields, ARRAY_LEN(dial_fields), &record, body, len, err) < 0)
        return -1;
    *ret = (struct egress_dial){ .ticket = record.ticket, .port = (uint16_t) record.port };
    if (record.port == 0)
        return err_set(err, ERR_PROTOCOL, "port: missing");
    return take_line(ret->tenant, sizeof ret->tenant, record.tenant, "tenant", err) < 0 ||
                   take_id(ret->from, record.from, "from", err) < 0
               ? -1
               : take_id(ret->to, record.to, "to", err);
}
