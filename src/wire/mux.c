#include "wire/mux.h"

#include "base/own.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t least, most;
    bool stream; /* of one, or of none */
} types[MUX_TYPE_COUNT] = {
    [MUX_HELLO] = { "hello", MUX_HELLO_MAX - MUX_NAME_MAX + 1, MUX_HELLO_MAX, false },
    [MUX_WELCOME] = { "welcome", MUX_WELCOME_LEN, MUX_WELCOME_LEN, false },
    [MUX_STATE] = { "state", 1, MUX_STATE_MAX, false },
    [MUX_OPEN] = { "open", 1, MUX_OPEN_MAX, true },
    [MUX_DATA] = { "data", 1, MUX_DATA_MAX, true },
    [MUX_CREDIT] = { "credit", 4, 4, true },
    [MUX_END] = { "end", 0, 0, true },
    [MUX_RESET] = { "reset", 0, 0, true },
};

const char *mux_type_name(uint32_t type)
{
    return type < ARRAY_LEN(types) && types[type].name ? types[type].name : "unknown";
}

int mux_head_get(const uint8_t in[MUX_HEAD], struct mux_head *ret, struct err *err)
{
    struct mux_head head = { .type = in[0],
                             .len = frame_get_u32(in) >> 8,
                             .stream = frame_get_u32(in + 4) };

    if (head.type >= ARRAY_LEN(types) || !types[head.type].name)
        return err_set(err, ERR_PROTOCOL, "mux: unknown frame type %u", head.type);
    if (head.len < types[head.type].least || head.len > types[head.type].most)
        return err_set(err, ERR_PROTOCOL, "mux: frame '%s' of %u bytes, must have %u to %u",
                       types[head.type].name, head.len, types[head.type].least,
                       types[head.type].most);
    if (types[head.type].stream != (head.stream != 0))
        return err_set(err, ERR_PROTOCOL, "mux: frame '%s' of stream %u", types[head.type].name,
                       head.stream);
    *ret = head;
    return 0;
}

void mux_head_put(uint8_t out[MUX_HEAD], enum mux_type type, uint32_t len, uint32_t stream)
{
    frame_put_u32(out, len << 8 | (uint32_t) type);
    frame_put_u32(out + 4, stream);
}

size_t mux_state_put(uint8_t out[MUX_STATE_MAX], const struct mux_state *state)
{
    size_t len = strnlen(state->name, MUX_NAME_MAX - 1);

    out[0] = state->flags;
    memcpy(out + 1, state->name, len);
    return 1 + len;
}

int mux_state_get(const uint8_t *in, size_t len, struct mux_state *ret, struct err *err)
{
    if (len < 1 || len > MUX_STATE_MAX || memchr(in + 1, 0, len - 1))
        return err_set(err, ERR_PROTOCOL, "mux: invalid state of %zu bytes", len);
    if (in[0] & ~MUX_NETWORK)
        return err_set(err, ERR_PROTOCOL, "mux: unknown flags in the state");
    *ret = (struct mux_state){ .flags = in[0] };
    memcpy(ret->name, in + 1, len - 1);
    return 0;
}

size_t mux_hello_put(uint8_t out[MUX_HELLO_MAX], const struct mux_hello *hello)
{
    frame_put_u64(out, hello->epoch);
    frame_put_u64(out + 8, hello->time_ms);
    memcpy(out + 16, hello->seed, MUX_SEED);
    return 16 + MUX_SEED + mux_state_put(out + 16 + MUX_SEED, &hello->state);
}

int mux_hello_get(const uint8_t *in, size_t len, struct mux_hello *ret, struct err *err)
{
    struct mux_state state;

    if (len < 16 + MUX_SEED || frame_get_u64(in) == 0)
        return err_set(err, ERR_PROTOCOL, "mux: invalid hello of %zu bytes", len);
    if (mux_state_get(in + 16 + MUX_SEED, len - 16 - MUX_SEED, &state, err) < 0)
        return -1;
    *ret = (struct mux_hello){ .epoch = frame_get_u64(in),
                               .time_ms = frame_get_u64(in + 8),
                               .state = state };
    memcpy(ret->seed, in + 16, MUX_SEED);
    return 0;
}

/* Bytes of an address; -1: no such kind. */
static int address_len(uint8_t kind)
{
    switch (kind) {
    case MUX_AGENT:
    case MUX_QUESTION:
        return 0;
    case MUX_TCP4:
        return 4;
    case MUX_TCP6:
        return 16;
    default:
        return -1;
    }
}

size_t mux_open_put(uint8_t out[MUX_OPEN_MAX], const struct mux_open *open)
{
    int address = address_len(open->kind);

    out[0] = open->kind;
    if (address <= 0)
        return 1;
    frame_put_u16(out + 1, open->port);
    frame_put_u16(out + 3, open->source_port);
    memcpy(out + 5, open->address, (size_t) address);
    return 5 + (size_t) address;
}

int mux_open_get(const uint8_t *in, size_t len, struct mux_open *ret, struct err *err)
{
    int address = len > 0 ? address_len(in[0]) : -1;

    if (address < 0)
        return err_set(err, ERR_PROTOCOL, "mux: unknown kind of stream");
    if (len != (address ? 5u + (size_t) address : 1u))
        return err_set(err, ERR_PROTOCOL, "mux: stream of kind '%c' with %zu bytes", in[0], len);
    *ret = (struct mux_open){ .kind = in[0] };
    if (address > 0) {
        ret->port = frame_get_u16(in + 1);
        ret->source_port = frame_get_u16(in + 3);
        memcpy(ret->address, in + 5, (size_t) address);
    }
    return 0;
}
