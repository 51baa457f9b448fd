/* What each step does in the sandbox of its build. */
#include "server/build/build_own.h"

#include "base/own.h"

#include <string.h>

#define SCRATCH "/tmp/.cove-build"

/* ---- COPY ---- */

/* $1: what was unpacked, $2: what of it ("": what a stage gave), $3: where to, $4: owner or "", $5: mode or "", $6: of a stage, the name
 * of a file. A directory that is there keeps its owner and mode. */
static const char copy_script[] =
    "set -e\n"
    "cd \"$1\"\n"
    "if [ -z \"$2\" ] && [ -d dir ]; then set -- \"$1\" dir \"$3\" \"$4\" \"$5\"\n"
    "elif [ -z \"$2\" ]; then set -- \"$1\" \"file/$6\" \"$3\" \"$4\" \"$5\"; fi\n"
    "if [ ! -e \"$2\" ] && [ ! -L \"$2\" ]; then echo \"'$2' is not among the files\" >&2; exit 1; "
    "fi\n"
    "if [ -n \"$4\" ]; then chown -hR \"$4\" .; fi\n"
    "if [ -n \"$5\" ]; then chmod -R \"$5\" \"$2\"; fi\n"
    "if [ -d \"$2\" ] && [ ! -L \"$2\" ]; then\n"
    "  if [ ! -d \"$3\" ]; then mkdir -p \"$3\"; if [ -n \"$4\" ]; then chown \"$4\" \"$3\"; fi; "
    "fi\n"
    "  for f in \"$2\"/* \"$2\"/.[!.]* \"$2\"/..?*; do\n"
    "    if [ -e \"$f\" ] || [ -L \"$f\" ]; then cp -a \"$f\" \"$3\"/; fi\n"
    "  done\n"
    "else\n"
    "  case \"$3\" in */) dir=$3;; *) dir=$(dirname \"$3\");; esac\n"
    "  if [ ! -d \"$dir\" ]; then mkdir -p \"$dir\"; if [ -n \"$4\" ]; then chown \"$4\" \"$dir\"; "
    "fi; "
    "fi\n"
    "  cp -a \"$2\" \"$3\"\n"
    "fi\n"
    "cd /\n"
    "rm -r \"$1\"\n";

/* $1: an empty directory to be, $2: a path or a pattern. What copy_script finds: dir/, or file/NAME. */
static const char export_script[] =
    "set -e\n"
    "s=$1 p=$2\n"
    "rm -rf \"$s\"; mkdir -p \"$s\"\n"
    "content() { for f in \"$1\"/* \"$1\"/.[!.]* \"$1\"/..?*; do\n"
    "  if [ -e \"$f\" ] || [ -L \"$f\" ]; then cp -a \"$f\" \"$s/dir/\"; fi; done; }\n"
    "none() { echo \"'$p' is not in the stage\" >&2; exit 1; }\n"
    "case \"$p\" in\n"
    "*[*?[]*)\n"
    "  IFS=; set -- $p\n"
    "  if [ ! -e \"$1\" ] && [ ! -L \"$1\" ]; then none; fi\n"
    "  mkdir \"$s/dir\"\n"
    "  for m in \"$@\"; do if [ -d \"$m\" ]; then content \"$m\"; else cp -aH \"$m\" \"$s/dir/\"; "
    "fi; done;;\n"
    "*)\n"
    "  if [ -d \"$p\" ]; then mkdir \"$s/dir\"; content \"$p\"\n"
    "  elif [ -e \"$p\" ]; then mkdir \"$s/file\"; cp -aH \"$p\" \"$s/file/${p##*/}\"\n"
    "  else none; fi;;\n"
    "esac\n";

void step_files(const struct run *run, const struct build_step *step, char out[KEY_MAX])
{
    const struct build_spec *spec = job_spec(run->job);
    size_t last = spec->stages[step->stage].count;

    export_key(run->keys[step->stage][last], step_arg(step, 0),
               spec->force ? job_record(run->job)->id : "", out);
}

int step_export(struct run *run, const struct build_step *step, struct err *err)
{
    char key[KEY_MAX];

    step_files(run, step, key);
    if (run_script(run, export_script, (const char *const[]){ SCRATCH, step_arg(step, 0) }, 2,
                   "COPY --from", err) < 0)
        return -1;
    return build_files_pack(&run->ops, job_record(run->job)->sandbox, SCRATCH, key, err);
}

static int do_copy(struct run *run, const struct build_step *step, struct err *err)
{
    char source[PATH_MAX] = "", to[PATH_MAX], owner[160] = "", key[KEY_MAX];
    auto_free char *where = state_expand(&run->state, step_arg(step, 1), err);
    const char *who = step_arg(step, 2)[0] ? step_arg(step, 2) : run->state.user;
    const char *files = step->files, *slash = strrchr(step_arg(step, 0), '/');

    if (!where)
        return -1;
    if (who[0]) /* "x:" is x and its own group */
        (void) snprintf(owner, sizeof owner, "%s%s", who, strchr(who, ':') ? "" : ":");
    if (step->stage < 0 && copy_source(step_arg(step, 0), source, err) < 0)
        return -1;
    if (step->stage >= 0) {
        step_files(run, step, key);
        files = key;
    }
    if (state_path(&run->state, where, to, err) < 0 ||
        build_files_unpack(&run->ops, job_record(run->job)->sandbox, SCRATCH, files, err) < 0)
        return -1;
    return run_script(run, copy_script,
                      (const char *const[]){ SCRATCH, source, to, owner, step_arg(step, 3),
                                             slash ? slash + 1 : "" },
                      6, "COPY", err);
}

/* ---- RUN ---- */

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
    return run_command(run, &command, env, step_arg(step, 0), err);
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

/* ---- USER, ENTRYPOINT, CMD ---- */

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
    return run_command(run, &command, NULL, "useradd", err);
}

/* $1: which of the two files, then its words. agent/entrypoint.c runs both, one behind the other. What an image had as one list
 * counts as CMD. */
static const char words_script[] =
    "set -e\n"
    "cd /opt/cove\n"
    "if [ ! -e bin/entrypoint ]; then cp bin/sudo bin/entrypoint; fi\n"
    "if [ -e entrypoint ] && [ ! -e entrypoint.words ] && [ ! -e cmd.words ]; then cp entrypoint "
    "cmd.words; fi\n"
    "f=$1; shift\n"
    ": >\"$f\"\n"
    "if [ $# -gt 0 ]; then printf '%s\\0' \"$@\" >\"$f\"; fi\n"
    "cat entrypoint.words cmd.words 2>/dev/null >entrypoint || true\n";

static int do_words(struct run *run, const struct build_step *step, struct err *err)
{
    size_t count = json_array_size(step->args);
    auto_free const char **words = calloc(count + 1, sizeof *words);

    if (!words)
        return err_set(err, ERR_NO_MEMORY, "no memory for a command");
    words[0] = step->type == STEP_ENTRYPOINT ? "entrypoint.words" : "cmd.words";
    for (size_t i = 0; i < count; i++)
        words[1 + i] = step_arg(step, i);
    return run_script(run, words_script, words, count + 1, step_name(step->type), err);
}

/* state_apply came before. */
int step_do(struct run *run, const struct build_step *step, struct err *err)
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
    case STEP_ENTRYPOINT:
    case STEP_CMD:
        return do_words(run, step, err);
    default:
        return 0;
    }
}
