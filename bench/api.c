#include "api.h"

#include "base/io.h"
#include "base/own.h"
#include "host.h"
#include "launch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CREATE_BODY "{\"template\":\"host\",\"timeout\":3600}"

static void note(struct api *api, const struct err *err)
{
    api->failures++;
    api->why = *err;
}

static int create(struct caller *caller, const char *body, char id[KEEPER_NAME_MAX],
                  struct err *err)
{
    if (caller_ask(caller, "POST", "/v1/sandboxes", body, 201, err) < 0)
        return -1;
    return caller_text(caller, "id", id, KEEPER_NAME_MAX, err);
}

static int destroy(struct caller *caller, const char *id, struct err *err)
{
    char path[128];

    (void) snprintf(path, sizeof path, "/v1/sandboxes/%s", id);
    return caller_ask(caller, "DELETE", path, NULL, 204, err);
}

int api_init(struct api *api, struct rig *rig, bool peers, struct err *err)
{
    struct err why;

    *api = (struct api){
        .rig = rig, .lane.link.fd = -1, .caller.fd = -1, .coved = SERVER_NONE, .nginx = SERVER_NONE
    };
    (void) snprintf(api->root, sizeof api->root, "%s/www", rig->dir);
    if (mkdir(api->root, 0755) < 0)
        return err_sys(err, errno, "make %s", api->root);
    if (server_coved(&api->coved, rig, "off", err) < 0 || lane_open(&api->lane, rig, err) < 0 ||
        caller_open(&api->caller, api->coved.port, err) < 0)
        return -1;
    (void) snprintf(api->without_nginx, sizeof api->without_nginx, "not asked for");
    if (peers) {
        api->without_nginx[0] = '\0';
        if (server_nginx(&api->nginx, rig, api->root, &why) < 0) {
            server_stop(&api->nginx);
            (void) snprintf(api->without_nginx, sizeof api->without_nginx, "%.190s", why.msg);
        }
    }
    /* It also takes a large file: hence the disk. */
    return create(&api->caller,
                  "{\"template\":\"host\",\"timeout\":3600,\"limits\":{\"disk\":\"3g\"}}",
                  api->living, err);
}

int api_sandbox(struct api *api, uint64_t bytes, char id[KEEPER_NAME_MAX], struct err *err)
{
    unsigned long long mib = bytes >> 20;
    char body[160];

    /* The page cache of a disk that is an image has each byte twice. */
    (void) snprintf(body, sizeof body,
                    "{\"template\":\"host\",\"timeout\":3600,"
                    "\"limits\":{\"disk\":\"%llum\",\"memory\":\"%llum\"}}",
                    3 * mib + 512, 2 * mib + 512);
    return create(&api->caller, body, id, err);
}

void api_sandbox_done(struct api *api, const char *id)
{
    struct err err;

    if (destroy(&api->caller, id, &err) < 0)
        note(api, &err);
}

void api_done(struct api *api)
{
    struct err ignored;

    if (api->living[0])
        (void) destroy(&api->caller, api->living, &ignored);
    caller_close(&api->caller);
    lane_close(&api->lane);
    server_stop(&api->nginx);
    server_stop(&api->coved);
    series_done(&api->create);
    series_done(&api->create_keeper);
    series_done(&api->exec);
    series_done(&api->exec_agent);
    series_done(&api->exec_kept);
    series_done(&api->exec_mcp);
}

static void round_create_api(struct api *api)
{
    char id[KEEPER_NAME_MAX];
    struct err err;
    uint64_t begin;

    launch_settle();
    begin = io_now_us();
    if (create(&api->caller, CREATE_BODY, id, &err) < 0)
        return note(api, &err);
    series_add(&api->create, io_now_us() - begin);
    if (destroy(&api->caller, id, &err) < 0)
        note(api, &err);
}

static void round_create_keeper(struct api *api)
{
    struct keeper_sandbox sandbox;
    struct limits limits;
    struct err err;
    uint64_t begin;

    limits_default(&limits);
    launch_settle();
    begin = io_now_us();
    if (lane_create(&api->lane, &limits, &sandbox, &err) < 0)
        return note(api, &err);
    series_add(&api->create_keeper, io_now_us() - begin);
    if (lane_destroy(&api->lane, sandbox.id, &err) < 0)
        note(api, &err);
}

/* One request that runs `true`; `good`: what a fine answer has in it. */
static void ask_exec(struct api *api, const char *path, const char *body, const char *good,
                     struct series *series)
{
    struct err err;
    uint64_t begin = io_now_us();

    if (caller_ask(&api->caller, "POST", path, body, 200, &err) < 0)
        return note(api, &err);
    series_add(series, io_now_us() - begin);
    if (!strstr(api->caller.body, good)) {
        err_set(&err, ERR_INTERNAL, "POST %s: %.200s", path, api->caller.body);
        note(api, &err);
    }
}

/* A shell of its own, as the agent's exec beside it. */
static void round_exec_api(struct api *api)
{
    char body[160];

    (void) snprintf(body, sizeof body,
                    "{\"command\":\"true\",\"one_shot\":true,\"sandbox_id\":\"%s\"}", api->living);
    ask_exec(api, "/bash", body, "\"success\":true", &api->exec);
}

/* A shell that keeps its state. */
static void round_exec_kept(struct api *api)
{
    char body[160];

    (void) snprintf(body, sizeof body, "{\"command\":\"true\",\"sandbox_id\":\"%s\"}", api->living);
    ask_exec(api, "/bash", body, "\"success\":true", &api->exec_kept);
}

/* The same as a tool of MCP. */
static void round_exec_mcp(struct api *api)
{
    char body[320];

    (void) snprintf(
        body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"bash\","
        "\"arguments\":{\"command\":\"true\",\"sandbox_id\":\"%s\"}}}",
        api->living);
    ask_exec(api, "/mcp", body, "\"isError\":false", &api->exec_mcp);
}

static void round_exec_agent(struct api *api)
{
    struct err err;
    uint64_t begin = io_now_us();

    if (lane_shell_true(&api->lane, api->living, &err) < 0)
        return note(api, &err);
    series_add(&api->exec_agent, io_now_us() - begin);
}

void api_round(struct api *api, unsigned round)
{
    static void (*const steps[])(struct api *) = { round_create_api,    round_exec_api,
                                                   round_exec_kept,     round_exec_mcp,
                                                   round_create_keeper, round_exec_agent };

    for (unsigned i = 0; i < ARRAY_LEN(steps); i++)
        steps[(i + round) % ARRAY_LEN(steps)](api);
}

/* ---- many clients ---- */

struct crew {
    struct api *api;
    char (*ids)[KEEPER_NAME_MAX]; /* "" where create failed */
    size_t count;
    size_t next, failures, created; /* atomic */
    bool removing;
    pthread_mutex_t lock;
};

static void crew_note(struct crew *crew, const struct err *err)
{
    __atomic_fetch_add(&crew->failures, 1, __ATOMIC_RELAXED);
    (void) pthread_mutex_lock(&crew->lock);
    note(crew->api, err);
    (void) pthread_mutex_unlock(&crew->lock);
}

static void *crew_client(void *arg)
{
    struct crew *crew = arg;
    struct caller caller;
    struct err err;
    int opened = caller_open(&caller, crew->api->coved.port, &err);

    for (;;) {
        size_t i = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED);
        int rc = opened;

        if (i >= crew->count)
            break;
        if (crew->removing && !crew->ids[i][0])
            continue;
        if (rc == 0)
            rc = crew->removing ? destroy(&caller, crew->ids[i], &err)
                                : create(&caller, CREATE_BODY, crew->ids[i], &err);
        if (rc == 0)
            __atomic_fetch_add(&crew->created, !crew->removing, __ATOMIC_RELAXED);
        else
            crew_note(crew, &err);
    }
    caller_close(&caller);
    return NULL;
}

static void crew_run(struct crew *crew, unsigned clients)
{
    pthread_t threads[API_CLIENTS];
    unsigned started = 0;

    crew->next = 0;
    while (started < clients && pthread_create(&threads[started], NULL, crew_client, crew) == 0)
        started++;
    for (unsigned i = 0; i < started; i++)
        (void) pthread_join(threads[i], NULL);
}

void api_crowd(struct api *api, size_t count, unsigned clients)
{
    auto_free char(*ids)[KEEPER_NAME_MAX] = calloc(count, sizeof *ids);
    struct crew crew = { .api = api, .ids = ids, .count = count };
    uint64_t begin;

    api->crowd_count = count;
    api->crowd_failures = count;
    if (!ids)
        return;
    (void) pthread_mutex_init(&crew.lock, NULL);
    begin = io_now_us();
    crew_run(&crew, clients < API_CLIENTS ? clients : API_CLIENTS);
    api->crowd_us = io_now_us() - begin;
    api->crowd_created = crew.created;
    crew.removing = true;
    crew_run(&crew, clients < API_CLIENTS ? clients : API_CLIENTS);
    api->crowd_failures = crew.failures;
    (void) pthread_mutex_destroy(&crew.lock);
}
