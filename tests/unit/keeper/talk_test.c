#include "keeper/talk.h"

#include "check.h"
#include "wire/agent.h"
#include "wire/frame.h"

#include <sys/socket.h>
#include <unistd.h>

static int pair[2];

static void say(uint8_t type, const struct agent_reply *reply)
{
    uint8_t frame[FRAME_HEAD + 512];
    struct err err;
    ssize_t len = agent_reply_encode(reply, frame + FRAME_HEAD, sizeof frame - FRAME_HEAD, &err);

    CHECK(len >= 0);
    frame_head_put(frame, type, (uint32_t) len);
    CHECK_INT(write(pair[1], frame, FRAME_HEAD + (size_t) len), (int) (FRAME_HEAD + len));
}

static void meet(void)
{
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    say(FRAME_REPLY, &(struct agent_reply){ .kind = 0 });
}

static void an_agent_that_is_at_rest_closes_the_connection(void)
{
    struct err err;

    meet();
    CHECK_INT(shutdown(pair[1], SHUT_WR), 0);
    CHECK_INT(talk_quiesce(pair[0], &err), 0);
    (void) close(pair[0]);
    (void) close(pair[1]);
}

static void an_agent_that_does_not_come_to_rest_says_why(void)
{
    struct err err;

    meet();
    say(FRAME_ERROR,
        &(struct agent_reply){ .kind = ERR_UNAVAILABLE, .message = "3 processes do not stop" });
    CHECK_INT(talk_quiesce(pair[0], &err), -1);
    CHECK_INT(err.kind, ERR_UNAVAILABLE);
    CHECK_STR(err.msg, "the agent said: 3 processes do not stop");
    (void) close(pair[0]);
    (void) close(pair[1]);
}

static void an_agent_that_says_anything_else_is_not_at_rest(void)
{
    struct err err;

    meet();
    say(FRAME_REPLY, &(struct agent_reply){ .kind = 0 });
    CHECK_INT(talk_quiesce(pair[0], &err), -1);
    CHECK_STR(err.msg, "the agent does not come to rest");
    (void) close(pair[0]);
    (void) close(pair[1]);
}

CHECK_MAIN(T(an_agent_that_is_at_rest_closes_the_connection),
           T(an_agent_that_does_not_come_to_rest_says_why),
           T(an_agent_that_says_anything_else_is_not_at_rest))
