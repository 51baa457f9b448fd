#include "client/stream.h"

#include "base/io.h"
#include "base/own.h"
#include "check.h"
#include "client/exec.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* An agent that answers every request with the bytes it was given, whatever they are. */
struct peer {
    struct stream stream;
    pid_t pid;
};

static void peer_answer(int fd, const void *bytes, size_t len, bool stays)
{
    uint8_t head[FRAME_HEAD], request[4096];
    struct frame_head h;
    struct err err;

    if (io_read_all(fd, head, sizeof head) < 0 || frame_head_get(head, &h, &err) < 0 ||
        h.len > sizeof request || io_read_all(fd, request, h.len) < 0)
        _exit(1);
    if (io_write_all(fd, bytes, len) < 0)
        _exit(1);
    if (stays)
        (void) pause();
    _exit(0);
}

static int peer_open(struct peer *peer, const void *bytes, size_t len, bool stays, struct err *err)
{
    struct agent_request request = { .op = AGENT_INFO };
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    peer->pid = fork();
    if (peer->pid == 0) {
        (void) close(pair[0]);
        peer_answer(pair[1], bytes, len, stays);
    }
    (void) close(pair[1]);
    return stream_start(&peer->stream, pair[0], 300, &request, err);
}

static void peer_close(struct peer *peer)
{
    stream_close(&peer->stream);
    (void) kill(peer->pid, SIGKILL);
    (void) waitpid(peer->pid, NULL, 0);
}

static size_t put_frame(uint8_t *out, enum frame_type type, const void *data, uint32_t len)
{
    frame_head_put(out, type, len);
    if (len)
        memcpy(out + FRAME_HEAD, data, len);
    return FRAME_HEAD + len;
}

static size_t put_reply(uint8_t *out, enum frame_type type, const struct agent_reply *reply)
{
    uint8_t record[8192];
    struct err err;
    ssize_t n = agent_reply_encode(reply, record, sizeof record, &err);

    return put_frame(out, type, record, (uint32_t) n);
}

/* What stream_reply makes of an answer. */
static void refuses(const void *bytes, size_t len, bool stays, enum err_kind kind,
                    const char *wording)
{
    struct agent_reply reply;
    struct peer peer;
    struct err err = { 0 };

    CHECK_INT(peer_open(&peer, bytes, len, stays, &err), 0);
    CHECK_INT(stream_reply(&peer.stream, FRAME_REPLY, &reply, &err), -1);
    CHECK_STR(err.msg, wording);
    CHECK_INT(err.kind, kind);
    peer_close(&peer);
}

static void a_reply_arrives(void)
{
    uint8_t bytes[256];
    size_t n = put_reply(bytes, FRAME_REPLY, &(struct agent_reply){ .uptime_ms = 42 });
    struct agent_reply reply;
    struct peer peer;
    struct err err;

    CHECK_INT(peer_open(&peer, bytes, n, false, &err), 0);
    CHECK_INT(stream_reply(&peer.stream, FRAME_REPLY, &reply, &err), 0);
    CHECK_INT(reply.uptime_ms, 42);
    peer_close(&peer);
}

static void an_error_is_the_agents_own(void)
{
    uint8_t bytes[512];
    struct agent_reply said = { .kind = ERR_DISK_FULL, .message = "the disk is full" };

    refuses(bytes, put_reply(bytes, FRAME_ERROR, &said), true, ERR_DISK_FULL, "the disk is full");
    said.kind = 4711;
    refuses(bytes, put_reply(bytes, FRAME_ERROR, &said), true, ERR_INTERNAL, "the disk is full");
    said = (struct agent_reply){ .kind = ERR_NONE };
    refuses(bytes, put_reply(bytes, FRAME_ERROR, &said), true, ERR_INTERNAL,
            "the agent gave no reason");
}

static void an_end_in_the_middle_is_a_failure(void)
{
    refuses("", 0, false, ERR_UNAVAILABLE, "the connection to the sandbox ended early");
    refuses("\5\0\0", 3, false, ERR_UNAVAILABLE, "the connection to the sandbox ended early");
    refuses("\5\0\0\0\x10\0\0\0abc", 11, false, ERR_UNAVAILABLE,
            "the connection to the sandbox ended early");
}

static void silence_has_an_end(void)
{
    refuses("", 0, true, ERR_UNAVAILABLE, "the sandbox did not answer within 0 s");
    refuses("\5\0\0\0\x10\0\0\0abc", 11, true, ERR_UNAVAILABLE,
            "the sandbox did not answer within 0 s");
}

/* Of a reply, one byte at a time, each well within the patience of 300 ms, all of them not. */
static void an_answer_byte_by_byte_has_an_end(void)
{
    struct agent_request request = { .op = AGENT_INFO };
    uint8_t bytes[512];
    size_t n =
        put_reply(bytes, FRAME_REPLY, &(struct agent_reply){ .message = "a long one, it is" });
    struct agent_reply reply;
    struct stream stream;
    struct err err = { 0 };
    int pair[2];
    pid_t pid;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    pid = fork();
    if (pid == 0) {
        (void) close(pair[0]);
        for (size_t i = 0; i < n && send(pair[1], bytes + i, 1, MSG_NOSIGNAL) == 1; i++)
            (void) usleep(50000);
        _exit(0);
    }
    (void) close(pair[1]);
    CHECK(n * 50 > 900);
    CHECK_INT(stream_start(&stream, pair[0], 300, &request, &err), 0);
    CHECK_INT(stream_reply(&stream, FRAME_REPLY, &reply, &err), -1);
    CHECK_STR(err.msg, "the sandbox did not answer within 0 s");
    stream_close(&stream);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static void bad_frames_are_refused_in_words(void)
{
    refuses("\0\0\0\0\xff\0\0\0", 8, true, ERR_PROTOCOL, "the agent: unknown frame type 255");
    refuses("\0\0\0\0\x10\1\0\0", 8, true, ERR_PROTOCOL,
            "the agent: frame 'reply': spare bytes set");
    refuses("\1\0\1\0\x10\0\0\0", 8, true, ERR_TOO_BIG,
            "the agent: frame 'reply': 65537 bytes, at most 65536");
    /* A request's size is legal for callers only: it must not make us wait for a megabyte. */
    refuses("\0\0\x10\0\1\0\0\0", 8, true, ERR_PROTOCOL, "the agent sent a frame 'request'");
    refuses("\0\0\0\0\x16\0\0\0", 8, true, ERR_PROTOCOL,
            "the agent sent a frame 'end' out of turn");
    refuses("\1\0\0\0\x10\0\0\0x", 9, true, ERR_PROTOCOL, "the agent's answer: a field is cut off");
}

static void items_end(void)
{
    uint8_t bytes[1024];
    size_t n = 0;
    struct agent_reply reply;
    struct peer peer;
    struct err err;

    n += put_reply(bytes + n, FRAME_ITEM, &(struct agent_reply){ .name = "a" });
    n += put_reply(bytes + n, FRAME_ITEM, &(struct agent_reply){ .name = "b" });
    n += put_reply(bytes + n, FRAME_END, &(struct agent_reply){ .flags = AGENT_TRUNCATED });
    CHECK_INT(peer_open(&peer, bytes, n, false, &err), 0);
    CHECK_INT(stream_item(&peer.stream, &reply, &err), 1);
    CHECK_STR(reply.name, "a");
    CHECK_INT(stream_item(&peer.stream, &reply, &err), 1);
    CHECK_STR(reply.name, "b");
    CHECK_INT(stream_item(&peer.stream, &reply, &err), 0);
    CHECK_INT(reply.flags, AGENT_TRUNCATED);
    CHECK_INT(stream_item(&peer.stream, &reply, &err), -1);
    peer_close(&peer);
}

/* A frame of what is written to a pipe first. */
static int send_by_pipe(struct stream *stream, const void *data, uint32_t len, struct err *err)
{
    int pair[2], r = -1;

    (void) signal(SIGPIPE, SIG_IGN); /* splice knows no MSG_NOSIGNAL */
    CHECK(pipe2(pair, O_CLOEXEC | O_NONBLOCK) == 0);
    if (write(pair[1], data, len) == (ssize_t) len)
        r = stream_send_piped(stream, FRAME_DATA, pair[0], len, err);
    (void) close(pair[0]);
    (void) close(pair[1]);
    return r;
}

/* Sends until the peer, which reads nothing, has refused. */
static void an_agent_that_refuses_while_we_send_is_heard(void)
{
    static const char data[FRAME_DATA_MAX];
    uint8_t bytes[512];
    struct agent_reply said = { .kind = ERR_DISK_FULL, .message = "the disk is full" };
    size_t n = put_reply(bytes, FRAME_ERROR, &said);

    for (int way = 0; way < 4; way++) {
        bool stays = way & 1, piped = way & 2;
        struct err err = { 0 };
        struct peer peer;
        int r = 0;

        CHECK_INT(peer_open(&peer, bytes, n, stays, &err), 0);
        for (int i = 0; r == 0 && i < 1000; i++)
            r = piped ? send_by_pipe(&peer.stream, data, sizeof data, &err)
                      : stream_send(&peer.stream, FRAME_DATA, data, sizeof data, &err);
        CHECK_INT(r, -1);
        CHECK_STR(err.msg, "the disk is full");
        peer_close(&peer);
    }
}

static void an_agent_that_takes_nothing_ends_our_patience(void)
{
    static const char data[FRAME_DATA_MAX];
    struct err err = { 0 };
    struct peer peer;
    int r = 0;

    CHECK_INT(peer_open(&peer, "", 0, true, &err), 0);
    for (int i = 0; r == 0 && i < 1000; i++)
        r = send_by_pipe(&peer.stream, data, sizeof data, &err);
    CHECK_INT(r, -1);
    CHECK_STR(err.msg, "the sandbox did not answer within 0 s");
    peer_close(&peer);
}

static void a_frame_out_of_a_pipe_arrives_whole(void)
{
    uint8_t sent[3 * 4096 + 5], got[FRAME_HEAD + sizeof sent], want[FRAME_HEAD];
    struct agent_request request = { .op = AGENT_INFO };
    uint8_t head[FRAME_HEAD], text[4096];
    struct frame_head h;
    struct stream stream;
    struct err err;
    int pair[2];

    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (uint8_t) (i * 7);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK_INT(stream_start(&stream, pair[0], 300, &request, &err), 0);
    CHECK(io_read_all(pair[1], head, sizeof head) == 0 && frame_head_get(head, &h, &err) == 0);
    CHECK(h.len <= sizeof text && io_read_all(pair[1], text, h.len) == 0);
    CHECK_INT(send_by_pipe(&stream, sent, sizeof sent, &err), 0);
    CHECK_INT(io_read_all(pair[1], got, sizeof got), 0);
    frame_head_put(want, FRAME_DATA, sizeof sent);
    CHECK(memcmp(got, want, sizeof want) == 0);
    CHECK(memcmp(got + FRAME_HEAD, sent, sizeof sent) == 0);
    stream_close(&stream);
    (void) close(pair[1]);
}

static void raw_bytes_behind_a_reply_are_left_for_the_caller(void)
{
    uint8_t bytes[256];
    size_t n = put_reply(bytes, FRAME_REPLY, &(struct agent_reply){ .port = 22 });
    struct agent_reply reply;
    struct peer peer;
    struct err err;
    char text[16] = "";

    memcpy(bytes + n, "SSH-2.0", 7);
    CHECK_INT(peer_open(&peer, bytes, n + 7, true, &err), 0);
    peer.stream.exact = true;
    CHECK_INT(stream_reply(&peer.stream, FRAME_REPLY, &reply, &err), 0);
    CHECK_INT(recv(peer.stream.fd, text, sizeof text - 1, 0), 7);
    CHECK_STR(text, "SSH-2.0");
    peer_close(&peer);
}

static void queued_frames_are_whole_or_not_there(void)
{
    static const char data[FRAME_DATA_MAX];
    struct peer peer;
    struct err err;
    int taken = 0;

    CHECK_INT(peer_open(&peer, "", 0, true, &err), 0);
    /* The peer reads only the request, so that the socket fills up. */
    for (int i = 0; i < 100; i++) {
        taken += stream_queue(&peer.stream, FRAME_STDIN, data, sizeof data);
        CHECK_INT(stream_flush(&peer.stream, &err), 0);
    }
    CHECK(taken > 0 && taken < 100);
    CHECK(stream_pending(&peer.stream));
    CHECK_INT(stream_queue(&peer.stream, FRAME_SIGNAL, "\2\0\0\0", 4), 1);
    peer_close(&peer);
}

/* --- exec events */

static size_t put_output(uint8_t *out, enum frame_type type, uint64_t offset, const char *text)
{
    uint8_t data[64];

    frame_put_u64(data, offset);
    memcpy(data + 8, text, strlen(text));
    return put_frame(out, type, data, (uint32_t) (8 + strlen(text)));
}

/* An exec on a peer's stream; the first event must be refused with these words. */
static void event_refused(const uint8_t *bytes, size_t n, const char *wording)
{
    struct exec_event event;
    struct exec exec = EXEC_NONE;
    struct err err = { 0 };
    struct peer peer;

    CHECK_INT(peer_open(&peer, bytes, n, true, &err), 0);
    exec.stream = peer.stream;
    exec.next_offset[EXEC_STDOUT] = 10;
    CHECK_INT(exec_next(&exec, &event, &err), -1);
    CHECK_STR(err.msg, wording);
    peer.stream = exec.stream;
    peer_close(&peer);
}

static void output_says_where_it_belongs_and_what_was_missed(void)
{
    uint8_t bytes[1024];
    struct exec_event event;
    struct exec exec = EXEC_NONE;
    struct err err;
    struct peer peer;
    size_t n = 0;

    n += put_output(bytes + n, FRAME_STDOUT, 0, "abc");
    n += put_output(bytes + n, FRAME_STDERR, 0, "err");
    n += put_output(bytes + n, FRAME_STDOUT, 13, "xyz");
    n += put_reply(bytes + n, FRAME_EXIT,
                   &(struct agent_reply){ .ended = EXIT_CODE, .exit_code = 3, .wall_ms = 9 });
    CHECK_INT(peer_open(&peer, bytes, n, false, &err), 0);
    exec.stream = peer.stream;
    CHECK_INT(exec_next(&exec, &event, &err), 1);
    CHECK(event.type == EXEC_STDOUT && event.len == 3 && event.missed == 0);
    CHECK_INT(exec_next(&exec, &event, &err), 1);
    CHECK(event.type == EXEC_STDERR && event.len == 3 && event.missed == 0);
    CHECK_INT(exec_next(&exec, &event, &err), 1);
    CHECK(event.type == EXEC_STDOUT && event.offset == 13 && event.missed == 10);
    CHECK_INT(exec_next(&exec, &event, &err), 1);
    CHECK(event.type == EXEC_END && event.result.exit_code == 3 && event.result.wall_ms == 9);
    CHECK(exec.ended);
    peer.stream = exec.stream;
    peer_close(&peer);
}

static void output_that_makes_no_sense_is_refused(void)
{
    uint8_t bytes[256];
    size_t n;

    n = put_output(bytes, FRAME_STDOUT, 5, "again");
    event_refused(bytes, n, "the agent sent output of the wrong place");
    n = put_output(bytes, FRAME_STDOUT, UINT64_MAX, "far");
    event_refused(bytes, n, "the agent sent output of the wrong place");
    n = put_frame(bytes, FRAME_STDERR, "1234567", 7);
    event_refused(bytes, n, "the agent sent output without its offset");
    n = put_reply(bytes, FRAME_EXIT, &(struct agent_reply){ .exit_code = 1 });
    event_refused(bytes, n, "the agent sent an exit status without its kind");
    n = put_frame(bytes, FRAME_DATA, "x", 1);
    event_refused(bytes, n, "the agent sent a frame 'data' out of turn");
}

static void arguments_become_a_list_of_texts(void)
{
    const char *const words[] = { "echo", "", "a b" };
    auto_free char *buffer = NULL;
    struct texts texts;
    struct err err;

    CHECK_INT(exec_texts(words, 3, &texts, &buffer, &err), 0);
    CHECK_INT(texts.len, 10);
    CHECK(memcmp(texts.data, "echo\0\0a b", 10) == 0);
}

static void too_many_arguments_are_refused(void)
{
    auto_free char *word = malloc(AGENT_TEXT_MAX + 1);
    const char *words[1] = { word };
    char *buffer = NULL;
    struct texts texts;
    struct err err;

    memset(word, 'x', AGENT_TEXT_MAX);
    word[AGENT_TEXT_MAX] = '\0';
    CHECK_INT(exec_texts(words, 1, &texts, &buffer, &err), -1);
    CHECK_INT(err.kind, ERR_TOO_BIG);
    CHECK_STR(err.msg, "arguments or environment of 524289 bytes, at most 524288");
    CHECK(buffer == NULL);
}

CHECK_MAIN(T(a_reply_arrives), T(an_error_is_the_agents_own), T(an_end_in_the_middle_is_a_failure),
           T(silence_has_an_end), T(an_answer_byte_by_byte_has_an_end),
           T(bad_frames_are_refused_in_words), T(items_end),
           T(an_agent_that_refuses_while_we_send_is_heard),
           T(an_agent_that_takes_nothing_ends_our_patience), T(a_frame_out_of_a_pipe_arrives_whole),
           T(raw_bytes_behind_a_reply_are_left_for_the_caller),
           T(queued_frames_are_whole_or_not_there),
           T(output_says_where_it_belongs_and_what_was_missed),
           T(output_that_makes_no_sense_is_refused), T(arguments_become_a_list_of_texts),
           T(too_many_arguments_are_refused))
