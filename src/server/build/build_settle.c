/* What is left of builds: of a server that ended in their middle, and of builds that newer ones took the place of. */
#include "server/build/build_own.h"

#include "base/log.h"
#include "base/own.h"
#include "server/life/uploads.h"

#include <poll.h>
#include <string.h>

#define BUILDS_KEPT 10 /* of a template, without a tag */
#define AGAIN_MS    500

struct olds {
    struct store_build *list;
    size_t count;
};

static int keep_old(void *arg, const struct store_build *build, struct err *err)
{
    struct olds *olds = arg;
    void *more = realloc(olds->list, (olds->count + 1) * sizeof *olds->list);

    if (!more)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list of builds");
    olds->list = more;
    olds->list[olds->count++] = *build;
    return 0;
}

void build_forget_old(struct app *app, const char *template)
{
    struct olds olds = { .list = NULL };
    struct err err;

    if (store_build_old(app->store, template, BUILDS_KEPT, keep_old, &olds, &err) == 0)
        for (size_t i = 0; i < olds.count; i++)
            if (store_build_remove(app->store, olds.list[i].id, &err) == 0)
                ops_template_drop(app, olds.list[i].snapshot);
    free(olds.list);
}

void job_save_end(struct job *job)
{
    const struct store_build *record = job_record(job);
    struct err err;

    for (bool told = false; job_save(job, &err) < 0 && !build_stopping(); told = true) {
        if (!told)
            log_line(LOG_WARNING, "build=%s its end is not written yet: %s", record->id, err.msg);
        (void) poll(NULL, 0, AGAIN_MS);
    }
    if (!record->sandbox[0] || build_stopping())
        return;
    job_remove_sandbox(job);
    if (job_save(job, &err) < 0)
        log_line(LOG_WARNING, "build=%s its sandbox is still recorded: %s", record->id, err.msg);
}

static void settle(struct app *app, struct store_build *build)
{
    struct caller caller = {
        .app = app, .scope = SCOPE_ADMIN, .fd = -1, .request = build->id, .peer = ""
    };
    struct ops ops = ops_of(&caller);
    char snapshot[ID_LEN + 1];
    struct err err;

    memcpy(caller.tenant, build->tenant, sizeof build->tenant);
    if (build->sandbox[0] && ops_sandbox_kill(&ops, build->sandbox, &err) < 0 &&
        err.kind != ERR_NO_SANDBOX)
        log_line(LOG_WARNING, "build=%s sandbox=%s not removed: %s", build->id, build->sandbox,
                 err.msg);
    else
        build->sandbox[0] = '\0';
    memcpy(snapshot, build->snapshot, sizeof snapshot);
    if (build->ended_ms == 0) {
        build->state = STORE_BUILD_FAILED;
        build->ended_ms = store_now_ms();
        build->snapshot[0] = '\0';
        (void) snprintf(build->reason, sizeof build->reason,
                        "the server ended while the template was built");
    }
    if (store_build_set(app->store, build, &err) < 0)
        log_line(LOG_WARNING, "build=%s its end is not written: %s", build->id, err.msg);
    else if (!build->snapshot[0])
        ops_template_drop(app, snapshot);
}

static int drop_unused(void *arg, const char *snapshot, struct err *err)
{
    struct olds *olds = arg;
    struct store_build item = { .state = 0 };

    memcpy(item.snapshot, snapshot, sizeof item.snapshot);
    return keep_old(olds, &item, err);
}

/* What a server before this one left: builds that did not end, their sandboxes, snapshots that nothing speaks of. */
void build_settle(struct app *app)
{
    struct olds olds = { .list = NULL }, lost = { .list = NULL };
    struct err err;

    if (store_build_open(app->store, keep_old, &olds, &err) < 0 ||
        store_template_images_unused(app->store, drop_unused, &lost, &err) < 0)
        log_line(LOG_WARNING, "builds could not be read: %s", err.msg);
    for (size_t i = 0; i < olds.count; i++)
        settle(app, &olds.list[i]);
    for (size_t i = 0; i < lost.count; i++)
        ops_template_drop(app, lost.list[i].snapshot);
    free(olds.list);
    free(lost.list);
    uploads_drop_parts(app);
    ops_pull_settle(app, "");
}
