#include "cli/saved.h"
#include "cli/verbs.h"
#include "direct/common.h"

struct kill_options {
    bool all, running;
};

/* clang-format off */
static const struct option kill_options[] = {
    { 'a', "all", OPTION_FLAG, offsetof(struct kill_options, all), NULL, COMPLETE_NONE,
      "every sandbox of this state directory" },
    { 0, "running", OPTION_FLAG, offsetof(struct kill_options, running), NULL, COMPLETE_NONE,
      "every one but those that are paused to disk" },
};

const struct verb kill_verb = {
    .name = "kill",
    .synopsis = "[--all|--running] SANDBOX…",
    .summary = "destroy sandboxes, with all that is in them",
    .details = "Returns when nothing of them is left.",
    .options = kill_options,
    .option_count = sizeof kill_options / sizeof kill_options[0],
    .operands = COMPLETE_SANDBOX,
    .run = verb_kill,
};

/* clang-format on */

/* Also one that is paused to disk, which is an image. */
static int kill_one(struct link *link, const char *sandbox, void *context, struct err *err)
{
    struct keeper_image image;

    (void) context;
    if (sandbox_destroy(link, sandbox, err) == 0)
        return 0;
    if (err->kind != ERR_NO_SANDBOX || saved_find(link, sandbox, &image, err) < 0)
        return -1;
    return image_drop(link, image.id, err);
}

static int kill_in_memory(struct link *link, const char *sandbox, void *context, struct err *err)
{
    (void) context;
    return sandbox_destroy(link, sandbox, err); /* an image is no sandbox to the keeper */
}

int verb_kill(int argc, char **argv)
{
    struct kill_options options = { .all = false };
    char **names;
    int count, code;

    code = common_parse(&kill_verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    return saved_each(&kill_verb, options.all || options.running, names, count,
                      options.running ? kill_in_memory : kill_one, NULL);
}
