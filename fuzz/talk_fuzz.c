/* talk_fuzz.c - a session or a tunnel with a hostile server: its answer to the handshake, frames, JSON in them; and plain answers with lengths,
 * chunks and lines of JSON. The first byte says which. Nothing may be read outside of what came, or wait for ever. */
#include "http/ws_client.h"
#include "remote/ask.h"
#include "remote/talk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* What the server sent, then its end. -1: more than a socket takes at once. */
static int server(const uint8_t *data, size_t size)
{
    int ends[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    must(size < 100000 && (size == 0 || send(ends[1], data, size, MSG_DONTWAIT) == (ssize_t) size));
    (void) close(ends[1]);
    return ends[0];
}

static void frames(const uint8_t *data, size_t size, bool raw)
{
    static struct talk t;
    struct talk_event event;
    struct err err;
    int r;

    memset(&t, 0, sizeof t);
    t.call = CALL_NONE;
    t.raw = raw;
    t.call.fd = server(data, size);
    must((t.call.buf = malloc(CALL_BUFFER)) != NULL);
    while ((r = talk_next(&t, &event, &err)) == 1 && event.type != TALK_CLOSED) {
        if (event.type == TALK_TEXT) {
            must(json_is_object(event.json));
            json_decref(event.json);
            continue;
        }
        must(event.len > 0 && event.data >= t.call.buf &&
             event.data + event.len <= t.call.buf + CALL_BUFFER);
    }
    must(r != 0); /* the server has ended: so has the session */
    talk_close(&t);
}

static void answer(const uint8_t *data, size_t size)
{
    struct ask_lines lines = { .text = NULL };
    struct call call = CALL_NONE;
    json_t *line = NULL;
    struct err err;
    int r = 0;

    call.fd = server(data, size);
    must((call.buf = malloc(CALL_BUFFER)) != NULL);
    lines.call = &call;
    if (call_answer(&call, &err) == 0 && ask_check(&call, &err) == 0)
        while ((r = ask_next(&lines, &line, &err)) == 1)
            json_decref(line);
    must(r <= 0);
    ask_lines_done(&lines);
    call_close(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 60000)
        return 0;
    if (data[0] & 1)
        frames(data + 1, size - 1, data[0] & 2);
    else
        answer(data + 1, size - 1);
    return 0;
}
