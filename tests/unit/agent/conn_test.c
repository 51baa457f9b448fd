#include "agent/core/agent.h"
#include "base/own.h"
#include "check.h"

#include <sys/socket.h>

static struct agent agent;
static char taken[4096]; /* what the kind saw: "type:len:first byte " */
static int later;        /* frames that are to wait once */
static int behind;       /* frames that are to wait once for another connection */
static int pieces;       /* bytes that are taken one at a time, each from a frame that then waits */
static int fills, lefts; /* calls */

static enum conn_taken take(struct conn *conn, const struct frame_head *head, uint8_t *data,
                            struct err *err)
{
    size_t at = strlen(taken);

    if (head->type == FRAME_RESIZE) {
        err_set(err, ERR_INVALID, "not today");
        return CONN_BAD;
    }
    if (later-- > 0)
        return CONN_LATER;
    if (behind-- > 0)
        return CONN_BEHIND;
    if (pieces-- > 0) {
        conn->in_left--;
        return CONN_LATER;
    }
    (void) snprintf(taken + at, sizeof taken - at, "%s:%u:%c ", frame_name(head->type), head->len,
                    head->len ? data[0] : '-');
    return CONN_DONE;
}

static bool nothing(struct conn *conn)
{
    (void) conn;
    fills++;
    return false;
}

static void has_left(struct conn *conn)
{
    (void) conn;
    lefts++;
}

static bool outliving; /* what the client had sent is wanted when the client is gone */

static bool outlives(const struct conn *conn)
{
    (void) conn;
    return outliving;
}

static const struct conn_kind kind = {
    .frame = take, .fill = nothing, .left = has_left, .outlives = outlives
};

struct ends {
    int ours;
    struct conn *conn;
};

static struct ends open_conn(void)
{
    struct ends ends = { .ours = -1 };
    int pair[2];

    taken[0] = '\0';
    later = behind = pieces = fills = lefts = 0;
    outliving = false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0) {
        ends.ours = pair[0];
        ends.conn = conn_new(&agent, pair[1], false, &kind);
    }
    return ends;
}

static void on_nothing(struct timer *timer)
{
    (void) timer;
}

/* As many turns as there is something to do, without ever waiting. */
static void turn(void)
{
    struct timer now = { .at_ms = 0 };

    for (int i = 0; i < 8; i++) {
        loop_arm(&agent.loop, &now, 0, on_nothing);
        loop_turn(&agent.loop);
        loop_disarm(&agent.loop, &now);
    }
}

static void send_frame(int fd, enum frame_type type, const void *data, uint32_t len)
{
    uint8_t head[FRAME_HEAD];

    frame_head_put(head, type, len);
    CHECK(write(fd, head, sizeof head) == (ssize_t) sizeof head);
    CHECK(len == 0 || write(fd, data, len) == (ssize_t) len);
}

static void frames_arrive_whole_however_they_are_cut(void)
{
    struct ends e = open_conn();
    uint8_t bytes[FRAME_HEAD + 5 + FRAME_HEAD];

    frame_head_put(bytes, FRAME_STDIN, 5);
    memcpy(bytes + FRAME_HEAD, "hello", 5);
    frame_head_put(bytes + FRAME_HEAD + 5, FRAME_STDIN_END, 0);
    for (size_t cut = 1; cut < sizeof bytes; cut++) {
        taken[0] = '\0';
        CHECK(write(e.ours, bytes, cut) == (ssize_t) cut);
        turn();
        CHECK(write(e.ours, bytes + cut, sizeof bytes - cut) == (ssize_t) (sizeof bytes - cut));
        turn();
        CHECK_STR(taken, "stdin:5:h stdin-end:0:- ");
    }
    (void) close(e.ours);
    turn();
    CHECK(e.conn->closed);
    conns_sweep(&agent);
    CHECK_INT(agent.conns.outside, 0);
}

static void memory_grows_with_what_came_not_with_what_was_announced(void)
{
    struct ends e = open_conn();
    uint8_t head[FRAME_HEAD];

    frame_head_put(head, FRAME_REQUEST, FRAME_REQUEST_MAX);
    CHECK(write(e.ours, head, sizeof head) == (ssize_t) sizeof head);
    CHECK(write(e.ours, "abc", 3) == 3);
    turn();
    CHECK_INT(e.conn->in_have, 3);
    CHECK(e.conn->in_room <= 4096);
    (void) close(e.ours);
    turn();
    CHECK(e.conn->closed);
    conns_sweep(&agent);
}

static void a_frame_left_for_later_stops_the_reading(void)
{
    struct ends e = open_conn();

    later = 1;
    send_frame(e.ours, FRAME_STDIN, "a", 1);
    send_frame(e.ours, FRAME_STDIN, "b", 1);
    turn();
    CHECK_STR(taken, "");
    conn_retry(e.conn);
    turn();
    CHECK_STR(taken, "stdin:1:a stdin:1:b ");
    (void) close(e.ours);
    turn();
    conns_sweep(&agent);
}

static void a_refusal_is_sent_and_then_the_end(void)
{
    struct ends e = open_conn();
    uint8_t got[512];
    struct frame_head head;
    struct agent_reply reply;
    struct err err;
    ssize_t n;

    send_frame(e.ours, FRAME_RESIZE, "\0\0\0\0", 4);
    send_frame(e.ours, FRAME_STDIN, "x", 1);
    turn();
    CHECK(e.conn->closed);
    n = recv(e.ours, got, sizeof got, MSG_DONTWAIT);
    CHECK(n > (ssize_t) FRAME_HEAD && frame_head_get(got, &head, &err) == 0);
    CHECK_INT(head.type, FRAME_ERROR);
    CHECK(agent_reply_decode(&reply, got + FRAME_HEAD, head.len, &err) == 0);
    CHECK_INT(reply.kind, ERR_INVALID);
    CHECK_STR(reply.message, "not today");
    CHECK_STR(taken, "");
    (void) close(e.ours);
    conns_sweep(&agent);
}

static void a_half_closed_caller_still_gets_its_answer(void)
{
    struct ends e = open_conn();
    struct agent_reply reply = { .count = 7 };
    uint8_t got[512];

    CHECK(shutdown(e.ours, SHUT_WR) == 0);
    turn();
    CHECK(!e.conn->closed);
    CHECK(conn_reply(e.conn, FRAME_REPLY, &reply) == 0);
    conn_end(e.conn);
    conn_flush(e.conn);
    CHECK(recv(e.ours, got, sizeof got, MSG_DONTWAIT) > 0);
    CHECK(e.conn->closed);
    (void) close(e.ours);
    conns_sweep(&agent);
}

static void a_caller_that_does_not_read_is_waited_for_without_spinning(void)
{
    static char big[32000];
    struct ends e = open_conn();
    struct agent_reply reply = { .data = { .data = big, .len = sizeof big } };
    char sink[65536];
    size_t total = 0;
    ssize_t n;
    int sent = 0;

    for (; sent < 200 && e.conn->out_have == e.conn->out_sent; sent++) {
        CHECK(conn_reply(e.conn, FRAME_ITEM, &reply) == 0);
        conn_flush(e.conn);
    }
    CHECK(sent > 1 && sent < 200);
    CHECK(e.conn->watch.events & EPOLLOUT);
    while ((n = recv(e.ours, sink, sizeof sink, MSG_DONTWAIT)) > 0) {
        total += (size_t) n;
        turn();
    }
    CHECK(total == (size_t) sent * (FRAME_HEAD + 6 + sizeof big));
    CHECK(!(e.conn->watch.events & EPOLLOUT));
    conn_close(e.conn);
    conn_close(e.conn);
    (void) close(e.ours);
    conns_sweep(&agent);
}

static void a_client_that_is_gone_is_read_as_far_as_it_is_wanted(void)
{
    for (int i = 0; i < 2; i++) {
        struct ends e = open_conn();

        later = 1;
        outliving = i;
        send_frame(e.ours, FRAME_STDIN, "a", 1);
        send_frame(e.ours, FRAME_STDIN, "b", 1);
        turn();
        (void) close(e.ours);
        turn();
        CHECK_INT(e.conn->closed, !outliving);
        if (outliving) {
            CHECK(!e.conn->watch.added); /* the hang-up does not keep the loop awake */
            conn_retry(e.conn);
            turn();
            CHECK_STR(taken, "stdin:1:a stdin:1:b ");
            CHECK(e.conn->closed);
        }
        conns_sweep(&agent);
    }
    CHECK_INT(agent.conns.outside, 0);
}

/* As over a trunk: that the client is gone is known before its bytes have come. */
static void a_client_may_be_gone_before_its_bytes_come(void)
{
    struct ends e = open_conn();

    conn_leave(e.conn);
    CHECK(!e.conn->closed);
    send_frame(e.ours, FRAME_STDIN, "a", 1);
    turn();
    CHECK_STR(taken, "stdin:1:a ");
    CHECK(!e.conn->closed);
    CHECK(shutdown(e.ours, SHUT_WR) == 0);
    turn();
    CHECK(e.conn->closed);
    (void) close(e.ours);
    conns_sweep(&agent);

    e = open_conn(); /* not wanted while it must wait */
    conn_leave(e.conn);
    later = 1;
    send_frame(e.ours, FRAME_STDIN, "a", 1);
    turn();
    CHECK(e.conn->closed);
    (void) close(e.ours);
    conns_sweep(&agent);

    e = open_conn(); /* half closed before: there is nothing more to come */
    CHECK(shutdown(e.ours, SHUT_WR) == 0);
    turn();
    CHECK(!e.conn->closed);
    conn_leave(e.conn);
    CHECK(e.conn->closed);
    (void) close(e.ours);
    conns_sweep(&agent);
}

static void what_a_client_that_is_gone_had_sent_is_not_kept_for_ever(void)
{
    struct ends e = open_conn();

    later = 1;
    outliving = true;
    send_frame(e.ours, FRAME_STDIN, "a", 1);
    turn();
    (void) close(e.ours);
    turn();
    CHECK(!e.conn->closed && e.conn->patience.at_ms);
    loop_arm(&agent.loop, &e.conn->patience, 0, e.conn->patience.fire);
    turn();
    CHECK(e.conn->closed);
    conns_sweep(&agent);
    CHECK_INT(agent.conns.outside, 0);
}

static void a_retry_outlasts_output_and_the_client_and_sets_no_limit(void)
{
    struct ends e = open_conn();

    later = 1;
    send_frame(e.ours, FRAME_STDIN, "a", 1);
    turn();
    conn_be_patient(e.conn);
    conn_retry_soon(e.conn);
    CHECK(conn_queue(e.conn, "output", 6) == 0);
    conn_flush(e.conn);
    turn();
    CHECK_STR(taken, "stdin:1:a ");
    CHECK(!e.conn->closed && !e.conn->patience.at_ms);

    later = 1;
    outliving = true;
    send_frame(e.ours, FRAME_STDIN, "b", 1);
    turn();
    conn_retry_soon(e.conn);
    conn_leave(e.conn);
    turn();
    CHECK_STR(taken, "stdin:1:a stdin:1:b ");
    CHECK(!e.conn->closed && e.conn->patience.at_ms);

    later = 1; /* closed before its retry is due */
    send_frame(e.ours, FRAME_STDIN, "c", 1);
    turn();
    conn_retry_soon(e.conn);
    conn_close(e.conn);
    conns_sweep(&agent);
    turn();
    CHECK_STR(taken, "stdin:1:a stdin:1:b ");
    (void) close(e.ours);
}

static void to_a_client_that_is_gone_nothing_is_sent(void)
{
    struct ends e = open_conn();
    char got[16];

    outliving = true;
    CHECK(conn_queue(e.conn, "before", 6) == 0);
    conn_leave(e.conn);
    conn_leave(e.conn);
    CHECK_INT(lefts, 1);
    CHECK(conn_queue(e.conn, "behind", 6) == 0);
    conn_flush(e.conn);
    CHECK_INT(e.conn->out_have, 0);
    CHECK(!(e.conn->watch.events & EPOLLOUT));
    CHECK(recv(e.ours, got, sizeof got, MSG_DONTWAIT) < 0);
    CHECK_INT(fills, 0);
    CHECK(!e.conn->closed);
    conn_end(e.conn);
    conn_flush(e.conn);
    CHECK(e.conn->closed);
    (void) close(e.ours);
    conns_sweep(&agent);
}

/* The process writes before the loop has told that the client closed. */
static void output_does_not_cost_the_input_of_a_client_that_closed(void)
{
    for (int i = 0; i < 4; i++) {
        struct ends e = open_conn();
        bool waits = i & 1;

        outliving = i & 2;
        later = waits;
        send_frame(e.ours, FRAME_STDIN, "a", 1);
        if (waits)
            turn();
        send_frame(e.ours, FRAME_STDIN, "b", 1);
        (void) close(e.ours);
        CHECK(conn_queue(e.conn, "output", 6) == 0);
        conn_flush(e.conn);
        CHECK_INT(e.conn->closed, !outliving);
        if (outliving) {
            CHECK_INT(lefts, 1);
            turn();
            conn_retry(e.conn);
            turn();
            CHECK_STR(taken, "stdin:1:a stdin:1:b ");
            CHECK(e.conn->closed);
        }
        conns_sweep(&agent);
    }
    CHECK_INT(agent.conns.outside, 0);
}

/* Its time as if most of it were over. Returns whether a retry starts it again. */
static bool renews(struct conn *conn)
{
    uint64_t before;

    loop_arm(&agent.loop, &conn->patience, 1000, conn->patience.fire);
    before = conn->patience.at_ms;
    conn_retry(conn);
    return conn->patience.at_ms > before;
}

static void the_time_of_a_client_that_is_gone_starts_again_with_each_byte_taken(void)
{
    struct ends e = open_conn();

    later = 1;
    outliving = true;
    send_frame(e.ours, FRAME_STDIN, "abc", 3);
    turn();
    (void) close(e.ours);
    turn();
    later = 1;
    CHECK(!renews(e.conn)); /* nothing was taken */
    pieces = 2;
    CHECK(renews(e.conn));
    CHECK(renews(e.conn));
    CHECK_INT(e.conn->in_left, 1);
    behind = 1; /* the one in front has a time of its own */
    conn_retry(e.conn);
    CHECK(!e.conn->patience.at_ms && !e.conn->closed);
    later = 1;
    conn_retry(e.conn);
    CHECK(e.conn->patience.at_ms && !e.conn->closed);
    conn_retry(e.conn);
    turn();
    CHECK_STR(taken, "stdin:3:a ");
    CHECK(e.conn->closed);
    conns_sweep(&agent);
}

int main(void)
{
    static const struct check_test tests[] = {
        T(frames_arrive_whole_however_they_are_cut),
        T(memory_grows_with_what_came_not_with_what_was_announced),
        T(a_frame_left_for_later_stops_the_reading),
        T(a_refusal_is_sent_and_then_the_end),
        T(a_half_closed_caller_still_gets_its_answer),
        T(a_caller_that_does_not_read_is_waited_for_without_spinning),
        T(a_client_that_is_gone_is_read_as_far_as_it_is_wanted),
        T(a_client_may_be_gone_before_its_bytes_come),
        T(what_a_client_that_is_gone_had_sent_is_not_kept_for_ever),
        T(a_retry_outlasts_output_and_the_client_and_sets_no_limit),
        T(to_a_client_that_is_gone_nothing_is_sent),
        T(output_does_not_cost_the_input_of_a_client_that_closed),
        T(the_time_of_a_client_that_is_gone_starts_again_with_each_byte_taken),
    };
    struct err err;

    if (loop_init(&agent.loop, &err) < 0)
        return 1;
    return check_run(tests, ARRAY_LEN(tests));
}
