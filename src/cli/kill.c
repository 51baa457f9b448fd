#include "cli/common.h"
#include "cli/saved.h"
#include "cli/verbs.h"

struct kill_options {
    bool all;
};

/* clang-format off */
static const struct option kill_options[] = {
    { 'a', "all", OPTION_FLAG, offsetof(struct kill_options, all), NULL, COMPLETE_NONE,
      "every sandbox of this state directory" },
};

const struct verb kill_verb = {
    .name = "kill",
    .synopsis = "[--all] SANDBOX…",
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

int verb_kill(int argc, char **argv)
{
    struct kill_options options = { .all = false };
    char **names;
    int count, code;

    code = common_parse(&kill_verb, argc, argv, &options, &names, &count);
    return code >= 0 ? code : saved_each(&kill_verb, options.all, names, count, kill_one, NULL);
}
