/* cove mcp: the server's tools on stdin and stdout. A bridge: each message that comes as a line goes to POST /mcp, and what comes
 * back goes out as lines. What a message means is the server's business; the bridge knows which request an answer is for, and
 * closes the connection of one that is cancelled, which ends its command.
 *
 * One thread reads; each message has a thread of its own, so that requests run side by side and answers come as they are ready.
 * Nothing but messages is written to stdout. */
#include "cli/api/mcp.h"

#include "base/base64.h"
#include "base/io.h"
#include "base/own.h"
#include "cli/api/server.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/subverbs.h"
#include "mcp/lines.h"
#include "mcp/message.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT_ONCE_MOST 64
#define END_WAIT_MS  10000 /* for answers that are under way when stdin ends */
#define ANSWER_MOST  (32u << 20)
#define READ_PIECE   65536
#define HEADERS_MOST 2048

/* A message on its way. */
struct ride {
    json_t *json; /* owned */
    struct mcp_message message;
    struct call call;
    bool cancelled;
    struct ride *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fewer = PTHREAD_COND_INITIALIZER;
static struct ride *rides;
static size_t ride_count;
static char session[129]; /* Mcp-Session-Id of the server; "": none */
static const struct remote *remote;

/* ---- out ---- */

/* take_json: the reference is taken. A client that is gone ends the bridge. */
static void say(json_t *take_json)
{
    static pthread_mutex_t out = PTHREAD_MUTEX_INITIALIZER;
    auto_free char *text = json_dumps(take_json, JSON_COMPACT);
    bool sent;

    json_decref(take_json);
    if (!text)
        return;
    (void) pthread_mutex_lock(&out);
    sent = io_write_all(STDOUT_FILENO, text, strlen(text)) == 0 &&
           io_write_all(STDOUT_FILENO, "\n", 1) == 0;
    (void) pthread_mutex_unlock(&out);
    if (!sent)
        _exit(0);
}

static void say_error(json_t *id, enum mcp_code code, const struct err *err)
{
    say(mcp_error(id, code, err->msg, NULL));
}

static bool is_cancelled(const struct ride *ride)
{
    bool cancelled;

    (void) pthread_mutex_lock(&lock);
    cancelled = ride->cancelled;
    (void) pthread_mutex_unlock(&lock);
    return cancelled;
}

/* What the server says, as a line. An error that names no request is about this one. */
static int pass_on(void *context, const char *text, size_t len, struct err *err)
{
    struct ride *ride = context;
    json_t *json = json_loadb(text, len, 0, NULL);

    if (!json_is_object(json)) {
        json_decref(json);
        return err_set(
            err, ERR_PROTOCOL,
            "the server's answer is not a message of MCP: is this address a cove server?");
    }
    if (json_object_get(json, "error") && !json_object_get(json, "id") && ride->message.id)
        (void) json_object_set(json, "id", ride->message.id);
    if (is_cancelled(ride))
        json_decref(json);
    else
        say(json);
    return 0;
}

/* ---- to the server ---- */

static bool is_plain(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return len > 0 && text[0] != ' ' && text[len - 1] != ' ' && strncmp(text, "=?", 2) != 0;
}

/* A header line; what cannot stand in one goes as base64. */
static void put_header(char *out, const char *name, const char *value)
{
    size_t used = strlen(out), len = strlen(value);
    char base64[BASE64_SIZE(MCP_NAME_MAX * 4)];

    if (is_plain(value) && used + strlen(name) + len + 5 < HEADERS_MOST) {
        (void) snprintf(out + used, HEADERS_MOST - used, "%s: %s\r\n", name, value);
        return;
    }
    if (len == 0 || len > MCP_NAME_MAX * 4 || used + sizeof base64 + 32 >= HEADERS_MOST)
        return; /* the server says what is missing */
    base64_put(base64, (const uint8_t *) value, len);
    (void) snprintf(out + used, HEADERS_MOST - used, "%s: =?base64?%s?=\r\n", name, base64);
}

static void put_headers(const struct mcp_message *message, char out[HEADERS_MOST])
{
    const char *name = mcp_name(message);

    out[0] = '\0';
    (void) pthread_mutex_lock(&lock);
    if (session[0])
        put_header(out, "Mcp-Session-Id", session);
    (void) pthread_mutex_unlock(&lock);
    if (!message->version)
        return;
    put_header(out, "MCP-Protocol-Version", message->version);
    put_header(out, "Mcp-Method", message->method);
    if (name)
        put_header(out, "Mcp-Name", name);
}

static int read_events(struct ride *ride, struct err *err)
{
    struct events events = { .begun = false };
    auto_free char *piece = malloc(READ_PIECE);
    ssize_t n = -1;
    int r = 0;

    if (!piece)
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    while (r == 0 && (n = call_read(&ride->call, piece, READ_PIECE, err)) > 0)
        r = events_feed(&events, piece, (size_t) n, pass_on, ride, err);
    events_done(&events);
    return n < 0 || r < 0 ? -1 : 0;
}

static int read_answer(struct ride *ride, struct err *err)
{
    char type[64] = "", fresh[sizeof session];
    auto_free char *text = NULL;
    size_t len = 0;

    if (call_answer(&ride->call, err) < 0)
        return -1;
    if (call_header(&ride->call, "Mcp-Session-Id", fresh, sizeof fresh) && is_plain(fresh)) {
        (void) pthread_mutex_lock(&lock);
        (void) strcpy(session, fresh);
        (void) pthread_mutex_unlock(&lock);
    }
    (void) call_header(&ride->call, "Content-Type", type, sizeof type);
    if (strncmp(type, "text/event-stream", 17) == 0)
        return read_events(ride, err);
    if (call_text(&ride->call, ANSWER_MOST, &text, &len, err) < 0)
        return -1;
    return len == 0 ? 0 : pass_on(ride, text, len, err);
}

/* The connection can be cut from now on. */
static int depart(struct ride *ride, const struct call_request *request, struct err *err)
{
    struct call call;

    if (call_open(&call, remote, request, err) < 0)
        return -1;
    (void) pthread_mutex_lock(&lock);
    ride->call = call;
    (void) pthread_mutex_unlock(&lock);
    return is_cancelled(ride) ? err_set(err, ERR_UNAVAILABLE, "cancelled") : 0;
}

static void leave(struct ride *ride)
{
    (void) pthread_mutex_lock(&lock);
    for (struct ride **at = &rides; *at; at = &(*at)->next)
        if (*at == ride) {
            *at = ride->next;
            break;
        }
    call_close(&ride->call);
    (void) pthread_mutex_unlock(&lock);
    json_decref(ride->json);
    free(ride);
    (void) pthread_mutex_lock(&lock);
    ride_count--;
    (void) pthread_cond_signal(&fewer);
    (void) pthread_mutex_unlock(&lock);
}

static void *travel(void *arg)
{
    struct ride *ride = arg;
    auto_free char *body = json_dumps(ride->json, JSON_COMPACT);
    char headers[HEADERS_MOST];
    struct call_request request = { .method = "POST",
                                    .path = "/mcp",
                                    .accept = "application/json, text/event-stream",
                                    .extra = headers,
                                    .body = body,
                                    .body_len = body ? strlen(body) : 0 };
    struct err err = { 0 };
    int r;

    put_headers(&ride->message, headers);
    r = body ? depart(ride, &request, &err)
             : err_set(&err, ERR_NO_MEMORY, "no memory for the request");
    if (r == 0)
        r = read_answer(ride, &err);
    if (r < 0 && ride->message.kind == MCP_REQUEST && !is_cancelled(ride))
        say_error(ride->message.id, MCP_INTERNAL, &err);
    leave(ride);
    return NULL;
}

/* ---- in ---- */

static void cancel(json_t *id)
{
    (void) pthread_mutex_lock(&lock);
    for (struct ride *at = rides; at; at = at->next)
        if (id && at->message.id && json_equal(at->message.id, id)) {
            at->cancelled = true;
            if (at->call.fd >= 0)
                (void) shutdown(at->call.fd, SHUT_RDWR);
        }
    (void) pthread_mutex_unlock(&lock);
}

/* take_json: the reference is taken. */
static void send_off(json_t *take_json, const struct mcp_message *message)
{
    struct ride *ride = calloc(1, sizeof *ride);
    pthread_attr_t attr;
    pthread_t thread;
    struct err err;
    int failed;

    if (!ride) {
        (void) err_set(&err, ERR_NO_MEMORY, "no memory for the request");
        say_error(message->id, MCP_INTERNAL, &err);
        json_decref(take_json);
        return;
    }
    *ride = (struct ride){ .json = take_json, .message = *message, .call = CALL_NONE };
    (void) pthread_mutex_lock(&lock);
    while (ride_count >= AT_ONCE_MOST)
        (void) pthread_cond_wait(&fewer, &lock);
    ride->next = rides;
    rides = ride;
    ride_count++;
    (void) pthread_mutex_unlock(&lock);
    (void) pthread_attr_init(&attr);
    (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    failed = pthread_create(&thread, &attr, travel, ride);
    (void) pthread_attr_destroy(&attr);
    if (!failed)
        return;
    (void) err_sys(&err, failed, "start a thread");
    say_error(message->id, MCP_INTERNAL, &err);
    leave(ride);
}

static int take_line(void *context, const char *text, size_t len, struct err *err)
{
    struct mcp_message message;
    enum mcp_code code = MCP_INTERNAL;
    json_t *json = NULL;

    (void) context;
    if (strspn(text, " \t") >= len)
        return 0;
    if (mcp_parse(text, len, &json, &message, &code, err) < 0) {
        say_error(message.id, code, err);
        json_decref(json);
        return 0;
    }
    if (message.kind == MCP_NOTIFICATION && strcmp(message.method, "notifications/cancelled") == 0)
        cancel(json_object_get(message.params, "requestId"));
    else if (message.kind != MCP_RESPONSE) /* the server asks nothing */
        send_off(take_ptr(&json), &message);
    json_decref(json);
    return 0;
}

static void await_answers(void)
{
    struct timespec until = io_after_ms(END_WAIT_MS);

    (void) pthread_mutex_lock(&lock);
    while (ride_count > 0 && pthread_cond_clockwait(&fewer, &lock, CLOCK_MONOTONIC, &until) == 0)
        ;
    (void) pthread_mutex_unlock(&lock);
}

static int bridge(struct err *err)
{
    auto_free char *piece = malloc(READ_PIECE);
    struct lines lines = { .text = NULL };
    ssize_t n;
    int r = 0;

    if (!piece)
        return err_set(err, ERR_NO_MEMORY, "no memory for messages");
    do {
        n = read(STDIN_FILENO, piece, READ_PIECE);
        if (n > 0)
            r = lines_feed(&lines, piece, (size_t) n, take_line, NULL, err);
        else if (n < 0 && errno != EINTR)
            r = err_sys(err, errno, "read stdin");
    } while (r == 0 && (n > 0 || (n < 0 && errno == EINTR)));
    if (r == 0)
        r = lines_end(&lines, take_line, NULL, err);
    lines_done(&lines);
    if (r == 0)
        await_answers();
    return r;
}

/* ---- the verb ---- */

/* clang-format off */
static const struct verb subs[] = {
    { .name = "config", .synopsis = "CLIENT", .summary = "print what a client's configuration needs",
      .details = MCP_CLIENTS_HELP, .run = mcp_config },
    { .name = "init", .synopsis = "CLIENT", .summary = "write it into the client's configuration file",
      .details = MCP_CLIENTS_HELP "\nOther servers in the file stay. A file that is not plain JSON is left alone.", .run = mcp_init },
};

const struct verb mcp_verb = {
    .name = "mcp",
    .synopsis = "[config|init CLIENT]",
    .summary = "the tools for agents on stdin and stdout (Model Context Protocol)",
    .details =
        "Without an operand: one JSON message a line, for a client that starts this program, until stdin ends. It asks the\n"
        "server that the other verbs ask: this host's, or that of --server, COVE_SERVER or 'cove login'.\n\n"
        "  cove mcp init claude-code      # writes .mcp.json in this directory\n"
        "  cove --server https://cove.example.com mcp config cursor",
    .command_at = 1,
    .run = verb_mcp,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

int verb_mcp(int argc, char **argv)
{
    struct err err;

    if (argc > 1)
        return subverbs_run(&mcp_verb, argc, argv);
    if (server_find(&remote, &err) < 0 || bridge(&err) < 0)
        return report_error(&err);
    return 0;
}
