/* json_routes_fuzz.c - JSON bodies, through the handlers that read them.
 *
 * The first byte chooses a row of the route table that takes a body, or a tool; the rest is the body, or the tool's
 * arguments. There is a store with one sandbox in it and no keeper: what is well-formed ends with "unavailable".
 * Every call must answer, or fail with a kind and a sentence. */
#include "base/log.h"
#include "base/own.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/ops/ops.h"
#include "server/serve/exchange_own.h"
#include "server/serve/surface.h"
#include "store/store.h"
#include "surface/tools/tools.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#define BOX "iaaaaaaaaaaaaaaaaaaaa"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Dialects are not looked at here. */
const struct surface *const surfaces[] = { &native_surface };
const size_t surface_count = ARRAY_LEN(surfaces);

static struct app app;
static struct conn *conn;
static int peer;

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void remove_state(void)
{
    char command[96];

    (void) snprintf(command, sizeof command, "rm -rf '%s'", app_config(&app)->state);
    IGNORE(system(command));
}

static void set_up(void)
{
    static char state[] = "/tmp/cove-fuzz.XXXXXX";
    static struct conn_waits waits = { .most = 1 };
    static struct config config;
    const struct sockaddr nowhere = { .sa_family = AF_UNIX };
    char program[] = "coved", flag[] = "--state", *argv[] = { program, flag, state, NULL };
    struct store_sandbox box = { .id = BOX, .tenant = STORE_LOCAL_TENANT, .template = "host" };
    int pair[2];
    bool check;
    struct err err;

    log_init("fuzz", LOG_ERROR);
    must(mkdtemp(state) && config_load(&config, 3, argv, &check, &err) == 0);
    atomic_init(&app.config, &config);
    (void) atexit(remove_state);
    must(pthread_mutex_init(&app.lock, NULL) == 0);
    must(store_open(state, &app.store, &err) == 0);
    must(store_sandbox_add(app.store, &box, &err) == 0);
    app.quota = quota_new();
    app.gate = policy_gate_new(NULL, NULL, &err);
    app.tools = tools_new(&err);
    must(app.quota && app.gate && app.tools);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    conn = conn_new(pair[0], &nowhere, NULL, &waits);
    peer = pair[1];
    must(conn && (conn->buf = malloc(CONN_BUFFER)));
}

static const struct route *choose(uint8_t number)
{
    size_t count = 0;

    for (size_t i = 0; i < route_count; i++)
        if (routes[i].method == METHOD_POST && count++ == number)
            return &routes[i];
    return NULL;
}

static struct exchange *begin(const uint8_t *body, size_t size)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct exchange *x = calloc(1, sizeof *x);
    struct err err;

    must(x);
    head_init(&x->head);
    memcpy(x->head_text, head, sizeof head);
    must(head_feed(&x->head, x->head_text, sizeof head - 1, &err) == 1);
    x->head.body = HEAD_LENGTH;
    x->head.content_length = size;
    x->surface = &native_surface;
    exchange_init(x, &app, conn);
    exchange_set_caller(x, STORE_LOCAL_TENANT, "", SCOPE_ADMIN);
    must(exchange_set_param(x, "id", BOX) == 0 && exchange_set_param(x, "proc", "1") == 0);
    memcpy(conn->buf, body, size);
    conn->have = size;
    return x;
}

static void call_tool(struct exchange *x, const struct tool *tool, const uint8_t *body, size_t size)
{
    struct session session = { .sandbox = BOX };
    struct ops ops = ops_of(exchange_caller(x));
    struct tool_call call = { .ops = &ops, .session = &session, .answer = json_object() };
    struct err err = { 0 };

    call.arguments = json_loadb((const char *) body, size, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(call.arguments))
        must(tool->run(&call, &err) == 0 || (err.kind != ERR_NONE && err.msg[0]));
    json_decref(call.arguments);
    json_decref(call.answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct route *route;
    struct exchange *x;
    struct err err = { 0 };
    char scratch[65536];

    if (!app.store)
        set_up();
    if (size < 1 || size > CONN_BUFFER)
        return 0;
    x = begin(data + 1, size - 1);
    route = choose(data[0]);
    if (route) {
        x->route = route;
        x->body_limit = route->body_limit;
        if (route->handler(x, &err) < 0)
            must(err.kind != ERR_NONE && err.msg[0]);
        else
            must(x->ended);
    } else if (data[0] >= 128 && data[0] - 128u < tools_count) {
        call_tool(x, &tools_table[data[0] - 128], data + 1, size - 1);
    }
    exchange_done(x);
    free(x);
    while (recv(peer, scratch, sizeof scratch, MSG_DONTWAIT) > 0)
        ;
    return 0;
}
