/* kill, pause, resume, fork: what becomes of sandboxes that are there. */
#include "base/own.h"
#include "cli/api/each.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/host.h"
#include "cli/report.h"

#include <string.h>

struct life_options {
    bool all, running, no_memory, keeper;
    const char *tier;
    uint64_t count;
};

#define AT(field) offsetof(struct life_options, field)

/* clang-format off */
static const struct option kill_options[] = {
    { 'a', "all", OPTION_FLAG, AT(all), NULL, COMPLETE_NONE, "every sandbox of yours" },
    { 0, "running", OPTION_FLAG, AT(running), NULL, COMPLETE_NONE, "every one but those that are paused to disk" },
    { 0, "keeper", OPTION_FLAG, AT(keeper), NULL, COMPLETE_NONE,
      "ask the keeper itself, for when the server is down; needs root" },
};
static const struct option pause_options[] = {
    { 'a', "all", OPTION_FLAG, AT(all), NULL, COMPLETE_NONE, "every sandbox of yours" },
    { 0, "tier", OPTION_TEXT, AT(tier), "TIER", COMPLETE_NONE,
      "hot: it stands still, warm: its memory to swap, disk: nothing of it runs (hot)" },
    { 0, "no-memory", OPTION_FLAG, AT(no_memory), NULL, COMPLETE_NONE,
      "keep its files only, on disk; its processes end" },
};
static const struct option resume_options[] = {
    { 'a', "all", OPTION_FLAG, AT(all), NULL, COMPLETE_NONE, "every sandbox of yours" },
};
static const struct option fork_options[] = {
    { 'n', "count", OPTION_NUMBER, AT(count), "N", COMPLETE_NONE, "how many, up to 100 (1)" },
};

const struct verb kill_verb = {
    .name = "kill",
    .synopsis = "[OPTION…] SANDBOX…",
    .summary = "destroy sandboxes, with all that is in them",
    .details = "Returns when nothing of them is left.",
    .options = kill_options,
    .option_count = ARRAY_LEN(kill_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_kill,
};
const struct verb pause_verb = {
    .name = "pause",
    .synopsis = "[OPTION…] SANDBOX…",
    .summary = "put sandboxes to sleep, until 'cove resume'",
    .details =
        "What cannot be saved to disk stays in memory: a line on stderr says why. Connections to the\n"
        "outside are reset by a pause to disk; everything else continues after a resume.",
    .options = pause_options,
    .option_count = ARRAY_LEN(pause_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_pause,
};
const struct verb resume_verb = {
    .name = "resume",
    .synopsis = "[--all] SANDBOX…",
    .summary = "let paused sandboxes continue",
    .options = resume_options,
    .option_count = ARRAY_LEN(resume_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_resume,
};
const struct verb fork_verb = {
    .name = "fork",
    .synopsis = "[-n N] SANDBOX",
    .summary = "copy a running sandbox with all its processes, and print the ids",
    .details = "The sandbox keeps running. Each copy has its own id, files and network, and no name.",
    .options = fork_options,
    .option_count = ARRAY_LEN(fork_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_fork,
};
/* clang-format on */

static const char *text_of(json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    return text ? text : "";
}

/* ---- kill ---- */

static int kill_one(const char *sandbox, json_t *state, void *context, struct err *err)
{
    const struct life_options *options = context;

    if (options->running && strcmp(text_of(state, "tier"), "disk") == 0)
        return 0;
    return server_ask("DELETE", NULL, NULL, err, "/v1/sandboxes/%s", sandbox);
}

int verb_kill(int argc, char **argv)
{
    struct life_options options = { .all = false };
    char **names, **given = argv;
    int count, code;

    code = common_parse(&kill_verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    if (options.keeper)
        return host_kill(given[0], options.all, options.running, names, count);
    return each_sandbox(&kill_verb, options.all || options.running, names, count, kill_one,
                        &options);
}

/* ---- pause, resume ---- */

static int pause_one(const char *sandbox, json_t *state, void *context, struct err *err)
{
    const struct life_options *options = context;
    json_t *paused = NULL, *body = json_object();
    bool lower = options->no_memory || (options->tier && strcmp(options->tier, "hot") != 0);
    const char *why;

    if (state && strcmp(text_of(state, "state"), "paused") == 0 && !lower) {
        json_decref(body);
        return 0;
    }
    (void) json_object_set_new(body, "tier",
                               json_string(options->no_memory ? "disk"
                                           : options->tier    ? options->tier
                                                              : "hot"));
    if (options->no_memory)
        (void) json_object_set_new(body, "memory", json_false());
    if (server_ask("POST", body, &paused, err, "/v1/sandboxes/%s/pause", sandbox) < 0)
        return -1;
    why = json_string_value(json_object_get(paused, "fallback_reason"));
    if (why)
        report_note("%s stays in memory: %s", sandbox, why);
    json_decref(paused);
    return 0;
}

int verb_pause(int argc, char **argv)
{
    static const char *const tiers[] = { "hot", "warm", "disk" };
    struct life_options options = { .all = false };
    bool known = false;
    struct err err;
    char **names;
    int count, code;

    code = common_parse(&pause_verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    for (size_t i = 0; options.tier && i < ARRAY_LEN(tiers); i++)
        known = known || strcmp(options.tier, tiers[i]) == 0;
    if (options.tier && !known)
        (void) err_set(&err, ERR_USAGE, "pause: --tier is hot, warm or disk");
    else if (options.no_memory && options.tier && strcmp(options.tier, "disk") != 0)
        (void) err_set(&err, ERR_USAGE, "pause: --no-memory means disk");
    else
        return each_sandbox(&pause_verb, options.all, names, count, pause_one, &options);
    return report_error(&err);
}

static int resume_one(const char *sandbox, json_t *state, void *context, struct err *err)
{
    (void) context;
    if (state && strcmp(text_of(state, "state"), "paused") != 0)
        return 0;
    return server_ask("POST", NULL, NULL, err, "/v1/sandboxes/%s/resume", sandbox);
}

int verb_resume(int argc, char **argv)
{
    struct life_options options = { .all = false };
    char **names;
    int count, code;

    code = common_parse(&resume_verb, argc, argv, &options, &names, &count);
    return code >= 0 ? code
                     : each_sandbox(&resume_verb, options.all, names, count, resume_one, &options);
}

/* ---- fork ---- */

/* Those that were made are told, also when one fails. */
static int print_forks(json_t *forks, struct err *err)
{
    json_t *fork;
    size_t i;
    int r = 0;

    json_array_foreach(forks, i, fork)
    {
        json_t *sandbox = json_object_get(fork, "sandbox");

        if (json_is_object(sandbox))
            r = show_id(sandbox, "id", err) < 0 ? -1 : r;
        else if (r == 0) {
            r = ask_error(json_object_get(fork, "error"), err);
            (void) err_wrap(err, "fork %zu of %zu", i + 1, json_array_size(forks));
        }
    }
    return r;
}

int verb_fork(int argc, char **argv)
{
    struct life_options options = { .count = 1 };
    json_t *answer = NULL;
    struct err err;
    char **names;
    int count, code, r;

    code = common_parse(&fork_verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    if (count == 0)
        return common_missing(&fork_verb, "a sandbox");
    if (count > 1)
        return common_excess(&fork_verb, names[1]);
    if (options.count < 1 || options.count > 100) {
        (void) err_set(&err, ERR_USAGE, "fork: --count is 1 to 100");
        return report_error(&err);
    }
    r = server_ask("POST", json_pack("{s:I}", "count", (json_int_t) options.count), &answer, &err,
                   "/v1/sandboxes/%s/fork", names[0]);
    if (r == 0)
        r = print_forks(json_object_get(answer, "forks"), &err);
    json_decref(answer);
    return r < 0 ? report_error(&err) : report_end(0);
}
