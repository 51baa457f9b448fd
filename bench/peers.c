#include "peers.h"

#include "base/io.h"
#include "base/own.h"
#include "launch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ARGS_MAX       64
#define LINE_MAX_BYTES 2048

/* Words are separated by blanks; @ROOT is the peer's state directory, @BUNDLE the bundle of the
 * command, @COMMAND the command itself, @ID the container, @VARIANT the row's options. */
/* clang-format off */
static const struct peer peer_table[] = {
    { .name = "bwrap", .program = "bwrap", .every = 1, .variants = "",
      .run  = "bwrap --unshare-all --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/sbin /sbin "
              "--symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp "
              "-- @COMMAND" },
    { .name = "runc", .program = "runc", .every = 2, .variants = "",
      .run  = "runc --root @ROOT run --bundle @BUNDLE @ID",
      .keep = "runc --root @ROOT run --detach --bundle @BUNDLE @ID",
      .exec = "runc --root @ROOT exec @ID /usr/bin/true",
      .stop = "runc --root @ROOT delete --force @ID" },
    { .name = "crun", .program = "crun", .every = 2, .variants = "|--cgroup-manager=disabled",
      .run  = "crun --root @ROOT @VARIANT run --bundle @BUNDLE @ID",
      .keep = "crun --root @ROOT @VARIANT run --detach --bundle @BUNDLE @ID",
      .exec = "crun --root @ROOT @VARIANT exec @ID /usr/bin/true",
      .stop = "crun --root @ROOT @VARIANT delete --force @ID" },
    { .name = "runsc (gVisor)", .program = "runsc", .every = 10,
      .variants = "--platform=systrap|--platform=systrap --ignore-cgroups|--platform=ptrace|"
                  "--platform=ptrace --ignore-cgroups|--platform=ptrace --ignore-cgroups --rootless",
      .run  = "runsc --root @ROOT --network=none @VARIANT run --bundle @BUNDLE @ID",
      .keep = "runsc --root @ROOT --network=none @VARIANT run --detach --bundle @BUNDLE @ID",
      .exec = "runsc --root @ROOT --network=none @VARIANT exec @ID /usr/bin/true",
      .stop = "runsc --root @ROOT --network=none @VARIANT delete --force @ID" },
};
/* clang-format on */
static_assert(ARRAY_LEN(peer_table) <= PEERS_MAX, "every peer has its times");

/* The commands, as bwrap and as an OCI bundle want them. */
static const struct {
    const char *name, *words, *json;
} commands[] = {
    { "echo", "/usr/bin/echo x", "[\"/usr/bin/echo\", \"x\"]" },
    { "true", "/usr/bin/true", "[\"/usr/bin/true\"]" },
    { "sleep", "/usr/bin/sleep 3600", "[\"/usr/bin/sleep\", \"3600\"]" },
};
enum { COMMAND_ECHO, COMMAND_TRUE, COMMAND_SLEEP };

static const char config_json[] =
    "{ \"ociVersion\": \"1.0.2\",\n"
    "  \"process\": { \"terminal\": false, \"user\": { \"uid\": 0, \"gid\": 0 }, \"args\": %s,\n"
    "    \"env\": [\"PATH=/usr/bin:/bin\", \"LANG=C.UTF-8\"], \"cwd\": \"/\", \"noNewPrivileges\": "
    "true,\n"
    "    \"capabilities\": { \"bounding\": [], \"effective\": [], \"permitted\": [] } },\n"
    "  \"root\": { \"path\": \"rootfs\", \"readonly\": true }, \"hostname\": \"bench\",\n"
    "  \"mounts\": [\n"
    "    { \"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\" },\n"
    "    { \"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\",\n"
    "      \"options\": [\"nosuid\", \"mode=755\", \"size=65536k\"] },\n"
    "    { \"destination\": \"/tmp\", \"type\": \"tmpfs\", \"source\": \"tmpfs\",\n"
    "      \"options\": [\"nosuid\", \"nodev\", \"size=64m\"] },\n"
    "    { \"destination\": \"/usr\", \"type\": \"bind\", \"source\": \"/usr\",\n"
    "      \"options\": [\"rbind\", \"ro\"] } ],\n"
    "  \"linux\": {\n"
    "    \"namespaces\": [ { \"type\": \"pid\" }, { \"type\": \"network\" }, { \"type\": \"ipc\" "
    "},\n"
    "      { \"type\": \"uts\" }, { \"type\": \"mount\" } ],\n"
    "    \"resources\": { \"memory\": { \"limit\": 536870912 }, \"pids\": { \"limit\": 512 },\n"
    "      \"cpu\": { \"quota\": 100000, \"period\": 100000 } } } }\n";

static void make_bundle(const char *dir, const char *name, const char *args)
{
    static const char *const links[][2] = {
        { "usr/bin", "bin" },
        { "usr/sbin", "sbin" },
        { "usr/lib", "lib" },
        { "usr/lib64", "lib64" },
    };
    static const char *const dirs[] = { "", "/usr", "/proc", "/dev", "/tmp", "/sys", "/etc" };
    char path[400], text[sizeof config_json + 200];
    auto_close int fd = -1;

    (void) snprintf(path, sizeof path, "%s/%s", dir, name);
    (void) mkdir(path, 0755);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        (void) snprintf(path, sizeof path, "%s/%s/rootfs%s", dir, name, dirs[i]);
        (void) mkdir(path, 0755);
    }
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        (void) snprintf(path, sizeof path, "%s/%s/rootfs/%s", dir, name, links[i][1]);
        IGNORE(symlink(links[i][0], path));
    }
    (void) snprintf(text, sizeof text, config_json, args);
    (void) snprintf(path, sizeof path, "%s/%s/config.json", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0)
        (void) io_write_all(fd, text, strlen(text));
}

/* A peer's call: its row's line with the placeholders filled in, cut into words. */
struct call {
    char line[LINE_MAX_BYTES];
    char *argv[ARGS_MAX];
};

static void put(char *line, const char *text)
{
    size_t used = strlen(line);

    (void) snprintf(line + used, LINE_MAX_BYTES - used, "%s", text);
}

static void call_fill(struct call *call, const char *pattern, const struct peers *peers,
                      const struct peer_times *times, int command, const char *id)
{
    char root[300], bundle[300];
    size_t count = 0;
    const struct {
        const char *key, *value;
    } values[] = {
        { "@ROOT", root }, { "@BUNDLE", bundle },          { "@COMMAND", commands[command].words },
        { "@ID", id },     { "@VARIANT", times->variant },
    };

    (void) snprintf(root, sizeof root, "%s/state-%s", peers->dir, times->peer->program);
    (void) snprintf(bundle, sizeof bundle, "%s/%s", peers->dir, commands[command].name);
    call->line[0] = '\0';
    while (*pattern) {
        size_t i = 0, len = strcspn(pattern, " ");
        char word[100];

        (void) snprintf(word, sizeof word, "%.*s", (int) len, pattern);
        while (i < ARRAY_LEN(values) && strcmp(word, values[i].key) != 0)
            i++;
        put(call->line, i < ARRAY_LEN(values) ? values[i].value : word);
        put(call->line, " ");
        pattern += len;
        pattern += strspn(pattern, " ");
    }
    for (char *save = NULL, *word = strtok_r(call->line, " ", &save); word && count < ARGS_MAX - 1;
         word = strtok_r(NULL, " ", &save))
        call->argv[count++] = word;
    call->argv[count] = NULL;
}

static int call_run(struct peers *peers, struct peer_times *times, const char *pattern, int command,
                    const char *id, struct launch_result *result)
{
    struct call call;
    enum launch_stdout out = command == COMMAND_ECHO ? LAUNCH_FIRST_BYTE : LAUNCH_NULL;

    call_fill(&call, pattern, peers, times, command, id);
    return launch_run(call.argv, out, result);
}

static void new_id(struct peers *peers, char id[32])
{
    (void) snprintf(id, 32, "bench-%d-%u", (int) getpid(), peers->next_id++);
}

/* Removes whatever a failed or killed run may have left: quiet when there is nothing. */
static void sweep(struct peers *peers, struct peer_times *times, const char *id)
{
    struct launch_result result;

    if (times->peer->stop)
        (void) call_run(peers, times, times->peer->stop, COMMAND_TRUE, id, &result);
}

/* Tries the row's variants until one runs. */
static void find_variant(struct peers *peers, struct peer_times *times)
{
    const char *variant = times->peer->variants;
    struct launch_result result = { 0 };

    for (;;) {
        size_t len = strcspn(variant, "|");
        char id[32];

        (void) snprintf(times->variant, sizeof times->variant, "%.*s", (int) len, variant);
        new_id(peers, id);
        if (call_run(peers, times, times->peer->run, COMMAND_ECHO, id, &result) == 0) {
            times->works = true;
            (void) snprintf(times->note, sizeof times->note, "%s", times->variant);
            return;
        }
        sweep(peers, times, id);
        (void) snprintf(times->note, sizeof times->note, "does not start here: %s",
                        result.said[0] ? result.said : "it said nothing");
        if (!variant[len])
            return;
        variant += len + 1;
    }
}

static void start_living(struct peers *peers, struct peer_times *times)
{
    struct launch_result result;

    if (!times->works || !times->peer->keep)
        return;
    new_id(peers, times->living);
    if (call_run(peers, times, times->peer->keep, COMMAND_SLEEP, times->living, &result) == 0)
        return;
    sweep(peers, times, times->living);
    times->living[0] = '\0';
    (void) snprintf(times->note, sizeof times->note, "cannot stay: %s", result.said);
}

void peers_init(struct peers *peers, const char *dir)
{
    *peers = (struct peers){ .count = ARRAY_LEN(peer_table) };
    (void) snprintf(peers->dir, sizeof peers->dir, "%s", dir);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        make_bundle(dir, commands[i].name, commands[i].json);
    for (size_t i = 0; i < peers->count; i++) {
        peers->times[i].peer = &peer_table[i];
        find_variant(peers, &peers->times[i]);
        start_living(peers, &peers->times[i]);
    }
}

static void remove_round(struct peers *peers, struct peer_times *times)
{
    struct launch_result result;
    char id[32];

    new_id(peers, id);
    if (call_run(peers, times, times->peer->keep, COMMAND_SLEEP, id, &result) < 0) {
        times->failures++;
        sweep(peers, times, id);
    } else if (call_run(peers, times, times->peer->stop, COMMAND_SLEEP, id, &result) < 0) {
        times->failures++;
    } else {
        series_add(&times->remove, result.total_us);
    }
}

void peers_round(struct peers *peers, struct peer_times *times)
{
    static const int runs[] = { COMMAND_ECHO, COMMAND_TRUE };
    struct launch_result result;
    char id[32];

    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        new_id(peers, id);
        launch_settle();
        if (call_run(peers, times, times->peer->run, runs[i], id, &result) < 0) {
            times->failures++;
            sweep(peers, times, id);
        } else if (runs[i] == COMMAND_ECHO) {
            series_add(&times->first, result.first_us);
        } else {
            series_add(&times->whole, result.total_us);
        }
    }
    if (!times->living[0])
        return;
    if (call_run(peers, times, times->peer->exec, COMMAND_TRUE, times->living, &result) < 0)
        times->failures++;
    else
        series_add(&times->exec, result.total_us);
    remove_round(peers, times);
}

void peers_done(struct peers *peers)
{
    for (size_t i = 0; i < peers->count; i++) {
        struct peer_times *times = &peers->times[i];

        if (times->living[0])
            sweep(peers, times, times->living);
        series_done(&times->first);
        series_done(&times->whole);
        series_done(&times->exec);
        series_done(&times->remove);
    }
}
