/* The server's cost: processor time of short requests, memory of idle connections, large files. */
#include "api.h"

#include "base/io.h"
#include "base/own.h"
#include "host.h"
#include "launch.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOAD_CONNECTIONS 16

static void note(struct api *api, const struct err *err)
{
    api->failures++;
    api->why = *err;
}

/* ---- short requests ---- */

struct gang {
    uint16_t port;
    char path[128];
    size_t count, want_len;
    size_t next, answered; /* atomic */
};

static void *gang_client(void *arg)
{
    struct gang *gang = arg;
    struct caller caller;
    struct err err;

    if (caller_open(&caller, gang->port, &err) == 0)
        while (__atomic_fetch_add(&gang->next, 1, __ATOMIC_RELAXED) < gang->count &&
               caller_ask(&caller, "GET", gang->path, NULL, 200, &err) == 0)
            if (caller.body_len == gang->want_len)
                __atomic_fetch_add(&gang->answered, 1, __ATOMIC_RELAXED);
    caller_close(&caller);
    return NULL;
}

static void load(const struct server *server, struct gang *gang, struct api_load *ret)
{
    pthread_t threads[LOAD_CONNECTIONS];
    unsigned started = 0;
    uint64_t begin = io_now_us(), cpu = server_cpu_us(server);

    gang->port = server->port;
    gang->next = gang->answered = 0;
    while (started < LOAD_CONNECTIONS &&
           pthread_create(&threads[started], NULL, gang_client, gang) == 0)
        started++;
    for (unsigned i = 0; i < started; i++)
        (void) pthread_join(threads[i], NULL);
    ret->wall_us += io_now_us() - begin;
    ret->cpu_us += server_cpu_us(server) - cpu;
    ret->answered += gang->answered;
    ret->failures += gang->count - gang->answered;
}

#define LOAD_TURNS 4

void api_requests(struct api *api, size_t count)
{
    struct gang plain = { .count = count / LOAD_TURNS, .path = "/presets" };
    struct gang file = { .count = count / LOAD_TURNS, .path = "/short.json" };
    struct gang sandbox = { .count = count / LOAD_TURNS };
    char path[160];
    struct err err;

    (void) snprintf(sandbox.path, sizeof sandbox.path, "/v1/sandboxes/%s", api->living);
    if (caller_ask(&api->caller, "GET", sandbox.path, NULL, 200, &err) < 0)
        return note(api, &err);
    sandbox.want_len = api->caller.body_len;
    if (caller_ask(&api->caller, "GET", plain.path, NULL, 200, &err) < 0)
        return note(api, &err);
    api->short_len = plain.want_len = file.want_len = api->caller.body_len;
    (void) snprintf(path, sizeof path, "%s/short.json", api->root);
    if (server_file(path, api->caller.body, &err) < 0)
        return note(api, &err);
    /* In turns, so that what else the machine does hits all of them. */
    for (unsigned turn = 0; turn < LOAD_TURNS; turn++) {
        load(&api->coved, &plain, &api->load);
        load(&api->coved, &sandbox, &api->load_sandbox);
        if (!api->without_nginx[0])
            load(&api->nginx, &file, &api->load_nginx);
    }
}

/* ---- idle connections ---- */

void api_idle(struct api *api, size_t count)
{
    auto_free struct caller *callers = calloc(count, sizeof *callers);
    struct err err;
    uint64_t before;
    size_t open = 0, alive = 0;

    if (!callers)
        return;
    /* What the server keeps after its first requests is no cost of a connection. */
    before = host_resident_kib(api->coved.work);
    while (open < count && caller_open(&callers[open], api->coved.port, &err) == 0) {
        int rc = caller_ask(&callers[open], "GET", "/health", NULL, 200, &err);

        free(callers[open].room); /* ours, not the server's: of thousands it adds up */
        callers[open].room = NULL;
        open++;
        if (rc < 0)
            break;
    }
    api->idle_count = open;
    if (open < count)
        note(api, &err);
    (void) usleep(300000);
    before = host_resident_kib(api->coved.work) - before;
    api->idle_kib = (int64_t) before > 0 ? before : 0;
    /* Every hundredth must still be answered. */
    for (size_t i = 0; i < open; i += 100) {
        callers[i].room = malloc(CALLER_ROOM + 1);
        if (callers[i].room && caller_ask(&callers[i], "GET", "/health", NULL, 200, &err) == 0)
            alive++;
        else
            note(api, &err);
    }
    if (alive != (open + 99) / 100)
        api->idle_count = 0;
    for (size_t i = 0; i < open; i++)
        caller_close(&callers[i]);
}

/* ---- large files ---- */

static uint64_t curl(struct api *api, const char *from, const char *to, const char *url)
{
    char *const up[] = { (char *) "curl", (char *) "-sSf", (char *) "-o", (char *) "/dev/null",
                         (char *) "-T",   (char *) from,   (char *) url,  NULL };
    char *const down[] = { (char *) "curl", (char *) "-sSf", (char *) "-o",
                           (char *) to,     (char *) url,    NULL };
    struct launch_result result;
    struct err err;

    if (launch_run(from ? up : down, LAUNCH_NULL, &result) == 0)
        return result.total_us;
    err_set(&err, ERR_INTERNAL, "curl %s: %s", url, result.said);
    note(api, &err);
    return 0;
}

static void keep_least(uint64_t *least, uint64_t us)
{
    if (us && (!*least || us < *least))
        *least = us;
}

/* One contender: where its file is, and what came of it. */
struct place {
    const struct server *server; /* NULL: not there */
    char url[200];
    const char *sandbox; /* NULL: none */
    unsigned downloads;  /* for each upload */
    struct api_transfer *ret;
};

/* Once up from `source`, or down again (NULL). */
static void transfer(struct api *api, const struct place *place, const char *source)
{
    struct api_transfer *ret = place->ret;
    uint64_t before, peak, us;

    server_peak_reset(place->server);
    before = host_resident_kib(place->server->work);
    us = curl(api, source, source ? NULL : "/dev/null", place->url);
    keep_least(source ? &ret->up_us : &ret->down_us, us);
    peak = server_peak_kib(place->server);
    if (peak > before && peak - before > ret->peak_kib)
        ret->peak_kib = peak - before;
    if (source) /* the next contender would wait for what is not written yet */
        sync();
}

/* The file that went in is asked for once more, by its length. */
static void check_length(struct api *api, const char *sandbox, uint64_t bytes)
{
    char path[160], want[64];
    struct err err;

    (void) snprintf(path, sizeof path, "/v1/sandboxes/%s/files/stat?path=/tmp/large", sandbox);
    (void) snprintf(want, sizeof want, "%llu", (unsigned long long) bytes);
    if (caller_ask(&api->caller, "GET", path, NULL, 200, &err) < 0)
        return note(api, &err);
    if (!strstr(api->caller.body, want)) {
        err_set(&err, ERR_INTERNAL, "the large file is not %s bytes: %.150s", want,
                api->caller.body);
        note(api, &err);
    }
}

/* Made, and read once: the first contender would fill the page cache for the others. */
static int make_source(const char *path, uint64_t bytes, struct err *err)
{
    auto_close int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    auto_free char *piece = malloc(1u << 20);
    ssize_t n = -1;

    if (!piece)
        return err_set(err, ERR_NO_MEMORY, "no memory for a file");
    if (fd >= 0 && ftruncate(fd, (off_t) bytes) == 0)
        do {
            n = read(fd, piece, 1u << 20);
        } while (n > 0);
    return n < 0 ? err_sys(err, errno, "make %s", path) : 0;
}

/* A download that is disturbed says nothing, and is soon repeated. From a disk it takes longer, and is compared with nothing. */
#define DOWNLOADS 4

static struct place place_in(struct api *api, const char *sandbox, unsigned downloads,
                             struct api_transfer *ret)
{
    struct place place = {
        .server = &api->coved, .sandbox = sandbox, .downloads = downloads, .ret = ret
    };

    (void) snprintf(place.url, sizeof place.url,
                    "http://127.0.0.1:%u/v1/sandboxes/%s/files?path=/tmp/large", api->coved.port,
                    sandbox);
    return place;
}

static struct place place_nginx(struct api *api)
{
    struct place place = { .server = api->without_nginx[0] ? NULL : &api->nginx,
                           .downloads = DOWNLOADS,
                           .ret = &api->transfer_nginx };

    (void) snprintf(place.url, sizeof place.url, "http://127.0.0.1:%u/large", api->nginx.port);
    return place;
}

/* In turns that begin with another each time, so that what else the machine does hits all of them. */
static void transfer_all(struct api *api, const char *source, const char *wide, unsigned turns)
{
    const struct place places[] = { place_in(api, wide, DOWNLOADS, &api->transfer),
                                    place_nginx(api),
                                    place_in(api, api->living, 1, &api->transfer_narrow) };
    const size_t count = ARRAY_LEN(places);

    for (size_t i = 0; i < count * turns; i++) {
        const struct place *place = &places[(i + i / count) % count];

        if (!place->server)
            continue;
        transfer(api, place, source);
        if (place->sandbox)
            check_length(api, place->sandbox, api->transfer_bytes);
    }
    for (size_t i = 0; i < count * turns * DOWNLOADS; i++) {
        const struct place *place = &places[(i + i / count) % count];

        if (place->server && i < count * turns * place->downloads)
            transfer(api, place, NULL);
    }
}

void api_transfer(struct api *api, uint64_t bytes, unsigned turns)
{
    char source[160], wide[KEEPER_NAME_MAX] = "";
    struct err err;

    (void) snprintf(source, sizeof source, "%s/large", api->rig->dir);
    api->transfer_bytes = bytes;
    if (make_source(source, bytes, &err) < 0 || api_sandbox(api, bytes, wide, &err) < 0)
        note(api, &err);
    if (wide[0]) {
        transfer_all(api, source, wide, turns);
        api_sandbox_done(api, wide);
    }
    (void) unlink(source);
}

/* ---- what came of it ---- */

static double per_cpu_second(const struct api_load *load)
{
    return load->cpu_us ? (double) load->answered * 1e6 / (double) load->cpu_us : 0;
}

static double speed(uint64_t bytes, uint64_t us)
{
    return us ? (double) bytes / 1e3 / (double) us : 0; /* GB per second */
}

static void report_latency(struct api *api)
{
    double create =
        ((double) series_at(&api->create, 50) - (double) series_at(&api->create_keeper, 50)) / 1e3;
    double exec =
        ((double) series_at(&api->exec, 50) - (double) series_at(&api->exec_agent, 50)) / 1e3;

    double mcp =
        ((double) series_at(&api->exec_mcp, 50) - (double) series_at(&api->exec_kept, 50)) / 1e3;

    report_series_head("one request at a time, connection kept");
    report_series("create: the keeper itself", &api->create_keeper, 0, NULL);
    report_series("create: POST /v1/sandboxes", &api->create, series_at(&api->create_keeper, 50),
                  NULL);
    report_series("run true in a shell: the agent itself", &api->exec_agent, 0, NULL);
    report_series("run true in a shell: POST /bash, one_shot", &api->exec,
                  series_at(&api->exec_agent, 50), NULL);
    report_series("run true, state kept: POST /bash", &api->exec_kept, 0, NULL);
    report_series("run true, state kept: MCP bash", &api->exec_mcp, series_at(&api->exec_kept, 50),
                  NULL);
    if (!api->create.count)
        return;
    report_target(create <= 1.5,
                  "create through the API: p50 %.2f ms above the keeper's (at most 1.5)", create);
    report_target(exec <= 0.5,
                  "POST /bash, one_shot: p50 %.2f ms above the agent's exec (at most 0.5)", exec);
    report_target(mcp <= 1, "MCP bash: p50 %.2f ms above POST /bash (at most 1)", mcp);
}

static void report_load(struct api *api)
{
    double ours = per_cpu_second(&api->load), theirs = per_cpu_second(&api->load_nginx);

    report_fact("short requests per CPU second", "%d connections", LOAD_CONNECTIONS);
    report_fact("  coved, GET /presets", "%.0f (%zu bytes, %zu failures)", ours, api->short_len,
                api->load.failures);
    report_fact("  coved, GET /v1/sandboxes/ID", "%.0f (%zu failures)",
                per_cpu_second(&api->load_sandbox), api->load_sandbox.failures);
    if (api->without_nginx[0])
        return report_fact("  nginx", "- (%s)", api->without_nginx);
    report_fact("  nginx, a file as long as the first", "%.0f", theirs);
    report_target(ours >= 0.6 * theirs,
                  "short requests per CPU second: %.0f %% of nginx's (at least 60)",
                  theirs > 0 ? 100 * ours / theirs : 0);
}

static void report_speed(const char *label, uint64_t bytes, const struct api_transfer *t)
{
    report_fact(label, "%.2f and %.2f GB/s; memory +%.1f MiB", speed(bytes, t->up_us),
                speed(bytes, t->down_us), (double) t->peak_kib / 1024);
}

/* In percent of the time that the other one took. */
static double share(uint64_t ours_us, uint64_t theirs_us)
{
    return ours_us ? 100.0 * (double) theirs_us / (double) ours_us : 0;
}

static void report_transfer(struct api *api)
{
    const struct api_transfer *ours = &api->transfer, *theirs = &api->transfer_nginx;
    uint64_t bytes = api->transfer_bytes, narrow = api->transfer_narrow.peak_kib;
    double peak = (double) (ours->peak_kib > narrow ? ours->peak_kib : narrow) / 1024;

    report_fact("a large file, by curl, the fastest", "%.2f GB", (double) bytes / 1e9);
    report_speed("  coved, into a sandbox and out of it", bytes, ours);
    report_speed("  the same, with 512 MiB of memory", bytes, &api->transfer_narrow);
    report_target(peak < 16, "large files in flat memory: +%.1f MiB (below 16)", peak);
    if (api->without_nginx[0])
        return;
    report_speed("  nginx, PUT and GET", bytes, theirs);
    report_target(share(ours->up_us, theirs->up_us) >= 70,
                  "upload: %.0f %% of nginx's speed (at least 70)",
                  share(ours->up_us, theirs->up_us));
    report_target(share(ours->down_us, theirs->down_us) >= 70,
                  "download: %.0f %% of nginx's speed (at least 70)",
                  share(ours->down_us, theirs->down_us));
}

void api_report(struct api *api)
{
    double each = api->idle_count ? (double) api->idle_kib / (double) api->idle_count : 0;

    report_section("6. The server");
    report_latency(api);
    if (api->crowd_count) {
        report_fact("sandboxes by many clients", "%zu by %d connections in %.2f s, %zu failures",
                    api->crowd_created, API_CLIENTS, (double) api->crowd_us / 1e6,
                    api->crowd_failures);
        report_target(
            api->crowd_failures == 0 &&
                (double) api->crowd_us / 1e6 * 1000 <= 15 * (double) api->crowd_count,
            "%zu sandboxes by %d clients: %.2f s, %zu failures (at most 15 s for 1000, none)",
            api->crowd_count, API_CLIENTS, (double) api->crowd_us / 1e6, api->crowd_failures);
    }
    report_load(api);
    report_fact("idle connections", "%zu, %.1f KiB each", api->idle_count, each);
    report_target(api->idle_count && each <= 8, "an idle connection: %.1f KiB (at most 8)", each);
    report_transfer(api);
    if (api->failures)
        report_fact("failures", "%u, the last: %s", api->failures, api->why.msg);
}
