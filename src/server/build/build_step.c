/* What each step does in the sandbox of its build. */
#include "server/build/build_own.h"

#include "base/own.h"

#include <string.h>

/* ---- RUN ---- */

/* The agent could not start it. */
static int no_program(const struct build_step *step, struct err *err)
{
    const char *first = step->exec ? json_string_value(json_array_get(step->exec, 0)) : "/bin/sh";
    const char *name = strrchr(first, '/') ? strrchr(first, '/') + 1 : first;

    if (step->exec && strcmp(name, "sh") != 0 && strcmp(name, "bash") != 0)
        return err_set(err, ERR_NO_PATH, "RUN: there is no program '%.120s' in the template",
                       first);
    return err_set(
        err, ERR_UNSUPPORTED,
        "RUN: the template has no shell (%.120s): run a program of the template by a list, RUN "
        "[\"/program\", \"argument\"], or copy what another stage made",
        first);
}

static int run_words(struct run *run, const struct build_step *step, const json_t *env,
                     struct err *err)
{
    const char *user = step_arg(step, 1)[0] ? step_arg(step, 1) : run->state.user;
    const char *cwd = step->cwd ? step->cwd : run->state.workdir;
    auto_free const char **args = calloc(json_array_size(step->exec) + 1, sizeof *args);
    struct ops_command command = { .user = user[0] ? user : NULL,
                                   .cwd = cwd[0] ? cwd : NULL,
                                   .timeout_ms = job_spec(run->job)->step_ms };

    if (!args)
        return err_set(err, ERR_NO_MEMORY, "no memory for a command");
    for (size_t i = 0; i < json_array_size(step->exec); i++)
        args[i] = json_string_value(json_array_get(step->exec, i));
    if (step->exec) {
        command.args = args;
        command.arg_count = json_array_size(step->exec);
    } else {
        command.command = step_arg(step, 0);
    }
    if (run_command(run, &command, env, step_arg(step, 0), err) == 0)
        return 0;
    return err->kind == ERR_NO_PATH && strstr(err->msg, "exec ") ? no_program(step, err) : -1;
}

static int do_run(struct run *run, const struct build_step *step, struct err *err)
{
    json_t *env = step->env ? json_copy((json_t *) step->env) : json_object();
    struct err why;
    int r;

    if (!env)
        return err_set(err, ERR_NO_MEMORY, "no memory for a command");
    r = mounts_enter(run, step, env, err);
    if (r == 0)
        r = run_words(run, step, env, err);
    json_decref(env);
    /* After a failure nothing of the sandbox is kept, so there is nothing to tidy. */
    return r == 0 && mounts_leave(run, step, &why) < 0 ? (*err = why, -1) : r;
}

/* state_apply came before. */
int step_do(struct run *run, const struct build_step *step, struct err *err)
{
    switch (step->type) {
    case STEP_RUN:
        return do_run(run, step, err);
    case STEP_COPY:
        return copy_do(run, step, err);
    case STEP_WORKDIR:
        return write_directory(run, run->state.workdir, run->state.user, err);
    case STEP_USER:
        return write_user(run, err);
    case STEP_ENTRYPOINT:
    case STEP_CMD:
        return write_words(run, step, err);
    default:
        return 0;
    }
}
