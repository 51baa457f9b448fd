/* driver_ask - what a client asks of the keeper, one request at a time, for tests of drivers.
 *
 *   driver_ask create HOSTNAME [ISOLATION] [pooled|take]    prints the id
 *   driver_ask exec|freeze|thaw|stats|network|reclaim|destroy|life ID
 *   driver_ask save ID [stop] [memory]                      prints the image's id
 *   driver_ask load IMAGE HOSTNAME                          prints the id
 *   driver_ask drop IMAGE
 *   driver_ask pool -                                       how many are made ahead
 *
 * A failure is one line, `kind: message`, and exit code 1; no answer within PATIENCE_MS counts as one. COVE_STATE names the state. */
#include "client/exec.h"
#include "client/image.h"
#include "client/sandbox.h"

#include "base/own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has(int argc, char **argv, const char *word)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

static int ask_create(struct link *link, int argc, char **argv, struct err *err)
{
    struct sandbox_spec spec = { .template = "host" };
    struct keeper_sandbox made;

    limits_default(&spec.limits);
    spec.limits.memory_bytes = 64 << 20;
    spec.limits.disk_bytes = 16 << 20;
    if (argc > 1 && isolation_parse(argv[1], &spec.isolation, err) < 0)
        return -1;
    if (has(argc, argv, "pooled"))
        spec.flags = KEEPER_FLAG_POOLED;
    else
        spec.hostname = argv[0];
    if (has(argc, argv, "take"))
        spec.flags = KEEPER_FLAG_TAKE;
    if (sandbox_create(link, &spec, &made, err) < 0)
        return -1;
    printf("%s%s\n", made.id, made.flags & KEEPER_FLAG_TAKE ? " taken" : "");
    return 0;
}

static int ask_exec(struct link *link, const char *id, struct err *err)
{
    static const char *const words[] = { "/bin/true" };
    struct agent_request request = { .timeout_ms = 10000 };
    auto_free char *buffer = NULL;
    struct exec exec = EXEC_NONE;
    struct exec_event event = { 0 };
    int r;

    if (exec_texts(words, 1, &request.args, &buffer, err) < 0 ||
        exec_start(&exec, link, id, &request, err) < 0)
        return -1;
    do
        r = exec_next(&exec, &event, err);
    while (r == 1 && event.type != EXEC_END);
    exec_close(&exec);
    return r == 1 ? 0 : -1;
}

static int ask_save(struct link *link, int argc, char **argv, struct err *err)
{
    uint32_t flags = (has(argc, argv, "stop") ? KEEPER_SAVE_STOP : 0u) |
                     (has(argc, argv, "memory") ? KEEPER_SAVE_MEMORY : 0u);
    struct keeper_image image;
    char id[ID_LEN + 1];

    if (sandbox_new_id(id, err) < 0 ||
        image_save(link, argv[0], flags & KEEPER_SAVE_STOP ? argv[0] : id, "", flags, &image, err) <
            0)
        return -1;
    printf("%s\n", image.id);
    return 0;
}

static int ask_load(struct link *link, int argc, char **argv, struct err *err)
{
    struct image_load_spec spec = { .image = argv[0], .owner = "" };
    struct keeper_sandbox made;
    char id[ID_LEN + 1];

    if (argc < 2)
        return err_set(err, ERR_USAGE, "load");
    if (sandbox_new_id(id, err) < 0)
        return -1;
    spec.id = id;
    spec.hostname = argv[1];
    if (image_load(link, &spec, &made, err) < 0)
        return -1;
    printf("%s\n", made.id);
    return 0;
}

static int ask_life(struct link *link, const char *id, struct err *err)
{
    struct keeper_sandbox s;

    if (sandbox_get(link, id, &s, err) < 0)
        return -1;
    printf("%s %s\n", keeper_life_name(s.life), isolation_name(s.isolation));
    return 0;
}

static int ask_pool(struct link *link, const char *id, struct err *err)
{
    auto_free struct keeper_sandbox *list = NULL;
    size_t count;

    (void) id;
    if (sandbox_list_pool(link, &list, &count, err) < 0)
        return -1;
    printf("%zu\n", count);
    return 0;
}

static int ask_network(struct link *link, const char *id, struct err *err)
{
    int fds[GATEWAY_FDS];

    return link_gateway(link, id, fds, err);
}

static int ask_stats(struct link *link, const char *id, struct err *err)
{
    struct keeper_stats stats;

    return sandbox_stats(link, id, &stats, err);
}

static int ask_reclaim(struct link *link, const char *id, struct err *err)
{
    uint64_t bytes;

    return sandbox_reclaim(link, id, &bytes, err);
}

static const struct {
    const char *name;
    int (*ask)(struct link *link, const char *id, struct err *err);
} of_one[] = {
    { "exec", ask_exec },           { "freeze", sandbox_freeze }, { "thaw", sandbox_thaw },
    { "stats", ask_stats },         { "network", ask_network },   { "reclaim", ask_reclaim },
    { "destroy", sandbox_destroy }, { "life", ask_life },         { "drop", image_drop },
    { "pool", ask_pool },
};

static int ask(struct link *link, int argc, char **argv, struct err *err)
{
    if (strcmp(argv[1], "create") == 0)
        return ask_create(link, argc - 2, argv + 2, err);
    if (strcmp(argv[1], "save") == 0)
        return ask_save(link, argc - 2, argv + 2, err);
    if (strcmp(argv[1], "load") == 0)
        return ask_load(link, argc - 2, argv + 2, err);
    for (size_t i = 0; i < ARRAY_LEN(of_one); i++)
        if (strcmp(argv[1], of_one[i].name) == 0)
            return of_one[i].ask(link, argv[2], err);
    return err_set(err, ERR_USAGE, "unknown request '%s'", argv[1]);
}

int main(int argc, char **argv)
{
    const char *state = getenv("COVE_STATE"), *patience = getenv("PATIENCE_MS");
    auto_link struct link link = { .fd = -1 };
    struct err err = { 0 };

    if (argc < 3 || !state)
        return 2;
    if (link_open(&link, state, &err) == 0) {
        link.patience_ms = patience ? atoi(patience) : 60000;
        if (ask(&link, argc, argv, &err) == 0)
            return 0;
    }
    fprintf(stderr, "%s: %s\n", err_kind_info(err.kind)->name, err.msg);
    return 1;
}
