/* The start command of a template: it runs when the template is saved. */
#include "server/build/build_own.h"

#include "base/io.h"

#include <poll.h>
#include <string.h>

#define READY_MS      600000
#define READY_LOOK_MS 2000
#define START_MS      20000 /* a start command without a ready command */

static int wait_ready(struct run *run, struct err *err)
{
    const char *ready = job_spec(run->job)->ready;
    uint64_t until = io_now_ms() + (ready ? READY_MS : START_MS);

    for (;;) {
        struct ops_command command = { .command = ready,
                                       .user = run->state.user[0] ? run->state.user : NULL,
                                       .cwd = run->state.workdir[0] ? run->state.workdir : NULL,
                                       .timeout_ms = READY_MS };

        if (ready && run_command(run, &command, NULL, ready, err) == 0)
            return 0;
        if (job_cancelled(run->job))
            return err_set(err, ERR_STATE, "the build was cancelled");
        if (ready && err->kind != ERR_STATE)
            return -1;
        if (io_now_ms() >= until)
            return ready ? err_set(err, ERR_TIMEOUT,
                                   "the ready command did not succeed within %d s", READY_MS / 1000)
                         : 0;
        (void) poll(NULL, 0, READY_LOOK_MS);
    }
}

static int start_in(struct run *run, struct err *err)
{
    struct ops_command command = { .command = job_spec(run->job)->start,
                                   .user = run->state.user[0] ? run->state.user : NULL,
                                   .cwd = run->state.workdir[0] ? run->state.workdir : NULL,
                                   .flags = AGENT_DETACH };
    struct ops_run exec;
    char **texts;
    int r;

    if (!command.command)
        return 0;
    texts = env_list(&run->state, NULL, &command.env_count);
    command.env = (const char *const *) texts;
    r = ops_run_start(&run->ops, job_record(run->job)->sandbox, &command, &exec, err);
    if (r == 0)
        ops_run_close(&exec);
    env_free(texts, command.env_count);
    return r;
}

/* The processes go into the image; where that cannot be, the command runs in every sandbox that is made. */
int run_warm(struct run *run, struct err *err)
{
    struct store_build *record = job_record(run->job);
    struct ops_save_template save = { .memory = true };
    char before[ID_LEN + 1];

    if (!job_spec(run->job)->start && !job_spec(run->job)->ready)
        return 0;
    run->step = "finalize";
    (void) strcpy(record->step, run->step);
    job_say(run->job, "info", run->step, "start: %.*s", 200,
            job_spec(run->job)->start ? job_spec(run->job)->start : "");
    if (!record->sandbox[0] && run_make_sandbox(run, record->snapshot, err) < 0)
        return -1;
    if (start_in(run, err) < 0 || wait_ready(run, err) < 0)
        return -1;
    if (!job_spec(run->job)->start)
        return 0;
    if (ops_template_save(&run->ops, record->sandbox, &save, err) < 0) {
        job_say(run->job, "warn", run->step,
                "processes cannot be kept here (%.200s): the start command runs in every sandbox",
                err->msg);
        return err->kind == ERR_UNSUPPORTED ? 0 : -1;
    }
    memcpy(before, record->snapshot, sizeof before);
    memcpy(record->snapshot, save.id, sizeof record->snapshot);
    if (job_save(run->job, err) < 0)
        return -1;
    ops_template_drop(job_app(run->job), before);
    return 0;
}
