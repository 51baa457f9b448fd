/* Two hubs in one process, a socketpair as their trunk; streams of the host's end at a socketpair on either side. */
#include "mux/hub.h"

#include "base/own.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

static struct hub host, guest;
static int trunk[2] = { -1, -1 };
static int far_end = -1; /* of the last stream that the guest was opened */
static bool welcomed;
static int left; /* clients that the guest was told to be gone */

static void on_hello(struct hub *hub, const struct mux_hello *hello)
{
    (void) hub, (void) hello;
}

static void on_state(struct hub *hub, const struct mux_state *state)
{
    (void) hub, (void) state;
}

static void on_welcome(struct hub *hub)
{
    (void) hub;
    welcomed = true;
}

static int on_opened(struct hub *hub, struct mux_stream *stream, const struct mux_open *open)
{
    int pair[2];

    (void) open;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0 ||
        hub_join(hub, stream, pair[0], false, NULL) < 0)
        return -1;
    far_end = pair[1];
    return 0;
}

static void on_left(struct hub *hub, void *owner)
{
    CHECK(hub == &guest && !owner);
    left++;
}

static const struct hub_calls calls = { .hello = on_hello,
                                        .state = on_state,
                                        .welcome = on_welcome,
                                        .opened = on_opened,
                                        .left = on_left };

static void turn(int times)
{
    struct err err;

    while (times-- > 0) {
        (void) hub_turn(&host, 0, &err);
        if (guest.epoll > 0)
            (void) hub_turn(&guest, 0, &err);
    }
}

static void start(bool with_guest)
{
    static bool used;
    struct mux_hello hello = { .epoch = 5 };
    struct err err;

    if (used) {
        hub_done(&host);
        if (guest.epoll > 0)
            hub_done(&guest);
        own_close(&trunk[0]);
        own_close(&trunk[1]);
        own_close(&far_end);
    }
    used = true;
    welcomed = false;
    left = 0;
    guest.epoll = -1;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, trunk) == 0);
    CHECK(hub_init(&host, trunk[0], true, &calls, NULL, &err) == 0);
    if (with_guest)
        CHECK(hub_init(&guest, trunk[1], false, &calls, NULL, &err) == 0);
    mux_begin(&host.mux, &hello);
    CHECK(hub_flush(&host, &err) == 0);
    turn(8);
}

/* A stream of the host's; its near end. */
static int open_near(void)
{
    static const struct mux_open open = { .kind = MUX_AGENT };
    int pair[2];

    far_end = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0 ||
        hub_open(&host, &open, pair[0]) < 0)
        return -1;
    for (int i = 0; i < 20 && far_end < 0; i++)
        turn(1);
    return pair[1];
}

static void bytes_go_both_ways_and_ends_follow_them(void)
{
    char got[64];
    int near;

    start(true);
    CHECK(welcomed);
    near = open_near();
    CHECK(near >= 0 && far_end >= 0);
    CHECK(write(near, "there", 5) == 5 && write(far_end, "back", 4) == 4);
    turn(8);
    CHECK(read(far_end, got, sizeof got) == 5 && memcmp(got, "there", 5) == 0);
    CHECK(read(near, got, sizeof got) == 4 && memcmp(got, "back", 4) == 0);
    (void) shutdown(near, SHUT_WR);
    turn(8);
    CHECK(read(far_end, got, sizeof got) == 0);
    CHECK(write(far_end, "last", 4) == 4); /* half closed: the other way continues */
    own_close(&far_end);
    turn(8);
    CHECK(read(near, got, sizeof got) == 4 && read(near, got, sizeof got) == 0);
    CHECK(host.mux.count[1] == 0 && guest.mux.count[0] == 0);
    own_close(&near);
}

static void a_megabyte_arrives_whole_while_another_stream_stands_still(void)
{
    static char block[4096];
    size_t sent = 0, got = 0, stuck = 0;
    int still, near, still_far;

    start(true);
    still = open_near();
    still_far = far_end;
    for (ssize_t n; (n = write(still, block, sizeof block)) > 0 || stuck < 400; stuck++)
        turn(2);
    near = open_near();
    while (got < (1u << 20)) {
        char in[8192];
        ssize_t n = sent < (1u << 20) ? write(near, block, sizeof block) : 0;

        sent += n > 0 ? (size_t) n : 0;
        turn(2);
        n = read(far_end, in, sizeof in);
        got += n > 0 ? (size_t) n : 0;
    }
    CHECK_INT(got, 1u << 20);
    CHECK(write(still, block, 1) < 0 && errno == EAGAIN); /* nobody read it */
    own_close(&near);
    own_close(&still);
    own_close(&still_far);
}

static void a_local_end_that_is_gone_resets_its_stream(void)
{
    char byte;
    int near;

    start(true);
    near = open_near();
    own_close(&far_end);
    turn(8);
    CHECK(read(near, &byte, 1) == 0);
    CHECK(write(near, "x", 1) == 1 || errno == EPIPE);
    turn(8);
    CHECK(host.mux.count[1] == 0 && guest.mux.count[0] == 0);
    own_close(&near);
}

static void a_side_resets_what_it_opened_and_nothing_else(void)
{
    char byte;
    int near;

    start(true);
    near = open_near();
    hub_reset_ours(&guest);
    turn(8);
    CHECK(host.mux.count[1] == 1 && guest.mux.count[0] == 1);
    hub_reset_ours(&host);
    turn(8);
    CHECK(host.mux.count[1] == 0 && guest.mux.count[0] == 0);
    CHECK(read(near, &byte, 1) == 0 && read(far_end, &byte, 1) == 0);
    own_close(&near);
    own_close(&far_end);
}

#define MANY (2u << 20)

/* A client that writes so much that it fits neither the window nor any buffer, and is gone before a byte of it was read inside. */
static void write_and_leave(int near, size_t *ret_sent)
{
    static char block[4096];
    size_t sent = 0;
    int size = MANY;

    CHECK(setsockopt(near, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) == 0 ||
          setsockopt(near, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    for (int idle = 0; idle < 50;) {
        ssize_t n = write(near, block, sizeof block);

        idle = n > 0 ? 0 : idle + 1;
        sent += n > 0 ? (size_t) n : 0;
        turn(1);
    }
    *ret_sent = sent;
    own_close(&near);
    turn(8);
}

static size_t read_rest(bool *ret_ended)
{
    static char in[65536];
    size_t got = 0;

    for (int idle = 0; idle < 50;) {
        ssize_t n = read(far_end, in, sizeof in);

        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            *ret_ended = true;
            return got;
        }
        idle = n > 0 ? 0 : idle + 1;
        got += n > 0 ? (size_t) n : 0;
        turn(2);
    }
    *ret_ended = false;
    return got;
}

static void a_client_that_is_gone_is_told_at_once_and_loses_no_byte(void)
{
    bool ended;
    size_t sent;

    start(true);
    write_and_leave(open_near(), &sent);
    CHECK(sent > MUX_WINDOW);
    CHECK_INT(left, 1); /* though nothing was read */
    CHECK_INT(read_rest(&ended), sent);
    CHECK(ended);
    turn(8);
    CHECK(host.mux.count[1] == 0 && guest.mux.count[0] == 0);
    CHECK(send(far_end, "x", 1, MSG_NOSIGNAL) < 0); /* closed, not half closed */
    own_close(&far_end);
}

static void answers_to_a_client_that_is_gone_cost_no_byte_of_its_own(void)
{
    static char block[4096];
    bool ended;
    size_t sent;

    start(true);
    for (int i = 0; i < 2; i++) {
        int near = open_near();

        if (i == 1) /* unread answers: the client's end is a reset, not an end */
            CHECK(write(far_end, block, sizeof block) > 0);
        turn(8);
        write_and_leave(near, &sent);
        for (int j = 0; j < 300; j++, turn(1))
            CHECK(send(far_end, block, sizeof block, MSG_NOSIGNAL) > 0 || errno == EAGAIN);
        CHECK_INT(left, i + 1);
        CHECK_INT(read_rest(&ended), sent);
        CHECK(ended);
        turn(8);
        CHECK(host.mux.count[1] == 0 && guest.mux.count[0] == 0);
        own_close(&far_end);
    }
}

static void a_half_closed_client_that_goes_later_loses_no_byte(void)
{
    char got[64];
    int near;

    start(true);
    near = open_near();
    CHECK(write(near, "abc", 3) == 3);
    (void) shutdown(near, SHUT_WR);
    turn(8);
    CHECK_INT(left, 0);
    CHECK(write(far_end, "answer", 6) == 6);
    turn(8);
    CHECK(read(near, got, sizeof got) == 6);
    own_close(&near);
    turn(8);
    CHECK(read(far_end, got, sizeof got) == 3 && read(far_end, got, sizeof got) <= 0);
    CHECK(send(far_end, "x", 1, MSG_NOSIGNAL) < 0);
    CHECK(host.mux.count[1] == 0 && guest.mux.count[0] == 0);
    own_close(&far_end);
}

static void an_operation_that_ends_frees_a_client_that_is_gone(void)
{
    size_t sent;

    start(true);
    write_and_leave(open_near(), &sent);
    CHECK(host.mux.count[1] == 1 && guest.mux.count[0] == 1);
    own_close(&far_end); /* the command was killed: what is left of its input goes nowhere */
    turn(40);
    CHECK(host.mux.count[1] == 0 && guest.mux.count[0] == 0);
}

static void a_guest_that_floods_and_never_reads_is_not_read_any_more(void)
{
    static const uint8_t open[MUX_HEAD + 1] = { MUX_OPEN, 1, 0, 0, 3, 0, 0, 0, 'd' };
    uint8_t welcome[MUX_HEAD + MUX_WELCOME_LEN] = { MUX_WELCOME, MUX_WELCOME_LEN, [MUX_HEAD] = 5 };
    uint8_t flood[9 * 100];
    size_t taken = 0;
    const uint8_t *out;

    start(false);
    CHECK(write(trunk[1], welcome, sizeof welcome) == (ssize_t) sizeof welcome);
    turn(4);
    CHECK(welcomed);
    for (size_t i = 0; i < sizeof flood; i += sizeof open)
        memcpy(flood + i, open, sizeof open);
    (void) fcntl(trunk[1], F_SETFL, O_NONBLOCK);
    for (int idle = 0; idle < 50;) {
        ssize_t n = write(trunk[1], flood, sizeof flood);

        idle = n > 0 ? 0 : idle + 1;
        taken += n > 0 ? (size_t) n : 0;
        turn(2);
    }
    CHECK(mux_out(&host.mux, &out) <= MUX_OUT_MAX + MUX_FRAME_MAX);
    CHECK(taken < (16u << 20));
    CHECK(host.mux.count[0] <= MUX_STREAMS);
    own_close(&far_end);
}

static void nonsense_and_the_end_of_the_trunk_are_told(void)
{
    uint8_t welcome[MUX_HEAD + MUX_WELCOME_LEN] = { MUX_WELCOME, MUX_WELCOME_LEN, [MUX_HEAD] = 5 };
    struct err err;

    start(false);
    CHECK(write(trunk[1], welcome, sizeof welcome) == (ssize_t) sizeof welcome);
    CHECK(write(trunk[1], "nonsense", 8) == 8);
    CHECK_INT(hub_turn(&host, 0, &err), -1);
    CHECK_STR(err.msg, "mux: unknown frame type 110");
    start(false);
    own_close(&trunk[1]);
    CHECK(hub_turn(&host, 0, &err) == -1 || hub_turn(&host, 0, &err) == -1);
}

CHECK_MAIN(T(bytes_go_both_ways_and_ends_follow_them),
           T(a_megabyte_arrives_whole_while_another_stream_stands_still),
           T(a_local_end_that_is_gone_resets_its_stream),
           T(a_side_resets_what_it_opened_and_nothing_else),
           T(a_client_that_is_gone_is_told_at_once_and_loses_no_byte),
           T(answers_to_a_client_that_is_gone_cost_no_byte_of_its_own),
           T(a_half_closed_client_that_goes_later_loses_no_byte),
           T(an_operation_that_ends_frees_a_client_that_is_gone),
           T(a_guest_that_floods_and_never_reads_is_not_read_any_more),
           T(nonsense_and_the_end_of_the_trunk_are_told))
