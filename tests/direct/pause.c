/* pause and resume: from memory to disk and back. */
#include "base/own.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "direct/common.h"
#include "direct/substore.h"

#include <string.h>

struct pause_options {
    const char *tier;
    bool all, no_memory;
    bool warm, disk; /* what `tier` says */
};

struct resume_options {
    bool all;
};

/* clang-format off */
static const struct option pause_options[] = {
    { 'a', "all", OPTION_FLAG, offsetof(struct pause_options, all), NULL, COMPLETE_NONE,
      "every sandbox of this state directory" },
    { 0, "tier", OPTION_TEXT, offsetof(struct pause_options, tier), "TIER", COMPLETE_NONE,
      "hot: frozen in memory, warm: memory moved to swap, disk: saved to disk (hot)" },
    { 0, "no-memory", OPTION_FLAG, offsetof(struct pause_options, no_memory), NULL, COMPLETE_NONE,
      "keep its files only, on disk; its processes end" },
};

static const struct option resume_options[] = {
    { 'a', "all", OPTION_FLAG, offsetof(struct resume_options, all), NULL, COMPLETE_NONE,
      "every sandbox of this state directory" },
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
/* clang-format on */

static void say_fallback(const char *sandbox, const struct err *why)
{
    (void) fprintf(stderr, "cove: %s stays in memory: %s\n", sandbox, why->msg);
}

static int save(struct link *link, const struct keeper_sandbox *sandbox, bool memory,
                struct err *err)
{
    char owner[KEEPER_NAME_MAX];
    struct keeper_image image;

    saved_owner(sandbox->id, owner);
    return image_save(link, sandbox->id, sandbox->id, owner,
                      KEEPER_SAVE_STOP | (memory ? KEEPER_SAVE_MEMORY : 0), &image, err);
}

/* One that is frozen already may still go further down. */
static int freeze(struct link *link, const struct keeper_sandbox *sandbox,
                  const struct pause_options *options, struct err *err)
{
    bool lower = options->warm || options->disk;

    if (sandbox->life == LIFE_PAUSED && lower)
        return 0;
    return sandbox_freeze(link, sandbox->id, err);
}

static int pause_one(struct link *link, const char *name, void *context, struct err *err)
{
    const struct pause_options *options = context;
    struct keeper_sandbox sandbox;
    struct keeper_image saved;
    uint64_t bytes;

    if (sandbox_get(link, name, &sandbox, err) < 0) {
        struct err gone = *err;

        if (err->kind != ERR_NO_SANDBOX || saved_find(link, name, &saved, err) < 0)
            return -1;
        *err = gone;
        return options->all || options->disk
                   ? 0
                   : err_set(err, ERR_STATE, "sandbox '%s' is paused to disk", saved.id);
    }
    if (options->all && sandbox.life == LIFE_PAUSED && !options->warm && !options->disk)
        return 0;
    if (options->disk) {
        if (save(link, &sandbox, !options->no_memory, err) == 0)
            return 0;
        if (options->no_memory || (err->kind != ERR_UNSUPPORTED && err->kind != ERR_DISK_FULL))
            return -1;
        say_fallback(sandbox.id, err);
    }
    if (freeze(link, &sandbox, options, err) < 0)
        return -1;
    if (options->warm && sandbox_reclaim(link, sandbox.id, &bytes, err) < 0)
        say_fallback(sandbox.id, err);
    return 0;
}

int verb_pause(int argc, char **argv)
{
    struct pause_options options = { .all = false };
    struct err err;
    char **names;
    int count, code;

    code = common_parse(&pause_verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    options.warm = options.tier && strcmp(options.tier, "warm") == 0;
    options.disk = options.no_memory || (options.tier && strcmp(options.tier, "disk") == 0);
    if (options.tier && !options.warm && strcmp(options.tier, "disk") != 0 &&
        strcmp(options.tier, "hot") != 0)
        (void) err_set(&err, ERR_USAGE, "pause: --tier is hot, warm or disk");
    else if (options.no_memory && options.tier && strcmp(options.tier, "disk") != 0)
        (void) err_set(&err, ERR_USAGE, "pause: --no-memory means disk");
    else
        return saved_each(&pause_verb, options.all, names, count, pause_one, &options);
    return report_error(&err);
}

static int resume_one(struct link *link, const char *name, void *context, struct err *err)
{
    const struct resume_options *options = context;
    struct keeper_sandbox sandbox;
    struct keeper_image saved;
    struct image_load_spec spec;

    if (sandbox_get(link, name, &sandbox, err) == 0)
        return options->all && sandbox.life != LIFE_PAUSED ? 0
                                                           : sandbox_thaw(link, sandbox.id, err);
    if (err->kind != ERR_NO_SANDBOX || saved_find(link, name, &saved, err) < 0)
        return -1;
    spec = (struct image_load_spec){ .image = saved.id,
                                     .owner = saved.owner,
                                     .id = saved.id,
                                     .name = saved.sandbox.name[0] ? saved.sandbox.name : NULL };
    return image_load(link, &spec, &sandbox, err);
}

int verb_resume(int argc, char **argv)
{
    struct resume_options options = { .all = false };
    char **names;
    int count, code;

    code = common_parse(&resume_verb, argc, argv, &options, &names, &count);
    return code >= 0 ? code
                     : saved_each(&resume_verb, options.all, names, count, resume_one, &options);
}
