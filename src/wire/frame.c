#include "wire/frame.h"

#include "base/own.h"

static const struct {
    const char *name;
    uint32_t most;
} types[FRAME_TYPE_COUNT] = {
    [FRAME_REQUEST] = { "request", FRAME_REQUEST_MAX },
    [FRAME_STDIN] = { "stdin", FRAME_DATA_MAX },
    [FRAME_STDIN_END] = { "stdin-end", 0 },
    [FRAME_RESIZE] = { "resize", 4 },
    [FRAME_SIGNAL] = { "signal", 4 },
    [FRAME_DATA] = { "data", FRAME_DATA_MAX },
    [FRAME_DATA_END] = { "data-end", 0 },
    [FRAME_REPLY] = { "reply", FRAME_DATA_MAX },
    [FRAME_ERROR] = { "error", 1024 },
    [FRAME_STDOUT] = { "stdout", FRAME_DATA_MAX + 8 },
    [FRAME_STDERR] = { "stderr", FRAME_DATA_MAX + 8 },
    [FRAME_EXIT] = { "exit", 1024 },
    [FRAME_ITEM] = { "item", FRAME_DATA_MAX },
    [FRAME_END] = { "end", FRAME_DATA_MAX }, /* of a write: an entry with its path */
};

int64_t frame_limit(uint32_t type)
{
    return type < ARRAY_LEN(types) && types[type].name ? (int64_t) types[type].most : -1;
}

const char *frame_name(uint32_t type)
{
    return frame_limit(type) >= 0 ? types[type].name : "unknown";
}

void frame_put_u16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t) value;
    out[1] = (uint8_t) (value >> 8);
}

void frame_put_u32(uint8_t *out, uint32_t value)
{
    frame_put_u16(out, (uint16_t) value);
    frame_put_u16(out + 2, (uint16_t) (value >> 16));
}

void frame_put_u64(uint8_t *out, uint64_t value)
{
    frame_put_u32(out, (uint32_t) value);
    frame_put_u32(out + 4, (uint32_t) (value >> 32));
}

uint16_t frame_get_u16(const uint8_t *in)
{
    return (uint16_t) (in[0] | in[1] << 8);
}

uint32_t frame_get_u32(const uint8_t *in)
{
    return (uint32_t) frame_get_u16(in) | (uint32_t) frame_get_u16(in + 2) << 16;
}

uint64_t frame_get_u64(const uint8_t *in)
{
    return (uint64_t) frame_get_u32(in) | (uint64_t) frame_get_u32(in + 4) << 32;
}

void frame_head_put(uint8_t out[FRAME_HEAD], enum frame_type type, uint32_t len)
{
    frame_put_u32(out, len);
    out[4] = (uint8_t) type;
    out[5] = out[6] = out[7] = 0;
}

int frame_head_get(const uint8_t in[FRAME_HEAD], struct frame_head *ret, struct err *err)
{
    uint32_t len = frame_get_u32(in);
    uint32_t type = in[4];
    int64_t most = frame_limit(type);

    if (most < 0)
        return err_set(err, ERR_PROTOCOL, "unknown frame type %u", type);
    if (in[5] || in[6] || in[7])
        return err_set(err, ERR_PROTOCOL, "frame '%s': spare bytes set", frame_name(type));
    if (len > (uint64_t) most)
        return err_set(err, ERR_TOO_BIG, "frame '%s': %u bytes, at most %u", frame_name(type), len,
                       (uint32_t) most);
    *ret = (struct frame_head){ .len = len, .type = (enum frame_type) type };
    return 0;
}
