/* Two muxes back to back: whatever one has to send is fed to the other, in pieces of a chosen size. */
#include "mux/mux.h"

#include "check.h"

struct side {
    struct mux mux;
    int hellos, welcomes, opened, gone, states, left;
    struct mux_stream *last; /* that the other side opened */
    struct mux_state state;
    bool refuse; /* what is opened */
    bool slow;   /* takes nothing */
    size_t got;
};

static struct side host, guest;

static struct side *of(struct mux *mux)
{
    return mux->owner;
}

static void on_hello(struct mux *mux, const struct mux_hello *hello)
{
    of(mux)->hellos++;
    of(mux)->state = hello->state;
}

static void on_state(struct mux *mux, const struct mux_state *state)
{
    of(mux)->states++;
    of(mux)->state = *state;
}

static void on_welcome(struct mux *mux)
{
    of(mux)->welcomes++;
}

static int on_opened(struct mux *mux, struct mux_stream *stream, const struct mux_open *open)
{
    (void) open;
    if (of(mux)->refuse)
        return -1;
    of(mux)->opened++;
    of(mux)->last = stream;
    return 0;
}

static void on_data(struct mux *mux, struct mux_stream *stream)
{
    if (of(mux)->slow)
        return;
    of(mux)->got += stream->in_len;
    if (stream->in_len > 0 || stream->in_ended)
        mux_take(mux, stream, stream->in_len);
}

static void on_left(struct mux *mux, struct mux_stream *stream)
{
    (void) stream;
    of(mux)->left++;
}

static void on_credit(struct mux *mux, struct mux_stream *stream)
{
    (void) mux, (void) stream;
}

static void on_gone(struct mux *mux, struct mux_stream *stream)
{
    of(mux)->gone++;
    if (of(mux)->last == stream)
        of(mux)->last = NULL;
}

static const struct mux_calls calls = { on_hello, on_state, on_welcome, on_opened,
                                        on_data,  on_left,  on_credit,  on_gone };

static int move(struct side *from, struct side *to, size_t piece, struct err *err)
{
    const uint8_t *data;
    size_t len;

    while ((len = mux_out(&from->mux, &data)) > 0) {
        uint8_t copy[MUX_FRAME_MAX];

        if (len > piece)
            len = piece;
        memcpy(copy, data, len);
        mux_sent(&from->mux, len);
        if (mux_feed(&to->mux, copy, len, err) < 0)
            return -1;
    }
    return 0;
}

static int settle(size_t piece)
{
    struct err err;
    const uint8_t *data;

    do {
        if (move(&host, &guest, piece, &err) < 0 || move(&guest, &host, piece, &err) < 0)
            return -1;
    } while (mux_out(&host.mux, &data) + mux_out(&guest.mux, &data) > 0);
    return 0;
}

static void begin(uint64_t epoch)
{
    struct mux_hello hello = { .epoch = epoch, .state = { .name = "box" } };

    mux_begin(&host.mux, &hello);
}

static void fresh(void)
{
    mux_done(&host.mux);
    mux_done(&guest.mux);
    memset(&host, 0, sizeof host);
    memset(&guest, 0, sizeof guest);
    mux_init(&host.mux, true, &calls, &host);
    mux_init(&guest.mux, false, &calls, &guest);
}

static struct mux_stream *open_one(struct side *side)
{
    return mux_open(&side->mux,
                    &(struct mux_open){ .kind = side == &host ? MUX_AGENT : MUX_QUESTION }, NULL);
}

static int feed(struct side *side, const void *data, size_t len)
{
    struct err err;

    return mux_feed(&side->mux, data, len, &err);
}

static int feed_frame(struct side *side, enum mux_type type, uint32_t stream, const void *body,
                      size_t len)
{
    uint8_t bytes[MUX_FRAME_MAX];

    mux_head_put(bytes, type, (uint32_t) len, stream);
    if (len > 0)
        memcpy(bytes + MUX_HEAD, body, len);
    return feed(side, bytes, MUX_HEAD + len);
}

static void sent_type(const struct side *side, uint32_t *ret_type, uint32_t *ret_stream)
{
    const uint8_t *data;
    struct mux_head head = { .type = 0 };
    struct err err;

    if (mux_out(&side->mux, &data) >= MUX_HEAD)
        (void) mux_head_get(data, &head, &err);
    *ret_type = head.type;
    *ret_stream = head.stream;
}

static void no_stream_is_opened_before_the_welcome(void)
{
    fresh();
    CHECK(!open_one(&host));
    CHECK(!open_one(&guest));
    begin(7);
    CHECK(!open_one(&host));
    CHECK_INT(settle(1), 0);
    CHECK_INT(guest.hellos, 1);
    CHECK_INT(host.welcomes, 1);
    CHECK_STR(guest.state.name, "box");
    CHECK(open_one(&host) && open_one(&guest));
}

static void bytes_and_ends_arrive_in_pieces_of_any_size(void)
{
    for (size_t piece = 1; piece < 5000; piece = piece * 3 + 1) {
        static uint8_t data[MUX_DATA_MAX];
        struct mux_stream *s;

        fresh();
        begin(7);
        CHECK_INT(settle(piece), 0);
        s = open_one(&host);
        mux_send(&host.mux, s, data, sizeof data);
        mux_send(&host.mux, s, data, 5);
        mux_end(&host.mux, s);
        CHECK_INT(settle(piece), 0);
        CHECK_INT(guest.got, sizeof data + 5);
        CHECK(guest.last && guest.last->in_ended && guest.gone == 0);
        mux_end(&guest.mux, guest.last);
        CHECK_INT(settle(piece), 0);
        CHECK(guest.gone == 1 && host.gone == 1);
    }
}

static void a_reader_that_does_not_read_stalls_its_stream_alone(void)
{
    static uint8_t data[MUX_DATA_MAX];
    struct mux_stream *slow, *other;
    size_t sent = 0;

    fresh();
    begin(7);
    (void) settle(4096);
    slow = open_one(&host);
    other = open_one(&host);
    guest.slow = true;
    for (size_t room; (room = mux_room(&host.mux, slow)) > 0; sent += room) {
        mux_send(&host.mux, slow, data, room);
        (void) settle(4096);
    }
    CHECK_INT(sent, MUX_WINDOW);
    guest.slow = false;
    CHECK(mux_room(&host.mux, other) > 0);
    mux_send(&host.mux, other, data, 100);
    (void) settle(4096);
    CHECK_INT(guest.got, 100);
    CHECK_INT(guest.gone, 0);
}

static void credit_comes_back_by_quarters(void)
{
    static uint8_t data[MUX_DATA_MAX];
    struct mux_stream *s;

    fresh();
    begin(7);
    (void) settle(4096);
    s = open_one(&host);
    for (int i = 0; i < 1000; i++) {
        CHECK(mux_room(&host.mux, s) > 0);
        mux_send(&host.mux, s, data, mux_room(&host.mux, s));
        (void) settle(MUX_FRAME_MAX);
        CHECK(s->credit >= MUX_WINDOW - MUX_WINDOW / 4);
    }
    CHECK_INT(guest.got, 1000ull * MUX_DATA_MAX);
}

static void who_sends_beyond_the_window_loses_that_stream(void)
{
    static uint8_t data[MUX_DATA_MAX];
    uint32_t type, stream;

    fresh();
    begin(7);
    (void) settle(4096);
    host.slow = true;
    CHECK_INT(feed_frame(&host, MUX_OPEN, 3, "d", 1), 0);
    CHECK_INT(feed_frame(&host, MUX_OPEN, 5, "d", 1), 0);
    for (unsigned i = 0; i < MUX_WINDOW / MUX_DATA_MAX; i++)
        CHECK_INT(feed_frame(&host, MUX_DATA, 3, data, sizeof data), 0);
    CHECK_INT(host.gone, 0);
    CHECK_INT(feed_frame(&host, MUX_DATA, 3, data, 1), 0);
    CHECK_INT(host.gone, 1);
    sent_type(&host, &type, &stream);
    CHECK(type == MUX_RESET && stream == 3);
    CHECK_INT(feed_frame(&host, MUX_DATA, 5, data, 1), 0); /* the other one continues */
    CHECK_INT(host.gone, 1);
}

static void too_much_credit_resets_the_stream(void)
{
    struct mux_stream *s;

    fresh();
    begin(7);
    (void) settle(4096);
    s = open_one(&host);
    CHECK_INT(feed_frame(&host, MUX_CREDIT, s->id, "\1\0\0\0", 4), 0);
    CHECK_INT(host.gone, 1);
    s = open_one(&host);
    CHECK_INT(feed_frame(&host, MUX_CREDIT, s->id, "\xff\xff\xff\xff", 4), 0);
    CHECK_INT(host.gone, 2);
}

static void data_behind_the_end_resets_the_stream(void)
{
    fresh();
    begin(7);
    (void) settle(4096);
    CHECK_INT(feed_frame(&host, MUX_OPEN, 3, "d", 1), 0);
    CHECK_INT(feed_frame(&host, MUX_END, 3, NULL, 0), 0);
    CHECK_INT(host.gone, 0);
    CHECK_INT(feed_frame(&host, MUX_DATA, 3, "x", 1), 0);
    CHECK_INT(host.gone, 1);
}

static void a_flood_of_opens_is_bounded(void)
{
    struct mux_stream *mine;

    fresh();
    begin(7);
    (void) settle(4096);
    for (uint32_t i = 0; i < 100000 && mux_reads(&host.mux); i++)
        CHECK_INT(feed_frame(&host, MUX_OPEN, 2 * i + 3, "d", 1), 0);
    CHECK_INT(host.opened, MUX_STREAMS);
    CHECK_INT(host.mux.count[0], MUX_STREAMS);
    CHECK(!mux_reads(&host.mux)); /* its answers are not read: nothing of it is read any more */
    (void) move(&host, &guest, 4096, &(struct err){ 0 });
    mine = open_one(&host); /* the host's own streams have places of their own */
    CHECK(mine);
}

static void a_number_of_the_other_side_cannot_be_opened(void)
{
    struct mux_stream *s;
    uint32_t type, stream;

    fresh();
    begin(7);
    (void) settle(4096);
    s = open_one(&host);
    (void) settle(4096);
    CHECK_INT(feed_frame(&host, MUX_OPEN, s->id, "d", 1), 0);
    sent_type(&host, &type, &stream);
    CHECK(type == MUX_RESET && stream == s->id && host.opened == 0 && host.gone == 0);
    CHECK_INT(feed_frame(&host, MUX_OPEN, 9, "d", 1), 0);
    CHECK_INT(feed_frame(&host, MUX_OPEN, 9, "d", 1), 0); /* twice: it ends */
    CHECK(host.opened == 1 && host.gone == 1);
}

static void frames_of_the_wrong_side_end_the_bridge(void)
{
    static const struct {
        enum mux_type type;
        const char *body;
        size_t len;
    } lies[] = {
        { MUX_WELCOME, "12345678", 8 },
        { MUX_STATE, "\1name", 5 },
    };

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        fresh();
        begin(7);
        (void) settle(4096);
        CHECK_INT(feed_frame(&host, lies[i].type, 0, lies[i].body, lies[i].len), -1);
    }
    fresh();
    begin(7);
    (void) settle(4096);
    CHECK_INT(feed(&host, "\x77garbage", 8), -1);
}

static void a_half_frame_of_a_killed_bridge_does_not_lose_the_guest(void)
{
    /* Every way to cut off: in the head, behind the head, in the middle of the longest frame. */
    static const size_t cuts[] = { 1, 3, 7, 8, 9, 20000, MUX_FRAME_MAX - 1 };

    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        uint8_t bytes[MUX_FRAME_MAX];

        fresh();
        begin(7);
        (void) settle(4096);
        (void) open_one(&host);
        (void) settle(4096);
        memset(bytes, 0x41, sizeof bytes);
        mux_head_put(bytes, MUX_DATA, MUX_DATA_MAX, 2);
        CHECK_INT(feed(&guest, bytes, cuts[i]), 0);
        mux_done(&host.mux); /* another bridge, with another epoch */
        mux_init(&host.mux, true, &calls, &host);
        begin(9);
        CHECK_INT(settle(4096), 0);
        CHECK(host.mux.ready && guest.mux.epoch == 9);
        CHECK_INT(guest.gone, 1); /* what the first one had opened */
        CHECK(open_one(&host));
    }
}

static void a_guest_that_lost_its_place_finds_the_next_hello(void)
{
    fresh();
    begin(7);
    (void) settle(4096);
    CHECK_INT(feed(&guest, "\x66nonsense that is no frame", 25), 0);
    CHECK(!guest.mux.ready);
    CHECK_INT(feed_frame(&guest, MUX_OPEN, 2, "a", 1), 0); /* not believed before the zeros */
    CHECK_INT(guest.opened, 0);
    begin(8);
    CHECK_INT(settle(4096), 0);
    CHECK(guest.mux.ready && host.mux.ready && open_one(&host));
}

static void a_new_epoch_drops_every_stream_of_the_old_one(void)
{
    fresh();
    begin(7);
    (void) settle(4096);
    for (int i = 0; i < 4; i++)
        CHECK(open_one(&host) && open_one(&guest));
    (void) settle(4096);
    begin(8);
    CHECK_INT(host.mux.count[0] + host.mux.count[1], 0);
    CHECK_INT(settle(4096), 0);
    CHECK_INT(guest.mux.count[0] + guest.mux.count[1], 0);
    CHECK(host.mux.ready && open_one(&host));
}

static void the_host_believes_only_the_welcome_of_its_own_epoch(void)
{
    struct err err;
    uint8_t noise[4096];

    fresh();
    begin(7);
    CHECK_INT(feed_frame(&host, MUX_WELCOME, 0, "\6\0\0\0\0\0\0\0", 8), 0);
    memset(noise, 0xee, sizeof noise);
    for (int i = 0; i < 1000; i++) /* endless half frames make it hold nothing */
        CHECK_INT(mux_feed(&host.mux, noise, sizeof noise, &err), 0);
    CHECK(!host.mux.ready && host.welcomes == 0);
    CHECK_INT(feed_frame(&host, MUX_WELCOME, 0, "\7\0\0\0\0\0\0\0", 8), 0);
    CHECK(host.mux.ready && host.welcomes == 1);
}

static void a_state_is_told_once_the_guest_is_there(void)
{
    struct mux_state state = { .flags = MUX_NETWORK, .name = "renamed" };

    fresh();
    begin(7);
    mux_tell(&host.mux, &state); /* too early: the hello has it */
    (void) settle(4096);
    CHECK_INT(guest.states, 0);
    mux_tell(&host.mux, &state);
    (void) settle(4096);
    CHECK_INT(guest.states, 1);
    CHECK_STR(guest.state.name, "renamed");
}

/* A stream of the host's whose client wrote three bytes; the guest has them, and does not take them. */
static struct mux_stream *written(void)
{
    struct mux_stream *s;

    fresh();
    begin(7);
    (void) settle(4096);
    guest.slow = true;
    s = open_one(&host);
    mux_send(&host.mux, s, (const uint8_t *) "abc", 3);
    (void) settle(4096);
    return s;
}

static void take_all(void)
{
    guest.got += guest.last->in_len;
    mux_take(&guest.mux, guest.last, guest.last->in_len);
}

static void a_client_that_is_gone_overtakes_its_bytes_and_drops_none(void)
{
    struct mux_stream *s = written();

    mux_leave(&host.mux, s);
    mux_leave(&host.mux, s);
    (void) settle(4096);
    CHECK_INT(guest.left, 1);
    CHECK(guest.gone == 0 && guest.last->in_len == 3);
    mux_send(&host.mux, s, (const uint8_t *) "de", 2);
    mux_end(&host.mux, s);
    (void) settle(4096);
    CHECK(guest.gone == 0 && host.gone == 0 && guest.last->in_len == 5);
    take_all();
    CHECK(guest.got == 5 && guest.gone == 1); /* nothing more can come of it */
    (void) settle(4096);
    CHECK_INT(host.gone, 1);
}

static void a_client_that_had_ended_is_gone_at_once(void)
{
    struct mux_stream *s = written();

    take_all();
    mux_end(&host.mux, s);
    (void) settle(4096);
    CHECK(guest.gone == 0 && guest.left == 0); /* half closed */
    mux_leave(&host.mux, s);
    (void) settle(4096);
    CHECK(guest.left == 1 && guest.gone == 1 && host.gone == 1);
}

static void the_end_of_a_client_that_is_gone_drops_its_stream(void)
{
    struct mux_stream *s = written();

    take_all();
    mux_leave(&host.mux, s);
    (void) settle(4096);
    CHECK(guest.left == 1 && guest.gone == 0);
    mux_end(&host.mux, s);
    (void) settle(4096);
    CHECK(guest.gone == 1 && host.gone == 1);
}

static void what_is_sent_to_a_client_that_is_gone_goes_nowhere(void)
{
    static uint8_t data[MUX_DATA_MAX];
    struct mux_stream *s = written();
    const uint8_t *out;

    mux_leave(&host.mux, s);
    (void) settle(4096);
    for (int i = 0; i < 100; i++) { /* far beyond the window */
        CHECK_INT(mux_room(&guest.mux, guest.last), MUX_DATA_MAX);
        mux_send(&guest.mux, guest.last, data, sizeof data);
    }
    CHECK_INT(mux_out(&guest.mux, &out), 0);
    mux_end(&guest.mux, guest.last);
    CHECK_INT(mux_room(&guest.mux, guest.last), 0);
}

static void a_reset_behind_the_end_drops_no_byte_of_the_client(void)
{
    struct mux_stream *s = written();

    mux_end(&host.mux, s);
    mux_reset(&host.mux, s);
    (void) settle(4096);
    CHECK(host.gone == 1 && guest.left == 1 && guest.gone == 0);
    CHECK_INT(feed_frame(&guest, MUX_RESET, guest.last->id, NULL, 0), 0); /* twice is as once */
    CHECK(guest.left == 1 && guest.gone == 0);
    take_all();
    CHECK(guest.got == 3 && guest.gone == 1);
    s = written();
    mux_reset(&host.mux, s); /* not all was said: there is nothing to wait for */
    (void) settle(4096);
    CHECK(guest.left == 0 && guest.gone == 1);
}

static void a_guest_has_no_client_that_could_be_gone(void)
{
    const uint8_t *out;
    struct mux_stream *s;

    fresh();
    begin(7);
    (void) settle(4096);
    s = open_one(&host);
    (void) settle(4096);
    /* To the host, no room is no room: of its own stream and of the guest's. */
    CHECK_INT(feed_frame(&host, MUX_CREDIT, s->id, "\0\0\0\0", 4), 0);
    CHECK_INT(feed_frame(&host, MUX_OPEN, 3, "d", 1), 0);
    CHECK_INT(feed_frame(&host, MUX_CREDIT, 3, "\0\0\0\0", 4), 0);
    CHECK(host.left == 0 && !s->left && !host.last->left && host.gone == 0);
    CHECK_INT(mux_room(&host.mux, s), MUX_DATA_MAX);
    mux_send(&host.mux, s, (const uint8_t *) "abc", 3);
    CHECK(mux_out(&host.mux, &out) > 3);
    host.slow = true; /* a stream of the guest's that is reset is gone, with what came on it */
    CHECK_INT(feed_frame(&host, MUX_DATA, 3, "abc", 3), 0);
    CHECK_INT(feed_frame(&host, MUX_END, 3, NULL, 0), 0);
    CHECK_INT(feed_frame(&host, MUX_RESET, 3, NULL, 0), 0);
    CHECK_INT(host.gone, 1);
    s = open_one(&guest); /* and the guest has no client in a stream of its own */
    (void) settle(4096);
    CHECK_INT(feed_frame(&guest, MUX_CREDIT, s->id, "\0\0\0\0", 4), 0);
    CHECK(guest.left == 0 && !s->left);
}

CHECK_MAIN(T(no_stream_is_opened_before_the_welcome),
           T(bytes_and_ends_arrive_in_pieces_of_any_size),
           T(a_reader_that_does_not_read_stalls_its_stream_alone), T(credit_comes_back_by_quarters),
           T(who_sends_beyond_the_window_loses_that_stream), T(too_much_credit_resets_the_stream),
           T(data_behind_the_end_resets_the_stream), T(a_flood_of_opens_is_bounded),
           T(a_number_of_the_other_side_cannot_be_opened),
           T(frames_of_the_wrong_side_end_the_bridge),
           T(a_half_frame_of_a_killed_bridge_does_not_lose_the_guest),
           T(a_guest_that_lost_its_place_finds_the_next_hello),
           T(a_new_epoch_drops_every_stream_of_the_old_one),
           T(the_host_believes_only_the_welcome_of_its_own_epoch),
           T(a_state_is_told_once_the_guest_is_there),
           T(a_client_that_is_gone_overtakes_its_bytes_and_drops_none),
           T(a_client_that_had_ended_is_gone_at_once),
           T(the_end_of_a_client_that_is_gone_drops_its_stream),
           T(what_is_sent_to_a_client_that_is_gone_goes_nowhere),
           T(a_reset_behind_the_end_drops_no_byte_of_the_client),
           T(a_guest_has_no_client_that_could_be_gone))
