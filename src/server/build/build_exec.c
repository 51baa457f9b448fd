/* Commands of a build, and their output as lines of its log. */
#include "server/build/build_own.h"

#include "base/own.h"

#include <string.h>

#define TEXT_KEPT 2000

/* Output becomes lines of the log. */
struct lines {
    struct run *run;
    char text[2][TEXT_KEPT];
    size_t have[2];
};

static void flush(struct lines *lines, int s)
{
    if (lines->have[s] > 0 && lines->text[s][lines->have[s] - 1] == '\r')
        lines->have[s]--;
    job_log(lines->run->job, "info", lines->run->step, lines->text[s], lines->have[s]);
    lines->have[s] = 0;
}

static void take_output(struct lines *lines, const struct exec_event *event)
{
    int s = event->type == EXEC_STDERR;
    const char *data = (const char *) event->data;

    for (size_t i = 0; i < event->len; i++) {
        if (data[i] == '\n' || lines->have[s] == TEXT_KEPT)
            flush(lines, s);
        if (data[i] != '\n')
            lines->text[s][lines->have[s]++] = data[i] ? data[i] : ' ';
    }
}

static int follow(struct run *run, struct ops_run *exec, struct exec_result *ret, struct err *err)
{
    struct lines lines = { .run = run };
    struct exec_event event;
    int r;

    while ((r = ops_run_next(&run->ops, exec, &event, err)) >= 0) {
        if (r == 1 && event.type == EXEC_END)
            break;
        if (r == 1)
            take_output(&lines, &event);
    }
    for (int s = 0; s < 2; s++)
        if (lines.have[s] > 0)
            flush(&lines, s);
    if (r < 0) {
        ops_run_explain(exec, err);
        return -1;
    }
    *ret = event.result;
    return 0;
}

static void add_env(char **texts, size_t *count, const json_t *env)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *) env, key, value)
    {
        char *text = NULL;

        if (asprintf(&text, "%s=%s", key, json_string_value(value)) >= 0)
            texts[(*count)++] = text;
    }
}

char **env_list(const struct build_state *state, const json_t *more, size_t *ret_count)
{
    char **texts = calloc(json_object_size(state->env) + json_object_size(more) + 1, sizeof *texts);

    *ret_count = 0;
    if (texts) {
        add_env(texts, ret_count, state->env);
        add_env(texts, ret_count, more); /* the last of a name counts */
    }
    return texts;
}

void env_free(char **texts, size_t count)
{
    for (size_t i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

int run_command(struct run *run, struct ops_command *command, const json_t *more_env,
                const char *what, struct err *err)
{
    struct exec_result result = { 0 };
    struct ops_run exec;
    char **texts = env_list(&run->state, more_env, &command->env_count);
    int r;

    command->env = (const char *const *) texts;
    command->flags |= AGENT_KILL_ON_CLOSE;
    r = ops_run_start(&run->ops, job_record(run->job)->sandbox, command, &exec, err);
    if (r == 0) {
        r = follow(run, &exec, &result, err);
        ops_run_close(&exec);
    } else if (err->kind == ERR_NO_USER) {
        err_set(err, ERR_NO_USER,
                "failed to run command '%.200s': command failed: unauthenticated: invalid "
                "username: '%s'",
                what, command->user);
    }
    env_free(texts, command->env_count);
    if (r == 0 && (ops_exit_code(&result) != 0 || strcmp(ops_exit_reason(&result), "exit") != 0))
        r = strcmp(ops_exit_reason(&result), "exit") == 0
                ? err_set(err, ERR_STATE, "failed to run command '%.200s': exit status %u", what,
                          ops_exit_code(&result))
                : err_set(err,
                          strcmp(ops_exit_reason(&result), "timeout") == 0 ? ERR_TIMEOUT
                                                                           : ERR_STATE,
                          "failed to run command '%.200s': it was ended: %s", what,
                          ops_exit_reason(&result));
    return r;
}

int run_script(struct run *run, const char *script, const char *const *words, size_t count,
               const char *what, struct err *err)
{
    auto_free const char **args = calloc(count + 4, sizeof *args);
    struct ops_command command = { .args = args,
                                   .arg_count = 4 + count,
                                   .user = "root",
                                   .cwd = "/",
                                   .timeout_ms = job_spec(run->job)->step_ms };

    if (!args)
        return err_set(err, ERR_NO_MEMORY, "no memory for a command");
    args[0] = "/bin/sh";
    args[1] = "-c";
    args[2] = script;
    args[3] = "cove";
    for (size_t i = 0; i < count; i++)
        args[4 + i] = words[i];
    if (run_command(run, &command, NULL, what, err) == 0)
        return 0;
    return err->kind == ERR_NO_PATH
               ? err_set(err, ERR_UNSUPPORTED, "%s: the template has no shell (/bin/sh)", what)
               : -1;
}
