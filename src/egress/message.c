#include "egress/message_own.h"

#include <stdlib.h>
#include <string.h>

#define KIB         1024u
#define MIB         (1024u * KIB)
#define ROOM_LEAST  512u
#define ROOM_MOST   (32u * MIB)
#define ROW_HEAD    sizeof(uint32_t)
#define REPORT_BODY (MESSAGE_REPORT_MOST - (uint32_t) sizeof(struct message_head))

/* clang-format off */
const struct message_row message_rows[MESSAGE_KINDS] = {
    [MESSAGE_CONFIG] = { "config", true,  true,  4 * MIB,     { 0, 0 } },
    [MESSAGE_SET]    = { "set",    true,  true,  8 * MIB,     { 0, EGRESS_FDS } },
    [MESSAGE_DROP]   = { "drop",   true,  true,  128,         { 0, 0 } },
    [MESSAGE_OPEN]   = { "open",   true,  true,  128,         { 0, 0 } },
    [MESSAGE_COUNTS] = { "counts", true,  true,  0,           { 0, 0 } },
    [MESSAGE_RANGES] = { "ranges", true,  true,  1 * KIB,     { 0, 0 } },
    [MESSAGE_NETS]   = { "nets",   true,  true,  8 * MIB,     { 0, 0 } },
    [MESSAGE_ANSWER] = { "answer", true,  false, 256,         { 0, 0 } },
    [MESSAGE_DIALED] = { "dialed", true,  false, 1 * KIB,     { 0, 1 } },
    [MESSAGE_RESULT] = { "result", false, false, REPORT_BODY, { 0, 0 } },
    [MESSAGE_EVENT]  = { "event",  false, false, REPORT_BODY, { 0, 0 } },
    [MESSAGE_ASK]    = { "ask",    false, false, REPORT_BODY, { 0, 0 } },
    [MESSAGE_DIAL]   = { "dial",   false, false, REPORT_BODY, { 0, 0 } },
};
/* clang-format on */

int message_head_check(const struct message_head *head, bool to_gateway, struct err *err)
{
    const struct message_row *row = head->kind < MESSAGE_KINDS ? &message_rows[head->kind] : NULL;

    if (!row || row->to_gateway != to_gateway)
        return err_set(err, ERR_PROTOCOL, "unexpected message %u", head->kind);
    if (head->size > row->most)
        return err_set(err, ERR_PROTOCOL, "message '%s' of %u bytes is too long", row->name,
                       head->size);
    if (head->fds != row->fds[0] && head->fds != row->fds[1])
        return err_set(err, ERR_PROTOCOL, "message '%s' with %u descriptors", row->name, head->fds);
    return 0;
}

void message_out_done(struct message_out *out)
{
    if (out->data)
        explicit_bzero(out->data, out->room);
    free(out->data);
    *out = (struct message_out){ .data = NULL };
}

/* Not realloc, which may leave secrets behind. */
bool message_room(struct message_out *out, size_t more)
{
    size_t room = out->room ? out->room : ROOM_LEAST;
    uint8_t *wider;

    if (more > ROOM_MOST || out->len + more > ROOM_MOST)
        return false;
    while (room < out->len + more)
        room *= 2;
    if (room == out->room)
        return true;
    wider = malloc(room);
    if (!wider)
        return false;
    if (out->data) {
        memcpy(wider, out->data, out->len);
        explicit_bzero(out->data, out->room);
        free(out->data);
    }
    out->data = wider;
    out->room = room;
    return true;
}

/* A record behind `skip` bytes that the caller fills in. */
static ssize_t put_record(struct message_out *out, size_t skip, struct message_table table,
                          const void *object, struct err *err)
{
    ssize_t len = record_length(table.fields, table.count, object, err);

    if (len < 0)
        return -1;
    if (!message_room(out, skip + (size_t) len))
        return err_set(err, ERR_TOO_BIG, "no room for a message to or from the gateway");
    return record_encode(table.fields, table.count, object, out->data + out->len + skip,
                         (size_t) len, err);
}

int message_put(struct message_out *out, enum message_kind kind, uint16_t fds, uint64_t serial,
                struct message_table table, const void *object, struct err *err)
{
    struct message_head head = { .kind = (uint16_t) kind, .fds = fds, .serial = serial };
    ssize_t n = put_record(out, sizeof head, table, object, err);

    if (n < 0)
        return -1;
    if ((size_t) n > message_rows[kind].most)
        return err_set(err, ERR_TOO_BIG, "message '%s' is too long", message_rows[kind].name);
    head.size = (uint32_t) n;
    memcpy(out->data + out->len, &head, sizeof head);
    out->len += sizeof head + (size_t) n;
    return 0;
}

int message_put_row(struct message_out *out, struct message_table table, const void *object,
                    struct err *err)
{
    ssize_t n = put_record(out, ROW_HEAD, table, object, err);
    uint32_t len = (uint32_t) n;

    if (n < 0)
        return -1;
    memcpy(out->data + out->len, &len, ROW_HEAD);
    out->len += ROW_HEAD + len;
    return 0;
}

static int take_row(struct bytes *rest, struct bytes *ret, struct err *err)
{
    uint32_t len;

    if (rest->len < ROW_HEAD)
        return err_set(err, ERR_PROTOCOL, "a row is cut off");
    memcpy(&len, rest->data, ROW_HEAD);
    if (len > rest->len - ROW_HEAD)
        return err_set(err, ERR_PROTOCOL, "a row is cut off");
    *ret = (struct bytes){ (const uint8_t *) rest->data + ROW_HEAD, len };
    rest->data = (const uint8_t *) ret->data + len;
    rest->len -= (uint32_t) ROW_HEAD + len;
    return 0;
}

int message_get_row(struct bytes *rest, struct message_table table, void *object, struct err *err)
{
    struct bytes row = { NULL, 0 };

    if (rest->len == 0)
        return 1;
    if (take_row(rest, &row, err) < 0)
        return -1;
    return record_decode(table.fields, table.count, object, row.data, row.len, err);
}

size_t message_count_rows(struct bytes rows)
{
    struct bytes row;
    struct err ignored;
    size_t count = 0;

    while (rows.len > 0 && take_row(&rows, &row, &ignored) == 0)
        count++;
    return count;
}

int message_copy(char *out, size_t size, const char *text, const char *name, struct err *err)
{
    if (text && strlen(text) >= size)
        return err_set(err, ERR_PROTOCOL, "%s: too long", name);
    memset(out, 0, size);
    if (text)
        (void) strcpy(out, text);
    return 0;
}

int message_ip(struct ip *ret, const struct bytes *bytes, const char *name, struct err *err)
{
    *ret = (struct ip){ { 0 } };
    if (bytes->len != 0 && bytes->len != sizeof ret->bytes)
        return err_set(err, ERR_PROTOCOL, "%s: not an address", name);
    if (bytes->len)
        memcpy(ret->bytes, bytes->data, sizeof ret->bytes);
    return 0;
}
