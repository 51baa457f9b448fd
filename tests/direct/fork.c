/* Copies of a running sandbox: one image, loaded as often as asked for, and dropped at the end. */
#include "base/own.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "direct/common.h"
#include "direct/substore.h"

#define FORKS_MOST 100

struct fork_options {
    uint64_t count;
};

/* clang-format off */
static const struct option fork_options[] = {
    { 'n', "count", OPTION_NUMBER, offsetof(struct fork_options, count), "N", COMPLETE_NONE,
      "how many, up to 100 (1)" },
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

/* Those that were made are told, also when one fails. */
static int load_all(struct link *link, const struct keeper_image *image, uint64_t count,
                    struct err *err)
{
    struct keeper_sandbox made;

    for (uint64_t i = 0; i < count; i++) {
        if (saved_load(link, image, &made, err) < 0)
            return err_wrap(err, "fork %llu of %llu", (unsigned long long) i + 1,
                            (unsigned long long) count);
        printf("%s\n", made.id);
    }
    return 0;
}

static int fork_sandbox(struct link *link, const char *name, uint64_t count, struct err *err)
{
    char id[ID_LEN + 1];
    struct keeper_sandbox sandbox;
    struct keeper_image image;
    struct err ignored;
    int r;

    if (sandbox_get(link, name, &sandbox, err) < 0 || sandbox_new_id(id, err) < 0)
        return -1;
    /* Nobody's but ours: an image of a tenant's without a record would be dropped by the server. */
    if (image_save(link, sandbox.id, id, "", KEEPER_SAVE_MEMORY, &image, err) < 0)
        return -1;
    r = load_all(link, &image, count, err);
    if (image_drop(link, id, &ignored) < 0)
        (void) report_error(&ignored);
    return r;
}

int verb_fork(int argc, char **argv)
{
    struct fork_options options = { .count = 1 };
    struct link link;
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
    if (options.count < 1 || options.count > FORKS_MOST) {
        (void) err_set(&err, ERR_USAGE, "fork: --count is 1 to %d", FORKS_MOST);
        return report_error(&err);
    }
    if (common_open(&link, &err) < 0)
        return report_error(&err);
    r = saved_resolve(&link, &names[0], &err);
    if (r == 0)
        r = fork_sandbox(&link, names[0], options.count, &err);
    link_close(&link);
    return r < 0 ? report_error(&err) : report_end(0);
}
