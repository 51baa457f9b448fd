/* message_own.h - what the files of message.h share. */
#ifndef COVE_EGRESS_MESSAGE_OWN_H
#define COVE_EGRESS_MESSAGE_OWN_H

#include "egress/message.h"
#include "wire/record.h"

#include "base/own.h"

struct message_table {
    const struct field *fields;
    size_t count;
};
#define TABLE(fields) ((struct message_table){ fields, ARRAY_LEN(fields) })

bool message_room(struct message_out *out, size_t more);
int message_put(struct message_out *out, enum message_kind kind, uint16_t fds, uint64_t serial,
                struct message_table table, const void *object, struct err *err);
/* A row of a list of records: its length, and the record. */
int message_put_row(struct message_out *out, struct message_table table, const void *object,
                    struct err *err);
/* The next row of *rest, which gets shorter. 1: no more. */
int message_get_row(struct bytes *rest, struct message_table table, void *object, struct err *err);
size_t message_count_rows(struct bytes rows);

/* A text that was given, into a place of that size; one that was not is "". */
int message_copy(char *out, size_t size, const char *text, const char *name, struct err *err);
int message_ip(struct ip *ret, const struct bytes *bytes, const char *name, struct err *err);

#endif
