/* Private networks, and what is dialed in them, as coved says it to the gateway. */
#include "egress/message_own.h"

#include <stdlib.h>
#include <string.h>

/* ---- NETS: a row for each member, those of a network together ---- */

struct member_record {
    const char *network, *sandbox, *alias;
    struct bytes ip, ports; /* ports: two bytes each, in host order */
    uint64_t seq;
};

#define AT(field) offsetof(struct member_record, field)
static const struct field member_fields[] = {
    { 1, "network", FIELD_TEXT, AT(network), EGRESS_LABEL_MAX },
    { 2, "sandbox", FIELD_TEXT, AT(sandbox), EGRESS_ID_MAX },
    { 3, "alias", FIELD_TEXT, AT(alias), EGRESS_LABEL_MAX },
    { 4, "ip", FIELD_BYTES, AT(ip), sizeof(struct ip) },
    { 5, "ports", FIELD_BYTES, AT(ports), EGRESS_PORTS * sizeof(uint16_t) },
    { 6, "seq", FIELD_U64, AT(seq), 0 },
};
#undef AT

struct nets_record {
    const char *tenant;
    struct bytes members;
};

#define AT(field) offsetof(struct nets_record, field)
static const struct field nets_fields[] = {
    { 1, "tenant", FIELD_TEXT, AT(tenant), EGRESS_ID_MAX },
    { 2, "members", FIELD_BYTES, AT(members), 0 },
};
#undef AT

static int put_net(struct message_out *out, const struct egress_net *net, struct err *err)
{
    for (size_t i = 0; i < net->count; i++) {
        const struct egress_member *m = &net->members[i];
        struct member_record record = {
            .network = net->name,
            .sandbox = m->sandbox,
            .alias = m->alias,
            .ip = { m->ip.bytes, sizeof m->ip.bytes },
            .ports = { m->ports, (uint32_t) (m->port_count * sizeof m->ports[0]) },
            .seq = m->seq,
        };

        if (message_put_row(out, TABLE(member_fields), &record, err) < 0)
            return -1;
    }
    return 0;
}

int message_put_nets(struct message_out *out, uint64_t serial, const char *tenant,
                     const struct egress_net *nets, size_t count, struct err *err)
{
    struct message_out rows = { .data = NULL };
    struct nets_record record = { .tenant = tenant };
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = put_net(&rows, &nets[i], err);
    record.members = (struct bytes){ rows.data, (uint32_t) rows.len };
    if (r == 0)
        r = message_put(out, MESSAGE_NETS, 0, serial, TABLE(nets_fields), &record, err);
    message_out_done(&rows);
    return r;
}

static int get_member(const struct member_record *record, struct egress_member *ret,
                      struct err *err)
{
    if (!record->network || !record->sandbox || !record->alias ||
        record->ports.len % sizeof ret->ports[0])
        return err_set(err, ERR_PROTOCOL, "a member without a name, or half a port");
    ret->seq = record->seq;
    ret->port_count = record->ports.len / sizeof ret->ports[0];
    if (record->ports.len)
        memcpy(ret->ports, record->ports.data, record->ports.len);
    return message_copy(ret->sandbox, sizeof ret->sandbox, record->sandbox, "sandbox", err) < 0 ||
                   message_copy(ret->alias, sizeof ret->alias, record->alias, "alias", err) < 0
               ? -1
               : message_ip(&ret->ip, &record->ip, "ip", err);
}

/* The network of a row: the last one, or a new one. */
static struct egress_net *net_of(struct message_nets *all, const char *name)
{
    struct egress_net *last = all->count > 0 ? &all->nets[all->count - 1] : NULL;
    struct egress_net *wider;

    if (last && strcmp(last->name, name) == 0)
        return last;
    wider = realloc(all->nets, (all->count + 1) * sizeof *wider);
    if (!wider)
        return NULL;
    all->nets = wider;
    wider[all->count] = (struct egress_net){ .count = 0 };
    (void) snprintf(wider[all->count].name, EGRESS_LABEL_MAX, "%s", name);
    return &wider[all->count++];
}

static int add_member(struct egress_net *net, const struct egress_member *member, struct err *err)
{
    struct egress_member *wider = net->members;

    /* Room for twice as many whenever a power of two is full. */
    if (net->count == 0 || (net->count & (net->count - 1)) == 0) {
        wider = realloc(net->members, (net->count ? 2 * net->count : 1) * sizeof *wider);
        if (!wider)
            return err_set(err, ERR_NO_MEMORY, "no memory for networks");
        net->members = wider;
    }
    wider[net->count++] = *member;
    return 0;
}

static int get_rows(struct bytes rows, struct message_nets *ret, struct err *err)
{
    struct member_record record;
    int r;

    while ((r = message_get_row(&rows, TABLE(member_fields), &record, err)) == 0) {
        struct egress_member member = { .seq = 0 };
        struct egress_net *net;

        if (get_member(&record, &member, err) < 0)
            return -1;
        net = net_of(ret, record.network);
        if (!net)
            return err_set(err, ERR_NO_MEMORY, "no memory for networks");
        if (add_member(net, &member, err) < 0)
            return -1;
    }
    return r < 0 ? -1 : 0;
}

int message_get_nets(const void *body, size_t len, struct message_nets *ret, struct err *err)
{
    struct nets_record record;

    *ret = (struct message_nets){ .count = 0 };
    if (record_decode(nets_fields, ARRAY_LEN(nets_fields), &record, body, len, err) < 0)
        return -1;
    if (!record.tenant)
        return err_set(err, ERR_PROTOCOL, "tenant: missing");
    if (message_copy(ret->tenant, sizeof ret->tenant, record.tenant, "tenant", err) == 0 &&
        get_rows(record.members, ret, err) == 0)
        return 0;
    message_nets_done(ret);
    return -1;
}

void message_nets_done(struct message_nets *nets)
{
    for (size_t i = 0; i < nets->count; i++)
        free(nets->nets[i].members);
    free(nets->nets);
    nets->nets = NULL;
    nets->count = 0;
}

/* ---- ANSWER ---- */

struct answer_record {
    uint64_t ticket;
    uint32_t pid;
    const char *name;
};

#define AT(field) offsetof(struct answer_record, field)
static const struct field answer_fields[] = {
    { 1, "ticket", FIELD_U64, AT(ticket), 0 },
    { 2, "pid", FIELD_U32, AT(pid), 0 },
    { 3, "name", FIELD_TEXT, AT(name), EGRESS_PROCESS_MAX },
};
#undef AT

int message_put_answer(struct message_out *out, uint64_t ticket,
                       const struct egress_process *process, struct err *err)
{
    struct answer_record record = { ticket, process ? process->pid : 0,
                                    process ? process->name : NULL };

    return message_put(out, MESSAGE_ANSWER, 0, 0, TABLE(answer_fields), &record, err);
}

int message_get_answer(const void *body, size_t len, uint64_t *ret_ticket,
                       struct egress_process *ret, struct err *err)
{
    struct answer_record record;

    if (record_decode(answer_fields, ARRAY_LEN(answer_fields), &record, body, len, err) < 0)
        return -1;
    *ret_ticket = record.ticket;
    ret->pid = record.pid;
    return message_copy(ret->name, sizeof ret->name, record.name, "name", err);
}

/* ---- DIALED ---- */

struct dialed_record {
    uint64_t ticket;
    const char *tenant, *from, *to, *why;
    uint32_t port, kind;
};

#define AT(field) offsetof(struct dialed_record, field)
static const struct field dialed_fields[] = {
    { 1, "ticket", FIELD_U64, AT(ticket), 0 },
    { 2, "tenant", FIELD_TEXT, AT(tenant), EGRESS_ID_MAX },
    { 3, "from", FIELD_TEXT, AT(from), EGRESS_ID_MAX },
    { 4, "to", FIELD_TEXT, AT(to), EGRESS_ID_MAX },
    { 5, "port", FIELD_U32, AT(port), UINT16_MAX },
    { 6, "kind", FIELD_U32, AT(kind), ERR_KIND_COUNT - 1 },
    { 7, "why", FIELD_TEXT, AT(why), ERR_MSG_MAX },
};
#undef AT

int message_put_dialed(struct message_out *out, const struct egress_dial *dial, bool with_stream,
                       const struct err *why, struct err *err)
{
    struct dialed_record record = { dial->ticket,
                                    dial->tenant,
                                    dial->from,
                                    dial->to,
                                    with_stream ? NULL : why->msg,
                                    dial->port,
                                    with_stream ? 0 : why->kind };

    return message_put(out, MESSAGE_DIALED, with_stream ? 1 : 0, 0, TABLE(dialed_fields), &record,
                       err);
}

int message_get_dialed(const void *body, size_t len, struct egress_dial *ret, struct err *ret_why,
                       struct err *err)
{
    struct dialed_record record;

    if (record_decode(dialed_fields, ARRAY_LEN(dialed_fields), &record, body, len, err) < 0)
        return -1;
    *ret = (struct egress_dial){ .ticket = record.ticket, .port = (uint16_t) record.port };
    ret_why->kind = record.kind;
    return message_copy(ret->tenant, sizeof ret->tenant, record.tenant, "tenant", err) < 0 ||
                   message_copy(ret->from, sizeof ret->from, record.from, "from", err) < 0 ||
                   message_copy(ret->to, sizeof ret->to, record.to, "to", err) < 0
               ? -1
               : message_copy(ret_why->msg, sizeof ret_why->msg, record.why, "why", err);
}
