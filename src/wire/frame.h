/* frame.h - frames on an agent connection.
 *
 * 8 bytes: u32 length of the payload, u8 type, 3 zero bytes; then the payload. Little-endian.
 * A length over the type's limit, an unknown type or a non-zero spare byte ends the connection:
 * nothing is allocated from a length before it is checked. */
#ifndef COVE_WIRE_FRAME_H
#define COVE_WIRE_FRAME_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEAD        8u
#define FRAME_DATA_MAX    65536u
#define FRAME_REQUEST_MAX (1024u * 1024u)

enum frame_type {
    /* caller to agent */
    FRAME_REQUEST = 1,   /* record of agent_request_fields; the first frame, exactly once */
    FRAME_STDIN = 2,     /* raw bytes */
    FRAME_STDIN_END = 3, /* empty */
    FRAME_RESIZE = 4,    /* u16 rows, u16 columns */
    FRAME_SIGNAL = 5,    /* u32 number */
    /* both ways */
    FRAME_DATA = 6,     /* raw bytes of a file */
    FRAME_DATA_END = 7, /* empty: the file is whole */
    /* agent to caller */
    FRAME_REPLY = 16,  /* record of agent_reply_fields: it worked */
    FRAME_ERROR = 17,  /* record of agent_reply_fields with kind and message; the last frame */
    FRAME_STDOUT = 18, /* u64 offset of the first byte in the stream, raw bytes */
    FRAME_STDERR = 19, /* likewise */
    FRAME_EXIT = 20,   /* record of agent_reply_fields; the last frame */
    FRAME_ITEM = 21,   /* record of agent_reply_fields: one of many */
    FRAME_END = 22,    /* record of agent_reply_fields: no more items; the last frame */
    FRAME_TYPE_COUNT
};

struct frame_head {
    uint32_t len;
    enum frame_type type;
};

/* Greatest payload of a type; -1: no such type. */
int64_t frame_limit(uint32_t type);
const char *frame_name(uint32_t type);

void frame_head_put(uint8_t out[FRAME_HEAD], enum frame_type type, uint32_t len);
int frame_head_get(const uint8_t in[FRAME_HEAD], struct frame_head *ret, struct err *err);

void frame_put_u16(uint8_t *out, uint16_t value);
void frame_put_u32(uint8_t *out, uint32_t value);
void frame_put_u64(uint8_t *out, uint64_t value);
uint16_t frame_get_u16(const uint8_t *in);
uint32_t frame_get_u32(const uint8_t *in);
uint64_t frame_get_u64(const uint8_t *in);

#endif
