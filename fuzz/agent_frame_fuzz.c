/* agent_frame_fuzz.c - what comes over an agent connection, either way: frames, requests, replies.
 *
 * A stream of frames is walked as a receiver walks it. What decodes must encode again to something that decodes
 * to the same bytes: a decoder that takes more than an encoder can say would show here. */
#include "wire/agent.h"
#include "wire/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_twice(const struct field *fields, size_t count, const void *object, size_t len)
{
    size_t room = len + 64;
    uint8_t *once = malloc(room), *twice = malloc(room);
    union {
        struct agent_request request;
        struct agent_reply reply;
    } again;
    struct err err;
    ssize_t n = record_encode(fields, count, object, once, room, &err);
    ssize_t m;

    /* Canonical bytes are never longer than what they came from: zero fields are left out. */
    if (n < 0 || record_decode(fields, count, &again, once, (size_t) n, &err) < 0)
        abort();
    m = record_encode(fields, count, &again, twice, room, &err);
    if (m != n || memcmp(once, twice, (size_t) n) != 0)
        abort();
    free(once);
    free(twice);
}

static void walk_texts(const struct texts *texts)
{
    uint32_t count = 0;

    for (const char *item = NULL; (item = texts_next(texts, item));)
        count++;
    if (count != texts->count)
        abort();
}

static void try_request(const uint8_t *data, size_t len)
{
    struct agent_request request;
    struct err err;

    if (agent_request_decode(&request, data, len, &err) < 0) {
        if (err.kind == ERR_NONE || err.kind >= ERR_KIND_COUNT || strlen(err.msg) >= ERR_MSG_MAX)
            abort();
        return;
    }
    walk_texts(&request.args);
    walk_texts(&request.env);
    if (request.op == AGENT_NONE || request.op >= AGENT_OP_COUNT ||
        (request.flags & ~agent_ops[request.op].flags))
        abort();
    check_twice(agent_request_fields, agent_request_field_count, &request, len);
}

static void try_reply(const uint8_t *data, size_t len)
{
    struct agent_reply reply;
    struct err err;

    if (agent_reply_decode(&reply, data, len, &err) < 0)
        return;
    walk_texts(&reply.args);
    (void) agent_entry_type_name(reply.type);
    (void) agent_event_name(reply.event);
    (void) agent_exit_name(reply.ended);
    check_twice(agent_reply_fields, agent_reply_field_count, &reply, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_head head;
    struct err err;

    while (size >= FRAME_HEAD && frame_head_get(data, &head, &err) == 0) {
        uint8_t back[FRAME_HEAD];

        if ((int64_t) head.len > frame_limit(head.type))
            abort();
        frame_head_put(back, head.type, head.len);
        if (memcmp(back, data, FRAME_HEAD) != 0)
            abort();
        data += FRAME_HEAD;
        size -= FRAME_HEAD;
        if (head.len > size)
            break; /* the rest would still be on its way */
        if (head.type == FRAME_REQUEST)
            try_request(data, head.len);
        else
            try_reply(data, head.len);
        data += head.len;
        size -= head.len;
    }
    try_request(data, size);
    try_reply(data, size);
    return 0;
}
