/* mux.h - frames of the mux: many streams over one byte stream, the trunk, between a bridge and a guest's agent.
 *
 *   u8 type (never 0) | u24 length of the payload | u32 stream; then the payload. Little-endian.
 *
 *   HELLO    host to guest   u64 epoch, u64 milliseconds since 1970, 32 random bytes, state
 *   WELCOME  guest to host   u64 epoch, of the HELLO that it answers
 *   STATE    host to guest   state: u8 flags, host name
 *   OPEN     both            u8 kind, and what the kind needs (struct mux_open)
 *   DATA     both            at least one byte
 *   CREDIT   both            u32 bytes that the receiver has room for again; 0, host to guest: see below
 *   END      both            the sender sends no more on this stream
 *   RESET    both            the stream is gone for the sender, and whatever is on its way with it
 *
 * A trunk may begin in the middle of a frame: an earlier bridge was killed, or the guest was saved then. The host therefore begins an
 * epoch with MUX_FRAME_MAX zero bytes, which complete any half frame. A zero where a frame should begin is skipped. Then comes HELLO.
 * The guest drops all streams of another epoch; the host skips everything up to the WELCOME of its own.
 *
 * CREDIT of 0 bytes says that the client of an operation has closed its connection: no program reads what the guest sends any more. It
 * may overtake what the client had written before, which still comes, with END behind it, and is not dropped. Guests that do
 * not know that meaning take the frame for what it says, no more room, and continue as before; so do hosts, which never
 * give it another meaning.
 *
 * Pure: src/mux has the streams. Callers: src/mux, cove-bridge, the agent. */
#ifndef COVE_WIRE_MUX_H
#define COVE_WIRE_MUX_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define MUX_HEAD      8u
#define MUX_DATA_MAX  32768u
#define MUX_FRAME_MAX (MUX_HEAD + MUX_DATA_MAX)
#define MUX_SEED      32u
#define MUX_NAME_MAX  64u /* with its NUL */

enum mux_type {
    MUX_HELLO = 1,
    MUX_WELCOME,
    MUX_STATE,
    MUX_OPEN,
    MUX_DATA,
    MUX_CREDIT,
    MUX_END,
    MUX_RESET,
    MUX_TYPE_COUNT
};

struct mux_head {
    uint32_t type; /* enum mux_type */
    uint32_t len;
    uint32_t stream; /* 0: of none */
};

#define MUX_NETWORK 1u /* the sandbox has a network: connections to other hosts become streams */

/* What the guest is told of itself, at first and whenever it changes. */
struct mux_state {
    uint8_t flags;
    char name[MUX_NAME_MAX]; /* host name; "": it has one already */
};

struct mux_hello {
    uint64_t epoch; /* random, never 0 */
    uint64_t time_ms;
    uint8_t seed[MUX_SEED];
    struct mux_state state;
};
#define MUX_STATE_MAX   (1u + MUX_NAME_MAX - 1u)
#define MUX_HELLO_MAX   (16u + MUX_SEED + MUX_STATE_MAX)
#define MUX_WELCOME_LEN 8u

/* What a stream is for. */
enum mux_kind {
    MUX_AGENT = 'a', /* host to guest: an operation, as over a connection to the agent's socket */
    MUX_TCP4 = '4',  /* guest to host: a connection to another host */
    MUX_TCP6 = '6',
    MUX_QUESTION = 'd', /* guest to host: each DATA is a datagram to or from a name server */
};

struct mux_open {
    uint8_t kind;         /* enum mux_kind */
    uint16_t port;        /* TCP: where to */
    uint16_t source_port; /* TCP: of the guest's socket, so that its owner can be found */
    uint8_t address[16];  /* TCP: 4 or 16 bytes of it */
};
#define MUX_OPEN_MAX 21u

/* ERR_PROTOCOL: no frame begins with these bytes. The first must not be 0. */
int mux_head_get(const uint8_t in[MUX_HEAD], struct mux_head *ret, struct err *err);
void mux_head_put(uint8_t out[MUX_HEAD], enum mux_type type, uint32_t len, uint32_t stream);

/* Payloads. Encoders return the length; decoders refuse what an encoder cannot have written. */
size_t mux_hello_put(uint8_t out[MUX_HELLO_MAX], const struct mux_hello *hello);
int mux_hello_get(const uint8_t *in, size_t len, struct mux_hello *ret, struct err *err);
size_t mux_state_put(uint8_t out[MUX_STATE_MAX], const struct mux_state *state);
int mux_state_get(const uint8_t *in, size_t len, struct mux_state *ret, struct err *err);
size_t mux_open_put(uint8_t out[MUX_OPEN_MAX], const struct mux_open *open);
int mux_open_get(const uint8_t *in, size_t len, struct mux_open *ret, struct err *err);

const char *mux_type_name(uint32_t type);

#endif
