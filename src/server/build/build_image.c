/* FROM an image: one that is no template yet is pulled for the tenant, or imported from an upload, before anything else of the build. */
#include "server/build/build_own.h"

#include "base/image_name.h"
#include "base/own.h"
#include "server/ops/ops_pull.h"

#include <string.h>

static void say(void *arg, const char *text)
{
    job_say(arg, "info", "base", "%s", text);
}

/* A name with a tag, a digest or a path that is neither the tenant's template, nor a published one, nor installed. */
static int is_missing(struct run *run, const char *from, bool *ret, struct err *err)
{
    auto_free char(*names)[KEEPER_NAME_MAX] = NULL;
    char preset[KEEPER_NAME_MAX], installed[KEEPER_NAME_MAX];
    struct ops_template_ref ref;
    json_t *said = NULL;
    size_t count = 0;
    struct err ignored;

    *ret = false;
    if (!strpbrk(from, ":/@"))
        return 0;
    if (ops_template_ref_read(from, &ref, &ignored) == 0 &&
        ops_template_settings(&run->ops, &ref, &said, &ignored) == 0) {
        json_decref(said);
        return 0;
    }
    if (ops_template_installed(&run->ops, &names, &count, preset, err) < 0)
        return -1;
    image_template_name(from, installed, sizeof installed);
    if (ops_template_ref_read(installed, &ref, &ignored) == 0 &&
        ops_template_settings(&run->ops, &ref, &said, &ignored) == 0) {
        json_decref(said);
        return 0;
    }
    *ret = true;
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], installed) == 0)
            *ret = false;
    return 0;
}

static int get_archive(struct run *run, const struct build_stage *stage, char *ret, struct err *err)
{
    struct ops_pull pull = { .tag = stage->archive_tag, .say = say, .arg = run->job };
    auto_close int fd = -1;

    if (build_files_open(job_app(run->job), run->ops.caller->tenant, stage->archive, &fd, err) < 0)
        return -1;
    pull.archive_fd = fd;
    return ops_pull(&run->ops, &pull, ret, err);
}

static int get_image(struct run *run, const struct build_stage *stage, char *ret, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);
    bool last = stage == spec_last(spec), missing = stage->image;
    struct ops_pull pull = { .image = stage->from,
                             .username = last ? spec->username : NULL,
                             .password = last ? spec->password : NULL,
                             .archive_fd = -1,
                             .fresh = spec->force,
                             .say = say,
                             .arg = run->job };

    if (!missing && is_missing(run, stage->from, &missing, err) < 0)
        return -1;
    if (!missing)
        return 0;
    job_say(run->job, "info", "base", "pulling %.*s", 200, stage->from);
    if (ops_pull(&run->ops, &pull, ret, err) == 0)
        return 0;
    /* A host that pulls nothing: as of any template that is missing. */
    return !stage->image && err->kind == ERR_UNSUPPORTED && !job_cancelled(run->job) ? 0 : -1;
}

int images_get(struct run *run, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);

    (void) strcpy(job_record(run->job)->step, "base");
    for (size_t i = 0; i < spec->stage_count; i++) {
        const struct build_stage *stage = &spec->stages[i];

        if ((stage->archive ? get_archive : get_image)(run, stage, run->pulled[i], err) < 0)
            return err_wrap(err, "%.100s", stage->from);
    }
    return 0;
}

void images_release(struct run *run)
{
    for (size_t i = 0; run->pulled && i < job_spec(run->job)->stage_count; i++)
        if (run->pulled[i][0])
            ops_pull_release(job_app(run->job), run->pulled[i]);
    free(run->pulled);
    run->pulled = NULL;
}
