/* One build, from FROM to the template.
 *
 * Keys are made first, of all steps of all stages; the last one that is known says where to begin. Then a sandbox is made of what
 * is known so far, and every step that is left runs in it. A stage that a COPY is from runs before that, to its end; what is
 * copied becomes files like those that are uploaded, under a name made of the stage's last key, until the build ends. So a build
 * has one sandbox at a time, and a stage whose copies are known steps does not run at all. */
#include "server/build/build_own.h"

#include "base/image_name.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "server/guard/audit.h"
#include "server/life/uploads.h"
#include "server/net/network_rules.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#define SPARE_MS  600000 /* of a sandbox's life, beyond what a step may take */
#define REMOVE_MS 60000
#define SEAL_FROM (32ull << 20) /* a disk with less is copied sooner than a sandbox is made */

/* ---- FROM ---- */

static int inherit(struct run *run, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);
    struct ops_template_ref ref;
    json_t *said = NULL, *item;
    size_t i;
    struct err ignored;
    const char *pulled = run->pulled[run->stage - spec->stages];

    (void) snprintf(run->from, sizeof run->from, "%s", pulled[0] ? pulled : run->stage->from);
    if (spec->e2b) {
        (void) strcpy(run->state.user, "user");
        (void) strcpy(run->state.workdir, "/home/user");
    }
    if (pulled[0])
        return 0;
    if (ops_template_ref_read(run->stage->from, &ref, &ignored) < 0 ||
        ops_template_settings(&run->ops, &ref, &said, &ignored) < 0) {
        image_template_name(run->stage->from, run->from, sizeof run->from);
        return name_ok(run->from) ? 0
                                  : err_set(err, ERR_NO_TEMPLATE,
                                            "from: there is no template '%.60s'", run->stage->from);
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
    run->state.entrypoint = json_incref(json_object_get(said, "entrypoint"));
    run->state.cmd = json_incref(json_object_get(said, "cmd"));
    (void) json_object_update(run->state.labels, json_object_get(said, "labels"));
    (void) json_array_extend(run->state.ports, json_object_get(said, "ports"));
    json_decref(said);
    return 0;
}

static int no_template(const struct run *run, struct err *err)
{
    return err_set(err, ERR_NO_TEMPLATE,
                   "there is no template '%.60s': an administrator installs images with "
                   "`cove template pull` or `cove template import`",
                   run->stage->from);
}

/* Of a template that was built: its build, which never changes. Of one that is installed: its version. */
static int from_key(struct run *run, char out[KEY_MAX], struct err *err)
{
    struct store_template template;
    struct ops_template_ref ref;
    char text[4 * STORE_NAME_MAX];
    struct err ignored;

    text[0] = '\0';
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
    if (!text[0] && from_installed(run, text, sizeof text, err) < 0)
        return err->kind == ERR_NO_TEMPLATE ? no_template(run, err) : -1;
    key_begin(run->ops.caller->tenant, text, &run->state, out);
    return 0;
}

/* ---- a sandbox ---- */

int run_make_sandbox(struct run *run, const char *image, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);
    struct store_build *record = job_record(run->job);
    const uint64_t never = 0;
    struct ops_create create = { .template = image ? NULL : run->from,
                                 .pulled = run->pulled[run->stage - spec->stages][0] != '\0',
                                 .build_image = image,
                                 .id = record->sandbox,
                                 .root = true,
                                 .e2b = true, /* a build is a machine of its own for every caller */
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
    /* Written down before it is there: the server after a crash finds it. */
    if (sandbox_new_id(record->sandbox, err) < 0 || job_save(run->job, err) < 0)
        return -1;
    if (ops_sandbox_create(&run->ops, &create, &made, err) == 0)
        return 0;
    return err->kind == ERR_NO_TEMPLATE ? no_template(run, err) : -1;
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
    /* A keeper that was killed is back in a moment. What is left after that goes at its deadline, or at the next start. A store without
     * room has none in a moment, either: job_save_end waits for that. */
    while ((r = ops_sandbox_kill(&ops, record->sandbox, &err)) < 0 && err.kind != ERR_NO_SANDBOX &&
           err.kind != ERR_DISK_FULL && io_now_ms() < until)
        (void) poll(NULL, 0, 500);
    if (r == 0 || err.kind == ERR_NO_SANDBOX)
        record->sandbox[0] = '\0';
    else
        log_line(LOG_WARNING, "build=%s sandbox=%s not removed: %s", record->id, record->sandbox,
                 err.msg);
}

/* ---- a step ---- */

static char (*stage_keys(struct run *run))[KEY_MAX]
{
    return run->keys[run->stage - job_spec(run->job)->stages];
}

static void audit_step(struct run *run, const struct build_step *step, const char *sandbox,
                       uint64_t begun, const struct err *why)
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
    audit_note(run->ops.caller, "template.step", sandbox, &facts);
}

/* What is large is sealed: the sandbox ends, its disk is the snapshot's, and the next steps run in a sandbox on top, with a disk of their own.
 * A small disk is copied, and the sandbox continues. open: a sandbox is there in the end, also behind the last step. */
static int keep(struct run *run, size_t n, bool open, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);
    struct store_build *record = job_record(run->job);
    bool needed = open || n + 1 < run->stage->count;
    bool used = needed || spec->start || spec->ready;

    if (cache_keep(run, stage_keys(run)[n + 1], used ? SEAL_FROM : 0, err) < 0)
        return -1;
    return needed && !record->sandbox[0] ? run_make_sandbox(run, record->snapshot, err) : 0;
}

static int one_step(struct run *run, size_t n, bool open, struct err *err)
{
    const struct build_step *step = &run->stage->steps[n];
    bool last = n + 1 == run->stage->count;
    char sandbox[ID_LEN + 1]; /* another may be in its place afterwards */
    uint64_t begun = io_now_ms();
    struct ops_sandbox extended;
    int r;

    if (job_cancelled(run->job))
        return err_set(err, ERR_STATE, "the build was cancelled");
    memcpy(sandbox, job_record(run->job)->sandbox, sizeof sandbox);
    r = ops_sandbox_extend(&run->ops, sandbox,
                           job_spec(run->job)->step_ms + SPARE_MS >
                                   app_config(job_app(run->job))->sandbox_timeout_most_ms
                               ? app_config(job_app(run->job))->sandbox_timeout_most_ms
                               : job_spec(run->job)->step_ms + SPARE_MS,
                           &extended, err);
    if (r == 0)
        r = step_do(run, step, err);
    if (r == 0 && (step_changes(step) || last))
        r = keep(run, n, open, err);
    audit_step(run, step, sandbox, begun, r < 0 ? err : NULL);
    return r;
}

static void number_step(struct run *run, size_t n)
{
    (void) snprintf(run->number, sizeof run->number, "%zu", run->stage->before + n + 1);
    run->step = run->number;
    (void) snprintf(job_record(run->job)->step, sizeof job_record(run->job)->step, "%s", run->step);
}

static int run_stage(struct run *run, bool open, struct err *err);

/* ---- stages ---- */

/* The sandbox that the stage begins with. E2B's steps are those of `user` at home, whom an image need not have. */
static int begin_sandbox(struct run *run, const char *image, struct err *err)
{
    if (run_make_sandbox(run, image, err) < 0)
        return -1;
    if (image || !job_spec(run->job)->e2b)
        return 0;
    return write_user(run, err) < 0
               ? -1
               : write_directory(run, run->state.workdir, run->state.user, err);
}

/* A stage of its own, while another one waits. */
static int with_stage(const struct run *run, size_t number,
                      int (*each)(struct run *run, void *arg, struct err *err), void *arg,
                      struct err *err)
{
    struct run sub = *run;
    int r;

    sub.stage = &job_spec(run->job)->stages[number];
    if (state_init(&sub.state) < 0)
        r = err_set(err, ERR_NO_MEMORY, "no memory for a build");
    else
        r = inherit(&sub, err) < 0 ? -1 : each(&sub, arg, err);
    state_done(&sub.state);
    return r;
}

/* Files of the stage `number` that the steps from `known` on copy, and that are not there yet. */
struct export
{
    const struct run *into;
    size_t known;
    int number;
};

static int export_from(struct run *run, void *arg, struct err *err)
{
    const struct export *e = arg;
    struct store_build *record = job_record(run->job);
    char left[ID_LEN + 1];
    int r = run_stage(run, true, err);

    for (size_t n = e->known; r == 0 && n < e->into->stage->count; n++) {
        const struct build_step *step = &e->into->stage->steps[n];

        if (step->stage == e->number && !copy_has_files(run, step))
            r = copy_export(run, step, err);
    }
    if (r < 0)
        return -1;
    job_remove_sandbox(run->job);
    memcpy(left, record->snapshot, sizeof left);
    record->snapshot[0] = '\0';
    r = job_save(run->job, err);
    if (r == 0)
        ops_template_drop(job_app(run->job), left);
    return r;
}

/* Runs the stages that the steps from `known` on need. *ret: one ran, and the record says nothing of this stage any more. */
static int run_sources(struct run *run, size_t known, bool *ret, struct err *err)
{
    *ret = false;
    for (size_t n = known; n < run->stage->count; n++) {
        const struct build_step *step = &run->stage->steps[n];
        struct export e = { run, known, step->stage };

        if (step->stage < 0 || copy_has_files(run, step))
            continue;
        *ret = true;
        if (with_stage(run, (size_t) step->stage, export_from, &e, err) < 0)
            return -1;
    }
    return 0;
}

/* All steps of the stage. open: a sandbox with its files is there in the end. */
static int run_stage(struct run *run, bool open, struct err *err)
{
    struct store_build *record = job_record(run->job);
    const struct build_stage *stage = run->stage;
    bool sources;
    size_t known;

    run->step = "base";
    (void) strcpy(record->step, run->step);
    job_say(run->job, "info", run->step, "FROM %.*s", 200, stage->from);
    if (job_cancelled(run->job))
        return err_set(err, ERR_STATE, "the build was cancelled");
    if (cache_find(run, &known, err) < 0 || run_sources(run, known, &sources, err) < 0 ||
        (sources && cache_find(run, &known, err) < 0))
        return -1;
    run->step = "base";
    (void) strcpy(record->step, run->step);
    if ((known < stage->count || open || stage->count == 0) &&
        begin_sandbox(run, known > 0 ? record->snapshot : NULL, err) < 0)
        return -1;
    for (size_t n = 0; n < stage->count; n++) {
        const struct build_step *step = &stage->steps[n];

        number_step(run, n);
        job_say(run->job, "info", run->step, "%s[%s/%zu] %s %.*s", n < known ? "CACHED " : "",
                run->step, job_spec(run->job)->steps, step_name(step->type), 200,
                step_arg(step, 0));
        if (state_apply(&run->state, step, err) < 0 ||
            (n >= known && one_step(run, n, open, err) < 0))
            return -1;
    }
    return stage->count == 0 && !open ? cache_keep(run, NULL, UINT64_MAX, err) : 0;
}

/* ---- all of it ---- */

static json_t *settings_of(struct run *run)
{
    const struct build_spec *spec = job_spec(run->job);
    json_t *said = json_pack("{s:s, s:[], s:s*, s:s*, s:O*, s:O*}", "from", run->stage->from, "env",
                             "start", spec->start, "ready", spec->ready, "entrypoint",
                             run->state.entrypoint, "cmd", run->state.cmd);
    const char *key;
    json_t *value;

    json_object_foreach(run->state.env, key, value)(void) json_array_append_new(
        json_object_get(said, "env"), json_sprintf("%s=%s", key, json_string_value(value)));
    if (run->state.user[0])
        (void) json_object_set_new(said, "user", json_string(run->state.user));
    if (run->state.workdir[0])
        (void) json_object_set_new(said, "workdir", json_string(run->state.workdir));
    if (json_object_size(run->state.labels) > 0)
        (void) json_object_set(said, "labels", run->state.labels);
    if (json_array_size(run->state.ports) > 0)
        (void) json_object_set(said, "ports", run->state.ports);
    return said;
}

/* The keys of a stage; those of the stages before it are there. */
static int make_keys(struct run *run, void *arg, struct err *err)
{
    const struct build_stage *stages = job_spec(run->job)->stages;
    char(*keys)[KEY_MAX] = calloc(run->stage->count + 1, sizeof *keys);

    (void) arg;
    if (!keys)
        return err_set(err, ERR_NO_MEMORY, "no memory for a build");
    run->keys[run->stage - stages] = keys;
    if (from_key(run, keys[0], err) < 0)
        return -1;
    for (size_t n = 0; n < run->stage->count; n++) {
        const struct build_step *step = &run->stage->steps[n];

        step_key(keys[n], step,
                 step->stage >= 0 ? run->keys[step->stage][stages[step->stage].count] : "",
                 keys[n + 1]);
    }
    return 0;
}

static int run_last(struct run *run, void *arg, struct err *err)
{
    json_t **ret = arg;

    if (run_stage(run, false, err) < 0 || run_warm(run, err) < 0)
        return -1;
    *ret = settings_of(run);
    return 0;
}

static int run_all(struct run *run, json_t **ret, struct err *err)
{
    const struct build_spec *spec = job_spec(run->job);

    run->step = "base";
    (void) strcpy(job_record(run->job)->step, run->step);
    for (size_t i = 0; i < spec->stage_count; i++)
        if (with_stage(run, i, make_keys, NULL, err) < 0)
            return -1;
    return with_stage(run, spec->stage_count - 1, run_last, ret, err);
}

int job_run(struct job *job, json_t **ret, struct err *err)
{
    const struct build_spec *spec = job_spec(job);
    auto_free struct reach *network = calloc(1, sizeof *network);
    struct run run = { .job = job, .ops = ops_of(job_caller(job)) };
    int r = 0;

    run.keys = calloc(spec->stage_count, sizeof *run.keys);
    run.pulled = calloc(spec->stage_count, sizeof *run.pulled);
    if (!network || !run.keys || !run.pulled)
        r = err_set(err, ERR_NO_MEMORY, "no memory for a build");
    if (r == 0 && spec->network)
        r = network_read(job_caller(job), "network", spec->network, network, err);
    else if (network)
        network->mode = REACH_PUBLIC;
    if (spec->network || (spec->e2b && job_app(job)->network))
        run.network = network;
    if (r == 0)
        r = images_get(&run, err);
    if (r == 0)
        r = run_all(&run, ret, err);
    images_release(&run);
    uploads_drop_build(job_app(job), run.ops.caller->tenant, job_record(job)->id);
    for (size_t i = 0; run.keys && i < spec->stage_count; i++)
        free(run.keys[i]);
    free(run.keys);
    return r;
}
