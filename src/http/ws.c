#include "http/ws.h"

#include "http/put.h"

#include <string.h>

#define FIN      0x80
#define RESERVED 0x70
#define MASKED   0x80

static bool is_control(enum ws_op op)
{
    return op >= WS_CLOSE;
}

static bool op_known(unsigned op)
{
    return op <= WS_BINARY || (op >= WS_CLOSE && op <= WS_PONG);
}

static int check_first_two(const uint8_t *in, struct err *err)
{
    unsigned op = in[0] & 15, len = in[1] & 127;

    if (in[0] & RESERVED)
        return err_set(err, ERR_PROTOCOL, "WebSocket: a reserved bit is set");
    if (!op_known(op))
        return err_set(err, ERR_PROTOCOL, "WebSocket: opcode %u is not known", op);
    if (!(in[1] & MASKED))
        return err_set(err, ERR_PROTOCOL, "WebSocket: a client's frame is not masked");
    if (is_control(op) && !(in[0] & FIN))
        return err_set(err, ERR_PROTOCOL, "WebSocket: a control frame is fragmented");
    if (is_control(op) && len > WS_CONTROL_MAX)
        return err_set(err, ERR_PROTOCOL, "WebSocket: a control frame is longer than %d bytes",
                       WS_CONTROL_MAX);
    return 0;
}

static uint64_t big_endian(const uint8_t *in, size_t len)
{
    uint64_t value = 0;

    for (size_t i = 0; i < len; i++)
        value = value << 8 | in[i];
    return value;
}

int ws_frame_decode(const uint8_t *in, size_t len, struct ws_frame *ret_frame, struct err *err)
{
    size_t wide; /* bytes of a longer length */
    uint64_t size;

    if (len < 2)
        return 0;
    if (check_first_two(in, err) < 0)
        return -1;
    size = in[1] & 127;
    wide = size == 127 ? 8 : size == 126 ? 2 : 0;
    if (len < 2 + wide + 4)
        return 0;
    if (wide > 0) {
        size = big_endian(in + 2, wide);
        if (size <= (wide == 2 ? WS_CONTROL_MAX : UINT16_MAX))
            return err_set(err, ERR_PROTOCOL, "WebSocket: a length is not in its shortest form");
        if (size > INT64_MAX)
            return err_set(err, ERR_PROTOCOL, "WebSocket: a length has its highest bit set");
    }
    *ret_frame = (struct ws_frame){ .op = in[0] & 15, .fin = in[0] & FIN, .len = size };
    memcpy(ret_frame->mask, in + 2 + wide, 4);
    return (int) (2 + wide + 4);
}

void ws_unmask(char *data, size_t len, const uint8_t mask[4], uint64_t offset)
{
    uint8_t turned[8];
    uint64_t wide;
    size_t i = 0;

    for (size_t k = 0; k < 8; k++)
        turned[k] = mask[(offset + k) & 3];
    memcpy(&wide, turned, 8);
    for (; len - i >= 8; i += 8) {
        uint64_t word;

        memcpy(&word, data + i, 8);
        word ^= wide;
        memcpy(data + i, &word, 8);
    }
    for (; i < len; i++)
        data[i] = (char) ((uint8_t) data[i] ^ turned[i & 7]);
}

bool ws_code_ok(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

void ws_reader_init(struct ws_reader *reader, uint64_t message_max)
{
    memset(reader, 0, sizeof *reader);
    reader->message_max = message_max;
}

static int refuse(struct ws_reader *reader, enum ws_code code, struct err *err, const char *why)
{
    reader->close_code = (uint16_t) code;
    return err_set(err, code == WS_CODE_TOO_BIG ? ERR_TOO_BIG : ERR_PROTOCOL, "WebSocket: %s", why);
}

/* A data frame begins: where it stands in its message. */
static int begin_data(struct ws_reader *reader, struct err *err)
{
    const struct ws_frame *frame = &reader->frame;

    if (frame->op == WS_CONTINUE && reader->message == WS_CONTINUE)
        return refuse(reader, WS_CODE_PROTOCOL, err, "a continuation without a message");
    if (frame->op != WS_CONTINUE && reader->message != WS_CONTINUE)
        return refuse(reader, WS_CODE_PROTOCOL, err, "a message begins inside another");
    if (frame->op != WS_CONTINUE) {
        reader->message = frame->op;
        reader->message_len = 0;
        reader->utf8 = (struct utf8){ 0 };
        reader->fresh = true;
    }
    if (reader->message_len > reader->message_max ||
        frame->len > reader->message_max - reader->message_len)
        return refuse(reader, WS_CODE_TOO_BIG, err, "a message is larger than allowed");
    reader->message_len += frame->len;
    return 0;
}

/* The frame's head, byte by byte. 1: complete. */
static int read_head(struct ws_reader *reader, const char *in, size_t len, size_t *used,
                     struct err *err)
{
    while (*used < len) {
        int n;

        reader->head[reader->head_len++] = (uint8_t) in[(*used)++];
        n = ws_frame_decode(reader->head, reader->head_len, &reader->frame, err);
        if (n < 0) {
            reader->close_code = WS_CODE_PROTOCOL;
            return -1;
        }
        if (n == 0)
            continue;
        reader->head_len = 0;
        reader->done = 0;
        reader->in_frame = true;
        return is_control(reader->frame.op) || begin_data(reader, err) == 0 ? 1 : -1;
    }
    return 0;
}

static int on_data(struct ws_reader *reader, char *data, size_t len, struct ws_event *event,
                   struct err *err)
{
    bool ends = reader->done == reader->frame.len;

    *event = (struct ws_event){ .op = reader->message, .data = { data, len } };
    event->first = reader->fresh;
    event->last = ends && reader->frame.fin;
    reader->fresh = false;
    reader->in_frame = !ends;
    if (event->op == WS_TEXT &&
        (!utf8_feed(&reader->utf8, data, len) || (event->last && !utf8_whole(&reader->utf8))))
        return refuse(reader, WS_CODE_BAD_TEXT, err, "a text is not UTF-8");
    if (event->last)
        reader->message = WS_CONTINUE;
    return 1;
}

static int on_close(struct ws_reader *reader, struct ws_event *event, struct err *err)
{
    size_t len = (size_t) reader->frame.len;

    reader->closed = true;
    event->code = WS_CODE_NONE;
    if (len == 0)
        return 1;
    if (len == 1)
        return refuse(reader, WS_CODE_PROTOCOL, err, "a close frame has half a code");
    event->code = (uint16_t) big_endian((const uint8_t *) reader->control, 2);
    event->data = (struct slice){ reader->control + 2, len - 2 };
    if (!ws_code_ok(event->code))
        return refuse(reader, WS_CODE_PROTOCOL, err, "a close frame has an invalid code");
    if (!utf8_ok(event->data.at, event->data.len))
        return refuse(reader, WS_CODE_BAD_TEXT, err, "the reason of a close is not UTF-8");
    return 1;
}

/* Control frames are short and handed out whole; they may stand between the frames of a message. */
static int on_control(struct ws_reader *reader, struct ws_event *event, struct err *err)
{
    *event = (struct ws_event){ .op = reader->frame.op,
                                .data = { reader->control, (size_t) reader->frame.len } };
    reader->in_frame = false;
    return event->op == WS_CLOSE ? on_close(reader, event, err) : 1;
}

static int read_payload(struct ws_reader *reader, char *in, size_t len, size_t *used,
                        struct ws_event *event, struct err *err)
{
    uint64_t left = reader->frame.len - reader->done;
    size_t n = len < left ? len : (size_t) left;

    if (n > 0)
        ws_unmask(in, n, reader->frame.mask, reader->done);
    *used += n;
    if (is_control(reader->frame.op)) {
        if (n > 0)
            memcpy(reader->control + reader->done, in, n);
        reader->done += n;
        return reader->done == reader->frame.len ? on_control(reader, event, err) : 0;
    }
    reader->done += n;
    return n == 0 && left > 0 ? 0 : on_data(reader, in, n, event, err);
}

int ws_read(struct ws_reader *reader, char *in, size_t len, size_t *ret_used,
            struct ws_event *ret_event, struct err *err)
{
    size_t used = 0;
    int r = 0;

    while (r == 0 && used < len && !reader->closed) {
        if (!reader->in_frame) {
            r = read_head(reader, in, len, &used, err);
            if (r <= 0)
                break;
        }
        r = read_payload(reader, in + used, len - used, &used, ret_event, err);
    }
    *ret_used = reader->closed && r == 0 ? len : used;
    return r;
}

size_t ws_frame_put(char out[WS_OUT_HEAD_MAX], enum ws_op op, bool fin, uint64_t len)
{
    size_t wide = len <= WS_CONTROL_MAX ? 0 : len <= UINT16_MAX ? 2 : 8;

    out[0] = (char) ((fin ? FIN : 0) | op);
    out[1] = (char) (wide == 0 ? len : wide == 2 ? 126 : 127);
    for (size_t i = 0; i < wide; i++)
        out[2 + i] = (char) (len >> (8 * (wide - 1 - i)));
    return 2 + wide;
}

size_t ws_close_put(char out[WS_CLOSE_FRAME_MAX], unsigned code, const char *reason)
{
    size_t len = reason ? strlen(reason) : 0;
    struct put put = put_into(out, WS_CLOSE_FRAME_MAX);

    if (len > WS_CONTROL_MAX - 2)
        for (len = WS_CONTROL_MAX - 2; len > 0 && ((uint8_t) reason[len] & 0xc0) == 0x80;)
            len--;
    put_char(&put, (char) (FIN | WS_CLOSE));
    if (code == WS_CODE_NONE) {
        put_char(&put, 0);
        return put.len;
    }
    put_char(&put, (char) (2 + len));
    put_char(&put, (char) (code >> 8));
    put_char(&put, (char) code);
    put_bytes(&put, reason, len);
    return put.len;
}
