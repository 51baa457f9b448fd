/* message.h - messages between coved and cove-gateway, over a stream of a unix socket.
 *
 *   head (16 bytes) | body (a record of wire/record.h, at most as long as the kind's row in message_rows allows)
 *
 * Descriptors travel with the first byte of a head, and only from coved to the gateway. Requests of coved that have a row with
 * `answered` get one RESULT with their serial, in the order of the requests. Everything else is sent without an answer.
 * Same host, same build: numbers of the head are in host order, and CONFIG, always the first message, has the version.
 *
 * coved takes what the gateway says for hostile: message_get_event, _ask, _dial and _result check all that can be
 * checked without knowing any sandbox; server/gateway/gateway.c checks the rest.
 *
 * Pure, but for memory. Fuzzed, both ways. */
#ifndef COVE_EGRESS_MESSAGE_H
#define COVE_EGRESS_MESSAGE_H

#include "egress/egress.h"

#include <stddef.h>

enum message_kind {
    /* of coved */
    MESSAGE_CONFIG,
    MESSAGE_SET, /* rules of a sandbox; with descriptors, its sockets; perhaps with secrets */
    MESSAGE_DROP,
    MESSAGE_OPEN, /* how many connections does it have? */
    MESSAGE_COUNTS,
    MESSAGE_RANGES, /* egress_set_ranges */
    MESSAGE_NETS,   /* all private networks of a tenant */
    MESSAGE_ANSWER, /* to ASK */
    MESSAGE_DIALED, /* to DIAL; with a descriptor, the stream */
    /* of the gateway */
    MESSAGE_RESULT,
    MESSAGE_EVENT,
    MESSAGE_ASK,
    MESSAGE_DIAL,
    MESSAGE_KINDS
};

struct message_row {
    const char *name;
    bool to_gateway, answered;
    uint32_t most;   /* bytes of its body */
    uint16_t fds[2]; /* numbers of descriptors that it may have */
};
extern const struct message_row message_rows[MESSAGE_KINDS];

struct message_head {
    uint32_t size; /* of the body */
    uint16_t kind, fds;
    uint64_t serial;
};
/* Whether a message of the direction may have this head. */
int message_head_check(const struct message_head *head, bool to_gateway, struct err *err);

#define MESSAGE_REPORT_MOST 4096 /* no message of the gateway is longer, head and all */

/* Bytes to be sent: messages, one behind the other. */
struct message_out {
    uint8_t *data;
    size_t len, room;
};
/* Wiped: there may be secrets in it. */
void message_out_done(struct message_out *out);

/* Each appends one message, or leaves `out` as it was: ERR_TOO_BIG, ERR_NO_MEMORY. */

/* ---- of coved ---- */

int message_put_config(struct message_out *out, uint64_t serial, const struct egress_config *config,
                       struct err *err);

/* What is put into requests of one sandbox, as coved has it: the values, and the authority that opens TLS for them. */
struct message_secrets {
    struct rewrite *rewrite;
    char *cert, *key; /* PEM; NULL: no TLS is opened */
};
/* Wipes. Accepts NULL. */
void message_secrets_free(struct message_secrets *secrets);

struct message_set {
    char sandbox[EGRESS_ID_MAX], tenant[EGRESS_ID_MAX]; /* tenant: "" without sockets */
    struct reach rules;
    struct message_secrets *secrets; /* NULL: as they are */
};
int message_put_set(struct message_out *out, uint64_t serial, const char *sandbox,
                    const char *tenant, const struct reach *rules,
                    const struct message_secrets *secrets, bool with_sockets, struct err *err);
/* MESSAGE_DROP and MESSAGE_OPEN: sandbox; MESSAGE_COUNTS: none. */
int message_put_ask_for(struct message_out *out, enum message_kind kind, uint64_t serial,
                        const char *sandbox, struct err *err);
int message_put_ranges(struct message_out *out, uint64_t serial, const char *ranges,
                       struct err *err);
int message_put_nets(struct message_out *out, uint64_t serial, const char *tenant,
                     const struct egress_net *nets, size_t count, struct err *err);
int message_put_answer(struct message_out *out, uint64_t ticket,
                       const struct egress_process *process, struct err *err);
int message_put_dialed(struct message_out *out, const struct egress_dial *dial, bool with_stream,
                       const struct err *why, struct err *err);

/* Each fills in all of *ret, or frees what it has begun. */

/* config->authorities: the caller's to free. The functions are left alone. */
int message_get_config(const void *body, size_t len, struct egress_config *config, struct err *err);
int message_get_set(const void *body, size_t len, struct message_set *ret, struct err *err);
int message_get_sandbox(const void *body, size_t len, char ret[EGRESS_ID_MAX], struct err *err);
int message_get_ranges(const void *body, size_t len, char ret[EGRESS_RANGES_MAX], struct err *err);
struct message_nets {
    char tenant[EGRESS_ID_MAX];
    struct egress_net *nets;
    size_t count;
};
int message_get_nets(const void *body, size_t len, struct message_nets *ret, struct err *err);
void message_nets_done(struct message_nets *nets);
/* ret->pid 0: not known. */
int message_get_answer(const void *body, size_t len, uint64_t *ret_ticket,
                       struct egress_process *ret, struct err *err);
int message_get_dialed(const void *body, size_t len, struct egress_dial *ret, struct err *ret_why,
                       struct err *err);

/* ---- of the gateway ---- */

struct message_result {
    struct err err; /* kind ERR_NONE: done */
    uint64_t open;
    bool has_counts;
    struct egress_counts counts;
};
int message_put_result(struct message_out *out, uint64_t serial,
                       const struct message_result *result, struct err *err);
int message_put_event(struct message_out *out, const struct egress_event *event, struct err *err);
int message_put_ask(struct message_out *out, const struct egress_ask *ask, struct err *err);
int message_put_dial(struct message_out *out, const struct egress_dial *dial, struct err *err);

int message_get_result(const void *body, size_t len, struct message_result *ret, struct err *err);
int message_get_event(const void *body, size_t len, struct egress_event *ret, struct err *err);
int message_get_ask(const void *body, size_t len, struct egress_ask *ret, struct err *err);
int message_get_dial(const void *body, size_t len, struct egress_dial *ret, struct err *err);

#endif
