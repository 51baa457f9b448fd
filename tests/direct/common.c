#include "direct/common.h"

#include "base/own.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/terminal.h"
#include "direct/substore.h"
#include "direct/volume.h"

#include <string.h>
#include <unistd.h>

/* What a snapshot has cannot be said beside it. */
static int saved_create(struct link *link, const struct sandbox_options *options, uint32_t flags,
                        struct keeper_sandbox *ret, struct err *err)
{
    struct keeper_image image;
    char id[ID_LEN + 1];
    struct image_load_spec spec = { .image = image.id,
                                    .owner = image.owner,
                                    .id = id,
                                    .name = options->name,
                                    .files_only = options->no_memory,
                                    .limits = options->limits };
    struct err ignored;

    if (options->template || options->root || options->isolation || options->volumes.count > 0)
        return err_set(err, ERR_USAGE,
                       "a snapshot has its own template, root, isolation and volumes");
    if (saved_snapshot(link, options->snapshot, &image, err) < 0 || sandbox_new_id(id, err) < 0 ||
        image_load(link, &spec, ret, err) < 0)
        return -1;
    if (!(flags & KEEPER_FLAG_TIED) || sandbox_tie(link, id, err) == 0)
        return 0;
    (void) sandbox_destroy(link, id, &ignored);
    return -1;
}

int common_create(struct link *link, const struct sandbox_options *options, uint32_t flags,
                  struct keeper_sandbox *ret, struct err *err)
{
    /* One list of tests for every isolation: what a test does not ask for by name. */
    const char *isolation = options->isolation ? options->isolation : getenv("COVE_TEST_ISOLATION");
    struct limits preset;
    struct sandbox_spec spec = {
        .name = options->name,
        .template = options->template,
        .flags = flags | (options->root ? KEEPER_FLAG_ROOT : 0),
        .limits = options->limits,
    };

    if (isolation && isolation_parse(isolation, &spec.isolation, err) < 0)
        return -1;
    if (options->snapshot)
        return saved_create(link, options, flags, ret, err);
    if (options->no_memory)
        return err_set(err, ERR_USAGE, "--no-memory: only with --snapshot");
    limits_default(&preset);
    limits_complete(&spec.limits, &preset);
    if (volume_wishes(&options->volumes, spec.volumes, err) < 0)
        return -1;
    /* One that ends with its command has a disk in memory, which no image has. */
    return (flags & KEEPER_FLAG_TIED) ? sandbox_create(link, &spec, ret, err)
                                      : saved_warm_create(link, &spec, ret, err);
}

/* "KEY=VAL" as it is; "KEY" takes the value that cove itself has, or nothing when it has none. */
static int env_item(const char *text, char **ret_item, struct err *err)
{
    const char *equals = strchr(text, '='), *value;

    *ret_item = NULL;
    if (text[0] == '\0' || equals == text)
        return err_set(err, ERR_INVALID, "--env: '%.40s' is not KEY=VALUE", text);
    if (equals) {
        *ret_item = strdup(text);
    } else {
        value = getenv(text);
        if (!value)
            return 0;
        if (asprintf(ret_item, "%s=%s", text, value) < 0)
            *ret_item = NULL;
    }
    return *ret_item ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for the environment");
}

static int env_texts(const struct option_list *list, bool terminal, struct texts *ret,
                     char **ret_buffer, struct err *err)
{
    char *items[OPTION_LIST_MAX + 1];
    size_t count = 0;
    int r = 0;

    /* What the terminal is called must be known inside, unless the caller says otherwise. */
    if (terminal && getenv("TERM") && env_item("TERM", &items[count], err) == 0)
        count++;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        r = env_item(list->items[i], &items[count], err);
        count += r == 0 && items[count];
    }
    if (r == 0)
        r = exec_texts((const char *const *) items, count, ret, ret_buffer, err);
    while (count > 0)
        free(items[--count]);
    return r;
}

int common_request(const struct command_options *options, char *const *words, size_t word_count,
                   bool terminal, struct agent_request *ret, struct common_held *held,
                   struct err *err)
{
    struct agent_request request = {
        .user = options->user,
        .cwd = options->workdir,
        .timeout_ms = options->timeout_ms,
        .cpu_timeout_ms = options->cpu_timeout_ms,
    };

    *held = (struct common_held){ 0 };
    if (env_texts(&options->env, terminal, &request.env, &held->env, err) < 0)
        return -1;
    if (words &&
        exec_texts((const char *const *) words, word_count, &request.args, &held->args, err) < 0) {
        common_release(held);
        return -1;
    }
    *ret = request;
    return 0;
}

void common_release(struct common_held *held)
{
    free(held->args);
    free(held->env);
    *held = (struct common_held){ 0 };
}

int common_check_attach(const struct verb *verb, const struct attach_options *options,
                        struct err *err)
{
    if (options->tty && options->interactive && !isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE,
                       "%s: -t with -i needs a terminal, but stdin is not a terminal; leave out -t",
                       verb->name);
    return 0;
}

void common_attach(const struct attach_options *options, struct agent_request *request)
{
    uint16_t rows, columns;

    /* Without a terminal of ours, nobody types into that of the command. */
    if (options->interactive || (options->tty && isatty(STDIN_FILENO)))
        request->flags |= AGENT_STDIN;
    if (!options->tty)
        return;
    request->flags |= AGENT_PTY;
    terminal_size(&rows, &columns);
    request->rows = rows;
    request->columns = columns;
}
