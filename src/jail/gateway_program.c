/* The program at the socket look-up of a sandbox:
 *
 *   loopback, its own address ── the sandbox's business
 *   TCP to port 53, UDP to port 53 ── the gateway's sockets: it is the name server at every address
 *   TCP to a special address (base/special.h) whose row in the table is closed ── refused, and noted in the table
 *   TCP to anything else ── the gateway's listener
 *   the rest ── dropped
 *
 * The row of an address is what a map says (the longest prefix, of all that base/special.h has), of one that carries an
 * address of IPv4 that of the address inside. The map is made once for all programs. The table is one sandbox's: the
 * gateway opens the rows that the sandbox's rules lead to, and reads what was refused. */
#include "jail/gateway_program.h"

#include "base/own.h"
#include "base/special.h"
#include "jail/bpf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define DNS_PORT 53

#define FIELD(reg, field) LOAD_FROM(reg, BPF_REG_6, struct bpf_sk_lookup, field)
#define KEY_AT            (-4)
#define SET_KEY(value)    STORE_VALUE(BPF_REG_10, KEY_AT, value)

/* The stack below it: the key of the map of special addresses, a prefix of 128 bits and the address. */
#define PREFIX_AT    (-28)
#define WORD_AT(n)   (PREFIX_AT + 4 + 4 * (n))
#define ADDRESS_BITS 128

/* Jumps name a place; assemble() counts. */
enum place {
    SIX = 1,
    SIX_OWN,
    FOREIGN,
    SPECIAL,
    SPECIAL_SIX,
    SPECIAL_FIND,
    SPECIAL_6TO4,
    SPECIAL_INNER,
    SPECIAL_ROW,
    HAND_OVER,
    PASS,
    DROP,
    PLACES
};
#define PLACE_CODE                   0xff /* no instruction: marks a place */
#define AT(place)                    INSN(PLACE_CODE, 0, 0, place, 0)
#define GO(place)                    SKIP(place)
#define GO_IF(reg, value, place)     SKIP_IF(reg, value, place)
#define GO_IF_NOT(reg, value, place) SKIP_IF_NOT(reg, value, place)

static uint32_t word(const uint8_t *address, size_t index)
{
    uint32_t value;

    memcpy(&value, address + 4 * index, sizeof value);
    return value;
}

static bool jumps(const struct bpf_insn *insn)
{
    uint8_t kind = insn->code & 0x07, op = insn->code & 0xf0;

    return (kind == BPF_JMP || kind == BPF_JMP32) && op != BPF_CALL && op != BPF_EXIT;
}

/* Takes the places out and counts the jumps; returns how many instructions are left. */
static uint32_t assemble(struct bpf_insn *program, size_t count)
{
    int16_t where[PLACES] = { 0 }, n = 0;

    for (size_t i = 0; i < count; i++) {
        if (program[i].code == PLACE_CODE)
            where[program[i].off] = n;
        else
            program[n++] = program[i];
    }
    for (int16_t i = 0; i < n; i++)
        if (jumps(&program[i]))
            program[i].off = (int16_t) (where[program[i].off] - i - 1);
    return (uint32_t) n;
}

/* What the map says of an address: its row, or that it carries one of IPv4 at that byte. */
#define CARRIES(at) (SPECIAL_ROWS + (at))

/* An address of IPv4 into a key. */
#define SET_FOUR(reg)                                                                              \
    STORE_VALUE(BPF_REG_10, WORD_AT(0), 0), STORE_VALUE(BPF_REG_10, WORD_AT(1), 0),                \
        STORE_VALUE(BPF_REG_10, WORD_AT(2), htonl(0xffff)), STORE(BPF_REG_10, WORD_AT(3), reg)
/* R7: what the map says of the address in that key. One that is not special is handed over. */
#define FIND_SPECIAL(fd)                                                                           \
    STORE_VALUE(BPF_REG_10, PREFIX_AT, ADDRESS_BITS), MAP(BPF_REG_1, fd),                          \
        COPY(BPF_REG_2, BPF_REG_10), ADD(BPF_REG_2, PREFIX_AT), CALL(BPF_FUNC_map_lookup_elem),    \
        INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, HAND_OVER, 0),                               \
        LOAD_WORD(BPF_REG_7, BPF_REG_0, 0)
#define NOTE_SHIFT 5
_Static_assert(sizeof(struct special_refused) == 1u << NOTE_SHIFT, "notes are found by a shift");
#define NOTE(field) ((int16_t) offsetof(struct special_refused, field))

static int load_program(int map_fd, int table_fd, int special_fd, struct err *err)
{
    static const uint8_t loopback6[16] = { [15] = 1 };
    struct bpf_insn program[] = {
        COPY(BPF_REG_6, BPF_REG_1),
        FIELD(BPF_REG_7, family),
        GO_IF_NOT(BPF_REG_7, AF_INET, SIX),

        /* 127.0.0.0/8 and its own address are the sandbox's business */
        FIELD(BPF_REG_8, local_ip4),
        GO_IF(BPF_REG_8, word(gateway_own4, 0), PASS),
        AND(BPF_REG_8, (int32_t) htonl(0xff000000)),
        GO_IF(BPF_REG_8, htonl(0x7f000000), PASS),
        GO(FOREIGN),

        AT(SIX), /* and so are ::1 and its own */
        FIELD(BPF_REG_7, local_ip6[0]),
        FIELD(BPF_REG_8, local_ip6[1]),
        FIELD(BPF_REG_9, local_ip6[2]),
        FIELD(BPF_REG_2, local_ip6[3]),
        GO_IF_NOT(BPF_REG_9, 0, FOREIGN),
        GO_IF_NOT(BPF_REG_7, word(loopback6, 0), SIX_OWN),
        GO_IF_NOT(BPF_REG_8, word(loopback6, 1), FOREIGN),
        GO_IF(BPF_REG_2, word(loopback6, 3), PASS),
        GO(FOREIGN),
        AT(SIX_OWN),
        GO_IF_NOT(BPF_REG_7, word(gateway_own6, 0), FOREIGN),
        GO_IF_NOT(BPF_REG_8, word(gateway_own6, 1), FOREIGN),
        GO_IF(BPF_REG_2, word(gateway_own6, 3), PASS),

        AT(FOREIGN),
        SET_KEY(GATEWAY_TCP),
        FIELD(BPF_REG_7, protocol),
        FIELD(BPF_REG_8, local_port),
        GO_IF(BPF_REG_7, IPPROTO_TCP, SPECIAL),
        GO_IF_NOT(BPF_REG_7, IPPROTO_UDP, DROP),
        GO_IF_NOT(BPF_REG_8, DNS_PORT, DROP),
        SET_KEY(GATEWAY_DNS),
        GO(HAND_OVER),

        AT(SPECIAL), /* an address that is not public is refused, if its row in the table is closed */
        GO_IF(BPF_REG_8, DNS_PORT, HAND_OVER), /* the gateway is the name server at every address */
        /* Read again: what is known of registers and the stack keeps the verifier busy, on every way that leads here. */
        FIELD(BPF_REG_7, family),
        GO_IF_NOT(BPF_REG_7, AF_INET, SPECIAL_SIX),
        FIELD(BPF_REG_8, local_ip4),
        SET_FOUR(BPF_REG_8),
        GO(SPECIAL_FIND),
        AT(SPECIAL_SIX),
        FIELD(BPF_REG_8, local_ip6[0]),
        STORE(BPF_REG_10, WORD_AT(0), BPF_REG_8),
        FIELD(BPF_REG_8, local_ip6[1]),
        STORE(BPF_REG_10, WORD_AT(1), BPF_REG_8),
        FIELD(BPF_REG_8, local_ip6[2]),
        STORE(BPF_REG_10, WORD_AT(2), BPF_REG_8),
        FIELD(BPF_REG_8, local_ip6[3]),
        STORE(BPF_REG_10, WORD_AT(3), BPF_REG_8),

        AT(SPECIAL_FIND),
        FIND_SPECIAL(special_fd),
        GO_IF(BPF_REG_7, CARRIES(2), SPECIAL_6TO4),
        GO_IF_NOT(BPF_REG_7, CARRIES(12), SPECIAL_ROW),
        LOAD_WORD(BPF_REG_8, BPF_REG_10, WORD_AT(3)),
        GO(SPECIAL_INNER),
        AT(SPECIAL_6TO4), /* its bytes 2 to 5 */
        LOAD_WORD(BPF_REG_8, BPF_REG_10, WORD_AT(0)),
        RIGHT(BPF_REG_8, 16),
        LOAD_WORD(BPF_REG_9, BPF_REG_10, WORD_AT(1)),
        LEFT(BPF_REG_9, 16),
        OR_REG(BPF_REG_8, BPF_REG_9),
        AT(SPECIAL_INNER), /* the address that is carried counts */
        SET_FOUR(BPF_REG_8),
        FIND_SPECIAL(special_fd),

        AT(SPECIAL_ROW), /* R7 */
        AND(BPF_REG_7, SPECIAL_ROWS - 1),
        MAP_VALUE(BPF_REG_1, table_fd, 0),
        COPY(BPF_REG_2, BPF_REG_1),
        ADD_REG(BPF_REG_2, BPF_REG_7),
        LOAD_BYTE(BPF_REG_3, BPF_REG_2, 0),
        GO_IF_NOT(BPF_REG_3, 0, HAND_OVER),
        /* refused: the gateway is told */
        MOVE(BPF_REG_8, 1),
        FETCH_ADD(BPF_REG_1, offsetof(struct special_table, refused_count), BPF_REG_8),
        COPY(BPF_REG_2, BPF_REG_8),
        AND(BPF_REG_2, SPECIAL_REFUSED - 1),
        LEFT(BPF_REG_2, NOTE_SHIFT),
        ADD_REG(BPF_REG_1, BPF_REG_2),
        ADD(BPF_REG_1, offsetof(struct special_table, refused)),
        FIELD(BPF_REG_3, family),
        STORE(BPF_REG_1, NOTE(family), BPF_REG_3),
        FIELD(BPF_REG_3, local_port),
        STORE(BPF_REG_1, NOTE(port), BPF_REG_3),
        FIELD(BPF_REG_3, local_ip4),
        STORE(BPF_REG_1, NOTE(four), BPF_REG_3),
        FIELD(BPF_REG_3, local_ip6[0]),
        STORE(BPF_REG_1, NOTE(six), BPF_REG_3),
        FIELD(BPF_REG_3, local_ip6[1]),
        STORE(BPF_REG_1, NOTE(six) + 4, BPF_REG_3),
        FIELD(BPF_REG_3, local_ip6[2]),
        STORE(BPF_REG_1, NOTE(six) + 8, BPF_REG_3),
        FIELD(BPF_REG_3, local_ip6[3]),
        STORE(BPF_REG_1, NOTE(six) + 12, BPF_REG_3),
        ADD(BPF_REG_8, 1),
        STORE(BPF_REG_1, NOTE(number), BPF_REG_8),
        GO(DROP),

        AT(HAND_OVER), /* to the socket of that key */
        MAP(BPF_REG_1, map_fd),
        COPY(BPF_REG_2, BPF_REG_10),
        ADD(BPF_REG_2, KEY_AT),
        CALL(BPF_FUNC_map_lookup_elem),
        INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, DROP, 0),
        COPY(BPF_REG_7, BPF_REG_0),
        COPY(BPF_REG_1, BPF_REG_6),
        COPY(BPF_REG_2, BPF_REG_7),
        MOVE(BPF_REG_3, 0),
        CALL(BPF_FUNC_sk_assign),
        COPY(BPF_REG_8, BPF_REG_0),
        COPY(BPF_REG_1, BPF_REG_7),
        CALL(BPF_FUNC_sk_release),
        GO_IF_NOT(BPF_REG_8, 0, DROP),

        AT(PASS),
        MOVE(BPF_REG_0, SK_PASS),
        LEAVE,
        AT(DROP),
        MOVE(BPF_REG_0, SK_DROP),
        LEAVE,
    };
    union bpf_attr attr;
    int fd;

    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_SK_LOOKUP;
    attr.expected_attach_type = BPF_SK_LOOKUP;
    attr.insn_cnt = assemble(program, ARRAY_LEN(program));
    attr.insns = (uint64_t) (uintptr_t) program;
    attr.license = (uint64_t) (uintptr_t) "Apache-2.0";
    fd = bpf_call(BPF_PROG_LOAD, &attr);
    return fd < 0 ? err_sys(err, errno, "load the gateway's program") : fd;
}

/* For the sockets, by their place in enum keeper_gateway. They leave it when they are closed. */
static int make_map(struct err *err)
{
    union bpf_attr attr;
    int fd;

    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_SOCKMAP;
    attr.key_size = sizeof(uint32_t);
    attr.value_size = sizeof(uint64_t);
    attr.max_entries = GATEWAY_HOLD;
    fd = bpf_call(BPF_MAP_CREATE, &attr);
    return fd < 0 ? err_sys(err, errno, "make the gateway's map") : fd;
}

static int make_table(struct err *err)
{
    union bpf_attr attr;
    int fd;

    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = sizeof(uint32_t);
    attr.value_size = sizeof(struct special_table);
    attr.max_entries = 1;
    attr.map_flags = BPF_F_MMAPABLE;
    fd = bpf_call(BPF_MAP_CREATE, &attr);
    return fd < 0 ? err_sys(err, errno, "make the gateway's table") : fd;
}

static int add_special(int fd, const uint8_t first[16], uint32_t bits, uint32_t value,
                       struct err *err)
{
    struct {
        uint32_t bits;
        uint8_t first[16];
    } key = { .bits = bits };
    union bpf_attr attr;

    memcpy(key.first, first, sizeof key.first);
    memset(&attr, 0, sizeof attr);
    attr.map_fd = (uint32_t) fd;
    attr.key = (uint64_t) (uintptr_t) &key;
    attr.value = (uint64_t) (uintptr_t) &value;
    return bpf_call(BPF_MAP_UPDATE_ELEM, &attr) < 0 ? err_sys(err, errno, "fill it") : 0;
}

/* The most exact prefix of an address is found; the table's order says the same. Never changed once it is made. */
static int make_specials(struct err *err)
{
    auto_close int fd = -1;
    union bpf_attr attr;

    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_LPM_TRIE;
    attr.key_size = sizeof(uint32_t) + 16;
    attr.value_size = sizeof(uint32_t);
    attr.max_entries = (uint32_t) (special_count + special_carrier_count);
    attr.map_flags = BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG;
    fd = bpf_call(BPF_MAP_CREATE, &attr);
    if (fd < 0)
        return err_sys(err, errno, "make the map of special addresses");
    for (size_t i = 0; i < special_count; i++)
        if (add_special(fd, specials[i].first, specials[i].bits, (uint32_t) i, err) < 0)
            return -1;
    for (size_t i = 0; i < special_carrier_count; i++)
        if (add_special(fd, special_carriers[i].first, special_carriers[i].bits,
                        CARRIES(special_carriers[i].at), err) < 0)
            return -1;
    return take_fd(&fd);
}

int gateway_program_make(struct gateways *g, struct err *err)
{
    auto_close int map = -1, table = -1;
    int program;

    if (g->special_fd < 0)
        g->special_fd = make_specials(err);
    if (g->special_fd < 0 || (map = make_map(err)) < 0 || (table = make_table(err)) < 0)
        return -1;
    program = load_program(map, table, g->special_fd, err);
    if (program < 0)
        return -1;
    g->map_fd = take_fd(&map);
    g->table_fd = take_fd(&table);
    g->program_fd = program;
    return 0;
}
