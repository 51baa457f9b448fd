/* One build, from FROM to the template.
 *
 * Keys are made first, of all steps; the last one that is known says where to begin. Then a sandbox is made of what is known so far,
 * and every step that is left runs in it. */
#include "server/build/build_own.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "server/guard/audit.h"
#include "server/net/network_rules.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#define READY_MS      600000
#define READY_LOOK_MS 2000
#define START_MS      20000  /* a start command without a ready command */
#define SPARE_MS      600000 /* of a sandbox's life, beyond what a step may take */
#define REMOVE_MS     60000
#define SCRATCH       "/tmp/.cove-build"
#define TEXT_KEPT     2000

/* ---- FROM ---- */

static int inherit(struct run *run, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);
    struct ops_template_ref ref;
    json_t *said = NULL, *item;
    size_t i;
    struct err ignored;

    (void) snprintf(run->from, sizeof run->from, "%s", spec->from);
    if (spec->e2b) {
        (void) strcpy(run->state.user, "user");
        (void) strcpy(run->state.workdir, "/home/user");
    }
    if (ops_template_ref_read(spec->from, &ref, &ignored) < 0 ||
        ops_template_settings(&run->ops, &ref, &said, &ignored) < 0) {
        installed_name(spec->from, run->from, sizeof run->from);
        return name_ok(run->from) ? 0
                                  : err_set(err, ERR_NO_TEMPLATE,
                                            "from: there is no template '%.60s'", spec->from);
    }
    json_array_foreach(json_object_get(said, "env"), i, item)
    {
        const char *text = json_string_value(item), *value = text ? strchr(text, '=') : NULL;

        if (value)
            (void) json_object_setn_new(run->state.env, text, (size_t) (value - text),
                                        json_string(value + 1));
    }
    (void) snprintf(run->state.user, sizeof run->state.user, "%s",
                    json_string_value(json_object_get(said, "user"))
                        ? json_string_value(json_object_get(said, "user"))
                        : run->state.user);
    if (json_string_value(json_object_get(said, "workdir")))
        (void) snprintf(run->state.workdir, sizeof run->state.workdir, "%s",
                        json_string_value(json_object_get(said, "workdir")));
    json_decref(said);
    return 0;
}

/* Of a template that was built: its build, which never changes. */
static int from_key(struct run *run, char out[KEY_MAX], struct err *err)
{
    struct store_template template;
    struct ops_template_ref ref;
    char text[4 * STORE_NAME_MAX];
    struct err ignored;

    (void) snprintf(text, sizeof text, "installed %s", run->from);
    if (ops_template_ref_read(run->from, &ref, &ignored) == 0 &&
        store_template_find(job_app(run->job)->store, run->ops.caller->tenant, ref.name, false,
                            &template, &ignored) == 0) {
        auto_free struct store_build *build = malloc(sizeof *build);

        if (!build)
            return err_set(err, ERR_NO_MEMORY, "no memory for a build");
        /* One of that name without a build: the host's is meant, as in a create. */
        if (store_tag_get(job_app(run->job)->store, template.id, ref.tag, build, err) == 0)
            (void) snprintf(text, sizeof text, "build %s", build->id);
        else if (err->kind != ERR_NO_TEMPLATE)
            return -1;
    }
    key_begin(run->ops.caller->tenant, text, &run->state, out);
    return 0;
}

/* ---- a sandbox ---- */

static int make_sandbox(struct run *run, const char *image, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);
    struct store_build *record = job_record(run->job);
    const uint64_t never = 0;
    struct ops_create create = { .template = image ? NULL : run->from,
                                 .build_image = image,
                                 .id = record->sandbox,
                                 .root = true,
                                 .e2b = spec->e2b,
                                 .files_only = true,
                                 .idle_pause_ms = &never,
                                 .idle_disk_ms = &never,
                                 .network = run->network,
                                 .network_implied = spec->e2b && !spec->network,
                                 .timeout_ms = spec->step_ms + SPARE_MS };
    struct ops_sandbox made;
    char metadata[128];

    (void) snprintf(metadata, sizeof metadata, "{\"build\":\"%s\"}", record->id);
    create.metadata = metadata;
    limits_default(&create.limits);
    if (record->cpu_milli)
        create.limits.cpu_milli = record->cpu_milli;
    if (record->memory_bytes)
        create.limits.memory_bytes = record->memory_bytes;
    if (record->disk_bytes)
        create.limits.disk_bytes = record->disk_bytes;
    if (create.timeout_ms > app_config(job_app(run->job))->sandbox_timeout_most_ms)
        create.timeout_ms = app_config(job_app(run->job))->sandbox_timeout_most_ms;
    /* Written down before it is there: whoever comes after a crash finds it. */
    if (sandbox_new_id(record->sandbox, err) < 0 || job_save(run->job, err) < 0)
        return -1;
    if (ops_sandbox_create(&run->ops, &create, &made, err) == 0)
        return 0;
    if (err->kind == ERR_NO_TEMPLATE)
        err_set(err, ERR_NO_TEMPLATE,
                "there is no template '%.60s': an administrator installs images with "
                "`cove template pull` or `cove template import`",
                spec->from);
    return -1;
}

void job_remove_sandbox(struct job *job)
{
    struct store_build *record = job_record(job);
    struct caller caller = *job_caller(job);
    struct ops ops = ops_of(&caller);
    uint64_t until = io_now_ms() + REMOVE_MS;
    struct err err;
    int r;

    caller.fd = -1;
    /* A keeper that was killed is back in a moment. What is left after that goes at its deadline, or at the next start. */
    while ((r = ops_sandbox_kill(&ops, record->sandbox, &err)) < 0 && err.kind != ERR_NO_SANDBOX &&
           io_now_ms() < until)
        (void) poll(NULL, 0, 500);
    if (r == 0 || err.kind == ERR_NO_SANDBOX)
        record->sandbox[0] = '\0';
    else
        log_line(LOG_WARNING, "build=%s sandbox=%s not removed: %s", record->id, record->sandbox,
                 err.msg);
}

/* ---- commands ---- */

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
        ops_run_explain(&run->ops, exec, err);
        return -1;
    }
    *ret = event.result;
    return 0;
}

static const char **env_list(const struct build_state *state, char ***ret_texts, size_t *ret_count)
{
    size_t count = json_object_size(state->env), n = 0;
    char **texts = calloc(count + 1, sizeof *texts);
    const char *key;
    json_t *value;

    json_object_foreach(state->env, key, value)
    {
        char *text = NULL;

        if (texts && asprintf(&text, "%s=%s", key, json_string_value(value)) >= 0)
            texts[n++] = text;
    }
    *ret_texts = texts;
    *ret_count = n;
    return (const char **) texts;
}

/* Waits for its end; what is no 0 is an error. */
static int run_command(struct run *run, struct ops_command *command, const char *what,
                       struct err *err)
{
    struct exec_result result = { 0 };
    struct ops_run exec;
    char **texts;
    int r;

    command->env = env_list(&run->state, &texts, &command->env_count);
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
    for (size_t i = 0; i < command->env_count; i++)
        free(texts[i]);
    free(texts);
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

/* A script of ours, as root. */
static int run_script(struct run *run, const char *script, const char *const *words, size_t count,
                      const char *what, struct err *err)
{
    const char *args[12] = { "/bin/sh", "-c", script, "cove" };
    struct ops_command command = { .args = args,
                                   .arg_count = 4 + count,
                                   .user = "root",
                                   .cwd = "/",
                                   .timeout_ms = job_spec(run->job)->step_ms };

    for (size_t i = 0; i < count; i++)
        args[4 + i] = words[i];
    return run_command(run, &command, what, err);
}

/* ---- steps ---- */

/* $1: what was unpacked, $2: what of it, $3: where to, $4: owner or "", $5: mode or "" */
static const char copy_script[] = "set -e\n"
                                  "cd \"$1\"\n"
                                  "if [ ! -e \"$2\" ] && [ ! -L \"$2\" ]; then echo \"'$2' is not "
                                  "among the files\" >&2; exit 1; fi\n"
                                  "if [ -n \"$4\" ]; then chown -hR \"$4\" .; fi\n"
                                  "if [ -n \"$5\" ]; then chmod -R \"$5\" \"$2\"; fi\n"
                                  "if [ -d \"$2\" ] && [ ! -L \"$2\" ]; then\n"
                                  "  if [ ! -d \"$3\" ]; then mkdir -p \"$3\"; if [ -n \"$4\" ]; "
                                  "then chown \"$4\" \"$3\"; fi; fi\n"
                                  "  cp -a \"$2\"/. \"$3\"/\n"
                                  "else\n"
                                  "  case \"$3\" in */) dir=$3;; *) dir=$(dirname \"$3\");; esac\n"
                                  "  if [ ! -d \"$dir\" ]; then mkdir -p \"$dir\"; if [ -n \"$4\" "
                                  "]; then chown \"$4\" \"$dir\"; fi; fi\n"
                                  "  cp -a \"$2\" \"$3\"\n"
                                  "fi\n"
                                  "cd /\n"
                                  "rm -r \"$1\"\n";

static int do_copy(struct run *run, const struct build_step *step, struct err *err)
{
    char source[PATH_MAX], to[PATH_MAX], owner[160] = "";
    auto_free char *where = state_expand(&run->state, step_arg(step, 1));
    const char *who = step_arg(step, 2)[0] ? step_arg(step, 2) : run->state.user;

    if (!where)
        return err_set(err, ERR_NO_MEMORY, "no memory for a path");
    if (who[0]) /* "x:" is x and its own group */
        (void) snprintf(owner, sizeof owner, "%s%s", who, strchr(who, ':') ? "" : ":");
    if (copy_source(step_arg(step, 0), source, err) < 0 ||
        state_path(&run->state, where, to, err) < 0 ||
        build_files_unpack(&run->ops, job_record(run->job)->sandbox, SCRATCH, step->files, err) < 0)
        return -1;
    return run_script(run, copy_script,
                      (const char *const[]){ SCRATCH, source, to, owner, step_arg(step, 3) }, 5,
                      "COPY", err);
}

static int do_run(struct run *run, const struct build_step *step, struct err *err)
{
    const char *user = step_arg(step, 1)[0] ? step_arg(step, 1) : run->state.user;
    struct ops_command command = { .command = step_arg(step, 0),
                                   .user = user[0] ? user : NULL,
                                   .cwd = run->state.workdir[0] ? run->state.workdir : NULL,
                                   .timeout_ms = job_spec(run->job)->step_ms };

    return run_command(run, &command, command.command, err);
}

/* One that is not there is made: a command of its own, which the policy may refuse. */
static int do_user(struct run *run, struct err *err)
{
    const char *const look[] = { "id", "-u", run->state.user };
    const char *const make[] = { "useradd", "-m", "-s", "/bin/bash", run->state.user };
    struct ops_command command = { .args = look,
                                   .arg_count = ARRAY_LEN(look),
                                   .user = "root",
                                   .cwd = "/",
                                   .timeout_ms = job_spec(run->job)->step_ms };
    struct ops_output output;
    bool there;

    if (ops_run_collect(&run->ops, job_record(run->job)->sandbox, &command, 4096, &output, err) < 0)
        return -1;
    there = ops_exit_code(&output.result) == 0;
    ops_output_done(&output);
    if (there)
        return 0;
    command.args = make;
    command.arg_count = ARRAY_LEN(make);
    return run_command(run, &command, "useradd", err);
}

/* state_apply came before. */
static int do_step(struct run *run, const struct build_step *step, struct err *err)
{
    switch (step->type) {
    case STEP_RUN:
        return do_run(run, step, err);
    case STEP_COPY:
        return do_copy(run, step, err);
    case STEP_WORKDIR:
        return run_script(run,
                          "[ -d \"$1\" ] || { mkdir -p \"$1\" && "
                          "if [ -n \"$2\" ]; then chown \"$2:\" \"$1\"; fi; }",
                          (const char *const[]){ run->state.workdir, run->state.user }, 2,
                          "WORKDIR", err);
    case STEP_USER:
        return do_user(run, err);
    default:
        return 0;
    }
}

/* ---- all steps ---- */

static void audit_step(struct run *run, const struct build_step *step, uint64_t begun,
                       const struct err *why)
{
    auto_free char *text = json_dumps(step->args, JSON_COMPACT);
    struct audit_facts facts = AUDIT_FACTS;
    char detail[96];

    (void) snprintf(detail, sizeof detail, "build %s step %s %s", job_record(run->job)->id,
                    run->step, step_name(step->type));
    facts.detail = detail;
    facts.code = text;
    facts.code_len = text ? strlen(text) : 0;
    facts.duration_ms = (int64_t) (io_now_ms() - begun);
    facts.refusal = why;
    audit_note(run->ops.caller, "template.step", job_record(run->job)->sandbox, &facts);
}

static int one_step(struct run *run, size_t n, bool last, struct err *err)
{
    const struct build_step *step = &job_spec(run->job)->steps[n];
    uint64_t begun = io_now_ms();
    struct ops_sandbox extended;
    int r;

    if (job_cancelled(run->job))
        return err_set(err, ERR_STATE, "the build was cancelled");
    r = ops_sandbox_extend(&run->ops, job_record(run->job)->sandbox,
                           job_spec(run->job)->step_ms + SPARE_MS >
                                   app_config(job_app(run->job))->sandbox_timeout_most_ms
                               ? app_config(job_app(run->job))->sandbox_timeout_most_ms
                               : job_spec(run->job)->step_ms + SPARE_MS,
                           &extended, err);
    if (r == 0)
        r = do_step(run, step, err);
    if (r == 0 && (step_changes(step) || last))
        r = cache_keep(run, run->keys[n + 1], err);
    audit_step(run, step, begun, r < 0 ? err : NULL);
    return r;
}

static void number_step(struct run *run, size_t n)
{
    (void) snprintf(run->number, sizeof run->number, "%zu", n + 1);
    run->step = run->number;
    (void) snprintf(job_record(run->job)->step, sizeof job_record(run->job)->step, "%s", run->step);
}

static int all_steps(struct run *run, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);
    struct store_build *record = job_record(run->job);
    size_t known;

    if (cache_find(run, &known, err) < 0)
        return -1;
    if ((known < spec->count || spec->count == 0) &&
        make_sandbox(run, known > 0 ? record->snapshot : NULL, err) < 0)
        return -1;
    for (size_t n = 0; n < spec->count; n++) {
        const struct build_step *step = &spec->steps[n];

        number_step(run, n);
        job_say(run->job, "info", run->step, "%s[%zu/%zu] %s %.*s", n < known ? "CACHED " : "",
                n + 1, spec->count, step_name(step->type), 200, step_arg(step, 0));
        if (state_apply(&run->state, step, err) < 0 ||
            (n >= known && one_step(run, n, n + 1 == spec->count, err) < 0))
            return -1;
    }
    return spec->count == 0 ? cache_keep(run, run->keys[0], err) : 0;
}

/* ---- the start command ---- */

static int wait_ready(struct run *run, struct err *err)
{
    const char *ready = job_spec(run->job)->ready;
    uint64_t until = io_now_ms() + (ready ? READY_MS : START_MS);

    for (;;) {
        struct ops_command command = { .command = ready,
                                       .user = run->state.user[0] ? run->state.user : NULL,
                                       .cwd = run->state.workdir[0] ? run->state.workdir : NULL,
                                       .timeout_ms = READY_MS };

        if (ready && run_command(run, &command, ready, err) == 0)
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
    command.env = env_list(&run->state, &texts, &command.env_count);
    r = ops_run_start(&run->ops, job_record(run->job)->sandbox, &command, &exec, err);
    if (r == 0)
        ops_run_close(&exec);
    for (size_t i = 0; i < command.env_count; i++)
        free(texts[i]);
    free(texts);
    return r;
}

/* The processes go into the image; where that cannot be, the command runs in every sandbox that is made. */
static int warm(struct run *run, struct err *err)
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
    if (!record->sandbox[0] && make_sandbox(run, record->snapshot, err) < 0)
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

static json_t *settings_of(struct run *run)
{
    const struct build_spec *spec = job_spec(run->job);
    json_t *said = json_pack("{s:s, s:[], s:s*, s:s*}", "from", spec->from, "env", "start",
                             spec->start, "ready", spec->ready);
    const char *key;
    json_t *value;

    json_object_foreach(run->state.env, key, value)(void) json_array_append_new(
        json_object_get(said, "env"), json_sprintf("%s=%s", key, json_string_value(value)));
    if (run->state.user[0])
        (void) json_object_set_new(said, "user", json_string(run->state.user));
    if (run->state.workdir[0])
        (void) json_object_set_new(said, "workdir", json_string(run->state.workdir));
    return said;
}

static int run_all(struct run *run, json_t **ret, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);

    run->step = "base";
    (void) strcpy(job_record(run->job)->step, run->step);
    job_say(run->job, "info", run->step, "FROM %.*s", 200, spec->from);
    if (job_cancelled(run->job))
        return err_set(err, ERR_STATE, "the build was cancelled");
    if (inherit(run, err) < 0 || from_key(run, run->keys[0], err) < 0)
        return -1;
    for (size_t n = 0; n < spec->count; n++)
        step_key(run->keys[n], &spec->steps[n], run->keys[n + 1]);
    if (all_steps(run, err) < 0 || warm(run, err) < 0)
        return -1;
    *ret = settings_of(run);
    return 0;
}

int job_run(struct job *job, json_t **ret, struct err *err)
{
    const struct build_spec *spec = job_spec(job);
    auto_free struct reach *network = calloc(1, sizeof *network);
    struct run run = { .job = job, .ops = ops_of(job_caller(job)) };
    int r = 0;

    run.keys = calloc(spec->count + 1, sizeof *run.keys);
    run.state.env = json_object();
    if (!network || !run.keys || !run.state.env)
        r = err_set(err, ERR_NO_MEMORY, "no memory for a build");
    if (r == 0 && spec->network)
        r = network_read(job_caller(job), "network", spec->network, network, err);
    else if (network)
        network->mode = REACH_PUBLIC;
    if (spec->network || (spec->e2b && job_app(job)->network))
        run.network = network;
    if (r == 0)
        r = run_all(&run, ret, err);
    json_decref(run.state.env);
    free(run.keys);
    return r;
}
